// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sites for the end of frames in 3.11. Each end of a frame tests frame->is_entry, to decide whether
 * to return from C; the branch of that test is the site.
 *
 * Source: CPython v3.11.2 and v3.11.7 Python/ceval.c.
 */
#include "plan/planner.h"

#include <errno.h>

/*
 * Returns whether node is the branch on frame->is_entry. *reg: the register that holds the frame.
 */
static bool is_entry_branch(const struct planner *p, uint32_t node, int *reg)
{
	struct comparison c;
	int64_t disp;

	return planner_compared(p, node, &c) && c.in.kind == INSN_COMPARE && c.value[0].bits == 8 &&
	       insn_is_zero(&c.in.op[1]) && insn_is_mem(&c.value[0], reg, &disp) &&
	       disp == p->layout->bpf.frame_is_entry && *reg != p->cfg.arch->sp &&
	       !(c.changed & insn_bit(*reg));
}

/* Name of a leaving site: in a return or in the unwinder. */
static const char *leave_role(const uint8_t *from_return, uint32_t node)
{
	return from_return[node] ? "RETURN_VALUE" : "unwind";
}

int models_plan_is_entry(struct planner *p)
{
	const uint32_t creation = planner_handler(p, p->layout->op.return_generator);
	_cleanup_free_ uint8_t *reached = planner_bytes(p), *ret = planner_bytes(p);
	int reg, r;

	if (!reached || !ret)
		return -ENOMEM;
	/* RETURN_GENERATOR tests is_entry, too, but creating a generator is not a call. */
	r = planner_reach_all(p, true, creation, NULL, reached);
	if (r == 0)
		r = cfg_reach(&p->cfg, planner_handler(p, p->layout->op.return_value), NULL, ret);
	for (uint32_t i = 0; i < p->cfg.n && r == 0; i++) {
		struct flow_state at = {.reached = true};

		if (!reached[i] || !is_entry_branch(p, i, &reg))
			continue;
		at.regs = insn_bit(reg);
		r = site_add(p, &p->cfg, i, PYP_SITE_LEAVE, leave_role(ret, i), &at);
	}
	return r;
}

/* Proof: without all leaving sites and generator creation, the evaluator cannot return. */
int models_prove_is_entry(struct planner *p)
{
	_cleanup_free_ uint8_t *blocked = planner_bytes(p), *seen = planner_bytes(p);
	const uint32_t creation = planner_handler(p, p->layout->op.return_generator);

	if (!blocked || !seen)
		return -ENOMEM;
	planner_block_sites(p, 1u << PYP_SITE_LEAVE | 1u << PYP_SITE_YIELD, blocked);
	if (creation != CFG_NONE)
		blocked[creation] = 1;
	if (planner_reach_all(p, true, CFG_NONE, blocked, seen) < 0)
		return -ENOMEM;
	if (planner_any_flow(&p->cfg, seen, true, false))
		return planner_missing(p, "return (a path out of the evaluator without a test of "
					  "is_entry)");
	return 0;
}
