/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Folding: the profiles of processes that have ended, added up context by context in one nameless
 * process (pid 0) of one thread. What a server's thousands of short-lived children leave behind
 * takes the room of one.
 */
#ifndef PYPROF_SNAPSHOT_FOLD_H
#define PYPROF_SNAPSHOT_FOLD_H

#include "snapshot/snapshot.h"

/* Contexts that the sum may have: of a process that would bring more only its totals are added, in
 * "(truncated)", and it is counted there. */
#define FOLD_MAX_NODES (1u << 20)

/*
 * Add s, the snapshot of one target, to *sum (NULL: the first one). s is used up: it may be freed
 * and nothing else afterwards. max_nodes: FOLD_MAX_NODES, less in tests. 0 or a negative errno; then
 * *sum is as it was.
 */
int snapshot_fold(struct snapshot **sum, struct snapshot *s, uint32_t max_nodes);

#endif
