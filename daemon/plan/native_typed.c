// SPDX-License-Identifier: BSD-2-Clause
/*
 * Opcodes specialized for a type of callable, 3.11 and later: they test that it is a C function, a
 * method descriptor or one known function, and otherwise become a generic opcode.
 *
 * Source: CPython v3.11.2 Python/ceval.c; v3.12.1 to v3.15.2 Python/bytecodes.c.
 */
#include "plan/native.h"

#include <errno.h>
#include <string.h>

#define GUARDS_MAX   64
#define INTERP_LEAST 1024 /* the interpreter's cache of callables is at a higher offset */

/* ---- guards ------------------------------------------------------------------------------ */

struct guards {
	struct flow_root root[GUARDS_MAX];
	size_t n;
};

/* The earliest instruction before a guard, on its line, at which its register already has the
 * value; copies may have been made since. */
static uint32_t root_back(const struct native *n, uint32_t node, int reg)
{
	const struct cfg *cfg = &n->p.cfg;

	for (unsigned int i = 0; i < PLAN_BACK_MAX; i++) {
		uint32_t prev = cfg->v[node].only_pred;
		struct insn_full in;

		if (prev == CFG_NONE || cfg->v[node].root || cfg->v[prev].in.flow != INSN_NEXT ||
		    !cfg_full(cfg, prev, &in) || insn_writes_reg(&in, reg))
			break;
		node = prev;
	}
	return node;
}

/*
 * 3.14 and later: the lowest two bits of stack entries are tags, and the guard tests an untagged
 * copy. So the value is followed from its load, because the tested register may soon be reused.
 * (The BPF program removes the tag.)
 */
static int guard_add_tagged(struct native *n, struct guards *g, uint32_t node, int reg)
{
	uint32_t defs[NATIVE_DEFS];
	int count = native_defs(n, node, reg, defs);

	for (int i = 0; i < count; i++) {
		struct flow_root root = {.node = n->p.cfg.v[defs[i]].next};
		struct insn_full in;
		int dst;

		if (!cfg_full(&n->p.cfg, defs[i], &in) || in.kind != INSN_MOVE ||
		    !insn_is_reg(&in.op[0], &dst, 64) || in.op[1].type != INSN_OP_MEM ||
		    root.node == CFG_NONE)
			return -ENOENT;
		root.regs = insn_bit(dst);
		for (size_t k = 0; k < g->n && root.node != CFG_NONE; k++)
			if (g->root[k].node == root.node && g->root[k].regs == root.regs)
				root.node = CFG_NONE;
		if (root.node == CFG_NONE)
			continue;
		if (g->n == GUARDS_MAX)
			return -ENOENT;
		g->root[g->n++] = root;
	}
	return count > 0 ? 0 : -ENOENT;
}

static int guard_add(struct native *n, struct guards *g, uint32_t node, int reg)
{
	if (n->p.layout->calls.tagged && guard_add_tagged(n, g, node, reg) == 0)
		return 0;
	if (g->n == GUARDS_MAX)
		return planner_missing(&n->p, "guards (too many)");
	g->root[g->n++] = (struct flow_root){root_back(n, node, reg), insn_bit(reg)};
	return 0;
}

/* Returns whether op is a load of an object's type. */
static bool loads_type(const struct native *n, const struct insn_operand *op, int *base)
{
	int64_t disp;

	return op->bits == 64 && insn_is_mem(op, base, &disp) &&
	       disp == n->p.layout->bpf.object_type && *base != n->arch.sp;
}

/* The comparison at node has an object's type in op: that object is the callable. */
static int guard_of(struct native *n, struct guards *g, uint32_t node,
		    const struct insn_operand *op)
{
	uint32_t defs[NATIVE_DEFS];
	struct insn_full in;
	int base, count, r = 0;

	if (loads_type(n, op, &base))
		return guard_add(n, g, node, base);
	if (op->type != INSN_OP_REG || op->bits != 64)
		return 0;
	count = native_defs(n, node, op->reg, defs);
	for (int i = 0; i < count && r == 0; i++)
		if (cfg_full(&n->p.cfg, defs[i], &in) && in.kind == INSN_MOVE &&
		    loads_type(n, &in.op[1], &base))
			r = guard_add(n, g, defs[i], base);
	return r;
}

