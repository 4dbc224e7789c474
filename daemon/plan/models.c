// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which sites each way of calling and returning needs, and the proof that none is missing.
 *
 * 3.11 and later: a Python function's first instruction, and the one after every suspension point,
 * is RESUME (or what it specialises into). Its handlers are where frames start and resume; only
 * throw() goes another way, through the evaluator's throwflag argument. That leaves generator
 * creation out, as profilers do. A handler may be left half-way and run again for the same frame
 * (de-optimisation): the stack stage sees the same frame twice and counts it once.
 *
 * 3.12 and later: frames end in _PyEval_FrameClearAndPop, whatever ends them, or are suspended by
 * YIELD_VALUE. 3.11: every end tests frame->is_entry to know whether to return from C; that test's
 * branch is the site. Before 3.11: one C call of the evaluator is one activation; its end is where
 * tstate->frame becomes f->f_back.
 *
 * Source: CPython v3.10.13, v3.11.2 and v3.11.7 Python/ceval.c; v3.12.1 and v3.13.0
 * Python/bytecodes.c and Python/ceval.c.
 */
#include "plan/planner.h"

#include <errno.h>
#include <string.h>

enum { RDI = 7, RSI = 6, RDX = 2, RSP = 4 };

#define CLEAR_AND_POP "_PyEval_FrameClearAndPop"
#define TYPE_DEALLOC  48 /* offsetof(PyTypeObject, tp_dealloc), all versions, GIL builds */
#define BACK_MAX      32 /* how far a branch may be from the comparison it tests */

/* ---- helpers ---------------------------------------------------------------------------- */

