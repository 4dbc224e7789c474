/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event scripts: the events of a target, one per line, sent to a profile; and the resulting tree as
 * text. Time starts at 1000; `+N` advances it by N ns before the event. Frames are numbers, code
 * objects are names, announced when first used.
 *
 *	T1 +5 enter 0x10 f 0x8		frame 0x10 runs f, called by frame 0x8 (omitted: no caller)
 *	T1 +5 enter 0x10 f first|again 0x8	the frame of a generator
 *	T1 +5 throw 0x10 f 0x8
 *	T1 +3 leave 0x10 [raised] | yield 0x10
 *	T1 +5 c-enter 0x10 len		frame 0x10 calls the C function with this name
 *	T1 +3 c-leave 0x10
 *	T1 +3 c-instant 0x10 append
 *	T1 +5 gc-start 0|1|2|3 [0x10]	a collection of this generation (3: unknown), with this
 *					frame innermost (omitted: unknown)
 *	T1 +9 gc-stop 0|1|2|3
 *	T1 +1 out [lost] [RUNTIME]	lost: an event of the thread was lost since its last chain
 *	T1 +1 out [cpu|gil|gil1|lock|sleep|socket|child|sync|fault|stop|quota] [delay NS]
 *					reason for waiting; the thread's time in run queues so far
 *	T1 +1 in [lost] [RUNTIME]	RUNTIME: default: the time that has passed on the CPU
 *	T1 +1 chain [resync] [truncated] [more] 0x20=g 0x10=f
 *					innermost first; more: not the last record of the chain
 *	T1 +1 exit [lost] [COMM]
 *	T1 +0 initial running|blocked RUNTIME 0x20=g 0x10=f
 *					the thread's initial stack
 *	T1 +0 runtime RUNTIME		the OS's run time before a snapshot
 *	code f ADDRESS [LINE]		announce a code object at this address; a different LINE
 *					makes it a different function
 *	free f				its code object is deallocated
 *	begin | end | clear | wait	at this time; `+N begin` etc. advances it first
 *
 * Empty lines and text after a # are ignored. The tree has one line per calling context:
 *
 *	T1 30/40			the thread's total, cpu/wall; "dead" if it has ended
 *	  outside 5/5			omitted if 0
 *	  f 2 10/15 *1			calls, self time on both clocks, activations still running
 *	    g 1 15/20
 *	! unmatched 1			counts of corrections, omitted if 0
 */
#ifndef PYPROF_TESTS_HARNESS_EVENT_SCRIPT_H
#define PYPROF_TESTS_HARNESS_EVENT_SCRIPT_H

#include "snapshot/snapshot.h"
#include "profile/profile.h"

struct event_script;

/* Aborts if out of memory, as all functions here. limits may be NULL. */
struct event_script *event_script_new(const struct profile_limits *limits);
void event_script_free(struct event_script *es);
DEFINE_FREEP(struct event_script, event_script_free)

/* Run these lines. A line that cannot be parsed aborts the test with a message. */
void event_script_run(struct event_script *es, const char *text);

struct profile *event_script_profile(struct event_script *es);
/*
 * Take a snapshot at the current time; the caller frees it. Its target's counters are the
 * profile's.
 */
struct snapshot *event_script_snapshot(struct event_script *es);
/* The tree of such a snapshot; malloc'd */
char *event_script_tree(const struct snapshot *s);
/*
 * Fail unless these events, under these limits (may be NULL), give this tree and no memory is
 * leaked.
 */
void event_script_expect(const struct profile_limits *limits, const char *script,
			 const char *expected);

#endif
