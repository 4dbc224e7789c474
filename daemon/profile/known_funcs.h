/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An index of a snapshot's functions by identity, kept while profiles are added to the snapshot one
 * after another, so that each addition costs time in proportion to its own size. It is allocated in
 * the snapshot's arena. Between two additions, functions may be added to the snapshot but not
 * changed. Pure.
 */
#ifndef PYPROF_PROFILE_KNOWN_FUNCS_H
#define PYPROF_PROFILE_KNOWN_FUNCS_H

#include <stdbool.h>
#include <stdint.h>

#include "snapshot/snapshot.h"
#include "stats/func.h"

/* Indexes all functions of the snapshot, with room for n more. Returns 0 or -ENOMEM. */
int known_funcs_prepare(struct snapshot *s, uint32_t n);
/* Indexes the last function of the snapshot; room was reserved. */
void known_funcs_add(struct snapshot *s);
/* Returns the index of the function with this identity; SNAPSHOT_NONE: not found. */
uint32_t known_funcs_find(const struct snapshot *s, const struct func_identity *id,
			  uint32_t variant, bool pseudo);

#endif
