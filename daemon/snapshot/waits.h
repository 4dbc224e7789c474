/* SPDX-License-Identifier: BSD-2-Clause */
/* Reasons of waiting after contexts' times have been corrected. Pure. */
#ifndef PYPROF_SNAPSHOT_WAITS_H
#define PYPROF_SNAPSHOT_WAITS_H

#include "snapshot/snapshot.h"

/* Each context's reasons are reduced in proportion to what is left of its waiting, wall time less CPU
 * time, so that they add up to it again. */
void snapshot_fit_waits(struct snapshot *s);

#endif
