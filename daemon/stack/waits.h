/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting by reason: the columns of group "waits" in the tree. In every node the reasons add up to wall
 * time less CPU time, to the nanosecond (0 where CPU time is ahead), after each call of timing.h. Kept if
 * the tree has the column "gil".
 */
#ifndef PYPROF_STACK_WAITS_H
#define PYPROF_STACK_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/wait.h"
#include "event/event.h"
#include "stats/calltree.h"

/* The columns of a reason: its own, and "io" for kinds of I/O. */
int waits_column(enum wait_reason why);

static inline bool waits_kept(const struct calltree *t)
{
	return t->kept & COLUMN_BIT(COLUMN_gil);
}

/* A node's wall time less its CPU time. */
static inline uint64_t waits_of(const struct node *n)
{
	return n->self[SNAPSHOT_WALL] > n->self[SNAPSHOT_CPU]
		       ? n->self[SNAPSHOT_WALL] - n->self[SNAPSHOT_CPU]
		       : 0;
}

/*
 * The node's times have changed; before: waits_of() it, before that. More waiting is of the reason why;
 * less is taken from that reason, and where it has not so much, from the others.
 */
void waits_change(struct calltree *t, uint32_t node, uint64_t before, enum wait_reason why);

/* So much of a node's waiting, or all that there is, has another reason. */
void waits_move(struct calltree *t, uint32_t node, enum wait_reason from, enum wait_reason to,
		uint64_t ns);

/* What a thread that is switched out waits for. */
enum wait_reason waits_reason(const struct event_switch *sw);

#endif
