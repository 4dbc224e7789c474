/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows for time that belongs to no function: "<outside>", while a thread has no Python frame, and
 * "<wait>", while a loop waits for work. Together with "(lost)" and "(truncated)", the
 * rows then add up to each thread's whole time on both clocks. Pure.
 */
#ifndef PYPROF_SNAPSHOT_PSEUDO_H
#define PYPROF_SNAPSHOT_PSEUDO_H

#include "snapshot/snapshot.h"

#define SNAPSHOT_WAIT	 "<wait>"
#define SNAPSHOT_OUTSIDE "<outside>"

/*
 * Moves these times into contexts of their own. Call it after snapshot_correct(); repeated calls
 * change nothing. Returns 0 or -ENOMEM.
 */
int snapshot_pseudo(struct snapshot *s);

/* Returns whether a loop waits for work in this function. */
bool snapshot_is_poller(const struct snapshot_func *f);

#endif
