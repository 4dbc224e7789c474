/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting by reason: the columns of group "waits" in the tree. After each call of timing.h, the
 * reasons of every node add up exactly to wall time minus CPU time (0 if CPU time is greater). Only
 * kept if the tree has the column "gil".
 */
#ifndef PYPROF_STACK_WAITS_H
#define PYPROF_STACK_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/wait.h"
#include "event/event.h"
#include "stats/calltree.h"

/* Returns the column of a reason; kinds of I/O also count in "io". */
int waits_column(enum wait_reason why);

static inline bool waits_kept(const struct calltree *t)
{
	return t->kept & COLUMN_BIT(COLUMN_gil);
}

/* Whether that is booked as time passes. */
static inline bool waits_booked(const struct calltree *t)
{
	return waits_kept(t) && !t->waits_apart;
}

/* Returns a node's wall time minus its CPU time, in ns. */
static inline uint64_t waits_of(const struct node *n)
{
	return n->self[SNAPSHOT_WALL] > n->self[SNAPSHOT_CPU]
		       ? n->self[SNAPSHOT_WALL] - n->self[SNAPSHOT_CPU]
		       : 0;
}

/*
 * Updates the reasons after the node's times have changed. before: waits_of() the node before the
 * change. An increase is added to the reason `why`; a decrease is subtracted from it and, if it is
 * too small, from the others.
 */
void waits_change(struct calltree *t, uint32_t node, uint64_t before, enum wait_reason why);

/* Moves at most `ns` of a node's waiting from one reason to another. */
void waits_move(struct calltree *t, uint32_t node, enum wait_reason from, enum wait_reason to,
		uint64_t ns);

/* Returns the reason for which a thread was switched out. */
enum wait_reason waits_reason(const struct event_switch *sw);

#endif
