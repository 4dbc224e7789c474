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
 * branch is the site. Before 3.11: see frame_object.c.
 *
 * Source: CPython v3.11.2 and v3.11.7 Python/ceval.c; v3.12.1 and v3.13.0
 * Python/bytecodes.c and Python/ceval.c.
 */
#include "plan/planner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { RDI = 7, RSI = 6, RDX = 2, RSP = 4 };

#define CLEAR_AND_POP "_PyEval_FrameClearAndPop"
#define TYPE_DEALLOC  48 /* offsetof(PyTypeObject, tp_dealloc), all versions, GIL builds */

/* ---- helpers ---------------------------------------------------------------------------- */

static bool path_writes(const struct cfg *cfg, const uint32_t *path, unsigned int n, int reg)
{
	struct insn_full in;

	for (unsigned int i = 0; i < n; i++)
		if (!cfg_full(cfg, path[i], &in) || insn_writes_reg(&in, reg))
			return true;
	return false;
}

static bool is_zero(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && op->imm.value.u == 0;
}

/* ---- RESUME, YIELD_VALUE, throw (3.11+) ------------------------------------------------- */

struct op_role {
	int16_t opcode;
	const char *role;
};

/* Does the branch at node compare a code object's version with the interpreter's? */
static bool compares_version(const struct planner *p, uint32_t node)
{
	uint16_t offset = p->layout->code_version;
	uint32_t path[PLAN_BACK_MAX];
	struct insn_full in;
	unsigned int npath;
	int64_t disp;
	int base;

	if (!offset || p->cfg.v[node].in.flow != INSN_JCC || (p->cfg.v[node].in.cc & 0xe) != 4 ||
	    planner_flags_setter(&p->cfg, node, &in, path, &npath) == CFG_NONE)
		return false;
	for (int i = 0; i < 2; i++)
		if (in.zi.mnemonic == ZYDIS_MNEMONIC_CMP && in.op[i].size == 64 &&
		    insn_is_mem(&in.op[i], &base, &disp) && disp == offset)
			return true;
	return false;
}

static uint8_t *family_sites(const struct planner *p, unsigned int first)
{
	uint8_t *sites = planner_bytes(p);

	for (unsigned int i = first; sites && i < p->plan->nsites; i++)
		sites[cfg_find(&p->cfg, p->plan->sites[i].vaddr)] = 1;
	return sites;
}

/*
 * A RESUME_CHECK that fails becomes a RESUME: does all of that pass RESUME's site? Some compilers
 * give it a copy of RESUME that does not.
 */
static int check_seen_again(const struct planner *p, uint32_t node, unsigned int first, bool *ret)
{
	const struct cfg_node *n = &p->cfg.v[node];
	_cleanup_free_ uint8_t *sites = family_sites(p, first), *seen = planner_bytes(p);

	if (!sites || !seen ||
	    cfg_reach(&p->cfg, n->in.cc == 4 ? n->next : n->jump, sites, seen) < 0)
		return -ENOMEM;
	*ret = !planner_any_flow(&p->cfg, seen, true, true);
	return 0;
}

/*
 * A RESUME that finds its code out of date brings it up to date and is executed again. Where a site
 * is the comparison's own branch, only the time that counts is a hit.
 */
static int resume_condition(struct planner *p, unsigned int first)
{
	for (unsigned int i = first; i < p->plan->nsites; i++) {
		struct plan_site *s = &p->plan->sites[i];
		uint32_t node = cfg_find(&p->cfg, s->vaddr);
		bool again = true;
		int r = 0;

		s->restarts = p->layout->code_version != 0;
		s->if_unequal = compares_version(p, node);
		/* The instrumented one is not executed again while a tool runs. */
		if (!s->if_unequal || strcmp(s->role, "INSTRUMENTED_RESUME") == 0)
			continue;
		if (strcmp(s->role, "RESUME") != 0)
			r = check_seen_again(p, node, first, &again);
		if (r < 0)
			return r;
		s->restarts = !again;
		s->has_cc = again;
		s->cc = again ? p->cfg.v[node].in.cc : 0;
		s->taken = again && s->cc == 4;
	}
	return 0;
}