static bool writes_reg(const struct insn_full *in, int reg)
{
	for (int k = 0; k < in->zi.operand_count; k++)
		if (in->op[k].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    (in->op[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
		    insn_reg(in->op[k].reg.value) == reg)
			return true;
	return false;
}

static bool writes_flags(const struct insn_full *in)
{
	const ZydisAccessedFlags *f = in->zi.cpu_flags;

	return f && (f->modified | f->set_0 | f->set_1 | f->undefined);
}

/*
 * The instruction whose flags the branch at node tests: the nearest one before it that writes them,
 * as long as nothing joins in between. path receives the nodes between (at most BACK_MAX).
 */
static uint32_t flags_setter(const struct cfg *cfg, uint32_t node, struct insn_full *ret,
			     uint32_t path[BACK_MAX], unsigned int *npath)
{
	uint32_t i = node;

	for (*npath = 0; *npath < BACK_MAX; (*npath)++) {
		uint32_t prev = cfg->v[i].only_pred;

		if (prev == CFG_NONE || cfg->v[i].root || cfg->v[prev].in.flow != INSN_NEXT ||
		    !cfg_full(cfg, prev, ret))
			return CFG_NONE;
		if (writes_flags(ret))
			return prev;
		path[*npath] = prev;
		i = prev;
	}
	return CFG_NONE;
}

static bool path_writes(const struct cfg *cfg, const uint32_t *path, unsigned int n, int reg)
{
	struct insn_full in;

	for (unsigned int i = 0; i < n; i++)
		if (!cfg_full(cfg, path[i], &in) || writes_reg(&in, reg))
			return true;
	return false;
}

static bool is_zero(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && op->imm.value.u == 0;
}

/* Is a node that leaves the evaluator or dispatches among those seen? */
static bool any_flow(const struct cfg *cfg, const uint8_t *seen, bool ret, bool dispatch)
{
	for (uint32_t i = 0; i < cfg->n; i++) {
		if (!seen[i])
			continue;
		if (ret && (cfg->v[i].in.flow == INSN_RET || cfg->v[i].tail))
			return true;
		if (dispatch && cfg->v[i].in.flow == INSN_JMP_IND && !cfg->v[i].tail)
			return true;
	}
	return false;
}

/* reach() from every handler (but `skip`) and, if wanted, from the evaluator's entry. */
static int reach_all(const struct planner *p, bool with_entry, uint32_t skip,
		     const uint8_t *blocked, uint8_t *seen)
{
	int r = with_entry ? cfg_reach(&p->cfg, p->entry, blocked, seen) : 0;

	for (unsigned int op = 0; op < PLAN_OPCODES && r == 0; op++) {
		uint32_t h = cfg_find(&p->cfg, p->handler[op]);

		if (h != skip)
			r = cfg_reach(&p->cfg, h, blocked, seen);
	}
	return r;
}

static uint8_t *node_bytes(const struct planner *p)
{
	return calloc(p->cfg.n ? p->cfg.n : 1, 1);
}

static void block_sites(const struct planner *p, unsigned int kinds, uint8_t *blocked)
{
	for (unsigned int k = 0; k < p->plan->nsites; k++) {
		uint32_t i = cfg_find(&p->cfg, p->plan->sites[k].vaddr);

		if (i != CFG_NONE && (kinds & (1u << p->plan->sites[k].kind)))
			blocked[i] = 1;
	}
}

/* ---- RESUME, YIELD_VALUE, throw (3.11+) ------------------------------------------------- */

struct op_role {
	int16_t opcode;
	const char *role;
};

static int plan_resume(struct planner *p)
{
	const struct layout_opcodes *op = &p->layout->op;
	const struct op_role ops[] = {
		{op->resume, "RESUME"},
		{op->resume_quick, "RESUME_QUICK"},
		{op->resume_check, "RESUME_CHECK"},
		{op->resume_check_jit, "RESUME_CHECK_JIT"},
		{op->instrumented_resume, "INSTRUMENTED_RESUME"},
	};
	const size_t n = sizeof(ops) / sizeof(*ops);
	_cleanup_free_ uint8_t *family = node_bytes(p);
	struct line line[sizeof(ops) / sizeof(*ops)];

	if (!family)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		line_build(&p->cfg, planner_handler(p, ops[i].opcode), &(struct line_opts){0},
			   &line[i]);
		for (unsigned int k = 0; k < line[i].n; k++)
			family[line[i].v[k]] = 1;
	}
	for (size_t i = 0; i < n; i++) {
		const struct site_want want = {PYP_SITE_ENTER, ops[i].role, p->frame, family};

		if (ops[i].opcode == LAYOUT_NO_OPCODE)
			continue;
		if (line_site(p, &line[i], &want) < 0)
			return planner_missing(p, "%s (no probe possible in its handler)",
					       ops[i].role);
	}
	return 0;
}

/*
 * YIELD_VALUE ends with `gen_frame->previous = NULL`: the register that this store goes through
 * holds the frame, all along the line if nothing on it changes the register. (By then the compiler
 * may have let go of the one that held it at the start.)
 */
static void yield_evidence(const struct planner *p, const struct line *line,
			   struct flow_state *states)
{
	uint16_t written = 0, proven = 0;

	for (unsigned int i = 0; i < line->n; i++) {
		struct insn_full in;
		int64_t disp;
		int base;

		if (!cfg_full(&p->cfg, line->v[i], &in))
			return;
		if (in.zi.mnemonic == ZYDIS_MNEMONIC_MOV && in.op[0].size == 64 &&
		    insn_is_mem(&in.op[0], &base, &disp) && is_zero(&in.op[1]) &&
		    disp == p->layout->bpf.frame_previous && base != RSP)
			proven |= (uint16_t)(1u << base);
		for (int reg = 0; reg < 16; reg++)
			if (writes_reg(&in, reg))
				written |= (uint16_t)(1u << reg);
	}
	for (unsigned int i = 0; i < line->n; i++)
		states[line->v[i]].regs |= proven & (uint16_t)~written;
}

static int plan_yield(struct planner *p)
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
static int plan_instrumented_yield(struct planner *p)
{
	const struct line_opts o = {.through_calls = true};
	uint32_t path[BACK_MAX], branch, setter;
	const struct cfg_node *node;
	struct insn_full in;
	struct line line;
	unsigned int npath;
	int reg, r;

	if (p->layout->op.instrumented_yield_value == LAYOUT_NO_OPCODE)
		return 0;
	line_build(&p->cfg, planner_handler(p, p->layout->op.instrumented_yield_value), &o, &line);
	if (!line.n)
		return planner_missing(p, "INSTRUMENTED_YIELD_VALUE (no handler)");
	branch = line.v[line.n - 1];
	node = &p->cfg.v[branch];
	setter = flags_setter(&p->cfg, branch, &in, path, &npath);
	if (node->in.flow != INSN_JCC || (node->in.cc & 0xe) != 4 || setter == CFG_NONE ||
	    in.zi.mnemonic != ZYDIS_MNEMONIC_TEST || !insn_is_reg(&in.op[0], &reg, 32) || reg != 0)
		return planner_missing(p, "INSTRUMENTED_YIELD_VALUE (result of the tools not "
					  "tested)");
	r = site_add(p, &p->cfg, branch, PYP_SITE_YIELD, "INSTRUMENTED_YIELD_VALUE",
		     &p->frame[branch]);
	if (r < 0)
		return planner_missing(p, "INSTRUMENTED_YIELD_VALUE (frame not known)");
	p->plan->sites[p->plan->nsites - 1].has_cc = true;
	p->plan->sites[p->plan->nsites - 1].cc = node->in.cc;
	p->plan->sites[p->plan->nsites - 1].taken = node->in.cc == 4;
	return 0;
}

/* Does node test the throwflag argument? Then which successor is the throwing one? */
static bool throw_edge(const struct planner *p, const struct flow_state *flag, uint32_t node,
		       bool *jump)
{
	const struct cfg_node *n = &p->cfg.v[node];
	uint32_t path[BACK_MAX], setter;
	struct insn_full in;
	unsigned int npath;
	int64_t disp;
	int a, b;
	bool tests;

	if (n->in.flow != INSN_JCC || (n->in.cc & 0xe) != 4)
		return false;
	setter = flags_setter(&p->cfg, node, &in, path, &npath);
	if (setter == CFG_NONE || !flag[setter].reached)
		return false;
	if (in.zi.mnemonic == ZYDIS_MNEMONIC_TEST)
		tests = insn_is_reg(&in.op[0], &a, 32) && insn_is_reg(&in.op[1], &b, 32) &&
			a == b && (flag[setter].regs & (1u << a));
	else if (in.zi.mnemonic == ZYDIS_MNEMONIC_CMP && is_zero(&in.op[1]))
		tests = insn_is_reg(&in.op[0], &a, 32)
				? (flag[setter].regs & (1u << a)) != 0
				: in.op[0].size == 32 && insn_is_mem(&in.op[0], &a, &disp) &&
					  flow_in_slot(&flag[setter], a, disp);
	else
		return false;
	*jump = n->in.cc == 5;
	return tests;
}

/* What only throw() reaches: reachable over the edge, and not at all when the edge is cut. */
static int throw_only(struct planner *p, uint32_t node, bool jump, uint8_t *only)
{
	uint32_t *edge = jump ? &p->cfg.v[node].jump : &p->cfg.v[node].next;
	const uint32_t target = *edge;
	_cleanup_free_ uint8_t *other = node_bytes(p);
	int r;

	if (!other)
		return -ENOMEM;
	*edge = CFG_NONE;
	r = reach_all(p, true, CFG_NONE, NULL, other);
	*edge = target;
	if (r == 0)
		r = cfg_reach(&p->cfg, target, other, only);
	return r;
}

static int plan_throw_at(struct planner *p, uint32_t node, bool jump)
{
	const struct site_want want = {PYP_SITE_THROW, "throw", p->frame, NULL};
	_cleanup_free_ uint8_t *only = node_bytes(p);
	struct line line;
	int r;

	if (!only)
		return -ENOMEM;
	r = throw_only(p, node, jump, only);
	if (r < 0)
		return r;
	line_build(&p->cfg, jump ? p->cfg.v[node].jump : p->cfg.v[node].next,
		   &(struct line_opts){0}, &line);
	for (unsigned int k = 0; k < line.n; k++)
		if (!only[line.v[k]])
			line.n = k;
	return line_site(p, &line, &want);
}

static int plan_throw(struct planner *p)
{
	const struct flow_root root = {p->entry, 1u << RDX};
	_cleanup_free_ struct flow_state *flag = flow_solve(&p->cfg, &root, 1, 32);
	bool jump;

	if (!flag)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->cfg.n; i++)
		if (throw_edge(p, flag, i, &jump) && plan_throw_at(p, i, jump) == 0)
			return 0;
	return planner_missing(p, "throw (the evaluator's path for a thrown exception)");
}

