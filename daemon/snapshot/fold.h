/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Folding: merges the profiles of ended processes, context by context, into one process without a
 * name (pid 0) that has one thread. A server's thousands of short-lived children thus take the
 * memory of one.
 */
#ifndef PYPROF_SNAPSHOT_FOLD_H
#define PYPROF_SNAPSHOT_FOLD_H

#include "snapshot/snapshot.h"

/*
 * The maximum number of contexts of the sum. If a process would exceed it, only its totals are
 * added, to "(truncated)".
 */
#define FOLD_MAX_NODES (1u << 20)

/*
 * Adds s, the snapshot of one target, to *sum (NULL: s is the first). Consumes the contents of s;
 * the caller may only free it afterwards. max_nodes: FOLD_MAX_NODES, or less in tests. Returns 0,
 * or a negative errno with *sum unchanged.
 */
int snapshot_fold(struct snapshot **sum, struct snapshot *s, uint32_t max_nodes);

#endif
