// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls of C functions: the order of the search, and the checks of each site. Proven: in code that
 * only calling opcodes reach, each call either has a site or runs no function that Python calls;
 * and at each site the frame and the callable are known. Otherwise there are no sites for C
 * functions at all.
 */
#include "plan/native.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int native_reach_ops(const struct native *n, const uint8_t *ops, size_t max, uint8_t *seen)
{
	int r = 0;

	for (size_t i = 0; i < max && ops[i] && r == 0; i++)
		r = cfg_reach(&n->p.cfg, planner_handler(&n->p, ops[i]), NULL, seen);
	return r;
}

static void take_ops(const uint8_t *ops, size_t max, bool taken[PLAN_OPCODES])
{
	for (size_t i = 0; i < max && ops[i]; i++)
		taken[ops[i]] = true;
}

/* Set n->plain and n->generic: nodes of other opcodes, and of generic calling opcodes. */
static int divide(struct native *n)
{
	const struct layout_calls *c = &n->p.layout->calls;
	bool taken[PLAN_OPCODES] = {false};
	int r = cfg_reach(&n->p.cfg, n->p.entry, NULL, n->plain);

	take_ops(c->generic, sizeof(c->generic), taken);
	take_ops(c->function, sizeof(c->function), taken);
	take_ops(c->descriptor, sizeof(c->descriptor), taken);
	take_ops(c->cached, sizeof(c->cached), taken);
	take_ops(&c->append, 1, taken);
	take_ops(c->related, sizeof(c->related), taken);
	for (unsigned int op = 0; op < PLAN_OPCODES && r == 0; op++)
		if (!taken[op])
			r = cfg_reach(&n->p.cfg, planner_handler(&n->p, (int16_t)op), NULL,
				      n->plain);
	if (r == 0)
		r = native_reach_ops(n, c->generic, sizeof(c->generic), n->generic);
	for (uint32_t i = 0; i < n->p.cfg.n; i++)
		n->generic[i] &= !n->plain[i];
	return r;
}

/* Mark the entries of the code: handlers, and the evaluator's start. */
static int mark_starts(struct native *n)
{
	for (uint32_t i = 0; i < n->p.cfg.n; i++)
		n->starts[i] = n->p.cfg.v[i].root;
	return 0;
}

static int plan_evaluator(struct native *n)
{
	int r = native_code_open(n);

	if (r == 0 && !n->p.layout->calls.generic[0])
		return planner_missing(&n->p, "opcodes that call (unknown for this version)");
	if (r == 0)
		r = mark_starts(n);
	if (r == 0)
		r = native_frame_find(n);
	if (r == 0)
		r = divide(n);
	if (r == 0)
		r = native_plan_generic(n);
	if (r == 0)
		r = native_plan_typed(n);
	if (r == 0)
		r = native_leaves(n);
	return r;
}

static int by_offset(const void *a, const void *b)
{
	const struct plan_site *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

int native_plan(struct planner *p)
{
	struct plan *plan = p->plan;
	struct native_callees callees;
	struct native n = {.p = *p, .callees = &callees};
	int r;

	n.p.missing[0] = '\0';
	native_callees_init(p, &callees);
	r = plan_evaluator(&n);
	native_code_close(&n);
	if (r == 0) {
		qsort(plan->native, plan->nnative, sizeof(*plan->native), by_offset);
		r = planner_check_boundaries(&n.p, plan->native, plan->nnative);
	}
	if (r == 0 || r == -ENOMEM)
		return r;
	plan->nnative = 0;
	snprintf(plan->native_missing, sizeof(plan->native_missing), "%s",
		 n.p.missing[0] ? n.p.missing : "all of its calls");
	return 0;
}