/* ---- _PyEval_FrameClearAndPop (3.12+) ---------------------------------------------------- */

static bool calls(const struct planner *p, uint32_t i, uint64_t callee)
{
	const struct insn *in = &p->cfg.v[i].in;
	const char *plt;

	if (in->flow != INSN_CALL && in->flow != INSN_JMP)
		return false;
	if (in->target == callee)
		return true;
	plt = image_plt_name(p->img, in->target);
	return plt && strcmp(plt, CLEAR_AND_POP) == 0;
}

/* A function that looks at the owner of the frame it is given second: no other that a return
 * calls does. states: where its second argument is. */
static bool tests_owner(const struct planner *p, const struct cfg *cfg,
			const struct flow_state *states)
{
	for (uint32_t i = 0; i < cfg->n; i++) {
		struct insn_full in;
		int64_t disp;
		int base;

		if (!cfg_full(cfg, i, &in))
			continue;
		for (int k = 0; k < in.zi.operand_count_visible; k++)
			if (insn_is_mem(&in.op[k], &base, &disp) && in.op[k].size == 8 &&
			    disp == p->layout->bpf.frame_owner && (states[i].regs & (1u << base)))
				return true;
	}
	return false;
}

/* Explore a small function on its own and solve where argument register `reg` is kept. */
static int function_open(const struct planner *p, uint64_t vaddr, int reg, struct cfg *cfg,
			 struct flow_state **ret)
{
	struct flow_root root = {.regs = (uint16_t)(1u << reg)};
	int r;

