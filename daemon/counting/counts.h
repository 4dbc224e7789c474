/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Aggregated counts of calls, as the kernel has added them up, in the calling-context tree: views and
 * formats treat them as traced calls. Pure.
 */
#ifndef PYPROF_COUNTING_COUNTS_H
#define PYPROF_COUNTING_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct codes;
struct rebuild;
struct threads;

/* Calls of callee by caller in one thread. Code objects go by the numbers of CODE_ID events. */
struct call_count {
	uint32_t tid, caller, callee; /* as in struct pyp_edge */
	uint64_t calls;
	bool final; /* it stays, and no later reading contains it */
};

/* Calls that a node has, and that the next reading replaces. */
struct counts_part {
	uint32_t node;
	uint64_t calls;
};

struct counts {
	uint32_t *func_of; /* by number of a code object; UINT32_MAX: not known */
	uint32_t nfuncs;
	struct counts_part *parts;
	size_t nparts, cap;
	uint64_t kept, truncated; /* of final ones: calls, and what did not fit */
};

void counts_deinit(struct counts *t);
/* The tree has been emptied. */
void counts_clear(struct counts *t);
/* A code object has a number now. */
void counts_name(struct counts *t, struct codes *codes, uint32_t id, uint64_t code);

/*
 * A reading replaces the one before it, but for final counts: take that one out of the tree, then add
 * the n counts at v, and make rb's sums theirs. Threads that are not known begin at ts (ns).
 */
void counts_take_back(struct counts *t, struct rebuild *rb);
void counts_add(struct counts *t, struct rebuild *rb, struct threads *threads, uint64_t ts,
		const struct call_count *v, size_t n);

#endif
