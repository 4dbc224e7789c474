/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Combines two sources of CPU time by function: windows, and samples taken between them. Pure;
 * fit.c explains the method.
 */
#ifndef PYPROF_ESTIMATE_FIT_H
#define PYPROF_ESTIMATE_FIT_H

#include <stddef.h>

/* A function, or everything outside Python. CPU times in ns, estimates for the whole program. */
struct fit_row {
	double own;	 /* own time, with the measured costs subtracted: may be negative */
	double taken;	 /* probes' time at measured costs */
	double variance; /* variance of own between windows; negative: unknown */
	double unknown; /* what may be wrong about the slowdown after hits, which is subtracted, too */
	double samples; /* number of samples */
	/* Results: */
	double part;   /* weight of the samples in its share: 0 to 1 */
	double spread; /* standard error of that share */
};

struct fit {
	double samples;
	double factor;	    /* cost of hits / measured cost */
	double error;	    /* standard error of factor */
	double total_error; /* the same of all probes' time, for other reasons, too: see fit.c */
};

/* Without samples, factor is 1 and all parts are 0; without a rest of own time, 1 and 1. */
struct fit fit_solve(struct fit_row *rows, size_t n);

#endif