	*cfg = (struct cfg){.img = p->img};
	r = cfg_explore(cfg, &vaddr, 1);
	if (r == 0)
		r = cfg_link(cfg);
	if (r < 0)
		return r;
	root.node = cfg_find(cfg, vaddr);
	if (root.node == CFG_NONE)
		return -ENOENT;
	*ret = flow_solve(cfg, &root, 1, 64);
	return *ret ? 0 : -ENOMEM;
}

static void cfg_deinitp(struct cfg *cfg)
{
	cfg_deinit(cfg);
}

static bool is_clear_and_pop(const struct planner *p, uint64_t vaddr)
{
	_cleanup_(cfg_deinitp) struct cfg cfg = {0};
	_cleanup_free_ struct flow_state *states = NULL;

	return function_open(p, vaddr, RSI, &cfg, &states) == 0 && tests_owner(p, &cfg, states);
}

/* Where RETURN_VALUE goes to end its frame: exported since 3.13, before that the function it calls
 * with the frame as second argument. */
static int clear_and_pop_find(const struct planner *p, uint64_t *ret)
{
	_cleanup_free_ uint8_t *seen = node_bytes(p);
	struct image_symbol sym;
	int r;

	if (!seen)
		return -ENOMEM;
	if (image_symbol(p->img, CLEAR_AND_POP, &sym) == 0) {
		*ret = sym.vaddr;
		return 0;
	}
	r = cfg_reach(&p->cfg, planner_handler(p, p->layout->op.return_value), NULL, seen);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < p->cfg.n; i++) {
		if (!seen[i] || p->cfg.v[i].in.flow != INSN_CALL ||
		    !(p->frame[i].regs & (1u << RSI)) ||
		    !is_clear_and_pop(p, p->cfg.v[i].in.target))
			continue;
		*ret = p->cfg.v[i].in.target;
		return 0;
	}
	return -ENOENT;
}

/* Proof: without the calls of callee, no path leads from a return's handler back to a dispatch or
 * out of the evaluator, and the evaluator's own failure path (exit_unwind) calls it as well. */
