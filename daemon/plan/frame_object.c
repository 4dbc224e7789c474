// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sites of 3.6 to 3.10, where each activation is one C call of the evaluator. An activation begins
 * after the recursion check, and ends where tstate->frame becomes f->f_back.
 *
 * Source: CPython v3.9.2 and v3.10.13, Python/ceval.c.
 */
#include "plan/planner.h"

#include <errno.h>

/* A place where tstate->frame becomes f->f_back: the load at node, through register `frame` */
struct f_back {
	uint32_t node;
	int frame, loaded;
};

/* Returns whether node loads f_back, and the same line stores it to tstate->frame. */
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

/* An emulated instruction after the load, on its line, before the frame's register changes;
 * CFG_NONE: none. */
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

/* ---- leaving ----------------------------------------------------------------------------- */

static int leave_add(struct planner *p, uint32_t node, int reg)
{
	const struct flow_state at = {.reached = true, .regs = insn_bit(reg)};

	return site_add(p, &p->cfg, node, PYP_SITE_LEAVE, "exit_eval_frame", &at);
}

/* The register that holds the frame at a load; -1: none. */
static int load_register(const struct planner *p, uint32_t node)
{
	struct f_back f;

	return f_back_at(p, node, &f) ? f.frame : -1;
}

/* Add sites for loads without a site after them: a cut, or else the loads themselves,
 * single-stepped. */
static int plan_open_loads(struct planner *p, struct cut *c)
{
	struct f_back f;
	bool ok = false;
	int r = cut_find(p, c, &ok);

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
	struct cut c = {.ends = loads, .open = open, .in = in, .value_at = load_register};
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

/* Code that can run between the evaluator's entry and a node */
struct before {
	uint32_t size;	/* number of nodes; UINT32_MAX: a dispatch is reachable without passing
			 * the node */
	bool may_trace; /* a call after the recursion check, which may call a tracing tool */
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

/* Before 3.11 one site reports calls, resumptions and throw(); the throwflag argument distinguishes
 * them if a register still holds it. Without it, a throw() that a generator passes on looks like
 * any entry. */
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

/* Mark nodes from which a return is reachable without passing a leaving site. */
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

/*
 * Returns whether control can get from node to a dispatch or a leaving site, instead of only
 * aborting.
 */
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
		return planner_missing(p, "entry (no probe possible after the recursion check)");
	return entry_flag(p, node, &p->plan->sites[before]);
}

/*
 * Sites on the edges after which an activation is certain. At the function's start it can still be
 * refused, at the dispatch it cannot, and this remains so until a leaving site. So each activation
 * crosses from "can be refused" to "cannot" exactly once, on an edge of a branch. Probes on these
 * branches, with the condition of the edge, together count each activation once.
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

/* Requirements of a single entry site */
struct single_want {
	bool flag;     /* a register holds throwflag */
	bool untraced; /* no tracing tool can have been called before */
};

/*
 * A single site: on each path from the function's start to the first dispatch, on none from a
 * handler, and after the recursion check, so that all ways out pass a leaving site and frames
 * refused with RecursionError are not counted. Selects the first such place. -ENOENT: none.
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
 * A tracing tool is called before the first dispatch, and the functions that it calls have this
 * frame as caller. So the site must precede that. Best is a single place where a register holds
 * throwflag, then edges with it, then a single place without it, then edges without it.
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
