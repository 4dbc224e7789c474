// SPDX-License-Identifier: BSD-2-Clause
/*
 * Opcodes that call any callable: CALL, CALL_FUNCTION_EX etc. The BPF program checks whether it is
 * a C function.
 *
 * Source: CPython v3.6.15 to v3.15.2 Python/ceval.c, Include/cpython/abstract.h.
 */
#include "plan/native.h"

#include <errno.h>
#include <string.h>

/* ---- calls through a pointer loaded from the callable ------------------------------------ */

/* Of the two registers that a load adds, the one with the call's first argument; -1: unknown. */
static int callable_of(const struct native *n, uint32_t load, uint32_t call)
{
	const insn_regs first = insn_bit(n->arch.arg[0]);
	struct insn_full in;
	int reg[2];

	if (!cfg_full(&n->p.cfg, load, &in) || in.op[1].type != INSN_OP_MEM)
		return -1;
	reg[0] = in.op[1].reg;
	reg[1] = in.op[1].index;
	for (int k = 0; k < 2; k++) {
		const struct flow_root root = {load, insn_bit(reg[k])};
		_cleanup_free_ struct flow_state *st = NULL;

		if (reg[k] < 0)
			continue;
		st = flow_solve(&n->p.cfg, &root, 1, 64);
		if (st && st[call].reached && (st[call].regs & first))
			return reg[k];
	}
	return -1;
}

struct vectorcalls {
	uint8_t *calls, *loads;
	struct flow_root root[2 * NATIVE_DEFS];
	size_t nroots;
};

static int add_load(struct native *n, struct vectorcalls *v, uint32_t load, uint32_t call)
{
	int reg = callable_of(n, load, call);

	if (reg < 0)
		return planner_missing(&n->p, "callable of the call at 0x%llx",
				       (unsigned long long)n->p.cfg.v[call].in.vaddr);
	if (v->loads[load])
		return 0;
	if (v->nroots == sizeof(v->root) / sizeof(*v->root))
		return planner_missing(&n->p, "calls (too many copies)");
	v->loads[load] = 1;
	v->root[v->nroots++] = (struct flow_root){load, insn_bit(reg)};
	return 0;
}

static int find_vectorcalls(struct native *n, struct vectorcalls *v)
{
	int r = 0;

	for (uint32_t i = 0; i < n->p.cfg.n && r == 0; i++) {
		uint32_t loads[NATIVE_DEFS];
		int nloads;

		if (!n->generic[i] || n->p.cfg.v[i].in.flow != INSN_CALL_IND ||
		    native_through_of(n, i, loads, &nloads) != NATIVE_VECTORCALL)
			continue;
		v->calls[i] = n->calls[i] = n->over[i] = 1;
		for (int k = 0; k < nloads && r == 0; k++)
			r = add_load(n, v, loads[k], i);
	}
	return r;
}

static int plan_vectorcalls(struct native *n)
{
	_cleanup_free_ uint8_t *calls = planner_bytes(&n->p), *loads = planner_bytes(&n->p);
	_cleanup_free_ struct flow_state *callable = NULL;
	struct vectorcalls v = {.calls = calls, .loads = loads};
	struct native_group g = {"vectorcall", PYP_SITE_C_ENTER, n->generic, NULL};
	unsigned int count = 0;
	int r;

	if (!calls || !loads)
		return -ENOMEM;
	r = find_vectorcalls(n, &v);
	if (r < 0 || !v.nroots)
		return r;
	r = native_follow(n, v.root, v.nroots, &callable);
	g.callable = callable;
	if (r == 0)
		r = native_certain_edges(n, &g, calls, &count);
	return r == 0 && !count ? planner_missing(&n->p, "vectorcall (never becomes certain)") : r;
}

/* ---- direct calls ------------------------------------------------------------------------ */

/*
 * trace_call_function, before 3.11: after it, as after all calls, the evaluator pops the arguments
 * in a loop. A site there would be hit many times per call, so sites in the function are better.
 */
static bool is_better_inside(const struct native *n, uint32_t i)
{
	return n->p.layout->model == LAYOUT_FRAME_OBJECT && i != CFG_NONE &&
	       !native_is_named(n, n->p.cfg.v[i].in.target) && native_leave_is_shared(n, i);
}

