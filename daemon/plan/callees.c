// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sites in functions that the interpreter calls: _PyEval_FrameClearAndPop, which ends all frames
 * since 3.12; and the deallocation of code objects, in all versions.
 *
 * Source: CPython v3.12.1 and v3.13.0 Python/ceval.c.
 */
#include "plan/planner.h"

#include <errno.h>
#include <string.h>

#define CLEAR_AND_POP "_PyEval_FrameClearAndPop"
#define FRAME_ARG     1 /* number of its frame argument, from 0 */

/* ---- _PyEval_FrameClearAndPop (3.12+) ---------------------------------------------------- */

static bool calls(const struct planner *p, uint32_t i, uint64_t callee)
{
	const struct insn *in = &p->cfg.v[i].in;
	const char *plt;

	if (in->flow != INSN_CALL && in->flow != INSN_JMP)
		return false;
	if (in->target == callee)
		return true;
	plt = image_plt_name(p->img, in->target);
	return plt && strcmp(plt, CLEAR_AND_POP) == 0;
}

/*
 * Returns whether the function tests the owner of the frame in its second argument. No other
 * function called by a return does. states: locations of that argument.
 */
static bool tests_owner(const struct planner *p, const struct cfg *cfg,
			const struct flow_state *states)
{
	for (uint32_t i = 0; i < cfg->n; i++) {
		struct insn_full in;
		int64_t disp;
		int base;

		if (!cfg_full(cfg, i, &in))
			continue;
		for (int k = 0; k < in.nexplicit; k++)
			if (insn_is_mem(&in.op[k], &base, &disp) && in.op[k].bits == 8 &&
			    disp == p->layout->bpf.frame_owner && (states[i].regs & insn_bit(base)))
				return true;
	}
	return false;
}

/* Build the graph of a small function, and solve the locations of argument `arg`. */
static int function_open(const struct planner *p, uint64_t vaddr, unsigned int arg, struct cfg *cfg,
			 struct flow_state **ret)
{
	struct flow_root root = {.regs = planner_argument(p, arg)};
	int r;

	*cfg = (struct cfg){.img = p->img, .arch = p->cfg.arch};
	r = cfg_explore(cfg, &vaddr, 1);
	if (r == 0)
		r = cfg_link(cfg);
	if (r < 0)
		return r;
	root.node = cfg_find(cfg, vaddr);
	if (root.node == CFG_NONE)
		return -ENOENT;
	*ret = flow_solve(cfg, &root, 1, 64);
	return *ret ? 0 : -ENOMEM;
}

static void cfg_deinitp(struct cfg *cfg)
{
	cfg_deinit(cfg);
}

static bool is_clear_and_pop(const struct planner *p, uint64_t vaddr)
{
	_cleanup_(cfg_deinitp) struct cfg cfg = {0};
	_cleanup_free_ struct flow_state *states = NULL;

	return function_open(p, vaddr, FRAME_ARG, &cfg, &states) == 0 &&
	       tests_owner(p, &cfg, states);
}

/* Find the function that RETURN_VALUE calls to end its frame: exported since 3.13; before, the one
 * that it calls with the frame as second argument. */
static int clear_and_pop_find(const struct planner *p, uint64_t *ret)
{
	const insn_regs frame = planner_argument(p, FRAME_ARG);
	_cleanup_free_ uint8_t *seen = planner_bytes(p);
	struct image_symbol sym;
	int r;

	if (!seen)
		return -ENOMEM;
	if (image_symbol(p->img, CLEAR_AND_POP, &sym) == 0) {
		*ret = sym.vaddr;
		return 0;
	}
	r = cfg_reach(&p->cfg, planner_handler(p, p->layout->op.return_value), NULL, seen);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < p->cfg.n; i++) {
		if (!seen[i] || p->cfg.v[i].in.flow != INSN_CALL || !(p->frame[i].regs & frame) ||
		    !is_clear_and_pop(p, p->cfg.v[i].in.target))
			continue;
		*ret = p->cfg.v[i].in.target;
		return 0;
	}
	return -ENOENT;
}

/* Proof: without calls of callee, no path from a return's handler leads to a dispatch or out of the
 * evaluator, and the evaluator's failure path (exit_unwind) also calls it. */
