// SPDX-License-Identifier: BSD-2-Clause
/* Where calls become certain and where they have returned: see native.h. */
#include "plan/native.h"

#include <errno.h>

/* Returns whether an opcode's execution ends at this node. */
static bool ends(const struct cfg_node *node)
{
	return node->in.flow == INSN_RET || node->in.flow == INSN_JMP_IND || node->tail;
}

static int enter_edge(struct native *n, const struct native_group *g, uint32_t node, bool taken)
{
	const struct insn *in = &n->p.cfg.v[node].in;
	struct plan *plan = n->p.plan;
	unsigned int before = plan->nnative;
	int r = -ENOENT;

	if (in->flow == INSN_JCC && in->cc != INSN_NO_CC)
		r = native_site(n, node, g->kind, g->role, &g->callable[node]);
	if (r < 0)
		return r == -E2BIG
			       ? planner_missing(&n->p, "more than %d sites", PYP_MAX_NATIVE_SITES)
			       : planner_missing(&n->p,
						 "%s (no site where it becomes certain, 0x%llx)",
						 g->role, (unsigned long long)in->vaddr);
	if (plan->nnative == before)
		return 0;
	plan->native[before].has_cc = true;
	plan->native[before].cc = in->cc;
	plan->native[before].taken = taken;
	return 0;
}

int native_enter_edges(struct native *n, const struct native_group *g, const uint8_t *open,
		       const uint8_t *goal, unsigned int *count)
{
	_cleanup_free_ uint8_t *towards = planner_bytes(&n->p);
	int r = 0;

	if (!towards)
		return -ENOMEM;
	for (uint32_t i = 0; i < n->p.cfg.n; i++)
		towards[i] = goal[i];
	planner_lead_to(&n->p, NULL, towards);
	for (uint32_t i = 0; i < n->p.cfg.n && r == 0; i++) {
		const uint32_t succ[2] = {n->p.cfg.v[i].next, n->p.cfg.v[i].jump};

		for (int k = 0; k < 2 && g->within[i] && open[i] && r == 0; k++) {
			if (succ[k] == CFG_NONE || open[succ[k]] || !towards[succ[k]])
				continue;
			r = enter_edge(n, g, i, k == 1);
			++*count;
		}
	}
	return r;
}

int native_certain_edges(struct native *n, const struct native_group *g, const uint8_t *calls,
			 unsigned int *count)
{
	_cleanup_free_ uint8_t *open = planner_bytes(&n->p);

	if (!open)
		return -ENOMEM;
	for (uint32_t i = 0; i < n->p.cfg.n; i++)
		open[i] = !calls[i] && ends(&n->p.cfg.v[i]);
	planner_lead_to(&n->p, calls, open);
	return native_enter_edges(n, g, open, calls, count);
}

bool native_leave_is_shared(const struct native *n, uint32_t call)
{
	struct line line;

	line_build(&n->p.cfg, n->p.cfg.v[call].next, &(struct line_opts){0}, &line);
	for (unsigned int k = 0; k < line.n; k++) {
		const struct cfg_node *node = &n->p.cfg.v[line.v[k]];

		if (node->preds > 1)
			return true;
		if (node->in.probe == INSN_EMULATED)
			return false;
	}
	return true;
}

/* Add a site at the first emulated instruction after the call that has no other site. */
static int leave(struct native *n, uint32_t call)
{
	struct line line;

	line_build(&n->p.cfg, n->p.cfg.v[call].next, &(struct line_opts){0}, &line);
	for (unsigned int k = 0; k < line.n; k++) {
		int r = native_site(n, line.v[k], PYP_SITE_C_LEAVE, "returned", NULL);

		if (r == 0 || r == -E2BIG)
			return r;
	}
	return planner_missing(&n->p, "where the call at 0x%llx has returned",
			       (unsigned long long)n->p.cfg.v[call].in.vaddr);
}

int native_leaves(struct native *n)
{
	int r = 0;

	for (uint32_t i = 0; i < n->p.cfg.n && r == 0; i++)
		if (n->over[i])
			r = leave(n, i);
	return r == -E2BIG ? planner_missing(&n->p, "more than %d sites", PYP_MAX_NATIVE_SITES) : r;
}
