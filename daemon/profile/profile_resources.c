// SPDX-License-Identifier: BSD-2-Clause
/* Resource counters and memory of threads: they are booked to the function that runs. */
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

void profile_count_memory(struct profile *p, const struct event *e)
{
	struct thread *th = p->tracing ? profile_live_thread(p, e->tid) : NULL;
	const int64_t resident = e->u.memory.resident, mapped = e->u.memory.mapped;
	uint32_t node;

	if (!th || !(p->measured & COLUMN_BIT(COLUMN_grown)))
		return;
	node = e->arg & PYP_MEMORY_LOST || th->counters_gap ? NODE_LOST(th->root) : th->node;
	if (resident > 0)
		calltree_add(&p->rb.tree, node, COLUMN_grown, (uint64_t)resident);
	if (resident < 0)
		calltree_add(&p->rb.tree, node, COLUMN_shrunk, (uint64_t)-resident);
	if (mapped > 0) {
		calltree_add(&p->rb.tree, node, COLUMN_mapped, (uint64_t)mapped);
		calltree_add(&p->rb.tree, node, COLUMN_large, 1);
	}
	if (mapped < 0)
		calltree_add(&p->rb.tree, node, COLUMN_unmapped, (uint64_t)-mapped);
}
