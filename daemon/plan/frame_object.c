// SPDX-License-Identifier: BSD-2-Clause
/*
 * The sites of 3.6 to 3.10, where one C call of the evaluator is one activation. It begins behind
 * the recursion check at its start, and ends where tstate->frame becomes f->f_back.
 *
 * Source: CPython v3.9.2 and v3.10.13, Python/ceval.c.
 */
#include "plan/planner.h"

#include <errno.h>

/* One place where tstate->frame becomes f->f_back: at node, through register `frame`. */
struct f_back {
	uint32_t node;
	int frame, loaded;
};

/* Is node a load of f_back whose result the same line stores to tstate->frame? */
static bool f_back_at(const struct planner *p, uint32_t node, struct f_back *ret)
{
	struct insn_full in;
	struct line line;
	int64_t disp;
	int base, src;

	if (!cfg_full(&p->cfg, node, &in) || !insn_is_load(&in, &ret->loaded, &ret->frame, &disp) ||
	    ret->frame == p->cfg.arch->sp || disp != p->layout->bpf.frame_previous)
		return false;
	ret->node = node;
	line_build(&p->cfg, node, &(struct line_opts){0}, &line);
	for (unsigned int k = 1; k < line.n; k++) {
		if (!cfg_full(&p->cfg, line.v[k], &in))
			return false;
		if (insn_is_store(&in, &base, &disp) && insn_is_reg(&in.op[1], &src, 64) &&
		    disp == p->layout->ts_frame && src == ret->loaded && base != p->cfg.arch->sp &&
		    base != ret->frame)
			return true;
		if (insn_writes_reg(&in, ret->loaded))
			return false;
	}
	return false;
}

/* An emulated instruction behind the load, on its line, while the frame's register is untouched. */
static uint32_t f_back_behind(const struct planner *p, const struct f_back *f)
{
	struct insn_full in;
	struct line line;

	if (f->frame == f->loaded)
		return CFG_NONE;
	line_build(&p->cfg, f->node, &(struct line_opts){0}, &line);
	for (unsigned int k = 1; k < line.n; k++) {
		if (p->cfg.v[line.v[k]].in.probe == INSN_EMULATED)
			return line.v[k];
		if (!cfg_full(&p->cfg, line.v[k], &in) || insn_writes_reg(&in, f->frame))
			break;
	}
	return CFG_NONE;
}

/* ---- leaving sites before the loads ------------------------------------------------------ */

#define CUT_MAX 128

/*
 * Where no probe fits behind a load: a cut before the loads, of emulated instructions, such that
 * every pass to one of the loads comes through exactly one of them.
 */
struct cut {
	const uint8_t *loads; /* all loads of f_back */
	uint8_t *open;	      /* those for which the cut is made */
	uint8_t *in;	      /* the nodes of the cut */
	uint8_t reg[CUT_MAX]; /* which register holds the frame there, by order in node[] */
	uint32_t node[CUT_MAX];
	unsigned int n;
};

/* Does every way on from node come to one of the open loads, and to no other? */
static int cut_committed(const struct planner *p, const struct cut *c, uint32_t node, bool *ret)
{
	_cleanup_free_ uint8_t *seen = planner_bytes(p);
	int r;

	if (!seen)
		return -ENOMEM;
	r = cfg_reach(&p->cfg, node, c->open, seen);
	*ret = r == 0 && !planner_any_flow(&p->cfg, seen, true, true);
	for (uint32_t i = 0; i < p->cfg.n && *ret; i++)
		*ret = !(seen[i] && c->loads[i]);
	return r;
}

/* A register that holds at node what every open load reached from there finds in its own; -1. */
static int cut_register(const struct planner *p, const struct cut *c, uint32_t node)
{
	for (int reg = 0; reg < p->cfg.arch->nregs; reg++) {
		const struct flow_root root = {node, insn_bit(reg)};
		_cleanup_free_ struct flow_state *st = NULL;
		unsigned int fits = 0, others = 0;
		struct f_back f;

		if (reg == p->cfg.arch->sp)
			continue;
		st = flow_solve(&p->cfg, &root, 1, 64);
		if (!st)
			return -1;
		for (uint32_t i = 0; i < p->cfg.n; i++) {
			if (!c->open[i] || !st[i].reached || !f_back_at(p, i, &f))
				continue;
			fits += st[i].regs >> f.frame & 1;
			others += !(st[i].regs >> f.frame & 1);
		}
		if (fits && !others)
			return reg;
	}
	return -1;
}

