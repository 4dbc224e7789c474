/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several snapshots as one, as pstats' add(): figures of the same function, and of the same calling
 * context of the same thread, are added up. A thread is the same where process, thread id and both
 * their starts are; so threads and processes of different runs are kept apart, and two snapshots of
 * one run count what they have in common twice.
 */
#ifndef PYPROF_SNAPSHOT_MERGE_H
#define PYPROF_SNAPSHOT_MERGE_H

#include "snapshot/snapshot.h"

/* A new snapshot, which refers to none of the others. 0, -ENOMEM, -E2BIG: too many contexts. */
int snapshot_merge(const struct snapshot *const *list, size_t n, struct snapshot **ret);

#endif