int native_plan_direct(struct native *n, uint32_t i)
{
	const uint64_t target = n->p.cfg.v[i].in.target;
	struct flow_state callable = {.reached = true};
	const char *name = image_plt_name(n->p.img, target);
	int arg = native_called_argument(n, target), r;

	if (arg < 0)
		return 0;
	callable.regs = insn_bit(n->arch.arg[arg]);
	r = native_site(n, i, PYP_SITE_C_ENTER, name ? name : "call", &callable);
	if (r == -E2BIG)
		return planner_missing(&n->p, "more than %d sites", PYP_MAX_NATIVE_SITES);
	if (r < 0)
		return planner_missing(&n->p, "site at the call at 0x%llx",
				       (unsigned long long)n->p.cfg.v[i].in.vaddr);
	n->calls[i] = 1;
	n->over[i] = n->p.cfg.v[i].in.flow == INSN_CALL;
	return 0;
}

static int plan_directs(struct native *n)
{
	int r = 0;

	for (uint32_t i = 0; i < n->p.cfg.n && r == 0; i++) {
		const struct cfg_node *node = &n->p.cfg.v[i];
		bool call = node->in.flow == INSN_CALL && !is_better_inside(n, i);

		if (n->generic[i] && (call || node->tail))
			r = native_plan_direct(n, i);
	}
	return r;
}

/* ---- completeness ------------------------------------------------------------------------ */

static int prove_call(struct native *n, uint32_t i, const char *role)
{
	const struct insn *in = &n->p.cfg.v[i].in;
	const unsigned long long at = in->vaddr;
	uint32_t loads[NATIVE_DEFS];
	const char *name;
	int nloads;

	if (in->flow == INSN_CALL_IND) {
		if (native_through_of(n, i, loads, &nloads) == NATIVE_HARMLESS)
			return 0;
		return planner_missing(&n->p, "%s (an unknown indirect call at 0x%llx)", role, at);
	}
	name = native_unknown_caller(n, in->target);
	if (name)
		return planner_missing(&n->p, "%s (a call of %.40s at 0x%llx)", role, name, at);
	if (native_called_argument(n, in->target) >= 0)
		return planner_missing(&n->p, "%s (a call at 0x%llx without a site)", role, at);
	return 0;
}

int native_prove(struct native *n, const uint8_t *from, const uint8_t *without, const char *role)
{
	_cleanup_free_ uint8_t *seen = planner_bytes(&n->p), *blocked = planner_bytes(&n->p);
	int r = 0;

	if (!seen || !blocked)
		return -ENOMEM;
	for (uint32_t i = 0; i < n->p.cfg.n; i++)
		blocked[i] = n->calls[i] || (without && without[i]);
	for (uint32_t i = 0; i < n->p.cfg.n && r == 0; i++)
		if (from[i])
			r = cfg_reach(&n->p.cfg, i, blocked, seen);
	for (uint32_t i = 0; i < n->p.cfg.n && r == 0; i++) {
		const struct cfg_node *node = &n->p.cfg.v[i];
		bool call = node->in.flow == INSN_CALL || node->in.flow == INSN_CALL_IND;

		if (!seen[i] || (!call && !node->tail))
			continue;
		/* Code shared with other opcodes does not call a callable of theirs. */
		if (!n->plain[i] ||
		    (node->in.flow == INSN_CALL && native_called_argument(n, node->in.target) >= 0))
			r = prove_call(n, i, role);
	}
	return r;
}

/* Proof: the handler of each of these opcodes leads to a call with a site. */
static int prove_ops(struct native *n)
{
	const uint8_t *ops = n->p.layout->calls.generic;
	_cleanup_free_ uint8_t *from = planner_bytes(&n->p), *leads = planner_bytes(&n->p);

	if (!from || !leads)
		return -ENOMEM;
	memcpy(leads, n->calls, n->p.cfg.n);
	planner_lead_to(&n->p, NULL, leads);
	for (size_t i = 0; i < sizeof(n->p.layout->calls.generic) && ops[i]; i++) {
		uint32_t h = planner_handler(&n->p, ops[i]);

		if (h == CFG_NONE || n->plain[h])
			return planner_missing(&n->p, "opcode %u (it has no handler of its own)",
					       ops[i]);
		if (!leads[h])
			return planner_missing(&n->p, "opcode %u (its handler calls nothing)",
					       ops[i]);
		from[h] = 1;
	}
	return native_prove(n, from, NULL, "calls");
}

int native_plan_calls(struct native *n)
{
	int r = plan_directs(n);

	return r < 0 ? r : plan_vectorcalls(n);
}

int native_plan_generic(struct native *n)
{
	int r = native_plan_calls(n);

	if (r == 0 && n->p.layout->model == LAYOUT_FRAME_OBJECT)
		r = native_plan_helpers(n);
	return r < 0 ? r : prove_ops(n);
}
