/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures the probes' cost on the target's interpreter (private to verify/): a scratch process
 * runs small loops of calls with and without probes.
 */
#ifndef PYPROF_VERIFY_MEASURE_H
#define PYPROF_VERIFY_MEASURE_H

#include "base/cost.h"
#include "verify/result.h"

/* Takes some tenths of a second. Unknown if it fails. */
struct cost measure_cost(const struct verify_opts *opts);

/* The loops, and the intervals between events that they show */
enum measure_phase { PHASE_PAIRS, PHASE_NEST, PHASE_YIELDS, PHASES };
enum measure_interval {
	ENTER_LEAVE, /* in pairs */
	LEAVE_ENTER,
	ENTER_ENTER, /* in nest */
	LEAVE_LEAVE,
	ENTER_YIELD, /* in yields; 0: this version has no YIELD */
	YIELD_ENTER,
	INTERVALS
};

/* Mean intervals, and times per iteration without probes, in ns; see measure.c. */
struct measure_means {
	/* An iteration of pairs, a level of nest, an item of yields */
	double untraced[PHASES];
	double loop; /* an empty iteration */
	double body; /* an iteration with the body of pairs' function inlined */
	double between[INTERVALS];
};

/* Pure: the probes' cost. */
struct cost measure_costs_of(const struct measure_means *m);

/* Pure: the typical cost of n (at most MEASURE_ROUNDS) rounds, relative to their references, times
 * the typical reference. Unknown if there are too few. */
#define MEASURE_ROUNDS 32u
struct cost measure_typical(const struct cost *rounds, uint32_t n);

#endif
