/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole calls of contexts (struct snapshot_whole) if functions between them are folded. Pure. */
#ifndef PYPROF_STATS_FOLD_WHOLES_H
#define PYPROF_STATS_FOLD_WHOLES_H

#include "snapshot/snapshot.h"

/*
 * Adds the evidence of s, which has some, to the nodes of a tree without the functions that are `away`.
 * host: per node of s, its node in that tree. A context below a folded one is called by the nearest
 * caller that is not folded, as often as the calls per call on the way multiply. Returns 0 or
 * -ENOMEM.
 */
int fold_wholes(const struct snapshot *s, const bool *away, const uint32_t *host,
		struct snapshot_whole *to);

#endif