static int find_guards(struct native *n, const uint8_t *within, struct guards *g)
{
	const struct native_callees *c = n->callees;
	struct insn_full in;
	uint64_t value;
	int r = 0;

	for (uint32_t i = 0; i < n->p.cfg.n && r == 0; i++) {
		if (!within[i] || !cfg_full(&n->p.cfg, i, &in) || in.kind != INSN_COMPARE)
			continue;
		for (int k = 0; k < 2 && r == 0; k++)
			if (native_constant(n, i, &in.op[k], &value) && value &&
			    (value == c->function_type || value == c->descriptor_type))
				r = guard_of(n, g, i, &in.op[1 - k]);
	}
	return r < 0 || g->n ? r : planner_missing(&n->p, "guards (no test of a type)");
}

/* Find comparisons with the interpreter's cache of callables. */
static int find_cached(struct native *n, const uint8_t *within, struct guards *g, uint8_t *tests)
{
	struct insn_full in, def;
	uint32_t defs[NATIVE_DEFS];
	int64_t disp;
	int base, r = 0;

	for (uint32_t i = 0; i < n->p.cfg.n && r == 0; i++) {
		if (!within[i] || !cfg_full(&n->p.cfg, i, &in) || in.kind != INSN_COMPARE)
			continue;
		for (int k = 0; k < 2 && r == 0; k++) {
			struct insn_operand op = in.op[k];

			if (in.op[1 - k].type != INSN_OP_REG || in.op[1 - k].bits != 64)
				continue;
			if (op.type == INSN_OP_REG && native_defs(n, i, op.reg, defs) == 1 &&
			    cfg_full(&n->p.cfg, defs[0], &def) && def.kind == INSN_MOVE)
				op = def.op[1];
			if (op.bits != 64 || !insn_is_mem(&op, &base, &disp) ||
			    disp < INTERP_LEAST || base == n->arch.sp)
				continue;
			tests[i] = 1;
			r = guard_add(n, g, i, in.op[1 - k].reg);
		}
	}
	return r < 0 || g->n ? r : planner_missing(&n->p, "guards (no test of a function)");
}

/* ---- calls through a PyMethodDef --------------------------------------------------------- */

/* Mark nodes that only these handlers reach. */
static int own_nodes(const struct native *n, const uint8_t *ops, size_t max, uint8_t *own)
{
	int r = native_reach_ops(n, ops, max, own);

	for (uint32_t i = 0; i < n->p.cfg.n; i++)
		own[i] &= !n->plain[i] && !n->generic[i];
	return r;
}

/*
 * Returns whether node i is a call through the pointer in a PyMethodDef, or of a function that
 * makes one.
 */
static bool is_method_call(const struct native *n, uint32_t i)
{
	const struct insn *in = &n->p.cfg.v[i].in;
	uint32_t loads[NATIVE_DEFS];
	int nloads;

	if (in->flow == INSN_CALL)
		return native_calls_method(n, in->target);
	return in->flow == INSN_CALL_IND &&
	       native_through_of(n, i, loads, &nloads) == NATIVE_METHOD;
}

static int find_method_calls(struct native *n, const uint8_t *own, uint8_t *calls)
{
	unsigned int found = 0;

	for (uint32_t i = 0; i < n->p.cfg.n; i++) {
		if (!own[i] || !is_method_call(n, i))
			continue;
		calls[i] = n->calls[i] = n->over[i] = 1;
		found++;
	}
	return found ? 0 : planner_missing(&n->p, "calls of methods (none found)");
}

/* Proof: each handler leads to a call, and to no unknown call. */
static int prove_handlers(struct native *n, const uint8_t *ops, size_t max, const char *role)
{
	_cleanup_free_ uint8_t *from = planner_bytes(&n->p), *leads = planner_bytes(&n->p);

	if (!from || !leads)
		return -ENOMEM;
	for (uint32_t i = 0; i < n->p.cfg.n; i++)
		leads[i] = n->calls[i] && !n->generic[i];
	planner_lead_to(&n->p, NULL, leads);
	for (size_t i = 0; i < max && ops[i]; i++) {
		uint32_t h = planner_handler(&n->p, ops[i]);

		if (h == CFG_NONE || n->plain[h] || !leads[h])
			return planner_missing(&n->p, "%s (opcode %u calls nothing)", role, ops[i]);
		from[h] = 1;
	}
	return native_prove(n, from, n->generic, role);
}

