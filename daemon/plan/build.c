// SPDX-License-Identifier: BSD-2-Clause
/*
 * Makes a plan, and checks all sites. The evaluator is found by its dynamic symbol, the opcode
 * table through the code at its entry, and all handlers through the table. Then the version's model
 * determines the sites (plan/models.c).
 *
 * A single damaged byte in the tables could make an entry point into the middle of an instruction.
 * Therefore each site is confirmed by a second method that is independent of opcodes: decoding its
 * function linearly, from the start given by the unwind table.
 */
#include <errno.h>
#include <string.h>

#include "plan/gc.h"
#include "plan/native.h"
#include "plan/plan.h"
#include "plan/planner.h"

#define EVALUATOR "_PyEval_EvalFrameDefault"

static int planner_explore(struct planner *p)
{
	struct image_symbol sym;
	int r;

	if (image_symbol(p->img, EVALUATOR, &sym) < 0)
		return planner_missing(p, "evaluator (no dynamic symbol " EVALUATOR ")");
	p->entry_vaddr = sym.vaddr;
	r = cfg_explore(&p->cfg, &p->entry_vaddr, 1);
	if (r == 0)
		r = table_find(p);
	if (r == 0)
		r = cfg_explore(&p->cfg, p->handler, PLAN_OPCODES);
	if (r == 0)
		r = cfg_link(&p->cfg);
	if (r == -E2BIG)
		return planner_missing(p, "evaluator (too much code)");
	p->entry = cfg_find(&p->cfg, p->entry_vaddr);
	if (r == 0 && p->entry == CFG_NONE)
		return planner_missing(p, "evaluator (its symbol does not refer to code)");
	return r;
}

static int planner_flow(struct planner *p)
{
	struct flow_root roots[PLAN_OPCODES + 1] = {
		{.node = p->entry, .regs = planner_argument(p, p->layout->arg_frame)},
	};
	size_t n = 1;

	for (unsigned int op = 0; (p->roles || p->nrole_slots) && op < PLAN_OPCODES; op++) {
		uint32_t node = cfg_find(&p->cfg, p->handler[op]);

		if (node != CFG_NONE)
			roots[n++] =
				(struct flow_root){node, p->roles, p->role_slot, p->nrole_slots};
	}
	p->frame = flow_solve(&p->cfg, roots, n, 64);
	return p->frame ? 0 : -ENOMEM;
}

static int by_offset(const void *a, const void *b)
{
	const struct plan_site *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* No instruction may have two sites. */
static int planner_check(struct planner *p)
{
	struct plan *plan = p->plan;

	qsort(plan->sites, plan->nsites, sizeof(*plan->sites), by_offset);
	for (unsigned int i = 0; i + 1 < plan->nsites; i++)
		if (plan->sites[i].offset == plan->sites[i + 1].offset)
			return planner_missing(p, "%s and %s (the same instruction)",
					       plan->sites[i].role, plan->sites[i + 1].role);
	return planner_check_boundaries(p, plan->sites, plan->nsites);
}

static int planner_run(struct planner *p)
{
	int r = planner_explore(p);

	if (r == 0 && p->layout->model != LAYOUT_FRAME_OBJECT)
		r = roles_find(p);
	if (r == 0)
		r = planner_flow(p);
	if (r == 0)
		r = models_plan(p);
	if (r == 0)
		r = models_plan_code_free(p);
	if (r == 0)
		r = planner_check(p);
	if (r == 0)
		r = native_plan(p);
	if (r == 0)
		r = gc_plan(p);
	if (r == 0)
		marks_plan(p);
	p->plan->ninsns = p->cfg.n;
	return r;
}

int plan_build_for(const struct image *img, const struct layout *layout, const struct arch *arch,
		   struct plan *ret, struct diag *diag)
{
	struct planner *p = calloc(1, sizeof(*p));
	int r;

	memset(ret, 0, sizeof(*ret));
	if (!p)
		return diag_errno(diag, ENOMEM, "cannot plan probes");
	p->img = p->cfg.img = img;
	p->cfg.arch = arch;
	p->layout = layout;
	p->plan = ret;
	r = planner_run(p);
	/* any other error that the file has caused */
	if (r < 0 && r != -ENOMEM)
		r = planner_missing(p, "all of its events (%s)", strerror(-r));
	if (r == -ENOEXEC)
		diag_set(diag, r, PYP_EXIT_UNTRACEABLE,
			 "see `pyprofctl doctor` for details; please report this build",
			 "this build of Python %u.%u cannot be traced: no proven site for %s",
			 layout->major, layout->minor, p->missing);
	else if (r < 0)
		diag_errno(diag, -r, "cannot plan probes");
	memcpy(ret->missing, p->missing, sizeof(ret->missing));
	free(p->frame);
	cfg_deinit(&p->cfg);
	free(p);
	return r;
}

int plan_build(const struct image *img, const struct layout *layout, struct plan *ret,
	       struct diag *diag)
{
	return plan_build_for(img, layout, arch_native(), ret, diag);
}
