/* SPDX-License-Identifier: BSD-2-Clause */
/* Stack samples in the calling-context tree, and their errors. Pure. */
#ifndef PYPROF_COUNTING_SAMPLES_H
#define PYPROF_COUNTING_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "event/event.h"

struct chain_frame;
struct codes;
struct rebuild;
struct snapshot;
struct thread;

/*
 * Add a stack sample of th, or a part of one. Returns its CCT node after the last part, else
 * NODE_NONE, also if a part was lost. A sample that does not fit the tree counts as "(truncated)".
 */
uint32_t samples_add(struct rebuild *rb, struct codes *codes, struct thread *th,
		     const struct event_sample *s);

/*
 * The CCT node of a stack, innermost frame first, below the thread's root, or below "(truncated)" if
 * its outermost frames are unknown. "(truncated)" itself if it does not fit the tree.
 */
uint32_t samples_node(struct rebuild *rb, const struct thread *th, const struct chain_frame *v,
		      uint32_t n, bool truncated);

/* Number of samples by running function */
struct samples_by_func {
	uint64_t *of; /* by function; NULL: none */
	uint32_t n;
	uint64_t outside; /* samples outside of Python or of unknown functions */
};

/*
 * Samples that are not in the tree: those taken during a trace, to correct its times, and those
 * taken before it. See accuracy/solve.h.
 */
struct samples_beside {
	bool wanted;
	struct samples_by_func trace, before;
};

void samples_by_func_deinit(struct samples_by_func *b);
void samples_by_func_clear(struct samples_by_func *b);
/* Count the running Python function. Only the first record of a sample has it. */
void samples_by_func_add(struct samples_by_func *b, struct codes *codes,
			 const struct event_sample *s);

/*
 * Set the errors of functions in threads from first_thread on, as far as CPU time follows from samples: that
 * is all of it, or `of` it, per node of the snapshot. Each sample stands for period_ns, so
 * CPU time T has the error sqrt(T * period_ns); calls are unknown, or somebody else's. Waiting, per node of the snapshot: the part of it
 * that is estimated, in ns, and its variance; as all of it is known exactly, only its distribution is
 * uncertain. NULL: the errors of wall times are unknown. Returns 0 or -ENOMEM.
 */
struct samples_waiting {
	const double *estimated, *variance;
};
struct samples_cpu {
	const uint64_t *of; /* NULL: all */
	uint64_t period_ns;
};
int samples_errors(struct snapshot *s, uint32_t first_thread, const struct samples_cpu *cpu,
		   const struct samples_waiting *waiting);

#endif
