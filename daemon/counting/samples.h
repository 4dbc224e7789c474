/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples of stacks in the calling-context tree, and their errors. Pure.
 */
#ifndef PYPROF_COUNTING_SAMPLES_H
#define PYPROF_COUNTING_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "event/event.h"

struct codes;
struct rebuild;
struct snapshot;
struct thread;

/*
 * A stack of th was seen, or a part of one. Returns its context once its last part has come,
 * NODE_NONE before that and where a part was lost. What does not fit the tree is "(truncated)".
 */
uint32_t samples_add(struct rebuild *rb, struct codes *codes, struct thread *th,
		     const struct event_sample *s);

/* How often which function ran. */
struct samples_by_func {
	uint64_t *of; /* by function; NULL: none yet */
	uint32_t n;
	uint64_t outside; /* no Python ran, or it is not known what */
};

/*
 * Samples that are in no context of the tree: beside a trace, whose times they correct, and of the
 * program before that. See snapshot/reconcile.h.
 */
struct samples_beside {
	bool wanted;
	struct samples_by_func trace, before;
};

void samples_by_func_deinit(struct samples_by_func *b);
void samples_by_func_clear(struct samples_by_func *b);
/* Of a sample in several records only the first says what ran: which Python function. */
void samples_by_func_add(struct samples_by_func *b, struct codes *codes,
			 const struct event_sample *s);

/*
 * Errors of functions in what threads from first_thread on spend, each sample of it period_ns: of
 * times T on the CPU sqrt(T * period_ns), of what no sample sees not known. 0 or -ENOMEM.
 */
int samples_errors(struct snapshot *s, uint32_t first_thread, uint64_t period_ns);

#endif
