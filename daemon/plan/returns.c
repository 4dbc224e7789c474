// SPDX-License-Identifier: BSD-2-Clause
/*
 * Ends of frames in the evaluator, 3.12 and later: branches before the calls of
 * _PyEval_FrameClearAndPop.
 *
 * After a trap the processor mispredicts the next return to code that was active before. A hit in
 * a function that returns soon therefore costs half as much again as one in the evaluator, which
 * calls but does not return (3.12.1: 617 ns and 408 ns, see packaging/doc/overhead.md).
 *
 * Source: CPython v3.12.1 and v3.13.0 Python/bytecodes.c, Python/ceval.c.
 */
#include "plan/planner.h"

#include <errno.h>

#define FRAME_ARG 1 /* number of the callee's frame argument, from 0 */

struct returns {
	struct planner *p;
	const uint8_t *calls; /* nodes that call the function */
	uint8_t *hot;	      /* those of them that end frames that return */
};

/* Mark the calls that the handlers of returns lead to. */
static int find_hot(struct returns *r)
{
	const struct planner *p = r->p;
	const int16_t ops[] = {p->layout->op.return_value, p->layout->op.return_const};
	_cleanup_free_ uint8_t *seen = planner_bytes(p);
	int err = seen ? 0 : -ENOMEM;

	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops) && err == 0; i++)
		if (ops[i] != LAYOUT_NO_OPCODE)
			err = cfg_reach(&p->cfg, planner_handler(p, ops[i]), r->calls, seen);
	for (uint32_t i = 0; i < p->cfg.n && err == 0; i++) {
		const struct cfg_node *n = &p->cfg.v[i];

		if (!seen[i])
			continue;
		if (n->next != CFG_NONE && r->calls[n->next])
			r->hot[n->next] = 1;
		if (n->jump != CFG_NONE && r->calls[n->jump])
			r->hot[n->jump] = 1;
	}
	return err;
}

/* ---- other callers ------------------------------------------------------------------------ */

/* Returns whether each direct call of or jump to target in a segment is one of the calls. */
static bool segment_has_no_other(const struct returns *r, const struct image_segment *seg,
				 uint64_t target)
{
	const struct arch *arch = r->p->cfg.arch;
	const uint8_t *code = image_view(r->p->img, seg->vaddr, seg->filesz);

	for (size_t i = 0; code && i < seg->filesz; i++) {
		uint32_t node;

		i += arch->find_branch(code + i, seg->filesz - i, seg->vaddr + i, target);
		if (i >= seg->filesz)
			break;
		node = cfg_find(&r->p->cfg, seg->vaddr + i);
		if (node == CFG_NONE || !r->calls[node])
			return false;
	}
	return true;
}

/* Returns whether a call before this one calls the same address, so that all code was searched for it. */
static bool is_searched(const struct returns *r, uint32_t call)
{
	for (uint32_t i = 0; i < call; i++)
		if (r->calls[i] && r->p->cfg.v[i].in.target == r->p->cfg.v[call].in.target)
			return true;
	return false;
}

/* Returns whether nothing but the evaluator calls what this call calls. */
static bool has_no_other(const struct returns *r, uint32_t call)
{
	const uint64_t target = r->p->cfg.v[call].in.target;
	const struct image_segment *seg;
	unsigned int n = image_segments(r->p->img, &seg);

	if (!r->p->cfg.arch->find_branch)
		return false;
	for (unsigned int i = 0; i < n; i++)
		if (seg[i].exec && !segment_has_no_other(r, &seg[i], target))
			return false;
	return true;
}

/* ---- sites --------------------------------------------------------------------------------- */

/*
 * Returns whether the frame's current instruction is stored between the cut and the call. The
 * programs read it at the site.
 */
static int stores_late(const struct planner *p, const struct cut *c, bool *ret)
{
	_cleanup_free_ uint8_t *seen = planner_bytes(p);
	int r = seen ? 0 : -ENOMEM;

	for (unsigned int k = 0; k < c->n && r == 0; k++)
		r = cfg_reach(&p->cfg, c->node[k], c->open, seen);
	*ret = false;
	for (uint32_t i = 0; i < p->cfg.n && r == 0 && !*ret; i++) {
		struct insn_full in;
		int64_t disp;
		int base;

		*ret = seen[i] && cfg_full(&p->cfg, i, &in) && insn_is_store(&in, &base, &disp) &&
		       disp == p->layout->bpf.frame_instr && base != p->cfg.arch->sp;
	}
	return r;
}

/* Add the branches before one call; else, if it is not hot, the call itself. -ENOENT: neither. */
static int add_before(struct returns *r, uint32_t call)
{
	struct planner *p = r->p;
	_cleanup_free_ uint8_t *open = planner_bytes(p), *in = planner_bytes(p);
	struct cut c = {.ends = r->calls,
			.open = open,
			.in = in,
			.direct = true,
			.end_reg = p->cfg.arch->arg[FRAME_ARG]};
	const struct flow_state at_call = {
		.reached = true,
		.regs = insn_bit(p->cfg.arch->arg[FRAME_ARG]),
	};
	bool ok = false, late = false;
	int err;

	if (!open || !in)
		return -ENOMEM;
	open[call] = 1;
	err = cut_find(p, &c, &ok);
	if (err == 0 && ok)
		err = stores_late(p, &c, &late);
	if (err == 0 && (!ok || late))
		return r->hot[call] ? -ENOENT
				    : site_add(p, &p->cfg, call, PYP_SITE_LEAVE, "end", &at_call);
	for (unsigned int k = 0; k < c.n && err == 0; k++) {
		const struct flow_state at = {.reached = true, .regs = insn_bit(c.reg[k])};

		err = site_add(p, &p->cfg, c.node[k], PYP_SITE_LEAVE,
			       r->hot[call] ? "return" : "end", &at);
	}
	return err;
}

int returns_plan(struct planner *p, const uint8_t *calls)
{
	_cleanup_free_ uint8_t *hot = planner_bytes(p);
	struct returns r = {.p = p, .calls = calls, .hot = hot};
	const unsigned int before = p->plan->nsites;
	int err = hot ? find_hot(&r) : -ENOMEM;

	for (uint32_t i = 0; i < p->cfg.n && err == 0; i++)
		if (calls[i])
			err = is_searched(&r, i) || has_no_other(&r, i) ? add_before(&r, i)
									: -ENOENT;
	if (err < 0)
		p->plan->nsites = before;
	return err;
}
