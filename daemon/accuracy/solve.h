/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Combines three measurements of a traced program's CPU time: the trace minus the known cost of
 * probes; samples during the trace, without those that hit the probes' own time; and samples from
 * before the probes were attached, or after they were detached. Pure; solve.c describes the method.
 */
#ifndef PYPROF_ACCURACY_SOLVE_H
#define PYPROF_ACCURACY_SOLVE_H

#include <stddef.h>
#include <stdint.h>

#include "snapshot/snapshot.h"

/* A function, or the time outside Python. CPU times in ns. */
struct reconcile_row {
	double own;	  /* by the trace, minus `taken`; 0 or more */
	double taken;	  /* the estimated cost of probes in it */
	double samples;	  /* number of its samples during the trace */
	double before;	  /* number of its samples without probes: from before, or after */
	double intervals; /* number of its intervals between two probe hits */
	/* Results. */
	double ns;	 /* its own time, as if there were no probes */
	double variance; /* variance of ns, in ns^2 */
};

/* Parameters that apply to all rows. */
struct reconcile {
	double period_ns;   /* CPU time that a sample during the trace stands for */
	double slowdown_ns; /* maximum slowdown of an interval by the hit before it */
	double each_ns;	    /* what intervals are usually longer by besides: cost_each() */
	double disturbed;   /* the probes' share of all CPU time, 0 to 1 */
	/* The sum of all ns, by the program's progress, and its standard error; 0: unknown */
	double total_ns, total_error_ns;
};

/*
 * Returns the factor by which hits cost more than estimated, according to the samples of the whole
 * program. cpu: all CPU time in ns, including probes; taken: their estimated cost in ns. Returns 1
 * if the samples do not suffice.
 */
double reconcile_scale(double cpu, double taken, double samples, double period_ns);

/* Computes the results of the rows, whose `taken` is already scaled. Returns 0 or -ENOMEM. */
int reconcile_solve(const struct reconcile *r, struct reconcile_row *rows, size_t n);

/* The variance, in ns^2, of a part of a row's time by the trace alone, without samples. */
double reconcile_part_variance(const struct reconcile *r, const struct reconcile_row *part);

/*
 * Combines the measurements of a target. taken: the estimated probe cost in ns, per node; NULL: calls were
 * counted, and all times come from samples. Sets the variances of functions. Returns 0, or -ENOMEM with the snapshot unchanged.
 */
int reconcile_target(struct snapshot *s, struct snapshot_target *t, const uint64_t *taken);

#endif
