/* SPDX-License-Identifier: BSD-2-Clause */
/* Subtracts the cost of probes from a snapshot. correct.c describes the rules. */
#ifndef PYPROF_SNAPSHOT_CORRECT_H
#define PYPROF_SNAPSHOT_CORRECT_H

#include "snapshot/snapshot.h"

/*
 * Subtracts the probe costs given by targets[].cost from contexts, threads and extremes, and
 * records that in targets[]. Leaves targets with unknown costs unchanged. Call it once per
 * snapshot, before any other use. Returns 0, or -ENOMEM with the snapshot unchanged.
 */
int snapshot_correct(struct snapshot *s);

#endif
