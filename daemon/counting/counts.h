/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Call counts aggregated by the kernel, put into the calling-context tree like traced calls. Pure.
 */
#ifndef PYPROF_COUNTING_COUNTS_H
#define PYPROF_COUNTING_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct codes;
struct rebuild;
struct threads;

/* Calls of callee by caller in one thread. CODE_ID events define the numbers of code objects. */
struct call_count {
	uint32_t tid, caller, callee; /* as in struct pyp_edge */
	uint64_t calls;
	bool final; /* final: later readings do not contain it */
};

/* Calls of a node that the next reading replaces */
struct counts_part {
	uint32_t node;
	uint64_t calls;
};

struct counts {
	uint32_t *func_of; /* by code object number; UINT32_MAX: unknown */
	uint32_t nfuncs;
	struct counts_part *parts;
	size_t nparts, cap;
	uint64_t kept, truncated; /* sums of final counts: calls, and calls that did not fit the
				   * tree */
};

void counts_deinit(struct counts *t);
/* Call this after the tree was emptied. */
void counts_clear(struct counts *t);
/* Assign a number to a code object. */
void counts_name(struct counts *t, struct codes *codes, uint32_t id, uint64_t code);

/*
 * A reading replaces the previous one, except for final counts: first remove that with
 * counts_take_back(), then add the n counts at v, which also sets rb's sums. ts: CLOCK_MONOTONIC
 * ns, the start of new threads.
 */
void counts_take_back(struct counts *t, struct rebuild *rb);
void counts_add(struct counts *t, struct rebuild *rb, struct threads *threads, uint64_t ts,
		const struct call_count *v, size_t n);

#endif
