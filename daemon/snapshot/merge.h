/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Merges several snapshots, like pstats' add(): adds the figures of the same function, and of the
 * same calling context of the same thread. Threads are the same if process, thread id and both
 * start times are equal, so different runs stay apart. Two snapshots of one run both contain what
 * happened before the first was taken, and adding them would count that twice; snapshot_overlap()
 * detects this.
 */
#ifndef PYPROF_SNAPSHOT_MERGE_H
#define PYPROF_SNAPSHOT_MERGE_H

#include "snapshot/snapshot.h"

/*
 * Returns whether a and b contain the same thread of the same process over an overlapping time
 * span; *ret_pid is that process. Clearing the data in between removes the overlap.
 */
bool snapshot_overlap(const struct snapshot *a, const struct snapshot *b, uint32_t *ret_pid);

/*
 * Creates a snapshot that borrows nothing from its sources; it belongs to the caller. Returns 0,
 * -ENOMEM, or -E2BIG for too many contexts.
 */
int snapshot_merge(const struct snapshot *const *list, size_t n, struct snapshot **ret);

/* Returns whether two functions of any snapshots are the same, and a hash of what they have in common. */
bool snapshot_func_equal(const struct snapshot_func *a, const struct snapshot_func *b);
uint64_t snapshot_func_hash(const struct snapshot_func *f);

#endif