static int clear_and_pop_prove(struct planner *p, uint64_t callee)
{
	const struct op_role ops[] = {
		{p->layout->op.return_value, "RETURN_VALUE"},
		{p->layout->op.return_const, "RETURN_CONST"},
	};
	_cleanup_free_ uint8_t *blocked = node_bytes(p), *unwind = node_bytes(p);
	bool called = false;

	if (!blocked || !unwind || cfg_reach(&p->cfg, p->entry, NULL, unwind) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->cfg.n; i++) {
		blocked[i] = calls(p, i, callee);
		called |= blocked[i] && unwind[i];
	}
	if (!called)
		return planner_missing(p, "unwinding (does not call " CLEAR_AND_POP ")");
	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
		_cleanup_free_ uint8_t *seen = node_bytes(p);

		if (ops[i].opcode == LAYOUT_NO_OPCODE)
			continue;
		if (!seen || cfg_reach(&p->cfg, planner_handler(p, ops[i].opcode), blocked, seen))
			return -ENOMEM;
		if (any_flow(&p->cfg, seen, true, true))
			return planner_missing(
				p, "%s (a path that does not call " CLEAR_AND_POP ")", ops[i].role);
	}
	return 0;
}

static int plan_clear_and_pop(struct planner *p)
{
	_cleanup_(cfg_deinitp) struct cfg cfg = {0};
	_cleanup_free_ struct flow_state *states = NULL;
	struct planner callee = *p;
	struct line line;
	uint64_t vaddr = 0;
	int r;

	r = clear_and_pop_find(p, &vaddr);
	if (r == -ENOENT)
		return planner_missing(p, CLEAR_AND_POP " (not exported, not called by "
							"RETURN_VALUE)");
	if (r == 0)
		r = clear_and_pop_prove(p, vaddr);
	if (r == 0)
		r = function_open(p, vaddr, RSI, &cfg, &states);
	if (r == -ENOENT)
		return planner_missing(p, CLEAR_AND_POP " (not code)");
	if (r < 0)
		return r;
	if (!tests_owner(p, &cfg, states))
		return planner_missing(p, CLEAR_AND_POP " (does not look at the frame's owner)");
	callee.cfg = cfg;
	line_build(&cfg, cfg_find(&cfg, vaddr), &(struct line_opts){0}, &line);
	r = line_site(&callee, &line,
		      &(struct site_want){PYP_SITE_LEAVE, "FrameClearAndPop", states, NULL});
	return r < 0 ? planner_missing(p, CLEAR_AND_POP " (no probe possible at its start)") : 0;
}

/* ---- is_entry (3.11) --------------------------------------------------------------------- */

/* Is node the branch on frame->is_entry? Then *reg is the register that holds the frame. */
static bool is_entry_branch(const struct planner *p, uint32_t node, int *reg)
{
	uint32_t path[BACK_MAX];
	struct insn_full in;
	unsigned int npath;
	int64_t disp;

	if (p->cfg.v[node].in.flow != INSN_JCC || (p->cfg.v[node].in.cc & 0xe) != 4)
		return false;
	if (flags_setter(&p->cfg, node, &in, path, &npath) == CFG_NONE)
		return false;
	return in.zi.mnemonic == ZYDIS_MNEMONIC_CMP && in.op[0].size == 8 && is_zero(&in.op[1]) &&
	       insn_is_mem(&in.op[0], reg, &disp) && disp == p->layout->frame_is_entry &&
	       *reg != RSP && !path_writes(&p->cfg, path, npath, *reg);
}

/* Which role a leaving branch plays, for people: a return's, or the unwinder's. */
static const char *leave_role(const uint8_t *from_return, uint32_t node)
{
	return from_return[node] ? "RETURN_VALUE" : "unwind";
}

static int plan_is_entry(struct planner *p)
{
	const uint32_t creation = planner_handler(p, p->layout->op.return_generator);
	_cleanup_free_ uint8_t *reached = node_bytes(p), *ret = node_bytes(p);
	int reg, r;

	if (!reached || !ret)
		return -ENOMEM;
	/* RETURN_GENERATOR tests it too, but creating a generator is no call. */
	r = reach_all(p, true, creation, NULL, reached);
	if (r == 0)
		r = cfg_reach(&p->cfg, planner_handler(p, p->layout->op.return_value), NULL, ret);
	for (uint32_t i = 0; i < p->cfg.n && r == 0; i++) {
		struct flow_state at = {.reached = true};

		if (!reached[i] || !is_entry_branch(p, i, &reg))
			continue;
		at.regs = (uint16_t)(1u << reg);
		r = site_add(p, &p->cfg, i, PYP_SITE_LEAVE, leave_role(ret, i), &at);
	}
	return r;
}

