// SPDX-License-Identifier: BSD-2-Clause
#include "harness/estimate_rig.h"

#include "harness/test.h"

const struct cost estimate_rig_no_cost = {0};

void estimate_rig_init(struct estimate_rig *m)
{
	estimate_init(&m->e);
	calltree_init(&m->tree, 1000);
	m->funcs = NULL;
	m->root = calltree_add_root(&m->tree);
	m->f = calltree_child(&m->tree, m->root, F);
	m->g = calltree_child(&m->tree, m->f, G);
}

void estimate_rig_deinit(struct estimate_rig *m)
{
	estimate_deinit(&m->e);
	calltree_deinit(&m->tree);
}

void estimate_rig_seen(struct estimate_rig *m, uint32_t node, uint64_t calls, uint64_t cpu,
		       uint64_t wall)
{
	m->tree.nodes[node].calls += calls;
	m->tree.nodes[node].self[SNAPSHOT_CPU] += cpu;
	m->tree.nodes[node].self[SNAPSHOT_WALL] += wall;
}

struct estimate_result estimate_rig_reconcile(const struct estimate_rig *m, const struct cost *cost)
{
	struct estimate_result r;

	assert_ok(estimate_reconcile(&m->e, &m->tree, FUNCS, m->funcs, cost, &r));
	return r;
}

struct estimate_figures estimate_rig_figures(const struct estimate_rig *m, uint32_t node)
{
	struct estimate_result r = estimate_rig_reconcile(m, &estimate_rig_no_cost);
	struct estimate_figures f = estimate_figures(&r, node);

	estimate_result_deinit(&r);
	return f;
}

double estimate_rig_variance(const struct estimate_rig *m, uint32_t func, enum snapshot_figure k)
{
	struct estimate_result r = estimate_rig_reconcile(m, &estimate_rig_no_cost);
	double var = estimate_variance(&r, func, k);

	estimate_result_deinit(&r);
	return var;
}