/* Where a hit at the site that counts goes on. */
static int resume_follow(const struct planner *p, const struct plan_site *s, uint8_t *seen)
{
	const struct cfg_node *node = &p->cfg.v[cfg_find(&p->cfg, s->vaddr)];
	int r = 0;

	if ((!s->has_cc || !s->taken) && node->next != CFG_NONE)
		r = cfg_reach(&p->cfg, node->next, NULL, seen);
	if (r == 0 && (!s->has_cc || s->taken) && node->jump != CFG_NONE)
		r = cfg_reach(&p->cfg, node->jump, NULL, seen);
	return r;
}

/* Can one call be a hit at two of the sites that begin at `first`? Then counting is not possible. */
static int resume_once(struct planner *p, unsigned int first)
{
	_cleanup_free_ uint8_t *sites = family_sites(p, first);

	if (!sites)
		return -ENOMEM;
	for (unsigned int i = first; i < p->plan->nsites; i++) {
		_cleanup_free_ uint8_t *seen = planner_bytes(p);

		if (!seen || resume_follow(p, &p->plan->sites[i], seen) < 0)
			return -ENOMEM;
		for (uint32_t k = 0; k < p->cfg.n; k++)
			if (seen[k] && sites[k])
				snprintf(p->plan->twice, sizeof(p->plan->twice), "%s",
					 p->plan->sites[i].role);
	}
	return 0;
}

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
	unsigned int first = p->plan->nsites;
	_cleanup_free_ uint8_t *family = planner_bytes(p);
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
	if (resume_condition(p, first) < 0)
		return -ENOMEM;
	return resume_once(p, first);
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
			if (insn_writes_reg(&in, reg))
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
	uint32_t path[PLAN_BACK_MAX], branch, setter;
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
	setter = planner_flags_setter(&p->cfg, branch, &in, path, &npath);
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
	uint32_t path[PLAN_BACK_MAX], setter;
	struct insn_full in;
	unsigned int npath;
	int64_t disp;
	int a, b;
	bool tests;

	if (n->in.flow != INSN_JCC || (n->in.cc & 0xe) != 4)
		return false;
	setter = planner_flags_setter(&p->cfg, node, &in, path, &npath);
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

#define THROW_MAX 8

/* The edges over which throw() gets into a frame: compilers make copies of the test. */
struct throw_edges {
	uint32_t node[THROW_MAX], target[THROW_MAX];
	bool jump[THROW_MAX];
	unsigned int n;
};

static uint32_t *edge_of(struct planner *p, const struct throw_edges *e, unsigned int i)
{
	return e->jump[i] ? &p->cfg.v[e->node[i]].jump : &p->cfg.v[e->node[i]].next;
}

/* What only throw() reaches: reachable over an edge, and not at all when all of them are cut. */
static int throw_only(struct planner *p, const struct throw_edges *e, uint8_t *only)
{
	_cleanup_free_ uint8_t *other = planner_bytes(p);
	int r;

	if (!other)
		return -ENOMEM;
	for (unsigned int i = 0; i < e->n; i++)
		*edge_of(p, e, i) = CFG_NONE;
	r = planner_reach_all(p, true, CFG_NONE, NULL, other);
	for (unsigned int i = 0; i < e->n; i++)
		*edge_of(p, e, i) = e->target[i];
	for (unsigned int i = 0; i < e->n && r == 0; i++)
		r = cfg_reach(&p->cfg, e->target[i], other, only);
	return r;
}

/* Can control get from the edge to a dispatch or a return without passing a site of throw()? */
static int throw_unseen(const struct planner *p, uint32_t target, bool *ret)
{
	_cleanup_free_ uint8_t *blocked = planner_bytes(p), *seen = planner_bytes(p);

	if (!blocked || !seen)
		return -ENOMEM;
	planner_block_sites(p, 1u << PYP_SITE_THROW, blocked);
	if (cfg_reach(&p->cfg, target, blocked, seen) < 0)
		return -ENOMEM;
	*ret = planner_any_flow(&p->cfg, seen, true, true);
	return 0;
}

/* A site on the line that begins at the edge's target, as far as only throw() goes there. */
static int throw_site(struct planner *p, uint32_t target, const uint8_t *only)
{
	const struct site_want want = {PYP_SITE_THROW, "throw", p->frame, NULL};
	struct line line;

	line_build(&p->cfg, target, &(struct line_opts){.follow_jumps = true}, &line);
	for (unsigned int k = 0; k < line.n; k++)
		if (!only[line.v[k]])
			line.n = k;
	return line_site(p, &line, &want);
}