static int clear_and_pop_prove(struct planner *p, uint64_t callee)
{
	const struct {
		int16_t opcode;
		const char *role;
	} ops[] = {
		{p->layout->op.return_value, "RETURN_VALUE"},
		{p->layout->op.return_const, "RETURN_CONST"},
	};
	_cleanup_free_ uint8_t *blocked = planner_bytes(p), *unwind = planner_bytes(p);
	bool called = false;

	if (!blocked || !unwind || cfg_reach(&p->cfg, p->entry, NULL, unwind) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->cfg.n; i++) {
		blocked[i] = calls(p, i, callee);
		called |= blocked[i] && unwind[i];
	}
	if (!called)
		return planner_missing(p, "unwinding (does not call " CLEAR_AND_POP ")");
	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
		_cleanup_free_ uint8_t *seen = planner_bytes(p);

		if (ops[i].opcode == LAYOUT_NO_OPCODE)
			continue;
		if (!seen || cfg_reach(&p->cfg, planner_handler(p, ops[i].opcode), blocked, seen))
			return -ENOMEM;
		if (planner_any_flow(&p->cfg, seen, true, true))
			return planner_missing(
				p, "%s (a path that does not call " CLEAR_AND_POP ")", ops[i].role);
	}
	return 0;
}

/* Sites in the evaluator, before its calls of the function. -ENOENT: there are none. */
static int plan_returns(struct planner *p, uint64_t callee)
{
	_cleanup_free_ uint8_t *marks = planner_bytes(p);

	if (!marks)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->cfg.n; i++)
		marks[i] = calls(p, i, callee);
	return returns_plan(p, marks);
}

int models_plan_clear_and_pop(struct planner *p)
{
	_cleanup_(cfg_deinitp) struct cfg cfg = {0};
	_cleanup_free_ struct flow_state *states = NULL;
	struct planner callee = *p;
	struct line line;
	uint64_t vaddr = 0;
	int r;

	r = clear_and_pop_find(p, &vaddr);
	if (r == -ENOENT)
		return planner_missing(p, CLEAR_AND_POP " (not exported, not called by "
							"RETURN_VALUE)");
	if (r == 0)
		r = clear_and_pop_prove(p, vaddr);
	if (r == 0)
		r = function_open(p, vaddr, FRAME_ARG, &cfg, &states);
	if (r == -ENOENT)
		return planner_missing(p, CLEAR_AND_POP " (not code)");
	if (r < 0)
		return r;
	if (!tests_owner(p, &cfg, states))
		return planner_missing(p, CLEAR_AND_POP " (does not test the frame's owner)");
	r = plan_returns(p, vaddr);
	if (r != -ENOENT)
		return r;
	callee.cfg = cfg;
	line_build(&cfg, cfg_find(&cfg, vaddr), &(struct line_opts){0}, &line);
	r = line_site(&callee, &line,
		      &(struct site_want){PYP_SITE_LEAVE, "FrameClearAndPop", states, NULL});
	return r < 0 ? planner_missing(p, CLEAR_AND_POP " (no probe possible at its start)") : 0;
}

/* ---- code_dealloc ------------------------------------------------------------------------ */

int models_plan_code_free(struct planner *p)
{
	_cleanup_(cfg_deinitp) struct cfg cfg = {0};
	_cleanup_free_ struct flow_state *states = NULL;
	struct planner callee = *p;
	struct image_symbol type;
	struct line line;
	uint64_t vaddr;
	int r;

	if (image_symbol(p->img, "PyCode_Type", &type) < 0 ||
	    image_pointer(p->img, type.vaddr + p->layout->type_dealloc, &vaddr) < 0)
		return planner_missing(p, "code_dealloc (PyCode_Type)");
	r = function_open(p, vaddr, 0, &cfg, &states);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return planner_missing(p, "code_dealloc (not code)");
	callee.cfg = cfg;
	line_build(&cfg, cfg_find(&cfg, vaddr), &(struct line_opts){0}, &line);
	r = line_site(&callee, &line,
		      &(struct site_want){PYP_SITE_CODE_FREE, "code_dealloc", states, NULL});
	return r < 0 ? planner_missing(p, "code_dealloc (no probe possible at its start)") : 0;
}
