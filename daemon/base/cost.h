/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a probe's hit costs the thread that runs into it, in nanoseconds: before the event's time is
 * taken, and after. Measured by verify/measure.c, subtracted by snapshot/correct.c.
 *
 * It is not the same at any time: where others use the machine as well, all of it is dearer by a
 * third for some seconds. A part of it is measured all the time, in the target itself, which is the
 * gauge: from an event's time to its program's end. What all of it comes to follows from what it
 * came to, and the gauge then, when it was measured. (Seen over 12 runs within a minute: an empty
 * call's two hits from 2267 to 3276 ns, and 22.2 to 23.4 times the gauge.)
 *
 * What comes after a hit is slower for a while, as caches and the processor's guesses are those of
 * the trap: that is a part of `after` as far as it shows in a short function, and slowdown beyond that.
 */
#ifndef PYPROF_BASE_COST_H
#define PYPROF_BASE_COST_H

#include <stdbool.h>
#include <stdint.h>

enum cost_kind { COST_ENTER, COST_LEAVE, COST_YIELD, COST_KINDS };

struct cost {
	bool known;
	bool synthetic; /* measured on a program like the interpreter, not on the interpreter itself */
	uint32_t before[COST_KINDS], after[COST_KINDS];
	uint32_t slowdown; /* more after a hit, where the program runs on for long */
	uint32_t gauge_ps; /* when the others were measured; 0: not known */
};

/* So many of them tell enough. */
#define COST_GAUGES 32u

/* How much dearer hits were while that many gauges took so long in all; 1 where it is not known. */
double cost_scale(const struct cost *c, uint64_t gauges_ns, uint64_t gauges);

/*
 * What is believed after another measurement: of one and the same build, costs in gauges differ by
 * some percent from one process to the next, so it moves by a part (0 to 1) of the difference.
 * Either may be not known.
 */
struct cost cost_learn(const struct cost *before, const struct cost *measured, double part);

/* How much of the slowdown falls on a stretch of the program between two hits that takes so long without
 * it, ns: 0 to 1. */
double cost_slowdown_part(double stretch_ns);
/* The slowdown of n such stretches, which take so long with it. */
double cost_slowdown(const struct cost *c, uint64_t n, double ns);

/*
 * Besides, caches and branch predictors are cold after a hit. An interval of x ns between two hits
 * takes x + D * (1 - exp(-x / D)), D being cost_cold. That is what n intervals which have taken so
 * many ns in all would have taken without; times: how much more or less D is than expected. See
 * snapshot/reconcile.c.
 */
double cost_undisturbed(double cold_ns, double n, double ns, double times);
/* The slowdown of n intervals that take so long without it, and its slope. */
double cost_cold_slowdown(double cold_ns, double n, double ns);
double cost_cold_slope(double cold_ns, double n, double ns);
/* D where a hit costs so much, ns. */
double cost_cold(double hit_ns);

/* What they cost then. The gauge stays: it says what they are measured by. */
struct cost cost_scaled(const struct cost *c, double scale);

#endif
