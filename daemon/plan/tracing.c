// SPDX-License-Identifier: BSD-2-Clause
/*
 * 3.11 while tools trace.
 *
 * While a debugger or profiler traces, every instruction is dispatched to DO_TRACING first,
 * which calls the tool and then the instruction's own handler. If the instruction is RESUME, the
 * tool learns that the frame has started: what it calls then is called by this frame, so the frame
 * must be known by then. Its site is where DO_TRACING has found a RESUME; RESUME's own site then sees
 * the same entry once more. (3.12 and later have INSTRUMENTED_RESUME instead.)
 *
 * YIELD_VALUE tells the tool before the frame is suspended, which then may call what it likes, and even
 * make the frame end with an exception instead.
 *
 * Source: CPython v3.11.2 Python/ceval.c, DO_TRACING, YIELD_VALUE.
 */
#include "plan/planner.h"

#include <errno.h>

#define ROLE "DO_TRACING"

/* Does the branch at node tell RESUME from other opcodes? Then which way RESUME goes. */
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

/* Where only a RESUME goes, if there is an instruction to be had; else the branch itself. */
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
		return planner_missing(p, ROLE " (where it finds a RESUME)");
	return 0;
}

/*
 * Nodes from which YIELD_VALUE can still become something else: the end of the frame by an
 * exception, another opcode.
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
 * The edges over which a yield becomes certain. What is certain stays so until the evaluator returns:
 * so each yield crosses from "may not" to "must" exactly once, over the edge of a branch, and behind
 * that no tool is called any more.
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
		return planner_missing(p, "YIELD_VALUE (its handler does not look for tools)");
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
