// SPDX-License-Identifier: BSD-2-Clause
/*
 * Marks: instructions that show by their number of executions how far the program has come, without
 * being hit at each call (session/marks.h chooses among them). One in each opcode's handler: the
 * first instruction before its first branch, or that branch, that the kernel emulates. It does not
 * matter whether other code leads there, too.
 */
#include "plan/planner.h"

#include <errno.h>

static bool is_probed(const struct plan *plan, uint64_t vaddr)
{
	for (unsigned int i = 0; i < plan_sites(plan); i++)
		if (plan_site(plan, i)->vaddr == vaddr)
			return true;
	for (unsigned int i = 0; i < plan->nmarks; i++)
		if (plan->marks[i].vaddr == vaddr)
			return true;
	return false;
}

static bool is_landing_pad(const struct cfg *cfg, uint32_t node)
{
	struct insn_full in;

	return !cfg_full(cfg, node, &in) || in.landing_pad;
}

static bool can_mark(const struct planner *p, uint32_t node)
{
	const struct cfg_node *n = &p->cfg.v[node];

	return n->in.probe == INSN_EMULATED && !n->doubtful && !n->tail &&
	       !is_probed(p->plan, n->in.vaddr) && !is_landing_pad(&p->cfg, node);
}

/* Confirmed like sites, by decoding the function from its start. */
static bool is_confirmed(const struct planner *p, uint64_t vaddr)
{
	uint64_t start;
	int r = image_function_start(p->img, vaddr, &start);

	return r == -ENODATA || (r == 0 && planner_linear_reaches(p, start, vaddr));
}

static void add_mark(struct planner *p, uint32_t handler)
{
	const struct line_opts o = {.through_calls = true};
	struct plan_mark mark;
	struct line line;

	line_build(&p->cfg, handler, &o, &line);
	for (unsigned int i = 0; i < line.n; i++) {
		const struct insn *in = &p->cfg.v[line.v[i]].in;

		mark = (struct plan_mark){.vaddr = in->vaddr, .target = in->target, .len = in->len};
		if (!can_mark(p, line.v[i]))
			continue;
		if (image_offset(p->img, mark.vaddr, &mark.offset) == 0 &&
		    is_confirmed(p, mark.vaddr))
			p->plan->marks[p->plan->nmarks++] = mark;
		return;
	}
}

void marks_plan(struct planner *p)
{
	for (int16_t op = 0; op < PLAN_OPCODES && p->plan->nmarks < PYP_MARKS; op++) {
		uint32_t handler = planner_handler(p, op);

		if (handler != CFG_NONE)
			add_mark(p, handler);
	}
}
