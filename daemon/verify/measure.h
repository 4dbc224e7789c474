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

/* Mean intervals between the events of each loop, and times per iteration without probes, in ns;
 * see measure.c. */
enum measure_phase { PHASE_PAIRS, PHASE_NEST, PHASE_YIELDS, PHASE_LONGS, PHASES };

struct measure_means {
	/* An iteration of pairs, a level of nest, an item of yields, an iteration of longs */
	double untraced[PHASES];
	double loop;			 /* an empty iteration */
	double body;			 /* an iteration with the body of pairs' function inlined */
	double enter_leave, leave_enter; /* in pairs */
	double enter_enter, leave_leave; /* in nest */
	double enter_yield, yield_enter; /* in yields; 0: this version has no YIELD */
	double long_enter_leave, long_leave_enter; /* in longs; 0: unknown */
	double latency, long_latency; /* probe-latency reference in pairs and longs; 0: unknown */
};

/* Pure: the probes' cost. */
struct cost measure_costs_of(const struct measure_means *m);

/* Pure: additional cost of a call's two hits in longs relative to pairs, each in units of its
 * reference. NAN: unknown. */
double measure_slowdown_of(const struct measure_means *m);
/* Pure: a cost's slowdown in ns, from n such values and the duration of a call in longs.
 * Changes v. */
uint32_t measure_slowdown(double *v, uint32_t n, double interval_ns, uint32_t latency_ps);

/* Pure: the typical cost of n (at most MEASURE_ROUNDS) rounds, relative to their references, times
 * the typical reference. Unknown if there are too few. */
#define MEASURE_ROUNDS 32u
struct cost measure_typical(const struct cost *rounds, uint32_t n);

#endif
