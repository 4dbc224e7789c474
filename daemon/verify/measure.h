/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What our probes cost a target, measured on its own interpreter (private to verify/): a scratch
 * process runs small loops of calls without probes and with them.
 */
#ifndef PYPROF_VERIFY_MEASURE_H
#define PYPROF_VERIFY_MEASURE_H

#include "base/cost.h"
#include "verify/verify.h"

/* Not known: it could not be measured. Takes some tenths of a second. */
struct cost measure_cost(const struct verify_opts *opts);

/* Intervals between the events of each loop, as they came, and what an iteration takes without
 * probes; see measure.c. */
enum measure_phase { PHASE_PAIRS, PHASE_NEST, PHASE_YIELDS, PHASE_LONGS, PHASES };

struct measure_means {
	/* An iteration of pairs, a level of nest, an item of yields, an iteration of longs. */
	double untraced[PHASES];
	double loop; /* an iteration of nothing */
	double body; /* an iteration that does what pairs' function does, without it */
	double enter_leave, leave_enter;	   /* of pairs */
	double enter_enter, leave_leave;	   /* of nest */
	double enter_yield, yield_enter;	   /* of yields; 0: this version has no YIELD */
	double long_enter_leave, long_leave_enter; /* of longs; 0: not known */
	double gauge, long_gauge; /* meanwhile, of pairs and of longs; 0: not known */
};

/* Pure: what must have been the probes'. */
struct cost measure_costs_of(const struct measure_means *m);

/* Pure: how much more a call's two hits are in longs, in gauges of longs, than in pairs, in those of
 * pairs. NAN: not known. */
double measure_slowdown_of(const struct measure_means *m);
/* Pure: of these, and how long a call in longs takes, a cost's slowdown. Changes v. */
uint32_t measure_slowdown(double *v, uint32_t n, double stretch_ns, uint32_t gauge_ps);

/* Pure: of rounds with their gauges, what is usual: costs in gauges, times the usual gauge. Not known:
 * too few. n: MEASURE_ROUNDS at most. */
#define MEASURE_ROUNDS 32u
struct cost measure_typical(const struct cost *rounds, uint32_t n);

#endif
