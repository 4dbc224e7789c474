// SPDX-License-Identifier: BSD-2-Clause
/* Where frames are suspended, 3.12 and later: YIELD_VALUE. For 3.11 see tracing.c. */
#include "plan/planner.h"

#include <errno.h>
#include <string.h>

/*
 * YIELD_VALUE ends with `gen_frame->previous = NULL`: the register that this store goes through
 * holds the frame, all along the line if nothing on it changes the register. (By then the compiler
 * may have let go of the one that held it at the start.)
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

/*
 * INSTRUMENTED_YIELD_VALUE calls the monitoring tools first, and the frame is suspended only if
 * they raised nothing: the site is the branch on their result, under the condition of success.
 */
int models_plan_instrumented_yield(struct planner *p)
{
	const struct line_opts o = {.through_calls = true};
	const struct insn *in;
	struct comparison c;
	struct line line;
	uint32_t branch;
	int reg, r;

	if (p->layout->op.instrumented_yield_value == LAYOUT_NO_OPCODE)
		return 0;
	line_build(&p->cfg, planner_handler(p, p->layout->op.instrumented_yield_value), &o, &line);
	if (!line.n)
		return planner_missing(p, "INSTRUMENTED_YIELD_VALUE (no handler)");
	branch = line.v[line.n - 1];
	in = &p->cfg.v[branch].in;
	if (in->cc == INSN_NO_CC || !planner_compared(p, branch, &c) || !planner_tests_zero(&c) ||
	    !insn_is_reg(&c.in.op[0], &reg, 32) || reg != p->cfg.arch->result)
		return planner_missing(p, "INSTRUMENTED_YIELD_VALUE (result of the tools not "
					  "tested)");
	r = site_add(p, &p->cfg, branch, PYP_SITE_YIELD, "INSTRUMENTED_YIELD_VALUE",
		     &p->frame[branch]);
	if (r < 0)
		return planner_missing(p, "INSTRUMENTED_YIELD_VALUE (frame not known)");
	p->plan->sites[p->plan->nsites - 1].has_cc = true;
	p->plan->sites[p->plan->nsites - 1].cc = in->cc;
	p->plan->sites[p->plan->nsites - 1].taken = in->cond == INSN_COND_EQUAL;
	return 0;
}
