/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The profile of one target: events in, calling-context tree and counters out. This is the pure
 * heart: no I/O, no clock (time comes in with the events), no global; all growth capped.
 *
 * It routes each event to the stage it is for, and owns their data: stacks (stack/: threads, the
 * rules that match events to stacks, time, code objects), estimates from windows (estimate/),
 * aggregated counts and samples (counting/), and the tree (stats/calltree.c).
 */
#ifndef PYPROF_PROFILE_PROFILE_H
#define PYPROF_PROFILE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/code_names.h"
#include "counting/counts.h"
#include "event/event.h"
#include "snapshot/snapshot.h"
#include "stack/natives.h"
#include "stack/watch.h"

struct profile;

/* Hard caps; 0 means the default in parentheses. What does not fit is summed in "(truncated)". */
struct profile_limits {
	uint32_t nodes;	       /* (4 Mi) */
	uint32_t funcs;	       /* (1 Mi) */
	uint32_t threads;      /* (65536) alive, and the few that have ended and are kept apart */
	uint32_t depth;	       /* (262144) frames per stack */
	uint64_t frames;       /* (4 Mi) frames allocated for all stacks together, 32 bytes each */
	uint64_t string_bytes; /* (256 MiB) */
};

/* Called for a code object whose strings could not be read in BPF, and for one that was never
 * announced: read it from the target's memory. Fills *name etc. with malloc'd UTF-8 that the
 * profile takes over; returns 0 or a negative errno. May be NULL (tests). */
typedef int (*profile_resolve_fn)(void *ctx, uint64_t code, struct code_names *ret);

struct profile *profile_new(const struct profile_limits *limits, profile_resolve_fn resolve,
			    void *ctx);
void profile_free(struct profile *p);
DEFINE_FREEP(struct profile, profile_free)

/* These columns (bits) are measured from now on: snapshots have them, even where all figures are 0. 0 or
 * -ENOMEM. */
int profile_keep_columns(struct profile *p, uint64_t columns);
/* Hits cost so much from now on: durations are recorded without it. */
struct cost;
void profile_set_cost(struct profile *p, const struct cost *cost);
/* Why threads wait, and who holds the GIL meanwhile, is measured from now on; not with windows. 0 or
 * -ENOMEM. */
int profile_keep_waits(struct profile *p);
/* In this target a generator's suspension looks as its end does (CPython before 3.11). */
void profile_ends_are_hidden(struct profile *p);

/* Samples have C functions on top of Python's, of which the address alone may be known. NULL: then they
 * have no names (tests). */
void profile_names_natives(struct profile *p, natives_find_fn find, void *ctx);

/* Samples come beside calls and returns, to correct their times by; before any of them. */
void profile_is_sampled(struct profile *p);
/* A sample, or what names its code, from before anything was traced. */
void profile_sample_before(struct profile *p, const struct event *e);

/* Consume one event. Never fails: what does not fit is counted. O(1). */
void profile_event(struct profile *p, const struct event *e);

/*
 * Tracing begins (probes on) or ends at time ts. Between end and the next begin no time is charged;
 * at end all stacks are dropped; at begin threads are unknown until seeded or seen.
 */
void profile_begin(struct profile *p, uint64_t ts);
void profile_end(struct profile *p, uint64_t ts);

/*
 * Watched in windows: a pause is an end after which code objects stay known, since those that go
 * are still announced. The window's figures become weighted ones (estimate/estimate.h) at its fold,
 * after the pause; gap says for how long nobody watched before the window that begins, own_cpu what
 * CPU time the target has used for itself, watched or not. All figures of a snapshot are estimates
 * then, unless there never was a gap.
 */
struct cost;
void profile_in_windows(struct profile *p); /* from now on: before any of these */
void profile_pause(struct profile *p, uint64_t ts);
void profile_fold(struct profile *p, uint64_t length_ns, const struct cost *cost, double scale);
/* What comes next is not like the window that was folded last: of that gap it gets nothing. */
void profile_fold_end(struct profile *p);
/* From now on folds are told costs that are so many times what they were. */
void profile_costs_change(struct profile *p, double times);
void profile_gap(struct profile *p, uint64_t ns);
void profile_own_cpu(struct profile *p, double ns);
/*
 * After profile_begin: the window shows so much (0: no limit) of the program's own time, which is
 * what has passed less what its events cost. It pauses by itself when that is
 * reached; what comes later is discarded. profile_window_end pauses at ts if it has not, or where it
 * should have, and says how much was shown; cpu_ns is what the process has used meanwhile, and hits
 * cost so many times what profile_limit was told.
 */