/* Proof: with all leaving sites and generator creation blocked, the evaluator cannot return. */
static int is_entry_prove(struct planner *p)
{
	_cleanup_free_ uint8_t *blocked = node_bytes(p), *seen = node_bytes(p);
	const uint32_t creation = planner_handler(p, p->layout->op.return_generator);

	if (!blocked || !seen)
		return -ENOMEM;
	block_sites(p, 1u << PYP_SITE_LEAVE | 1u << PYP_SITE_YIELD, blocked);
	if (creation != CFG_NONE)
		blocked[creation] = 1;
	if (reach_all(p, true, CFG_NONE, blocked, seen) < 0)
		return -ENOMEM;
	if (any_flow(&p->cfg, seen, true, false))
		return planner_missing(p, "return (a path out of the evaluator without a test of "
					  "is_entry)");
	return 0;
}

/* ---- one C call per activation (3.6-3.10) ------------------------------------------------ */

/* One place where tstate->frame becomes f->f_back: at node, through register `frame`. */
struct f_back {
	uint32_t node;
	int frame, loaded;
};

/* Is node a load of f_back whose result the same line stores to tstate->frame? */
static bool f_back_at(const struct planner *p, uint32_t node, struct f_back *ret)
{
	struct insn_full in;
	struct line line;
	int64_t disp;
	int base, src;

	if (!cfg_full(&p->cfg, node, &in) || in.zi.mnemonic != ZYDIS_MNEMONIC_MOV ||
	    !insn_is_reg(&in.op[0], &ret->loaded, 64) ||
	    !insn_is_mem(&in.op[1], &ret->frame, &disp) || ret->frame == RSP ||
	    disp != p->layout->bpf.frame_previous)
		return false;
	ret->node = node;
	line_build(&p->cfg, node, &(struct line_opts){0}, &line);
	for (unsigned int k = 1; k < line.n; k++) {
		if (!cfg_full(&p->cfg, line.v[k], &in))
			return false;
		if (in.zi.mnemonic == ZYDIS_MNEMONIC_MOV && insn_is_mem(&in.op[0], &base, &disp) &&
		    insn_is_reg(&in.op[1], &src, 64) && disp == p->layout->ts_frame &&
		    src == ret->loaded && base != RSP && base != ret->frame)
			return true;
		if (writes_reg(&in, ret->loaded))
			return false;
	}
	return false;
}

/* An emulated instruction behind the load, on its line, while the frame's register is untouched. */
static uint32_t f_back_behind(const struct planner *p, const struct f_back *f)
{
	struct insn_full in;
	struct line line;

	if (f->frame == f->loaded)
		return CFG_NONE;
	line_build(&p->cfg, f->node, &(struct line_opts){0}, &line);
	for (unsigned int k = 1; k < line.n; k++) {
		if (p->cfg.v[line.v[k]].in.probe == INSN_EMULATED)
			return line.v[k];
		if (!cfg_full(&p->cfg, line.v[k], &in) || writes_reg(&in, f->frame))
			break;
	}
	return CFG_NONE;
}

/*
 * Does every pass through node come to f's load, and to no other before it (`loads`: all of them),
 * and every pass through f's load come from node, with the frame in the same register all the way?
 */
