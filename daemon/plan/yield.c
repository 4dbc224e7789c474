// SPDX-License-Identifier: BSD-2-Clause
/* Suspensions of frames, 3.12 and later: YIELD_VALUE. For 3.11 see tracing.c. */
#include "plan/planner.h"

#include <errno.h>
#include <string.h>

/*
 * YIELD_VALUE ends with `gen_frame->previous = NULL`: the base register of this store holds the
 * frame on the whole line, if nothing on the line changes it. (The register that held the frame at
 * the start may have been reused by then.)
 */
static void yield_evidence(const struct planner *p, const struct line *line,
			   struct flow_state *states)
{
	insn_regs written = 0, proven = 0;

	for (unsigned int i = 0; i < line->n; i++) {
		struct insn_full in;
		int64_t disp;
		int base;

		if (!cfg_full(&p->cfg, line->v[i], &in))
			return;
		if (insn_is_store(&in, &base, &disp) && insn_is_zero(&in.op[1]) &&
		    disp == p->layout->bpf.frame_previous && base != p->cfg.arch->sp)
			proven |= insn_bit(base);
		written |= in.writes;
	}
	for (unsigned int i = 0; i < line->n; i++)
		states[line->v[i]].regs |= proven & ~written;
}

int models_plan_yield(struct planner *p)
{
	_cleanup_free_ struct flow_state *states = malloc((p->cfg.n + 1) * sizeof(*states));
	const struct site_want want = {PYP_SITE_YIELD, "YIELD_VALUE", states, NULL};
	struct line line;

	if (!states)
		return -ENOMEM;
	memcpy(states, p->frame, p->cfg.n * sizeof(*states));
	line_build(&p->cfg, planner_handler(p, p->layout->op.yield_value), &(struct line_opts){0},
		   &line);
	yield_evidence(p, &line, states);
	if (line_site(p, &line, &want) < 0)
		return planner_missing(p, "YIELD_VALUE (no probe possible in its handler)");
	return 0;
}

#define INSTRUMENTED "INSTRUMENTED_YIELD_VALUE"

/* The branch that ends the line from node, calls included. CFG_NONE: none. */
static uint32_t branch_after(const struct planner *p, uint32_t node)
{
	struct line line;

	line_build(&p->cfg, node, &(struct line_opts){.through_calls = true, .follow_jumps = true},
		   &line);
	if (!line.n || p->cfg.v[line.v[line.n - 1]].in.flow != INSN_JCC)
		return CFG_NONE;
	return line.v[line.n - 1];
}

/* Returns whether the branch tests a call's result. *zero: the edge for 0. */
static bool tests_result(const struct planner *p, uint32_t branch, bool *zero)
{
	struct comparison c;
	int reg;

	*zero = p->cfg.v[branch].in.cond == INSN_COND_EQUAL;
	return p->cfg.v[branch].in.cc != INSN_NO_CC && planner_compared(p, branch, &c) &&
	       planner_tests_zero(&c) && insn_is_reg(&c.in.op[0], &reg, 32) &&
	       reg == p->cfg.arch->result;
}

static uint32_t side_of(const struct planner *p, uint32_t branch, bool taken)
{
	const struct cfg_node *n = &p->cfg.v[branch];
	uint32_t to = taken ? n->jump : n->next;

	/* follow jumps to jumps */
	for (int i = 0; i < 4 && to != CFG_NONE && p->cfg.v[to].in.flow == INSN_JMP; i++)
		to = p->cfg.v[to].jump;
	return to;
}

static int suspend_site(struct planner *p, uint32_t branch, bool taken)
{
	if (planner_edge_site(p, branch, taken, PYP_SITE_YIELD, INSTRUMENTED) < 0)
		return planner_missing(p, INSTRUMENTED " (location of the frame unknown)");
	return 0;
}

/*
 * INSTRUMENTED_YIELD_VALUE calls the monitoring tools, and suspends the frame only if they raised
 * no exception. The site is the branch on their result, with the condition of success. If the test
 * for running tools is inlined (gcc, libpython of 3.13), another branch precedes it, one of whose
 * edges leads to where success leads; then that edge is a site, too.
 */
int models_plan_instrumented_yield(struct planner *p)
{
	uint32_t first, result = CFG_NONE;
	bool zero = false, skips = false;
	int r = 0;

	if (p->layout->op.instrumented_yield_value == LAYOUT_NO_OPCODE)
		return 0;
	first = planner_handler(p, p->layout->op.instrumented_yield_value);
	if (first == CFG_NONE)
		return planner_missing(p, INSTRUMENTED " (no handler)");
	first = branch_after(p, first);
	if (first != CFG_NONE && tests_result(p, first, &zero))
		return suspend_site(p, first, zero);
	for (int way = 0; way < 2 && first != CFG_NONE && result == CFG_NONE; way++) {
		skips = way;
		result = branch_after(p, side_of(p, first, !skips));
		if (result != CFG_NONE && (!tests_result(p, result, &zero) ||
					   side_of(p, result, zero) != side_of(p, first, skips)))
			result = CFG_NONE;
	}
	if (result == CFG_NONE)
		return planner_missing(p, INSTRUMENTED " (the tools' result is not tested)");
	r = suspend_site(p, first, skips);
	return r == 0 ? suspend_site(p, result, zero) : r;
}
