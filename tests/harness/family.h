/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process and its descendants, traced by the test itself: tests/targets/family.py, whose members
 * have numbers; 0 is the first process.
 */
#ifndef PYPROF_TESTS_HARNESS_FAMILY_H
#define PYPROF_TESTS_HARNESS_FAMILY_H

#include "harness/traced.h"

#define FAMILY_MAX 64

struct family {
	struct traced t;
	pid_t members[FAMILY_MAX]; /* by number; 0: not forked yet */
};

/* Starts the first process; set options in f->t before attaching. Its children are followed. */
void family_start(struct family *f, const char *exe);
/* Ends all members and frees everything. */
void family_finish(struct family *f);
/* Runs a test with every interpreter that can be traced. */
void family_everywhere(void (*test)(const char *exe));

/* Sends a command with two numbers and waits for this answer. */
void family_ask(struct family *f, const char *order, unsigned int a, unsigned int b,
		const char *answer);
/* Member `by` forks n children. */
void family_fork(struct family *f, unsigned int by, unsigned int n);

/* pid 0 in the result: it is no target. */
struct session_status family_status(const struct family *f, pid_t pid);
/* Waits until members first to last are traced, or have ended. */
void family_traced(struct family *f, unsigned int first, unsigned int last);
void family_ended(struct family *f, unsigned int first, unsigned int last);

#endif
