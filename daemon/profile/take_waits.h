/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies a profile's data about waiting, other than the columns, to a snapshot; for profile/ only.
 */
#ifndef PYPROF_PROFILE_TAKE_WAITS_H
#define PYPROF_PROFILE_TAKE_WAITS_H

#include "profile/profile_priv.h"

/*
 * func_map: the snapshot's function by function of the profile; SNAPSHOT_NONE: not included.
 * Returns 0 or -ENOMEM.
 */
int take_waits(const struct profile *p, const uint32_t *func_map, struct snapshot *s,
	       struct snapshot_target *target);

#endif