static int f_back_bound(const struct planner *p, uint32_t node, const struct f_back *f,
			const uint8_t *loads, bool *ret)
{
	const struct flow_root root = {node, (uint16_t)(1u << f->frame)};
	_cleanup_free_ uint8_t *seen = node_bytes(p), *around = node_bytes(p),
			       *block = node_bytes(p);
	_cleanup_free_ struct flow_state *states = NULL;
	int r;

	*ret = false;
	if (!seen || !around || !block)
		return -ENOMEM;
	block[f->node] = 1;
	r = cfg_reach(&p->cfg, node, block, seen);
	if (r < 0 || any_flow(&p->cfg, seen, true, true))
		return r;
	for (uint32_t i = 0; i < p->cfg.n; i++)
		if (seen[i] && loads[i])
			return 0;
	block[f->node] = 0;
	block[node] = 1;
	r = reach_all(p, true, CFG_NONE, block, around);
	if (r < 0 || around[f->node])
		return r;
	states = flow_solve(&p->cfg, &root, 1, 64);
	if (!states)
		return -ENOMEM;
	*ret = states[f->node].reached && (states[f->node].regs & (1u << f->frame));
	return 0;
}

#define BEFORE_MAX 64

/* An emulated instruction before the load that is bound to it: the nearest one. */
static int f_back_before(const struct planner *p, const struct f_back *f, const uint8_t *loads,
			 uint32_t *ret)
{
	uint32_t queue[BEFORE_MAX] = {f->node};
	unsigned int n = 1;

	*ret = CFG_NONE;
	for (unsigned int k = 0; k < n; k++) {
		bool bound = false;
		int r = 0;

		if (k && p->cfg.v[queue[k]].in.probe == INSN_EMULATED)
			r = f_back_bound(p, queue[k], f, loads, &bound);
		if (r < 0)
			return r;
		if (bound) {
			*ret = queue[k];
			return 0;
		}
		for (uint32_t i = 0; i < p->cfg.n && n < BEFORE_MAX; i++) {
			bool known = false;

			if (p->cfg.v[i].next != queue[k] && p->cfg.v[i].jump != queue[k])
				continue;
			for (unsigned int q = 0; q < n; q++)
				known |= queue[q] == i;
			if (!known)
				queue[n++] = i;
		}
	}
	return 0;
}

static int f_back_site(struct planner *p, const struct f_back *f, const uint8_t *loads)
{
	struct flow_state at = {.reached = true, .regs = (uint16_t)(1u << f->frame)};
	uint32_t site = f_back_behind(p, f);
	int r;

	if (site == CFG_NONE) {
		r = f_back_before(p, f, loads, &site);
		if (r < 0)
			return r;
	}
	/* Nothing better: the load itself, single-stepped. */
	if (site == CFG_NONE)
		site = f->node;
	return site_add(p, &p->cfg, site, PYP_SITE_LEAVE, "exit_eval_frame", &at);
}

static int plan_f_back(struct planner *p)
{
	_cleanup_free_ uint8_t *loads = node_bytes(p);
	unsigned int n = 0;
	struct f_back f;
	int r = 0;

	if (!loads)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->cfg.n; i++) {
		loads[i] = f_back_at(p, i, &f);
		n += loads[i];
	}
	if (!n)
		return planner_missing(p, "exit_eval_frame (tstate->frame = f->f_back)");
	for (uint32_t i = 0; i < p->cfg.n && r == 0; i++)
		if (loads[i] && f_back_at(p, i, &f))
			r = f_back_site(p, &f, loads);
	return r;
}

/* Can control get from node to a return without passing a leaving site? */
static int leaves_unseen(const struct planner *p, uint32_t node, bool *ret)
{
	_cleanup_free_ uint8_t *blocked = node_bytes(p), *seen = node_bytes(p);
	int r;

	if (!blocked || !seen)
		return -ENOMEM;
	block_sites(p, 1u << PYP_SITE_LEAVE, blocked);
	r = cfg_reach(&p->cfg, node, blocked, seen);
	*ret = any_flow(&p->cfg, seen, true, false);
	return r;
}

/* Is node on every path from the entry to a dispatch? */
static int dominates_dispatch(const struct planner *p, uint32_t node, bool *ret)
{
	_cleanup_free_ uint8_t *blocked = node_bytes(p), *seen = node_bytes(p);
	int r;

	if (!blocked || !seen)
		return -ENOMEM;
	blocked[node] = 1;
	r = cfg_reach(&p->cfg, p->entry, blocked, seen);
	*ret = !any_flow(&p->cfg, seen, false, true);
	return r;
}

