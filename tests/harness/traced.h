/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A real Python program, traced by the test itself: a program of tests/targets started with pipes,
 * and sessions in an event loop that runs while the test waits. Waits end with the time of the
 * program (patience.h), and the test fails. The target is killed with the test, however it ends.
 *
 *  struct traced t;
 *
 *  traced_start(&t, interpreter, "run.py", "mixed", NULL);
 *  traced_expect(&t, "ready");
 *  traced_attach(&t);
 *  traced_go(&t);
 *  traced_expect(&t, "done");
 *  snapshot = traced_snapshot(&t);
 *  traced_finish(&t);
 */
#ifndef PYPROF_TESTS_HARNESS_TRACED_H
#define PYPROF_TESTS_HARNESS_TRACED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "harness/interpreters.h"
#include "session/session.h"
#include "snapshot/snapshot.h"

struct sd_event;
struct sd_event_source;

struct traced {
	pid_t pid;	    /* 0: ended and reaped */
	int in;		    /* its standard input; -1: closed */
	int out;	    /* its standard output */
	char output[16384]; /* output that no call has read yet */
	size_t noutput;
	bool at_eof;	   /* end of output reached */
	char result[8192]; /* JSON of the last "result" line */
	char last[128];	   /* last line, truncated */
	struct sd_event *event;
	struct sd_event_source *source;
	struct mode_choice mode;   /* set before traced_attach(); default: trace */
	struct sessions *sessions; /* NULL before traced_attach */
	bool builtins;		   /* include C functions; set before traced_attach() */
	bool follow;		   /* include children; set before traced_attach() */
	size_t max_children;	   /* at a time; 0: the default */
	bool idle;		   /* do not start; set before traced_attach() */
	bool observe;		   /* sample and count it before; set before traced_attach() */
	size_t ring_bytes;	   /* default: 32 MiB; set before traced_attach() */
	unsigned int max_overhead; /* set before traced_attach() */
	bool asked;		   /* for this limit; set before traced_attach() */
	unsigned int stop_above;   /* set before traced_attach() */
	unsigned int ended;	   /* number of calls of on_end() */
};

/*
 * Find the traceable interpreters; at least one. Skips or fails the test if tracing is not possible
 * (harness/caps.h), so every test begins with it.
 */
size_t traced_interpreters(struct interpreter v[INTERPRETERS_MAX]);
/*
 * Find three of them, or fewer, for what does not depend on the version: the oldest, one without a
 * shared library, the newest.
 */
size_t traced_few(struct interpreter v[INTERPRETERS_MAX]);

/*
 * Find one of each family of the planner (its frame model, and builds without a GIL), for what is
 * compared on every interpreter in another way as well: by the self-test, by one program's counts,
 * by `make fidelity`. turn: chooses another member of each family, so that tests with different
 * turns reach them all. PYPROF_TEST_ALL in the environment: all.
 */
size_t traced_in_turn(struct interpreter v[INTERPRETERS_MAX], unsigned int turn);

/* The newest of them. */
struct interpreter traced_newest(void);

/* Start later targets in this place; NULL: on the host, the default. Borrowed. */
struct place;
void traced_place(const struct place *p);

/* Start `exe tests/targets/SCRIPT ARG...`; arguments end with NULL. */
void traced_start(struct traced *t, const char *exe, const char *script, ...)
	__attribute__((sentinel));

/* The same, and wait until it has printed "ready". pid: where to write its pid; NULL: nowhere. */
void traced_ready(struct traced *t, char pid[16], const char *exe, const char *script, ...)
	__attribute__((sentinel));

/* Run the loop until the target has printed this line (skips others, keeps "result"). */
void traced_expect(struct traced *t, const char *line);
/* The same, but returns false if the target has ended before. */
bool traced_expect_or_end(struct traced *t, const char *line);
/*
 * As traced_expect(), for a line that begins with word and a blank. Returns the rest of the line,
 * valid until the next call.
 */
const char *traced_answer(struct traced *t, const char *word);
/* Send a line to the target: an empty one, or these words. */
void traced_go(struct traced *t);
void traced_say(struct traced *t, const char *words);
/* Close the target's standard input; the target stops waiting for a line. */
void traced_close(struct traced *t);

/* Run the loop until cond holds. what: shown if the deadline passes. */
typedef bool (*traced_cond)(struct traced *t, void *ctx);
void traced_until(struct traced *t, traced_cond cond, void *ctx, const char *what);
/* Run the loop until no breakpoint is left in a child of the target. */
struct sites;
void traced_until_clean(struct traced *t, const struct sites *sites, pid_t child);
/* As traced_expect(), without running the loop: no ring is drained. */
void traced_hear(struct traced *t, const char *line);
/* Stop all targets and run the loop until their probes are detached and all events are read. */
void traced_halt(struct traced *t);
/* Run the loop until the target has used this much more CPU time, at full rate or not. See patience.h. */
void traced_work(struct traced *t, unsigned int cpu_ms);

/* Attach and start tracing. */
void traced_attach(struct traced *t);
/* As traced_attach(), with the self-test first. */
void traced_attach_verified(struct traced *t);
/* Attach. On failure, returns the error and its diagnosis. */
int traced_try_attach(struct traced *t, struct diag *diag);
struct snapshot *traced_snapshot(struct traced *t);
/* Take a snapshot of one process. */
struct snapshot *traced_snapshot_of(struct traced *t, pid_t pid);
struct session_status traced_status(struct traced *t);
/*
 * Returns whether no event was lost (except strings that could not be read) or unmatched, and all
 * other error counters are 0. Prints each counter that is not.
 */
bool traced_is_exact(const struct snapshot *s, const char *label);
/*
 * Check for each thread and both clocks that the self times of its calling contexts add up to its
 * total.
 */
void traced_check_times(const struct snapshot *s);

/*
 * Close the target's standard input and wait until it has ended, with status 0. Then traced_stop().
 */
void traced_finish(struct traced *t);
/* Wait until the target has ended, without sending anything. Returns the wait status. */
int traced_wait(struct traced *t);
/* Free everything; a target that is still running is killed. */
void traced_stop(struct traced *t);

/* Path of tests/targets/NAME, or another file of the source tree. */
const char *traced_path(const char *dir, const char *name, char *out, size_t size);

/* The number of sampling timers, and of BPF maps, programs and links, that this process has. */
unsigned int traced_timers(void);
/* Run the loop until there are so many timers: the measurement of what a sample costs has one, too, for a moment. */
void traced_until_timers(struct traced *t, unsigned int n);
unsigned int traced_bpf_objects(void);

/* CPU time of all threads of the target, seconds */
double traced_cpu_seconds(const struct traced *t);
/* Seconds on CLOCK_MONOTONIC. */
double traced_seconds(void);

#endif
