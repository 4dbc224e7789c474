/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions that a snapshot has, by identity: an index that is kept while profiles are added to
 * it, one after another, so that each costs what it adds. It lives in the snapshot's arena. Between
 * two additions the snapshot's functions may become more, but none may change. Pure.
 */
#ifndef PYPROF_PROFILE_KNOWN_FUNCS_H
#define PYPROF_PROFILE_KNOWN_FUNCS_H

#include <stdbool.h>
#include <stdint.h>

#include "snapshot/snapshot.h"
#include "stats/func.h"

/* Index all functions that the snapshot has, with room for n more. 0 or -ENOMEM. */
int known_funcs_prepare(struct snapshot *s, uint32_t n);
/* Index the function that was added last; there is room. */
void known_funcs_add(struct snapshot *s);
/* The snapshot's function with this identity; SNAPSHOT_NONE: it has none. */
uint32_t known_funcs_find(const struct snapshot *s, const struct func_identity *id,
			  uint32_t variant, bool pseudo);

#endif