/* Take node into the cut if it will do. */
static int cut_take(const struct planner *p, struct cut *c, uint32_t node, bool *ret)
{
	int reg;

	*ret = false;
	if (p->cfg.v[node].in.probe != INSN_EMULATED || p->cfg.v[node].doubtful || c->n == CUT_MAX)
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

/* Walk back from the open loads to the nearest emulated instruction on each way. */
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

/* Proof: no way to an open load around the cut, and none through two of its nodes. */
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

/* ---- leaving ----------------------------------------------------------------------------- */

static int leave_add(struct planner *p, uint32_t node, int reg)
{
	const struct flow_state at = {.reached = true, .regs = insn_bit(reg)};

	return site_add(p, &p->cfg, node, PYP_SITE_LEAVE, "exit_eval_frame", &at);
}

/* Sites for the loads that have none behind them: a cut, or the loads themselves, stepped. */
static int plan_open_loads(struct planner *p, struct cut *c)
{
	struct f_back f;
	bool ok = false;
	int r = cut_search(p, c, &ok);

	if (r == 0 && ok)
		r = cut_prove(p, c, &ok);
	for (unsigned int k = 0; k < c->n && r == 0 && ok; k++)
		r = leave_add(p, c->node[k], c->reg[k]);
	for (uint32_t i = 0; i < p->cfg.n && r == 0 && !ok; i++)
		if (c->open[i] && f_back_at(p, i, &f))
			r = leave_add(p, i, f.frame);
	return r;
}

static int plan_f_back(struct planner *p)
{
	_cleanup_free_ uint8_t *loads = planner_bytes(p), *open = planner_bytes(p),
			       *in = planner_bytes(p);
	struct cut c = {.loads = loads, .open = open, .in = in};
	unsigned int n = 0;
	struct f_back f;
	int r = 0;

	if (!loads || !open || !in)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->cfg.n && r == 0; i++) {
		uint32_t behind;

		if (!f_back_at(p, i, &f))
			continue;
		n++;
		loads[i] = 1;
		behind = f_back_behind(p, &f);
		open[i] = behind == CFG_NONE;
		if (!open[i])
			r = leave_add(p, behind, f.frame);
	}
	if (!n)
		return planner_missing(p, "exit_eval_frame (tstate->frame = f->f_back)");
	return r < 0 ? r : plan_open_loads(p, &c);
}

/* ---- entering ---------------------------------------------------------------------------- */

/* What can run before node does, of what begins at the evaluator's entry. */
struct before {
	uint32_t size;	/* UINT32_MAX: a dispatch, so node is not on every path to one */
	bool may_trace; /* a call behind the recursion check, as a tool that traces gets one */
};

static int runs_before(const struct planner *p, uint32_t node, const uint8_t *may_fail,
		       struct before *ret)
{
	_cleanup_free_ uint8_t *blocked = planner_bytes(p), *seen = planner_bytes(p);
	int r;

	*ret = (struct before){.size = UINT32_MAX};
	if (!blocked || !seen)
		return -ENOMEM;
	blocked[node] = 1;
	r = cfg_reach(&p->cfg, p->entry, blocked, seen);
	if (r < 0 || planner_any_flow(&p->cfg, seen, false, true))
		return r;
	ret->size = 0;
	for (uint32_t i = 0; i < p->cfg.n; i++) {
		enum insn_flow flow = p->cfg.v[i].in.flow;

		ret->size += seen[i];
		ret->may_trace |= seen[i] && !may_fail[i] &&
				  (flow == INSN_CALL || flow == INSN_CALL_IND);
	}
	return 0;
}

/* Before 3.11 one site sees calls, resumptions and throw(): the argument tells, if it still is in a
 * register there. If not, a throw() that a generator passes on looks like any entry. */
static int entry_flag(const struct planner *p, uint32_t node, struct plan_site *site)
{
	const struct flow_root root = {p->entry, planner_argument(p, p->layout->arg_throwflag)};
	_cleanup_free_ struct flow_state *flag = flow_solve(&p->cfg, &root, 1, 32);

	if (!flag)
		return -ENOMEM;
	site->has_flag = flag[node].reached && flag[node].regs;
	if (site->has_flag)
		site->flag_reg = (uint8_t)__builtin_ctz(flag[node].regs);
	return 0;
}

/* Nodes from which control can get to a return without passing a leaving site. */
static uint8_t *refusable(const struct planner *p)
{
	_cleanup_free_ uint8_t *left = planner_bytes(p), *ret = planner_bytes(p);

	if (!left || !ret)
		return NULL;
	planner_block_sites(p, 1u << PYP_SITE_LEAVE, left);
	for (uint32_t i = 0; i < p->cfg.n; i++)
		ret[i] = !left[i] && (p->cfg.v[i].in.flow == INSN_RET || p->cfg.v[i].tail);
	planner_lead_to(p, left, ret);
	return TAKE_PTR(ret);
}

/* Does control get from node to a dispatch, or to a leaving site? (Not if it only aborts.) */
static bool goes_on(const struct planner *p, uint32_t node)
{
	_cleanup_free_ uint8_t *seen = planner_bytes(p), *left = planner_bytes(p);

	if (!seen || !left || cfg_reach(&p->cfg, node, NULL, seen) < 0)
		return false;
	if (planner_any_flow(&p->cfg, seen, false, true))
		return true;
	planner_block_sites(p, 1u << PYP_SITE_LEAVE, left);
	for (uint32_t i = 0; i < p->cfg.n; i++)
		if (seen[i] && left[i])
			return true;
	return false;
}

