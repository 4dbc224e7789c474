/* SPDX-License-Identifier: BSD-2-Clause */
/* The number of calls outside of stretches, from windows. Pure; calls.c explains the method. */
#ifndef PYPROF_ACCURACY_CALLS_H
#define PYPROF_ACCURACY_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "accuracy/evidence.h"

/*
 * A Python function with the C functions that it calls, or everything outside Python. Weighted sums over
 * windows, and samples outside of light stretches.
 */
struct calls_row {
	double cpu,
		taken;	  /* ns in windows, with the probes' time; that time, from measured costs */
	double intervals; /* between two hits, in windows */
	double samples;	  /* ns that samples stand for */
};

struct calls_estimate {
	double factor; /* of the windows' weighted counts; 0: nothing is known */
	double error;  /* its relative standard error, which all counts share */
	bool by_marks; /* it follows from marks */
};

/*
 * hit_ns: the time that a hit takes, by the costs given to the folds. times, error: the factor by which hits
 * took longer, and its relative standard error. period_ns: what a sample stands for.
 */
struct calls_given {
	const struct calls_row *rows;
	size_t n;
	double hit_ns, times, error, period_ns;
};
struct calls_estimate calls_estimate(const struct evidence *e, const struct calls_given *g);

/* A row's own time in windows, undisturbed, and its standard error; negative: hits took less than measured. */
struct calls_own {
	double ns, error;
};
struct calls_own calls_own(const struct calls_row *r, const struct calls_given *g);

/*
 * The factor by marks alone: instructions of the evaluator that are executed rarely, and so are counted all the
 * time (session/marks.h). If M marks were passed since then, and m of them in windows, weighted like their calls,
 * then the program did M / m times as much as these windows represent, whatever the probes cost, and whether it
 * waits or computes. The time before is added by its CPU time. 0: too few marks. *ret_error: its relative standard
 * error; *ret_common: the part of it that all functions share.
 */
double calls_factor_by_marks(const struct evidence *e, double *ret_error, double *ret_common);

/* The number of windows that show as much as those in which marks were counted; 0: none */
double calls_windows_marked(const struct evidence *e);

/*
 * The variance of a function's calls; negative: unknown. factor: of its calls; left: the part of the variance between
 * windows that is left when the samples of its contexts have been considered
 */
double calls_variance(const struct evidence *e, const struct calls_estimate *c, uint32_t func,
		      double factor, double left);

#endif
