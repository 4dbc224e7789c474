/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is no story of calls and returns: sums of calls, and samples of stacks. They go into the same
 * tree, so all that is made from a tree can be made from them. For stack/profile*.c only.
 */
#ifndef PYPROF_STACK_TALLY_H
#define PYPROF_STACK_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Calls that a node has, and that the next reading will say again. */
struct tally_part {
	uint32_t node;
	uint64_t calls;
};

struct tally {
	uint32_t *func_of; /* by number of a code object; UINT32_MAX: not known */
	uint32_t nfuncs;
	struct tally_part *parts;
	size_t nparts, cap;
	uint64_t kept, truncated; /* of what will not be said again: calls, and what did not fit */
};

struct profile;

void tally_deinit(struct tally *t);
/* A code object has a number now. */
void tally_name(struct profile *p, uint32_t id, uint64_t code);
/* A stack was seen, or a part of one: it is charged when its last part has come. */
struct event;
void tally_sample(struct profile *p, const struct event *e);
/*
 * Errors of functions in what threads from first_thread on spend, each sample of it period_ns: of times
 * T on the CPU sqrt(T * period_ns), of what no sample sees not known. 0 or -ENOMEM.
 */
struct snapshot;
int tally_errors(struct snapshot *s, uint32_t first_thread, uint64_t period_ns);
/* The tree has been emptied. */
void tally_clear(struct tally *t);

#endif
