// SPDX-License-Identifier: BSD-2-Clause
/*
 * Resumptions by throw(), 3.11 and later: after the evaluator's test of its throwflag argument.
 *
 * Source: CPython v3.11.2, v3.12.1 and v3.13.0, Python/ceval.c.
 */
#include "plan/planner.h"

#include <errno.h>

/*
 * Returns whether node tests the throwflag argument. *jump: whether its jump, rather than its next
 * edge, is for throw().
 */
static bool throw_edge(const struct planner *p, const struct flow_state *flag, uint32_t node,
		       bool *jump)
{
	const struct flow_state *st;
	struct comparison c;
	int64_t disp;
	int reg;

	if (!planner_compared(p, node, &c) || !planner_tests_zero(&c))
		return false;
	st = &flag[c.node];
	*jump = p->cfg.v[node].in.cond == INSN_COND_UNEQUAL;
	if (!st->reached)
		return false;
	if (insn_is_reg(&c.in.op[0], &reg, 32))
		return st->regs & insn_bit(reg);
	return c.in.op[0].bits == 32 && insn_is_mem(&c.in.op[0], &reg, &disp) &&
	       flow_in_slot(st, reg, disp);
}

#define THROW_MAX 8

/* Edges that throw() takes; compilers duplicate the test. */
struct throw_edges {
	uint32_t node[THROW_MAX], target[THROW_MAX];
	bool jump[THROW_MAX];
	unsigned int n;
};

static uint32_t *edge_of(struct planner *p, const struct throw_edges *e, unsigned int i)
{
	return e->jump[i] ? &p->cfg.v[e->node[i]].jump : &p->cfg.v[e->node[i]].next;
}

/* Mark nodes that only throw() reaches: reachable over an edge, but not if all these edges are
 * removed. */
static int throw_only(struct planner *p, const struct throw_edges *e, uint8_t *only)
{
	_cleanup_free_ uint8_t *other = planner_bytes(p);
	int r;

	if (!other)
		return -ENOMEM;
	for (unsigned int i = 0; i < e->n; i++)
		*edge_of(p, e, i) = CFG_NONE;
	r = planner_reach_all(p, true, CFG_NONE, NULL, other);
	for (unsigned int i = 0; i < e->n; i++)
		*edge_of(p, e, i) = e->target[i];
	for (unsigned int i = 0; i < e->n && r == 0; i++)
		r = cfg_reach(&p->cfg, e->target[i], other, only);
	return r;
}

/*
 * *ret: control can get from the edge to a dispatch or return without passing a site for throw().
 */
static int throw_unseen(const struct planner *p, uint32_t target, bool *ret)
{
	_cleanup_free_ uint8_t *blocked = planner_bytes(p), *seen = planner_bytes(p);

	if (!blocked || !seen)
		return -ENOMEM;
	planner_block_sites(p, 1u << PYP_SITE_THROW, blocked);
	if (cfg_reach(&p->cfg, target, blocked, seen) < 0)
		return -ENOMEM;
	*ret = planner_any_flow(&p->cfg, seen, true, true);
	return 0;
}

/* Add a site on the line at the edge's target, as far as only throw() reaches it. */
static int throw_site(struct planner *p, uint32_t target, const uint8_t *only)
{
	const struct site_want want = {PYP_SITE_THROW, "throw", p->frame, NULL};
	struct line line;

	line_build(&p->cfg, target, &(struct line_opts){.follow_jumps = true}, &line);
	for (unsigned int k = 0; k < line.n; k++)
		if (!only[line.v[k]])
			line.n = k;
	return line_site(p, &line, &want);
}

/* *ret: one throw() can pass two of its sites. */
static int throw_twice(const struct planner *p, bool *ret)
{
	*ret = false;
	for (unsigned int k = 0; k < p->plan->nsites && !*ret; k++) {
		uint32_t node = cfg_find(&p->cfg, p->plan->sites[k].vaddr);
		_cleanup_free_ uint8_t *seen = planner_bytes(p), *sites = planner_bytes(p);

		if (p->plan->sites[k].kind != PYP_SITE_THROW || node == CFG_NONE)
			continue;
		if (!seen || !sites || cfg_reach(&p->cfg, p->cfg.v[node].next, NULL, seen) < 0 ||
		    cfg_reach(&p->cfg, p->cfg.v[node].jump, NULL, seen) < 0)
			return -ENOMEM;
		planner_block_sites(p, 1u << PYP_SITE_THROW, sites);
		for (uint32_t i = 0; i < p->cfg.n; i++)
			*ret |= seen[i] && sites[i];
	}
	return 0;
}

/* Add sites for all edges, starting with edge `first`, as its site often covers others. */
static int throw_cover(struct planner *p, const struct throw_edges *e, unsigned int first,
		       const uint8_t *only)
{
	bool bad = false;
	int r = 0;

	for (unsigned int i = 0; i < e->n && r == 0; i++) {
		uint32_t target = e->target[(first + i) % e->n];

		r = throw_unseen(p, target, &bad);
		if (r == 0 && bad)
			r = throw_site(p, target, only);
	}
	for (unsigned int i = 0; i < e->n && r == 0; i++) {
		r = throw_unseen(p, e->target[i], &bad);
		r = r == 0 && bad ? -ENOENT : r;
	}
	if (r == 0)
		r = throw_twice(p, &bad);
	return r == 0 && bad ? -ENOENT : r;
}

int models_plan_throw(struct planner *p)
{
	const struct flow_root root = {p->entry, planner_argument(p, p->layout->arg_throwflag)};
	_cleanup_free_ struct flow_state *flag = flow_solve(&p->cfg, &root, 1, 32);
	_cleanup_free_ uint8_t *only = planner_bytes(p);
	unsigned int before = p->plan->nsites, most = PYP_MAX_SITES + 1, best = 0;
	struct throw_edges e = {0};
	int r;

	if (!flag || !only)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->cfg.n && e.n < THROW_MAX; i++) {
		if (!throw_edge(p, flag, i, &e.jump[e.n]))
			continue;
		e.node[e.n] = i;
		e.target[e.n] = *edge_of(p, &e, e.n);
		e.n++;
	}
	r = throw_only(p, &e, only);
	for (unsigned int i = 0; i < e.n && r == 0; i++) {
		if (throw_cover(p, &e, i, only) == 0 && p->plan->nsites < most) {
			most = p->plan->nsites;
			best = i;
		}
		p->plan->nsites = before;
	}
	if (r == 0 && most <= PYP_MAX_SITES)
		return throw_cover(p, &e, best, only);
	return r < 0 ? r
		     : planner_missing(p, "throw (the evaluator's path for a thrown exception)");
}
