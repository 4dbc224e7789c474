/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Taking the probes' own time out of a snapshot: see correct.c for what is subtracted from whom.
 */
#ifndef PYPROF_SNAPSHOT_CORRECT_H
#define PYPROF_SNAPSHOT_CORRECT_H

#include "snapshot/snapshot.h"

/*
 * Subtract, from contexts, threads and extremes, what the targets' probes cost by targets[].cost,
 * and say so in targets[]. Targets whose costs are not known stay as they are. Once per snapshot,
 * before anyone else sees it. Returns 0 or -ENOMEM (unchanged then).
 */
int snapshot_correct(struct snapshot *s);

#endif
