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
#include "plan/plan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plan/gc.h"
#include "plan/native.h"
#include "plan/planner.h"

#define EVALUATOR  "_PyEval_EvalFrameDefault"
#define LINEAR_MAX (2u << 20) /* limit of a function's size */

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

bool planner_linear_reaches(const struct planner *p, uint64_t at, uint64_t vaddr)
{
	if (vaddr - at > LINEAR_MAX)
		return false;
	while (at < vaddr) {
		const uint8_t *code = NULL;
		size_t max = image_view_max(p->img, at, &code);
		struct insn in;

		if (!max || !p->cfg.arch->decode(code, max, at, &in))
			return false;
		at += in.len;
	}
	return at == vaddr;
}

int planner_check_boundaries(struct planner *p, const struct plan_site *sites, unsigned int n)
{
	uint64_t from = UINT64_MAX, last = 0, start;

	for (unsigned int i = 0; i < n; i++) {
		const struct plan_site *s = &sites[i];
		int r = image_function_start(p->img, s->vaddr, &start);

		/* Without a table (some builds), rely on the graph alone. */
		if (r == -ENODATA)
			return 0;
		/* On from the site before, if it is in the same function. */
		if (r < 0 || !planner_linear_reaches(p, start == from ? last : start, s->vaddr))
			return planner_missing(p, "%s (0x%llx is inside of an instruction)",
					       s->role, (unsigned long long)s->vaddr);
		from = start;
		last = s->vaddr;
	}
	return 0;
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

uint64_t plan_cookie(const struct plan_site *s, unsigned int i)
{
	return (uint64_t)s->kind | (uint64_t)s->reg << 4 | (uint64_t)s->deref << 9 |
	       (uint64_t)(i & 0x3f) << 10 | (uint64_t)(i >> 6 & 3) << 30 |
	       (uint64_t)s->restarts << 28 | (uint64_t)s->if_unequal << 29 |
	       (uint64_t)s->has_cc << 16 | (uint64_t)s->cc << 17 | (uint64_t)s->taken << 21 |
	       (uint64_t)s->has_flag << 22 | (uint64_t)s->flag_reg << 23 |
	       (uint64_t)(uint32_t)s->disp << 32;
}

const char *plan_kind_name(enum pyp_site_kind kind)
{
	static const char *const names[] = {
		[PYP_SITE_ENTER] = "enter",	    [PYP_SITE_THROW] = "throw",
		[PYP_SITE_LEAVE] = "leave",	    [PYP_SITE_YIELD] = "yield",
		[PYP_SITE_CODE_FREE] = "code-free", [PYP_SITE_C_ENTER] = "c-enter",
		[PYP_SITE_C_LEAVE] = "c-leave",	    [PYP_SITE_C_INSTANT] = "c-instant",
		[PYP_SITE_GC_START] = "gc-start",   [PYP_SITE_GC_STOP] = "gc-stop",
	};

	return kind < sizeof(names) / sizeof(*names) && names[kind] ? names[kind] : "?";
}

const char *plan_cost_name(enum plan_cost cost)
{
	return cost == PLAN_COST_EMULATED ? "emulated" : "single-stepped";
}