static int plan_methods(struct native *n, const uint8_t *ops, size_t max, const char *role)
{
	_cleanup_free_ uint8_t *own = planner_bytes(&n->p), *calls = planner_bytes(&n->p);
	_cleanup_free_ struct flow_state *callable = NULL;
	struct native_group g = {role, PYP_SITE_C_ENTER, own, NULL};
	struct guards guards = {.n = 0};
	unsigned int count = 0;
	int r;

	if (!own || !calls)
		return -ENOMEM;
	r = own_nodes(n, ops, max, own);
	if (r == 0)
		r = find_method_calls(n, own, calls);
	if (r == 0)
		r = find_guards(n, own, &guards);
	if (r == 0)
		r = native_follow(n, guards.root, guards.n, &callable);
	g.callable = callable;
	if (r == 0)
		r = native_certain_edges(n, &g, calls, &count);
	if (r == 0 && !count)
		return planner_missing(&n->p, "%s (never becomes certain)", role);
	if (r == 0)
		r = prove_handlers(n, ops, max, role);
	return r;
}

/* ---- known functions --------------------------------------------------------------------- */

/* Returns whether an operand of the combination has been set to 1 if one of the marked comparisons
 * found this condition, else to 0. */
static bool combines_test(const struct native *n, const struct comparison *of, enum insn_cond cond,
			  const uint8_t *tests)
{
	for (int k = 0; k < 2; k++) {
		const struct insn_operand *op = &of->in.op[k];
		uint32_t defs[NATIVE_DEFS];
		struct insn_full def;
		struct comparison c;

		if (op->type == INSN_OP_REG && native_defs(n, of->node, op->reg, defs) == 1 &&
		    cfg_full(&n->p.cfg, defs[0], &def) && planner_set_by(&n->p, defs[0], &c) &&
		    def.cond == cond && tests[c.node])
			return true;
	}
	return false;
}

/*
 * Where the branch at i goes if one of the marked comparisons finds no equality; CFG_NONE: it does not
 * depend on them. clang 21 combines conditions and then branches once: jump if (a != b) | …, or if
 * ((a == b) & …) is 0.
 */
static uint32_t miss_of(const struct native *n, uint32_t i, const uint8_t *tests)
{
	const struct cfg_node *node = &n->p.cfg.v[i];
	struct comparison c;
	bool to_next;

	if (!planner_compared(&n->p, i, &c))
		return CFG_NONE;
	to_next = node->in.cond == INSN_COND_EQUAL;
	if (!tests[c.node]) {
		if ((c.in.kind == INSN_AND || c.in.kind == INSN_TEST) &&
		    combines_test(n, &c, INSN_COND_EQUAL, tests))
			to_next = !to_next;
		else if (c.in.kind != INSN_OR || !combines_test(n, &c, INSN_COND_UNEQUAL, tests))
			return CFG_NONE;
	}
	return to_next ? node->next : node->jump;
}

/* Mark the code that runs if one of the marked comparisons finds no equality: the opcode becomes
 * another one. */
static unsigned int mark_misses(const struct native *n, const uint8_t *own, const uint8_t *tests,
				uint8_t *mark)
{
	const struct line_opts o = {.follow_jumps = true};
	unsigned int found = 0;

	for (uint32_t i = 0; i < n->p.cfg.n; i++) {
		uint32_t miss = own[i] ? miss_of(n, i, tests) : CFG_NONE;
		struct line line;

		if (miss == CFG_NONE)
			continue;
		found++;
		line_build(&n->p.cfg, miss, &o, &line);
		for (unsigned int k = 0; k < line.n; k++)
			mark[line.v[k]] = 1;
	}
	return found;
}

