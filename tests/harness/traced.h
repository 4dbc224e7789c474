/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A real Python program that is traced from within the test: a target of tests/targets started with
 * pipes, sessions in an event loop that is run while the test waits for it. Every wait has a
 * deadline, after which the test fails. The target dies with the test's process, however that ends.
 *
 *	struct traced t;
 *
 *	traced_start(&t, interpreter, "run.py", "mixed", NULL);
 *	traced_expect(&t, "ready");
 *	traced_attach(&t);
 *	traced_go(&t);
 *	traced_expect(&t, "done");
 *	snapshot = traced_snapshot(&t);
 *	traced_finish(&t);
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

/* Seconds that anything in a test may take. Generous: the machine may be busy. */
#define TRACED_DEADLINE 60u

struct traced {
	pid_t pid;	  /* 0: it has ended and was reaped */
	int in;		  /* its standard input; -1: closed */
	int out;	  /* its standard output */
	char said[16384]; /* what it said that nobody has asked for yet */
	size_t nsaid;
	bool silent;	   /* its output has ended */
	char result[8192]; /* the JSON of the last "result" line */
	char last[128];	   /* its last line, cut off */
	struct sd_event *event;
	struct sd_event_source *source;
	struct mode_choice mode;   /* to be set before traced_attach; else trace */
	struct sessions *sessions; /* NULL before traced_attach */
	bool builtins;		   /* C functions, too; to be set before traced_attach */
	bool follow;		   /* its children, too; to be set before traced_attach */
	size_t max_children;	   /* at one time; 0: the default */
	unsigned int max_overhead; /* likewise */
	unsigned int stop_above;   /* likewise */
	unsigned int ended;	   /* how often on_end was called */
};

/* The interpreters found that can be traced; at least one. Skips or fails the test where it is not
 * possible to trace (see harness/caps.h): what every test here begins with. */
size_t traced_interpreters(struct interpreter v[INTERPRETERS_MAX]);

/* The newest of them. */
struct interpreter traced_newest(void);

/* Where targets are started from now on; NULL: here, as to begin with. Borrowed. */
struct place;
void traced_place(const struct place *p);

/* Start `exe tests/targets/SCRIPT ARG...`; arguments end with NULL. */
void traced_start(struct traced *t, const char *exe, const char *script, ...)
	__attribute__((sentinel));

/* Run the loop until it has said this line (others before it are skipped, "result" is kept). */
void traced_expect(struct traced *t, const char *line);
/* The same for a line that begins with word and a blank; the rest of it, valid until the next. */
const char *traced_answer(struct traced *t, const char *word);
/* Send it a line: an empty one, or these words. */
void traced_go(struct traced *t);
void traced_say(struct traced *t, const char *words);
/* Close its standard input: it need not wait for anything any more. */
void traced_close(struct traced *t);

/* Run the loop until cond holds. what: said when it does not in time. */
typedef bool (*traced_cond)(struct traced *t, void *ctx);
void traced_until(struct traced *t, traced_cond cond, void *ctx, const char *what);
/* The same without running the loop: nothing is drained meanwhile. */
void traced_hear(struct traced *t, const char *line);
/* Stop all targets and run the loop until their probes are detached and all was read. */
void traced_halt(struct traced *t);
/* Run the loop for that long. Not for waiting: for letting the target work. */
void traced_run(struct traced *t, unsigned int ms);

/* Attach with probes on. */
void traced_attach(struct traced *t);
/* The same, with the self-test before it. */
void traced_attach_verified(struct traced *t);
/* Attach; the error if that fails, with its diagnosis. */
int traced_try_attach(struct traced *t, struct diag *diag);
struct snapshot *traced_snapshot(struct traced *t);
/* Of one process. */
struct snapshot *traced_snapshot_of(struct traced *t, pid_t pid);
struct session_status traced_status(struct traced *t);
/* 0 lost, 0 unmatched, every other counter 0; what is not is printed. */
bool traced_is_exact(const struct snapshot *s, const char *who);
/* Each thread's time is where its calls are. */
void traced_check_times(const struct snapshot *s);

/* Let it go on and end: its status must be 0. Then as traced_stop. */
void traced_finish(struct traced *t);
/* Wait for its end without a word; its wait status. */
int traced_wait(struct traced *t);
/* Free everything; a target that still runs is killed. */
void traced_stop(struct traced *t);

/* tests/targets/NAME, or another file below the top of the sources. */
const char *traced_path(const char *dir, const char *name, char *out, size_t size);

/* A CPU clock of the target, all threads together, in seconds. */
double traced_cpu_seconds(const struct traced *t);
/* Seconds on CLOCK_MONOTONIC. */
double traced_seconds(void);

#endif
