/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process and its descendants, traced by the test itself: tests/targets/process_tree.py, whose members
 * have numbers; 0 is the first process.
 */
#ifndef PYPROF_TESTS_HARNESS_PROCESS_TREE_H
#define PYPROF_TESTS_HARNESS_PROCESS_TREE_H

#include "harness/traced.h"

#define PROCESS_TREE_MAX 64

struct process_tree {
	struct traced t;
	pid_t members[PROCESS_TREE_MAX]; /* by number; 0: not forked yet */
};

/* Starts the first process; set options in f->t before attaching. Its children are followed. */
void process_tree_start(struct process_tree *f, const char *exe);
/* Ends all members and frees everything. */
void process_tree_finish(struct process_tree *f);
/* Runs a test with the interpreters of traced_few(). */
void process_tree_everywhere(void (*test)(const char *exe));

/* Sends a command with two numbers and waits for this answer. */
void process_tree_ask(struct process_tree *f, const char *order, unsigned int a, unsigned int b,
		      const char *answer);
/* Member `by` forks n children. */
void process_tree_fork(struct process_tree *f, unsigned int by, unsigned int n);

/* pid 0 in the result: it is no target. */
struct session_status process_tree_status(const struct process_tree *f, pid_t pid);
/* Waits until members first to last are traced, or have ended. */
void process_tree_traced(struct process_tree *f, unsigned int first, unsigned int last);
void process_tree_ended(struct process_tree *f, unsigned int first, unsigned int last);

#endif
