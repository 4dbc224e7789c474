/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile's waits, besides the columns, in a snapshot; for profile/ only. */
#ifndef PYPROF_PROFILE_TAKE_WAITS_H
#define PYPROF_PROFILE_TAKE_WAITS_H

#include "profile/profile_priv.h"

/* func_map: by function of the profile, the snapshot's; SNAPSHOT_NONE: not in it. 0 or -ENOMEM. */
int take_waits(const struct profile *p, const uint32_t *func_map, struct snapshot *s,
	       struct snapshot_target *target);

#endif