static int entry_edge_add(struct planner *p, uint32_t node, bool taken)
{
	unsigned int before = p->plan->nsites;

	if (planner_edge_site(p, node, taken, PYP_SITE_ENTER, "entry") < 0)
		return planner_missing(p, "entry (no probe possible behind the recursion check)");
	return entry_flag(p, node, &p->plan->sites[before]);
}

/*
 * The edges over which an activation becomes certain. At the function's start it can still be
 * refused; at the dispatch it cannot, and what is certain stays so until a leaving site. So every
 * activation crosses from "can be refused" to "cannot" exactly once, over the edge of a branch:
 * probed under the condition of that edge, these branches together count each activation once.
 */
static int plan_entry_edges(struct planner *p, const uint8_t *entry, const uint8_t *loop)
{
	_cleanup_free_ uint8_t *may_fail = refusable(p);
	unsigned int n = 0;

	if (!may_fail)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->cfg.n; i++) {
		const uint32_t succ[2] = {p->cfg.v[i].next, p->cfg.v[i].jump};

		for (int k = 0; k < 2 && entry[i] && may_fail[i]; k++) {
			int r;

			if (succ[k] == CFG_NONE || may_fail[succ[k]] || !goes_on(p, succ[k]))
				continue;
			r = loop[i] ? planner_missing(p, "entry (it is part of the loop)")
				    : entry_edge_add(p, i, k == 1);
			if (r < 0)
				return r;
			n++;
		}
	}
	return n ? 0 : planner_missing(p, "entry (no recursion check)");
}

/* What a place for the entry's only site must have. */
struct single_want {
	bool flag;     /* throwflag is still in a register */
	bool untraced; /* no tool that traces can have been called yet */
};

/*
 * One place: on every path from the function's start to the first dispatch, on none from a handler,
 * and behind the recursion check: from there every way out passes a leaving site, so that a frame
 * refused with RecursionError is not counted. Of such places the first. -ENOENT: there is none.
 */
static int plan_entry_single(struct planner *p, const uint8_t *entry, const uint8_t *loop,
			     const struct single_want *want)
{
	const unsigned int at = p->plan->nsites;
	_cleanup_free_ uint8_t *may_fail = refusable(p);
	struct before b, least = {.size = UINT32_MAX};
	struct plan_site best;
	int r = may_fail ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < p->cfg.n && r == 0; i++) {
		if (!entry[i] || loop[i] || may_fail[i] || p->cfg.v[i].in.probe != INSN_EMULATED ||
		    !(p->frame[i].regs || p->frame[i].nslots))
			continue;
		r = runs_before(p, i, may_fail, &b);
		if (r < 0 || b.size >= least.size || (want->untraced && b.may_trace) ||
		    site_add(p, &p->cfg, i, PYP_SITE_ENTER, "entry", &p->frame[i]) < 0)
			continue;
		r = entry_flag(p, i, &p->plan->sites[at]);
		if (r == 0 && (!want->flag || p->plan->sites[at].has_flag)) {
			best = p->plan->sites[at];
			least = b;
		}
		p->plan->nsites = at;
	}
	if (r < 0 || least.size == UINT32_MAX)
		return r < 0 ? r : -ENOENT;
	p->plan->sites[p->plan->nsites++] = best;
	return 0;
}

/*
 * A tool that traces is told of the frame before the first dispatch, and what it calls is called by
 * the frame: so the site has to come before that. Best is one place where throwflag still is in a
 * register, or edges where it is; then one without it, then edges without it.
 */
static int plan_entry(struct planner *p)
{
	const struct single_want with_flag = {true, true}, without = {false, true},
				 any = {false, false};
	_cleanup_free_ uint8_t *entry = planner_bytes(p), *loop = planner_bytes(p);
	unsigned int before = p->plan->nsites;
	int r;

	if (!entry || !loop)
		return -ENOMEM;
	r = cfg_reach(&p->cfg, p->entry, NULL, entry);
	if (r == 0)
		r = planner_reach_all(p, false, CFG_NONE, NULL, loop);
	if (r == 0)
		r = plan_entry_single(p, entry, loop, &with_flag);
	if (r != -ENOENT)
		return r;
	r = plan_entry_edges(p, entry, loop);
	for (unsigned int i = before; i < p->plan->nsites && r == 0; i++)
		if (p->plan->sites[i].has_flag)
			return 0;
	p->plan->nsites = before;
	p->missing[0] = '\0';
	r = plan_entry_single(p, entry, loop, &without);
	if (r == -ENOENT)
		r = plan_entry_edges(p, entry, loop);
	if (r != -ENOEXEC)
		return r;
	p->plan->nsites = before;
	r = plan_entry_single(p, entry, loop, &any);
	if (r == 0)
		p->missing[0] = '\0';
	return r == -ENOENT ? -ENOEXEC : r;
}

int models_plan_frame_object(struct planner *p)
{
	int r = plan_f_back(p);

	return r < 0 ? r : plan_entry(p);
}
