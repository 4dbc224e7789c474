/* SPDX-License-Identifier: BSD-2-Clause */
/* The interval between two snapshots of one daemon: what happened after the first. Pure. */
#ifndef PYPROF_SNAPSHOT_SINCE_H
#define PYPROF_SNAPSHOT_SINCE_H

#include "snapshot/snapshot.h"

/* Returns a copy that borrows nothing. It belongs to the caller. NULL: out of memory. */
struct snapshot *snapshot_copy(const struct snapshot *s);

/*
 * Subtracts the figures of an earlier snapshot of the same targets. Call it before
 * snapshot_correct(), with `before` also as taken. Targets that `before` does not have, or that were
 * attached again or cleared since, keep all their figures.
 *
 * Of the others, `start` becomes the time of `before`; the shortest and longest calls and lifetimes
 * and the errors of estimates become unknown; the longest duration is known to the width of its
 * bucket. A coroutine that was open counts as partial. Of a thread that has ended and was folded
 * meanwhile, what it had used before is subtracted from the row that it was folded into. Returns 0,
 * or -ENOMEM with the snapshot undefined.
 */
int snapshot_subtract(struct snapshot *s, const struct snapshot *before);

#endif
