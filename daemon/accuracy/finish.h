/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes figures of what a snapshot has measured. finish.c describes how the cost of probes is subtracted. */
#ifndef PYPROF_ACCURACY_FINISH_H
#define PYPROF_ACCURACY_FINISH_H

#include "snapshot/snapshot.h"

/*
 * Makes figures of what was measured, once per snapshot, after merging or subtracting others and before any
 * other use: subtracts the probe costs given by targets[].cost from contexts, threads and extremes, combines
 * times with samples, adds what is not exact (rest), and then the rows of pseudo.h. Targets with unknown costs
 * keep their times. raw: nothing is subtracted. Returns 0 or -ENOMEM.
 */
int snapshot_finish(struct snapshot *s, bool raw);

/* Its first step, without pseudo rows. */
int snapshot_correct(struct snapshot *s);

#endif