/* Mark the first calls after the entering sites, starting with site number `first`. */
static int first_calls(struct native *n, unsigned int first, const char *role)
{
	_cleanup_free_ uint8_t *seen = planner_bytes(&n->p), *any = planner_bytes(&n->p);
	int r = 0;

	if (!seen || !any)
		return -ENOMEM;
	for (uint32_t i = 0; i < n->p.cfg.n; i++)
		any[i] = n->p.cfg.v[i].in.flow == INSN_CALL ||
			 n->p.cfg.v[i].in.flow == INSN_CALL_IND;
	for (unsigned int i = first; i < n->p.plan->nnative && r == 0; i++) {
		const struct plan_site *s = &n->p.plan->native[i];
		const struct cfg_node *node = &n->p.cfg.v[cfg_find(&n->p.cfg, s->vaddr)];
		uint32_t to = s->taken ? node->jump : node->next;

		n->over[to] |= any[to];
		r = cfg_reach(&n->p.cfg, to, any, seen);
	}
	if (r == 0 && planner_any_flow(&n->p.cfg, seen, true, true))
		return planner_missing(&n->p, "%s (calls nothing on some path)", role);
	for (uint32_t i = 0; i < n->p.cfg.n; i++)
		for (uint32_t k = n->pred_start[i]; k < n->pred_start[i + 1]; k++)
			n->over[i] |= any[i] && seen[n->preds[k]];
	for (uint32_t i = 0; i < n->p.cfg.n; i++)
		n->calls[i] |= n->over[i];
	return r;
}

/* An opcode that runs one known function. Its sites are where it can no longer become another
 * opcode. */
static int plan_known(struct native *n, uint8_t op, enum pyp_site_kind kind, const char *role)
{
	_cleanup_free_ uint8_t *own = planner_bytes(&n->p), *goal = planner_bytes(&n->p),
			       *open = planner_bytes(&n->p), *tests = planner_bytes(&n->p);
	_cleanup_free_ struct flow_state *callable = NULL;
	struct native_group g = {role, kind, own, NULL};
	const unsigned int first = n->p.plan->nnative;
	const uint8_t ops[] = {op};
	struct guards guards = {.n = 0};
	unsigned int count = 0;
	int r;

	if (!own || !goal || !open || !tests)
		return -ENOMEM;
	for (uint32_t i = 0; i < n->p.cfg.n; i++) {
		goal[i] = n->p.cfg.v[i].in.flow == INSN_JMP_IND;
		open[i] = n->generic[i] && n->calls[i];
	}
	r = own_nodes(n, ops, 1, own);
	if (r == 0)
		r = find_cached(n, own, &guards, tests);
	if (r == 0 && !mark_misses(n, own, tests, open))
		return planner_missing(&n->p, "%s (its test decides nothing)", role);
	if (r == 0)
		r = native_follow(n, guards.root, guards.n, &callable);
	g.callable = callable;
	planner_lead_to(&n->p, NULL, open);
	if (r == 0)
		r = native_enter_edges(n, &g, open, goal, &count);
	if (r == 0 && !count)
		return planner_missing(&n->p, "%s (never becomes certain)", role);
	if (r == 0 && kind == PYP_SITE_C_ENTER)
		r = first_calls(n, first, role);
	if (r == 0 && kind == PYP_SITE_C_ENTER)
		r = prove_handlers(n, ops, 1, role);
	for (unsigned int i = first; i < n->p.plan->nnative; i++)
		n->p.plan->native[i].same_callable = true;
	return r;
}

int native_plan_typed(struct native *n)
{
	const struct layout_calls *c = &n->p.layout->calls;
	const char *const cached[] = {"len", "isinstance"};
	int r = 0;

	if (!c->function[0])
		return 0;
	r = plan_methods(n, c->function, sizeof(c->function), "builtin");
	if (r == 0)
		r = plan_methods(n, c->descriptor, sizeof(c->descriptor), "method");
	for (size_t i = 0; i < sizeof(cached) / sizeof(*cached) && r == 0; i++)
		r = plan_known(n, c->cached[i], PYP_SITE_C_ENTER, cached[i]);
	if (r == 0 && c->append)
		r = plan_known(n, c->append, PYP_SITE_C_INSTANT, "list.append");
	return r;
}
