// SPDX-License-Identifier: BSD-2-Clause
/* Resource counters of threads: they are booked to the function that runs. */
#include "profile/profile_priv.h"

void profile_count_counters(struct profile *p, const struct event *e)
{
	struct thread *th = p->tracing ? profile_live_thread(p, e->tid) : NULL;
	const uint64_t *value = e->u.counters.value;
	uint32_t node;

	if (!th || !(p->measured & COLUMN_COUNTERS(UINT32_MAX)))
		return;
	node = th->counters_gap ? NODE_LOST(th->root) : th->node;
	for (int i = 0; i < PYP_COUNTERS; i++) {
		if (th->counters_known && value[i] > th->counters[i])
			calltree_add(&p->rb.tree, node, COLUMN_vcsw + i,
				     value[i] - th->counters[i]);
		th->counters[i] = value[i];
	}
	th->counters_known = true;
}
