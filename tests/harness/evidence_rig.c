// SPDX-License-Identifier: BSD-2-Clause
#include "harness/evidence_rig.h"

#include <math.h>

#include "harness/test.h"

void evidence_rig_init(struct evidence_rig *m)
{
	m->e = (struct evidence){0};
	calltree_init(&m->tree, 1000);
	m->root = calltree_add_root(&m->tree);
	m->f = calltree_child(&m->tree, m->root, F);
	m->g = calltree_child(&m->tree, m->f, G);
}

void evidence_rig_deinit(struct evidence_rig *m)
{
	evidence_deinit(&m->e);
	calltree_deinit(&m->tree);
}

void evidence_rig_seen(struct evidence_rig *m, uint32_t node, uint64_t calls, uint64_t cpu)
{
	calltree_touch(&m->tree, node);
	m->tree.nodes[node].calls += calls;
	m->tree.nodes[node].self[SNAPSHOT_CPU] += cpu;
}

void evidence_rig_fold(struct evidence_rig *m, uint64_t gap_ns, uint64_t length_ns,
		       const struct cost *cost, double times)
{
	const struct cost unknown = {0};

	evidence_gap(&m->e, gap_ns);
	assert_ok(evidence_fold(&m->e, &m->tree, FUNCS,
				&(struct evidence_window){
					.length_ns = (double)length_ns,
					.cpu_ns = INFINITY,
					.cost = cost ? cost : &unknown,
					.times = times,
				}));
}
