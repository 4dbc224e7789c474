/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a limited target has besides its exact figures, per node of its tree: CPU time from
 * samples, and the calls of windows, scaled to the whole run (calls.h). Pure, from plain data, so
 * that recorded evidence can be solved again.
 */
#ifndef PYPROF_ACCURACY_REST_H
#define PYPROF_ACCURACY_REST_H

#include <stdbool.h>
#include <stdint.h>

#include "accuracy/calls.h"
#include "accuracy/evidence.h"
#include "base/cleanup.h"
#include "snapshot/snapshot.h"
#include "stats/calltree.h"

struct rest_given {
	const struct evidence *e;
	const struct calltree *tree; /* of the evidence's nodes, and of the stretch that is open */
	/* Per node: itself; of a C function or a collection, the Python function's node */
	const uint32_t *callers;
	uint32_t nfuncs;
	bool stretch; /* one is open; */
	bool light;   /* it shows times, so its samples are not needed */
	/* See struct calls_given. */
	double hit_ns, times, error, period_ns;
};

struct rest {
	double *cpu;	  /* ns per node of the evidence */
	double *factor;	  /* of its calls in windows, per node */
	double *variance; /* of calls, per function; negative: unknown */
};

void rest_deinit(struct rest *r);

/* Returns 0, or -ENOMEM with nothing to free. */
int rest_solve(const struct rest_given *g, struct rest *ret);
/* The figures of a node of the tree, which may have no evidence. */
struct snapshot_rest rest_of(const struct rest_given *g, const struct rest *r, uint32_t node);

#endif
