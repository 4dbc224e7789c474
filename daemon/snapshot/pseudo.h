/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows for time that no function spends: "<outside>", a thread alive without any Python frame, and
 * "<wait>", an event loop that waits for something to happen. With "(lost)" and "(truncated)", which
 * are there already, all rows together are each thread's whole time, on both clocks. Pure.
 */
#ifndef PYPROF_SNAPSHOT_PSEUDO_H
#define PYPROF_SNAPSHOT_PSEUDO_H

#include "snapshot/snapshot.h"

#define SNAPSHOT_WAIT	 "<wait>"
#define SNAPSHOT_OUTSIDE "<outside>"

/* Give these times contexts of their own. After snapshot_correct(); once more changes nothing.
 * -ENOMEM. */
int snapshot_pseudo(struct snapshot *s);

/* Is this the function in which an event loop waits? */
bool snapshot_is_poller(const struct snapshot_func *f);

#endif
