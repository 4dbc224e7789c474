/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Three witnesses of where a traced program's CPU time went: its trace, less what probes are known to
 * cost; samples beside it, of which those of the probes' time were dropped; and samples of the
 * program before there were probes. Pure; see reconcile.c for how they are put together.
 */
#ifndef PYPROF_SNAPSHOT_RECONCILE_H
#define PYPROF_SNAPSHOT_RECONCILE_H

#include <stddef.h>
#include <stdint.h>

#include "snapshot/snapshot.h"

/* A function, or what is outside Python. CPU times in ns. */
struct reconcile_row {
	double own;	  /* by the trace, less taken; 0 or more */
	double taken;	  /* what probes have taken of it, as far as known */
	double samples;	  /* that met it */
	double before;	  /* that met it before the probes */
	double intervals; /* between two hits of probes that it ran in */
	/* Found. */
	double ns;	 /* its own time, undisturbed */
	double variance; /* of that, ns^2 */
};

/* What holds for all rows. */
struct reconcile {
	double period_ns;   /* CPU time that a sample beside the trace stands for */
	double slowdown_ns; /* by which an interval is longer because of the hit before it, at most */
	double disturbed;   /* the probes' share of all CPU time, 0 to 1 */
};

/*
 * How many times as expensive hits were as is known: by what samples say of all of the program. cpu:
 * all CPU time, with the probes'; taken: what they cost as far as known. 1 where it cannot be said.
 */
double reconcile_scale(double cpu, double taken, double samples, double period_ns);

/* Fill in what is found in the rows, whose `taken` is scaled already. Returns 0 or -ENOMEM. */
int reconcile_solve(const struct reconcile *r, struct reconcile_row *rows, size_t n);

/*
 * Put the times of a snapshot's target together, of which probes have taken taken[] (ns, by node) as
 * far as known. Functions' variances are set. Returns 0 or -ENOMEM (unchanged then).
 */
int reconcile_target(struct snapshot *s, struct snapshot_target *t, const uint64_t *taken);

/* The same where calls were counted and all times are of samples. */
int reconcile_counted(struct snapshot *s, struct snapshot_target *t);

#endif