void profile_limit(struct profile *p, uint64_t length_ns, const struct cost *cost);
/* What events have cost in windows so far, those that were discarded included. */
uint64_t profile_taken(const struct profile *p);
/* How many samples have come so far, whatever was cleared: they are not the program's doing, either. */
uint64_t profile_samples(const struct profile *p);
uint64_t profile_window_end(struct profile *p, uint64_t ts, uint64_t cpu_ns, double scale);
/* What a window without a limit has shown since this was last asked: it can be folded while it is
 * open. What profile_window_end says is what is left. */
uint64_t profile_window_part(struct profile *p, uint64_t ts);

/*
 * A thread known from /proc and the target's memory at time ts (between begin and the first
 * snapshot): its stack, innermost first (n may be 0), whether it was on a CPU (or runnable), its
 * run time then. The stack counts only if the thread's first event is later than ts, otherwise the
 * event's own chain is the truth; its time counts from the begin of tracing.
 */
struct profile_seed {
	uint32_t tid;
	const char *name;
	bool running;
	uint64_t runtime;
	const struct pyp_chain_frame *frames;
	size_t n;
};
void profile_seed_thread(struct profile *p, uint64_t ts, const struct profile_seed *seed);

/* The run time the OS reports now: the CPU time since the seed of a thread that has had no switch
 * event yet. Nothing is done for others. */
void profile_update_runtime(struct profile *p, uint32_t tid, uint64_t ts, uint64_t runtime);
/*
 * Counting: all calls by thread, caller and callee, as they stand now. Replaces the reading before, but
 * for what was final then: that stays, and is not in later readings.
 */
void profile_set_calls(struct profile *p, const struct call_count *v, size_t n);

/* Thread names may change: the newest wins. The OS knows the thread. */
void profile_set_thread_name(struct profile *p, uint32_t tid, const char *name);
/*
 * The OS does not know this thread any more. Its end may be on its way still: it has ended unreported
 * (its record was lost, or nobody watched) when this is said again and all that was written into the
 * ring before the first time has been read. written, read: positions in the ring, in bytes.
 */
void profile_thread_gone(struct profile *p, uint32_t tid, uint64_t written, uint64_t read);
/* Alive threads, by callback, which may end them. */
typedef void (*profile_thread_fn)(void *ctx, uint32_t tid);
void profile_foreach_thread(const struct profile *p, profile_thread_fn fn, void *ctx);

/* Zero counts and times; stacks stay. Frames running go on with ncalls 0. */
void profile_clear(struct profile *p, uint64_t ts);

/*
 * Add this profile's threads, functions and nodes to a snapshot (with pid in its threads), and its
 * counters to *target (events, unmatched, unstarted, stack_switches, resyncs, missed_switches,
 * truncated). Frames
 * still running count with the time they have used up to now_ns. Does not change the profile.
 * Arrays in s are replaced by larger ones; several profiles can be added one after another, and
 * functions with the same identity are merged. Returns 0 or -ENOMEM.
 */
int profile_snapshot(const struct profile *p, uint64_t now_ns, uint32_t pid, struct snapshot *s,
		     struct snapshot_target *target);

/*
 * Have every change of every stack told, from now on, in w's time (see stack/watch.h). One at a
 * time: -EBUSY. profile_unwatch tells that at this time everything has gone, and forgets w.
 */
int profile_watch(struct profile *p, const struct watcher *w);
struct watch_counts profile_unwatch(struct profile *p, uint64_t ts);
struct watch_counts profile_watch_counts(const struct profile *p);

/* The function with this number; strings are valid until the next event. */
struct profile_func {
	const char *filename, *name, *qualname; /* qualname: NULL where there is none */
	int32_t firstlineno;
};
struct profile_func profile_func(const struct profile *p, uint32_t func);
/* Of windows: sampled, n, seen_cpu_ns, all_cpu_ns, samples. */
void profile_windows(const struct profile *p, struct snapshot_windows *ret);

struct profile_counts {
	uint64_t events, calls, unmatched, unseen, unstarted, stack_switches, resyncs, truncated;
	uint64_t threads; /* all that were seen, since the profile was last cleared */
	uint32_t funcs, nodes;
};
struct profile_counts profile_counts(const struct profile *p);

#endif
