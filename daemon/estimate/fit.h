/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two witnesses of where a program's CPU time went: windows, and samples taken between them. Pure;
 * see fit.c for what is made of them.
 */
#ifndef PYPROF_ESTIMATE_FIT_H
#define PYPROF_ESTIMATE_FIT_H

#include <stddef.h>

/* A function, or what is outside Python. CPU times in ns; of all of the program, as windows have it. */
struct fit_row {
	double own;	 /* its own, as far as probes' costs are known: may be below 0 */
	double taken;	 /* the probes', as far as known */
	double variance; /* of own, by what windows differ; negative: not known */
	double samples;	 /* that met it */
	/* Found. */
	double part;   /* to which samples decide its share, not windows: 0 to 1 */
	double spread; /* standard error of that share */
};

struct fit {
	double samples;
	double factor; /* what hits cost, as a multiple of what is known */
	double error;  /* of that: one standard error */
};

/* Without samples the factor is 1 and no part is theirs. */
struct fit fit_solve(struct fit_row *rows, size_t n);

#endif
