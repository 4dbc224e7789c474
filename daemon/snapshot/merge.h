/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several snapshots as one, as pstats' add(): figures of the same function, and of the same calling
 * context of the same thread, are added up. A thread is the same where process, thread id and both
 * their starts are; so threads and processes of different runs are kept apart. Two snapshots of
 * one run have in common what happened until the first was taken; adding them up would count that
 * twice: snapshot_overlap() finds them.
 */
#ifndef PYPROF_SNAPSHOT_MERGE_H
#define PYPROF_SNAPSHOT_MERGE_H

#include "snapshot/snapshot.h"

/*
 * Do a and b contain the same thread of the same process over a common span of time? *ret_pid is
 * that process then. Not if the data was cleared in between.
 */
bool snapshot_overlap(const struct snapshot *a, const struct snapshot *b, uint32_t *ret_pid);

/* A new snapshot, which refers to none of the others. 0, -ENOMEM, -E2BIG: too many contexts. */
int snapshot_merge(const struct snapshot *const *list, size_t n, struct snapshot **ret);

#endif
