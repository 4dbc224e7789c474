/* SPDX-License-Identifier: BSD-2-Clause */
/* Adjusts reasons for waiting after contexts' times have been corrected. Pure. */
#ifndef PYPROF_SNAPSHOT_WAITS_H
#define PYPROF_SNAPSHOT_WAITS_H

#include "snapshot/snapshot.h"

/*
 * Scales each context's reasons down in proportion, so that they add up to its corrected waiting
 * (wall time minus CPU time).
 */
void snapshot_fit_waits(struct snapshot *s);

#endif
