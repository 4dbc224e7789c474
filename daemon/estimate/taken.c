// SPDX-License-Identifier: BSD-2-Clause
/* Time taken by probes: see taken.h. */
#include "estimate/taken.h"

#include "stats/func.h"

void taken_ends_add(struct taken_ends *to, struct taken_ends n)
{
	to->calls += n.calls;
	to->yields += n.yields;
}

static uint64_t leaves_of(struct taken_ends e)
{
	return e.calls > e.yields ? e.calls - e.yields : 0;
}

/* Probes' part of a node's own time: see snapshot/correct.c. */
double taken_of(const struct cost *c, struct taken_ends n, struct taken_ends callees, bool pseudo)
{
	double own = (double)n.calls * c->after[COST_ENTER] +
		     (double)leaves_of(n) * c->before[COST_LEAVE] +
		     (double)n.yields * c->before[COST_YIELD];

	if (!c->known)
		return 0;
	if (pseudo)
		return own + (double)n.calls * (c->before[COST_ENTER] + c->after[COST_LEAVE]);
	return own + (double)callees.calls * c->before[COST_ENTER] +
	       (double)leaves_of(callees) * c->after[COST_LEAVE] +
	       (double)callees.yields * c->after[COST_YIELD];
}

bool taken_is_pseudo(const struct node *n)
{
	return n->func != SNAPSHOT_NONE && func_is_pseudo(n->func) && !func_is_gc(n->func);
}

double taken_waiting(const struct node *n)
{
	return n->self[SNAPSHOT_WALL] > n->self[SNAPSHOT_CPU]
		       ? (double)(n->self[SNAPSHOT_WALL] - n->self[SNAPSHOT_CPU])
		       : 0;
}
