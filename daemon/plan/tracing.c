// SPDX-License-Identifier: BSD-2-Clause
/*
 * 3.11 while tools trace
 *
 * While a debugger or profiler traces, each instruction is dispatched to DO_TRACING, which calls
 * the tool and then the instruction's handler. For RESUME, it notifies the tool of the frame's
 * start. Functions that the tool calls have this frame as caller, so the frame must be reported
 * before. Its site is where DO_TRACING has found a RESUME; RESUME's own site then reports the same
 * entry again. (3.12 and later have INSTRUMENTED_RESUME instead.)
 *
 * YIELD_VALUE notifies the tool before the frame is suspended. The tool may call functions, and
 * even end the frame with an exception.
 *
 * Source: CPython v3.11.2 Python/ceval.c, DO_TRACING, YIELD_VALUE.
 */
#include "plan/planner.h"

#include <errno.h>

#define ROLE "DO_TRACING"

/*
 * Returns whether the branch at node distinguishes RESUME from other opcodes. *jump: the edge for
 * RESUME.
 */
static bool is_resume_branch(const struct planner *p, uint32_t node, bool *jump)
{
	const struct insn_operand *op;
	struct comparison c;
	uint64_t value;

	if (!planner_compared(p, node, &c) || c.in.kind != INSN_COMPARE ||
	    c.in.op[1].type != INSN_OP_IMM)
		return false;
	*jump = p->cfg.v[node].in.cond == INSN_COND_EQUAL;
	op = c.in.op;
	value = (uint64_t)op[1].value;
	return (uint8_t)value == (uint8_t)p->layout->op.resume &&
	       (op[0].bits == 8 || value == (uint64_t)p->layout->op.resume);
}

/* Add a site in code that only RESUME reaches, if there is a suitable instruction; else at the
 * branch itself. */
static int tracing_site(struct planner *p, uint32_t node, bool jump)
{
	const struct site_want want = {PYP_SITE_ENTER, ROLE, p->frame, NULL};
	uint32_t target = jump ? p->cfg.v[node].jump : p->cfg.v[node].next;
	unsigned int before = p->plan->nsites;
	struct line line = {.n = 0};

	if (target != CFG_NONE && p->cfg.v[target].preds == 1)
		line_build(&p->cfg, target, &(struct line_opts){0}, &line);
	if (line_site(p, &line, &want) == 0 &&
	    p->plan->sites[p->plan->nsites - 1].cost == PLAN_COST_EMULATED)
		return 0;
	p->plan->nsites = before;
	return planner_edge_site(p, node, jump, PYP_SITE_ENTER, ROLE);
}

int models_plan_tracing(struct planner *p)
{
	const uint32_t handler = planner_handler(p, p->layout->op.do_tracing);
	_cleanup_free_ uint8_t *seen = planner_bytes(p);
	unsigned int found = 0, first = p->plan->nsites;
	bool jump;
	int r;

	if (p->layout->op.do_tracing == LAYOUT_NO_OPCODE)
		return 0;
	if (!seen)
		return -ENOMEM;
	r = handler == CFG_NONE ? -ENOENT : cfg_reach(&p->cfg, handler, NULL, seen);
	for (uint32_t i = 0; i < p->cfg.n && r == 0; i++) {
		if (!seen[i] || !is_resume_branch(p, i, &jump))
			continue;
		r = tracing_site(p, i, jump);
		found++;
	}
	for (unsigned int i = first; i < p->plan->nsites; i++)
		p->plan->sites[i].early = true;
	if (r == -ENOMEM)
		return r;
	if (r < 0 || !found)
		return planner_missing(p, ROLE " (no test for RESUME)");
	return 0;
}

/*
 * Nodes from which YIELD_VALUE can still end differently: the frame ends by an exception, or
 * another opcode runs.
 */
static uint8_t *may_not_yield(const struct planner *p)
{
	_cleanup_free_ uint8_t *mark = planner_bytes(p);

	if (!mark)
		return NULL;
	planner_block_sites(p, 1u << PYP_SITE_LEAVE, mark);
	for (uint32_t i = 0; i < p->cfg.n; i++)
		mark[i] |= p->cfg.v[i].in.flow == INSN_JMP_IND && !p->cfg.v[i].tail;
	planner_lead_to(p, NULL, mark);
	return TAKE_PTR(mark);
}

/*
 * Sites on the edges after which a yield is certain. A certain yield remains so until the evaluator
 * returns. So each yield crosses from "may not" to "must" exactly once, on an edge of a branch, and
 * no tool is called after it.
 */
int models_plan_yield_edges(struct planner *p)
{
	const uint32_t handler = planner_handler(p, p->layout->op.yield_value);
	_cleanup_free_ uint8_t *seen = planner_bytes(p), *other = planner_bytes(p),
			       *may_not = may_not_yield(p);
	unsigned int n = 0;

	if (!seen || !other || !may_not)
		return -ENOMEM;
	if (handler == CFG_NONE || !may_not[handler])
		return planner_missing(p, "YIELD_VALUE (its handler does not check for tools)");
	if (cfg_reach(&p->cfg, handler, NULL, seen) < 0 ||
	    planner_reach_all(p, true, handler, NULL, other) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->cfg.n; i++) {
		const uint32_t succ[2] = {p->cfg.v[i].next, p->cfg.v[i].jump};

		for (int k = 0; k < 2 && seen[i] && !other[i] && may_not[i]; k++) {
			if (succ[k] == CFG_NONE || may_not[succ[k]])
				continue;
			if (planner_edge_site(p, i, k == 1, PYP_SITE_YIELD, "YIELD_VALUE") < 0)
				return planner_missing(p, "YIELD_VALUE (no probe possible where it "
							  "becomes certain)");
			n++;
		}
	}
	return n ? 0 : planner_missing(p, "YIELD_VALUE (never becomes certain)");
}