/* Before 3.11 one site sees calls, resumptions and throw(): the argument tells, if it still is in a
 * register there. If not, a throw() that a generator passes on looks like any entry. */
static int entry_flag(const struct planner *p, uint32_t node, struct plan_site *site)
{
	const struct flow_root root = {p->entry, 1u << RDX};
	_cleanup_free_ struct flow_state *flag = flow_solve(&p->cfg, &root, 1, 32);

	if (!flag)
		return -ENOMEM;
	site->has_flag = flag[node].reached && flag[node].regs;
	if (site->has_flag)
		site->flag_reg = (uint8_t)__builtin_ctz(flag[node].regs);
	return 0;
}

/*
 * The entry site: on every path from the function's start to the first dispatch, on none from a
 * handler, and behind the recursion check: from there every way out passes a leaving site, so that
 * a frame refused with RecursionError is not counted.
 */
static int plan_entry(struct planner *p)
{
	_cleanup_free_ uint8_t *entry = node_bytes(p), *loop = node_bytes(p);
	bool ok = false;
	int r;

	if (!entry || !loop)
		return -ENOMEM;
	r = cfg_reach(&p->cfg, p->entry, NULL, entry);
	if (r == 0)
		r = reach_all(p, false, CFG_NONE, NULL, loop);
	for (uint32_t i = 0; i < p->cfg.n && r == 0; i++) {
		if (!entry[i] || loop[i] || p->cfg.v[i].in.probe != INSN_EMULATED ||
		    !(p->frame[i].regs || p->frame[i].nslots))
			continue;
		r = dominates_dispatch(p, i, &ok);
		if (r < 0 || !ok)
			continue;
		r = leaves_unseen(p, i, &ok);
		if (r < 0 || ok)
			continue;
		if (site_add(p, &p->cfg, i, PYP_SITE_ENTER, "entry", &p->frame[i]) == 0)
			return entry_flag(p, i, &p->plan->sites[p->plan->nsites - 1]);
	}
	return r < 0 ? r
		     : planner_missing(p, "entry (no probe possible behind the recursion check)");
}

/* ---- all versions ------------------------------------------------------------------------ */

int models_plan_code_free(struct planner *p)
{
	_cleanup_(cfg_deinitp) struct cfg cfg = {0};
	_cleanup_free_ struct flow_state *states = NULL;
	struct planner callee = *p;
	struct image_symbol type;
	struct line line;
	uint64_t vaddr;
	int r;

	if (image_symbol(p->img, "PyCode_Type", &type) < 0 ||
	    image_pointer(p->img, type.vaddr + TYPE_DEALLOC, &vaddr) < 0)
		return planner_missing(p, "code_dealloc (PyCode_Type)");
	r = function_open(p, vaddr, RDI, &cfg, &states);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return planner_missing(p, "code_dealloc (not code)");
	callee.cfg = cfg;
	line_build(&cfg, cfg_find(&cfg, vaddr), &(struct line_opts){0}, &line);
	r = line_site(&callee, &line,
		      &(struct site_want){PYP_SITE_CODE_FREE, "code_dealloc", states, NULL});
	return r < 0 ? planner_missing(p, "code_dealloc (no probe possible at its start)") : 0;
}

int models_plan(struct planner *p)
{
	typedef int (*step_fn)(struct planner *);
	static const step_fn frame_object[] = {plan_f_back, plan_entry, NULL};
	static const step_fn cframe_entry[] = {plan_resume,   plan_throw,     plan_yield,
					       plan_is_entry, is_entry_prove, NULL};
	static const step_fn clear_and_pop[] = {plan_resume,	    plan_throw,
						plan_yield,	    plan_instrumented_yield,
						plan_clear_and_pop, NULL};
	static const step_fn *const models[] = {
		[LAYOUT_FRAME_OBJECT] = frame_object,
		[LAYOUT_CFRAME_ENTRY] = cframe_entry,
		[LAYOUT_CLEAR_AND_POP] = clear_and_pop,
	};
	int r = 0;

	for (const step_fn *step = models[p->layout->model]; *step && r == 0; step++)
		r = (*step)(p);
	return r;
}
