/* SPDX-License-Identifier: BSD-2-Clause */
/* The number of calls outside of stretches, from windows. Pure; calls.c explains the method. */
#ifndef PYPROF_ACCURACY_CALLS_H
#define PYPROF_ACCURACY_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "accuracy/evidence.h"

struct calls_estimate {
	double factor;	/* of the windows' weighted counts; 0: without windows nothing is known */
	double error;	/* its relative standard error, which all counts share */
	bool by_marks;	/* it follows from marks */
};

/*
 * hit_ns: the time that a hit takes, by the costs given to the folds. times, error: the factor by which hits
 * took longer, and its relative standard error.
 */
struct calls_estimate calls_estimate(const struct evidence *e, double hit_ns, double times,
				     double error);

/* The variance of a function's calls; negative: unknown */
double calls_variance(const struct evidence *e, const struct calls_estimate *c, uint32_t func);

#endif
