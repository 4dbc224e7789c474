// SPDX-License-Identifier: BSD-2-Clause
/* Instructions that all paths to some places pass exactly once: see planner.h. */
#include "plan/planner.h"

#include <errno.h>

static bool is_call(const struct insn *in)
{
	return in->flow == INSN_CALL || in->flow == INSN_CALL_IND;
}

/*
 * *ret: all paths from node lead to an open end, and none to another end, or to a call if the cut
 * must be direct.
 */
static int cut_committed(const struct planner *p, const struct cut *c, uint32_t node, bool *ret)
{
	_cleanup_free_ uint8_t *seen = planner_bytes(p);
	int r;

	if (!seen)
		return -ENOMEM;
	r = cfg_reach(&p->cfg, node, c->open, seen);
	*ret = r == 0 && !planner_any_flow(&p->cfg, seen, true, true);
	for (uint32_t i = 0; i < p->cfg.n && *ret; i++)
		*ret = !(seen[i] && (c->ends[i] || (c->direct && is_call(&p->cfg.v[i].in))));
	return r;
}

static int end_register(const struct planner *p, const struct cut *c, uint32_t node)
{
	return c->value_at ? c->value_at(p, node) : c->end_reg;
}

/* A register that at node holds the value of all open ends reachable from it; -1: none. */
static int cut_register(const struct planner *p, const struct cut *c, uint32_t node)
{
	for (int reg = 0; reg < p->cfg.arch->nregs; reg++) {
		const struct flow_root root = {node, insn_bit(reg)};
		_cleanup_free_ struct flow_state *st = NULL;
		unsigned int fits = 0, others = 0;

		if (reg == p->cfg.arch->sp)
			continue;
		st = flow_solve(&p->cfg, &root, 1, 64);
		if (!st)
			return -1;
		for (uint32_t i = 0; i < p->cfg.n; i++) {
			int at = c->open[i] && st[i].reached ? end_register(p, c, i) : -1;

			if (at < 0)
				continue;
			fits += st[i].regs >> at & 1;
			others += !(st[i].regs >> at & 1);
		}
		if (fits && !others)
			return reg;
	}
	return -1;
}

static bool is_branch(const struct insn *in)
{
	return in->flow == INSN_JMP || in->flow == INSN_JCC;
}

/* Add node to the cut if it is suitable. */
static int cut_take(const struct planner *p, struct cut *c, uint32_t node, bool *ret)
{
	int reg;

	*ret = false;
	if (p->cfg.v[node].in.probe != INSN_EMULATED || p->cfg.v[node].doubtful || c->n == CUT_MAX)
		return 0;
	if (c->direct && !is_branch(&p->cfg.v[node].in))
		return 0;
	reg = cut_register(p, c, node);
	if (reg < 0)
		return 0;
	c->reg[c->n] = (uint8_t)reg;
	c->node[c->n++] = node;
	c->in[node] = 1;
	*ret = true;
	return 0;
}

/* Search backwards from the open ends for the nearest emulated instruction on each path. */
static int cut_search(const struct planner *p, struct cut *c, bool *ret)
{
	_cleanup_free_ uint8_t *known = planner_bytes(p);
	uint32_t queue[CUT_MAX];
	unsigned int n = 0;
	int r = 0;

	*ret = false;
	if (!known)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->cfg.n && n < CUT_MAX; i++)
		if (c->open[i])
			known[queue[n++] = i] = 1;
	for (unsigned int k = 0; k < n; k++) {
		bool ok = c->open[queue[k]];

		if (!ok) {
			r = cut_committed(p, c, queue[k], &ok);
			if (r < 0 || !ok)
				return r;
			r = cut_take(p, c, queue[k], &ok);
			if (r < 0 || ok)
				continue;
		}
		if (p->cfg.v[queue[k]].root)
			return 0;
		for (uint32_t i = 0; i < p->cfg.n; i++) {
			if (known[i] ||
			    (p->cfg.v[i].next != queue[k] && p->cfg.v[i].jump != queue[k]))
				continue;
			if (n == CUT_MAX)
				return 0;
			known[queue[n++] = i] = 1;
		}
	}
	*ret = true;
	return r;
}

/* Proof: no path to an open end avoids the cut or passes two of its nodes. */
static int cut_prove(const struct planner *p, const struct cut *c, bool *ret)
{
	_cleanup_free_ uint8_t *around = planner_bytes(p);
	int r = around ? planner_reach_all(p, true, CFG_NONE, c->in, around) : -ENOMEM;

	*ret = r == 0;
	for (uint32_t i = 0; i < p->cfg.n && *ret; i++)
		*ret = !(c->open[i] && around[i]);
	for (unsigned int k = 0; k < c->n && *ret; k++) {
		const struct cfg_node *node = &p->cfg.v[c->node[k]];
		_cleanup_free_ uint8_t *seen = planner_bytes(p);

		if (!seen || cfg_reach(&p->cfg, node->next, c->open, seen) < 0 ||
		    cfg_reach(&p->cfg, node->jump, c->open, seen) < 0)
			return -ENOMEM;
		for (uint32_t i = 0; i < p->cfg.n && *ret; i++)
			*ret = !(seen[i] && c->in[i]);
	}
	return r;
}

int cut_find(const struct planner *p, struct cut *c, bool *ret)
{
	int r = cut_search(p, c, ret);

	return r == 0 && *ret ? cut_prove(p, c, ret) : r;
}
