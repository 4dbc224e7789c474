/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two witnesses of where a traced program's CPU time went: its trace, less what probes are known to
 * cost, and samples beside it, of which those of the probes' time were dropped. Pure; see reconcile.c
 * for how the two are put together.
 */
#ifndef PYPROF_SNAPSHOT_RECONCILE_H
#define PYPROF_SNAPSHOT_RECONCILE_H

#include <stddef.h>
#include <stdint.h>

#include "snapshot/snapshot.h"

/* A function, or what is outside Python. CPU times in ns. */
struct reconcile_row {
	double own;	/* by the trace, less taken; 0 or more */
	double taken;	/* what probes have taken of it, as far as known */
	double samples; /* that met it */
	/* Found. */
	double ns;	 /* its own time */
	double variance; /* of that, ns^2 */
};

/*
 * How many times as expensive hits were as is known: by what samples say of all of the program. cpu:
 * all CPU time, with the probes'; taken: what they cost as far as known. 1 where it cannot be said.
 */
double reconcile_scale(double cpu, double taken, double samples, double period_ns);

/* Fill in what is found in the rows, whose `taken` is scaled already. */
void reconcile_solve(struct reconcile_row *rows, size_t n, double period_ns);

/*
 * Put the times of a snapshot's target together, of which probes have taken taken[] (ns, by node) as
 * far as known. Functions' variances are set. Returns 0 or -ENOMEM (unchanged then).
 */
int reconcile_target(struct snapshot *s, struct snapshot_target *t, const uint64_t *taken);

#endif