/* Does one pass through a site of throw() lead to another one? */
static int throw_twice(const struct planner *p, bool *ret)
{
	*ret = false;
	for (unsigned int k = 0; k < p->plan->nsites && !*ret; k++) {
		uint32_t node = cfg_find(&p->cfg, p->plan->sites[k].vaddr);
		_cleanup_free_ uint8_t *seen = planner_bytes(p), *sites = planner_bytes(p);

		if (p->plan->sites[k].kind != PYP_SITE_THROW || node == CFG_NONE)
			continue;
		if (!seen || !sites || cfg_reach(&p->cfg, p->cfg.v[node].next, NULL, seen) < 0 ||
		    cfg_reach(&p->cfg, p->cfg.v[node].jump, NULL, seen) < 0)
			return -ENOMEM;
		planner_block_sites(p, 1u << PYP_SITE_THROW, sites);
		for (uint32_t i = 0; i < p->cfg.n; i++)
			*ret |= seen[i] && sites[i];
	}
	return 0;
}

/* Sites for all edges, beginning with edge `first`: often its site serves the others as well. */
static int throw_cover(struct planner *p, const struct throw_edges *e, unsigned int first,
		       const uint8_t *only)
{
	bool bad = false;
	int r = 0;

	for (unsigned int i = 0; i < e->n && r == 0; i++) {
		uint32_t target = e->target[(first + i) % e->n];

		r = throw_unseen(p, target, &bad);
		if (r == 0 && bad)
			r = throw_site(p, target, only);
	}
	for (unsigned int i = 0; i < e->n && r == 0; i++) {
		r = throw_unseen(p, e->target[i], &bad);
		r = r == 0 && bad ? -ENOENT : r;
	}
	if (r == 0)
		r = throw_twice(p, &bad);
	return r == 0 && bad ? -ENOENT : r;
}

static int plan_throw(struct planner *p)
{
	const struct flow_root root = {p->entry, 1u << RDX};
	_cleanup_free_ struct flow_state *flag = flow_solve(&p->cfg, &root, 1, 32);
	_cleanup_free_ uint8_t *only = planner_bytes(p);
	unsigned int before = p->plan->nsites, most = PYP_MAX_SITES + 1, best = 0;
	struct throw_edges e = {0};
	int r;

	if (!flag || !only)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->cfg.n && e.n < THROW_MAX; i++) {
		if (!throw_edge(p, flag, i, &e.jump[e.n]))
			continue;
		e.node[e.n] = i;
		e.target[e.n] = *edge_of(p, &e, e.n);
		e.n++;
	}
	r = throw_only(p, &e, only);
	for (unsigned int i = 0; i < e.n && r == 0; i++) {
		if (throw_cover(p, &e, i, only) == 0 && p->plan->nsites < most) {
			most = p->plan->nsites;
			best = i;
		}
		p->plan->nsites = before;
	}
	if (r == 0 && most <= PYP_MAX_SITES)
		return throw_cover(p, &e, best, only);
	return r < 0 ? r
		     : planner_missing(p, "throw (the evaluator's path for a thrown exception)");
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
	_cleanup_free_ uint8_t *seen = planner_bytes(p);
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
	_cleanup_free_ uint8_t *blocked = planner_bytes(p), *unwind = planner_bytes(p);
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
		_cleanup_free_ uint8_t *seen = planner_bytes(p);

		if (ops[i].opcode == LAYOUT_NO_OPCODE)
			continue;
		if (!seen || cfg_reach(&p->cfg, planner_handler(p, ops[i].opcode), blocked, seen))
			return -ENOMEM;
		if (planner_any_flow(&p->cfg, seen, true, true))
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
	uint32_t path[PLAN_BACK_MAX];
	struct insn_full in;
	unsigned int npath;
	int64_t disp;

	if (p->cfg.v[node].in.flow != INSN_JCC || (p->cfg.v[node].in.cc & 0xe) != 4)
		return false;
	if (planner_flags_setter(&p->cfg, node, &in, path, &npath) == CFG_NONE)
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
	_cleanup_free_ uint8_t *reached = planner_bytes(p), *ret = planner_bytes(p);
	int reg, r;

	if (!reached || !ret)
		return -ENOMEM;
	/* RETURN_GENERATOR tests it too, but creating a generator is no call. */
	r = planner_reach_all(p, true, creation, NULL, reached);
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
	static const step_fn frame_object[] = {frame_object_plan, NULL};
	static const step_fn cframe_entry[] = {
		plan_resume,   models_plan_tracing,	plan_throw,
		plan_is_entry, models_plan_yield_edges, is_entry_prove,
		NULL};
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
