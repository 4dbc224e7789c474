// SPDX-License-Identifier: BSD-2-Clause
/* Analysis of a function's code for the search of calls: see native.h. */
#include "plan/native.h"

#include <errno.h>
#include <string.h>

/* ---- the code ---------------------------------------------------------------------------- */

/* Returns whether the function uses the frame pointer for its C frame. */
static bool has_frame_pointer(const struct cfg *cfg)
{
	for (uint32_t i = 0; i < cfg->n; i++) {
		struct insn_full in;

		if (!cfg_full(cfg, i, &in) || !insn_writes_reg(&in, cfg->arch->fp))
			continue;
		for (int k = 1; k < in.nexplicit; k++) {
			const struct insn_operand *op = &in.op[k];

			if ((op->type != INSN_OP_MEM || op->computed) &&
			    (op->reg == cfg->arch->sp || op->index == cfg->arch->sp))
				return true;
		}
	}
	return false;
}

static int link_preds(struct native *n)
{
	const struct cfg *cfg = &n->p.cfg;
	_cleanup_free_ uint32_t *at = calloc(cfg->n + 1, sizeof(*at));

	n->pred_start = calloc(cfg->n + 1, sizeof(*n->pred_start));
	n->preds = calloc(2 * (size_t)cfg->n + 1, sizeof(*n->preds));
	if (!at || !n->pred_start || !n->preds)
		return -ENOMEM;
	for (uint32_t i = 0; i < cfg->n; i++)
		n->pred_start[i + 1] = n->pred_start[i] + cfg->v[i].preds;
	memcpy(at, n->pred_start, cfg->n * sizeof(*at));
	for (uint32_t i = 0; i < cfg->n; i++) {
		const struct cfg_node *node = &cfg->v[i];

		if (node->next != CFG_NONE)
			n->preds[at[node->next]++] = i;
		if (node->jump != CFG_NONE && node->jump != node->next)
			n->preds[at[node->jump]++] = i;
	}
	return 0;
}

/*
 * If the function uses the frame pointer as a general register, it points to no stack slot, and
 * stores through it change none.
 */
int native_code_open(struct native *n)
{
	n->machine = n->p.cfg.arch;
	n->arch = *n->machine;
	if (!has_frame_pointer(&n->p.cfg))
		n->arch.fp = INSN_REGS_MAX - 1;
	n->p.cfg.arch = &n->arch;
	n->starts = planner_bytes(&n->p);
	n->plain = planner_bytes(&n->p);
	n->generic = planner_bytes(&n->p);
	n->calls = planner_bytes(&n->p);
	n->over = planner_bytes(&n->p);
	if (!n->starts || !n->plain || !n->generic || !n->calls || !n->over)
		return -ENOMEM;
	return link_preds(n);
}

void native_code_close(struct native *n)
{
	free(n->starts);
	free(n->plain);
	free(n->generic);
	free(n->calls);
	free(n->over);
	free(n->frame);
	free(n->pred_start);
	free(n->preds);
}

/* ---- locations of the frame -------------------------------------------------------------- */

static bool dispatches(const struct cfg *cfg, uint32_t i)
{
	return cfg->v[i].in.flow == INSN_JMP_IND && !cfg->v[i].tail;
}

/* Locations of the frame at all dispatches reachable from the evaluator's entry. */
static int first_dispatch(const struct native *n, struct flow_state *ret)
{
	const struct flow_root root = {n->p.entry, planner_argument(&n->p, n->p.layout->arg_frame)};
	_cleanup_free_ struct flow_state *st = flow_solve(&n->p.cfg, &root, 1, 64);
	bool found = false;

	*ret = (struct flow_state){0};
	if (!st)
		return -ENOMEM;
	for (uint32_t i = 0; i < n->p.cfg.n; i++) {
		if (!dispatches(&n->p.cfg, i) || !st[i].reached)
			continue;
		if (found) {
			ret->regs &= st[i].regs;
			ret->nslots = 0;
		} else {
			*ret = st[i];
		}
		found = true;
	}
	return 0;
}

/* Locations of the frame in all code, if it is at `place` at the start of each handler. */
static struct flow_state *solve_from(const struct native *n, const struct flow_state *place)
{
	struct flow_root roots[PLAN_OPCODES + 1] = {
		{.node = n->p.entry, .regs = planner_argument(&n->p, n->p.layout->arg_frame)},
	};
	size_t count = 1;

	for (unsigned int op = 0; op < PLAN_OPCODES; op++) {
		uint32_t h = cfg_find(&n->p.cfg, n->p.handler[op]);

		if (h != CFG_NONE)
			roots[count++] =
				(struct flow_root){h, place->regs, place->slot, place->nslots};
	}
	return flow_solve(&n->p.cfg, roots, count, 64);
}

static bool kept_by_all(const struct native *n, const struct flow_state *st,
			const struct flow_state *place)
{
	for (uint32_t i = 0; i < n->p.cfg.n; i++) {
		if (!dispatches(&n->p.cfg, i) || !st[i].reached)
			continue;
		if ((st[i].regs & place->regs) != place->regs)
			return false;
		for (int k = 0; k < place->nslots; k++)
			if (!flow_in_slot(&st[i], place->slot[k].base, place->slot[k].disp))
				return false;
	}
	return true;
}

/* Proof by induction: the frame is at `place` at the first dispatch, and at each dispatch if it was
 * there when the handler started. */
static int frame_induce(struct native *n, const struct flow_state *place)
{
	free(n->frame);
	n->frame = solve_from(n, place);
	if (!n->frame)
		return -ENOMEM;
	return kept_by_all(n, n->frame, place) ? 0 : -ENOENT;
}

/* Before 3.11 no handler has a store that could vote for the frame's place (roles.c). */
static int frame_from_entry(struct native *n)
{
	struct flow_state first;
	int r = first_dispatch(n, &first);

	for (int reg = 0; r == 0 && reg < n->arch.nregs; reg++) {
		const struct flow_state place = {.regs = insn_bit(reg)};

		if (!(first.regs & insn_bit(reg)))
			continue;
		r = frame_induce(n, &place);
		if (r != -ENOENT)
			return r;
		r = 0;
	}
	for (int k = 0; r == 0 && k < first.nslots; k++) {
		const struct flow_state place = {.nslots = 1, .slot = {first.slot[k]}};

		r = frame_induce(n, &place);
		if (r != -ENOENT)
			return r;
		r = 0;
	}
	return r < 0 ? r : planner_missing(&n->p, "frame (its location changes between opcodes)");
}

int native_frame_from(struct native *n, uint32_t entry, insn_regs regs)
{
	const struct flow_root root = {entry, regs};

	n->frame = flow_solve(&n->p.cfg, &root, 1, 64);
	return n->frame ? 0 : -ENOMEM;
}

int native_frame_find(struct native *n)
{
	struct flow_state place = {.regs = n->p.roles, .nslots = n->p.nrole_slots};

	if (n->p.layout->model == LAYOUT_FRAME_OBJECT)
		return frame_from_entry(n);
	memcpy(place.slot, n->p.role_slot, sizeof(place.slot));
	n->frame = solve_from(n, &place);
	return n->frame ? 0 : -ENOMEM;
}

/* ---- origins of a value ------------------------------------------------------------------ */

#define DEFS_WAITING 512

/* A register or stack slot before a node, whose origin is searched */
struct defs_want {
	uint32_t node;
	int reg; /* -1: the slot at base + disp; base is the stack or frame pointer */
	int base;
	int32_t disp;
};

struct defs_search {
	const struct native *n;
	insn_regs *seen; /* per node: registers searched before; bit of the stack pointer: a slot */
	int32_t *slot;	 /* displacement of that slot */
	int base;	 /* base of all searched slots; -1: none yet */
	struct defs_want waiting[DEFS_WAITING];
	unsigned int nwaiting;
	uint32_t *defs;
	int found; /* number of origins; -1: unknown */
};

static void defs_wait(struct defs_search *s, const struct defs_want *w)
{
	if (s->nwaiting == DEFS_WAITING)
		s->found = -1;
	else
		s->waiting[s->nwaiting++] = *w;
}

static void defs_ask(struct defs_search *s, uint32_t node, int reg)
{
	if (s->seen[node] & insn_bit(reg))
		return;
	s->seen[node] |= insn_bit(reg);
	defs_wait(s, &(struct defs_want){.node = node, .reg = reg});
}

static void defs_ask_slot(struct defs_search *s, uint32_t node, int base, int32_t disp)
{
	const insn_regs bit = insn_bit(s->n->arch.sp);

	if (s->base < 0)
		s->base = base;
	if (s->base != base || ((s->seen[node] & bit) && s->slot[node] != disp)) {
		s->found = -1;
		return;
	}
	if (s->seen[node] & bit)
		return;
	s->seen[node] |= bit;
	s->slot[node] = disp;
	defs_wait(s, &(struct defs_want){node, -1, base, disp});
}

static void defs_found(struct defs_search *s, uint32_t node)
{
	for (int i = 0; i < s->found; i++)
		if (s->defs[i] == node)
			return;
	if (s->found == NATIVE_DEFS)
		s->found = -1;
	else
		s->defs[s->found++] = node;
}

static bool is_stack(const struct native *n, int base)
{
	return base == n->arch.sp || base == n->arch.fp;
}

/* The instruction at node sets reg: follow a copy; anything else is an origin. */
static void defs_set(struct defs_search *s, uint32_t node, const struct insn_full *in)
{
	int dst, src, base;
	int64_t disp;

	if (in->kind == INSN_MOVE && insn_is_reg(&in->op[0], &dst, 64) &&
	    insn_is_reg(&in->op[1], &src, 64) && !is_stack(s->n, src))
		defs_ask(s, node, src);
	else if (insn_is_load(in, &dst, &base, &disp) && is_stack(s->n, base) &&
		 disp == (int32_t)disp)
		defs_ask_slot(s, node, base, (int32_t)disp);
	else if (insn_is_untagging(in, &dst))
		defs_ask(s, node, dst);
	else
		defs_found(s, node);
}

/* Returns whether the operand's store can change the slot. */
static bool may_store(const struct defs_search *s, const struct insn_operand *op,
		      const struct defs_want *w)
{
	int64_t to;
	int base;

	if (!op->written || !insn_is_mem(op, &base, &to) || !is_stack(s->n, base))
		return false;
	return base != w->base ||
	       (to < (int64_t)w->disp + 8 && (int64_t)w->disp < to + op->bits / 8);
}

/* Continue before an instruction if it does not change the slot, or at the source of a store to all
 * of it. */
static void defs_pass_slot(struct defs_search *s, const struct defs_want *w, uint32_t node,
			   const struct insn_full *in)
{
	int base, src;
	int64_t to;

	for (int k = 0; k < in->noperands; k++) {
		if (!may_store(s, &in->op[k], w))
			continue;
		if (insn_is_store(in, &base, &to) && base == w->base && to == w->disp &&
		    insn_is_reg(&in->op[1], &src, 64) && !is_stack(s->n, src))
			defs_ask(s, node, src);
		else
			s->found = -1;
		return;
	}
	if (insn_writes_reg(in, w->base))
		s->found = -1;
	else
		defs_ask_slot(s, node, w->base, w->disp);
}

/* Continue before an instruction that precedes w->node, at its source if it is a copy, or record it
 * as an origin. */
static void defs_pass(struct defs_search *s, uint32_t node, const struct defs_want *w)
{
	const struct cfg *cfg = &s->n->p.cfg;
	enum insn_flow flow = cfg->v[node].in.flow;
	bool call = flow == INSN_CALL || flow == INSN_CALL_IND;
	struct insn_full in;

	if (call && w->reg < 0)
		defs_ask_slot(s, node, w->base, w->disp);
	else if (call && (cfg->arch->caller_saved & insn_bit(w->reg)))
		defs_found(s, node);
	else if (call)
		defs_ask(s, node, w->reg);
	else if (!cfg_full(cfg, node, &in))
		s->found = -1;
	else if (w->reg < 0)
		defs_pass_slot(s, w, node, &in);
	else if (!insn_writes_reg(&in, w->reg))
		defs_ask(s, node, w->reg);
	else
		defs_set(s, node, &in);
}

int native_operand_defs(const struct native *n, uint32_t node, const struct insn_operand *op,
			uint32_t defs[NATIVE_DEFS])
{
	_cleanup_free_ insn_regs *seen = calloc(n->p.cfg.n + 1, sizeof(*seen));
	_cleanup_free_ int32_t *slot = calloc(n->p.cfg.n + 1, sizeof(*slot));
	struct defs_search s = {.n = n, .seen = seen, .slot = slot, .base = -1, .defs = defs};

	int64_t disp;
	int reg;

	if (!seen || !slot)
		return -1;
	if (insn_is_reg(op, &reg, 64))
		defs_ask(&s, node, reg);
	else if (op->bits == 64 && insn_is_mem(op, &reg, &disp) && is_stack(n, reg) &&
		 disp == (int32_t)disp)
		defs_ask_slot(&s, node, reg, (int32_t)disp);
	else
		return -1;
	while (s.nwaiting && s.found >= 0) {
		const struct defs_want w = s.waiting[--s.nwaiting];

		/* Code that is not in the graph jumps to roots. */
		if (n->p.cfg.v[w.node].root || n->pred_start[w.node] == n->pred_start[w.node + 1])
			return -1;
		for (uint32_t k = n->pred_start[w.node]; k < n->pred_start[w.node + 1]; k++)
			if (s.found >= 0)
				defs_pass(&s, n->preds[k], &w);
	}
	return s.found;
}

int native_defs(const struct native *n, uint32_t node, int reg, uint32_t defs[NATIVE_DEFS])
{
	const struct insn_operand op = {.type = INSN_OP_REG, .bits = 64, .reg = (int16_t)reg};

	return native_operand_defs(n, node, &op, defs);
}

/* The constant that an instruction produces. */
static bool constant_of(const struct native *n, const struct insn_full *in, uint64_t *ret)
{
	const struct insn_operand *op = &in->op[1];
	uint64_t address;

	if (in->op[0].type != INSN_OP_REG || in->nexplicit != 2)
		return false;
	if (in->kind == INSN_MOVE && op->type == INSN_OP_MEM)
		return insn_const_address(op, &address) && op->reg < 0 && op->index < 0 &&
		       image_pointer(n->p.img, address, ret) == 0;
	/* a move of the address, or an instruction that computes it */
	return !in->writes_flags && insn_const_address(op, ret);
}

bool native_constant(const struct native *n, uint32_t node, const struct insn_operand *op,
		     uint64_t *ret)
{
	uint32_t defs[NATIVE_DEFS];
	struct insn_full in;
	uint64_t value;
	int count;

	if (op->type == INSN_OP_MEM)
		return op->bits == 64 && op->reg < 0 && op->index < 0 &&
		       insn_const_address(op, &value) && image_pointer(n->p.img, value, ret) == 0;
	if (op->type == INSN_OP_IMM)
		return insn_const_address(op, ret);
	if (op->type != INSN_OP_REG || op->reg < 0)
		return false;
	count = native_defs(n, node, op->reg, defs);
	for (int i = 0; i < count; i++) {
		if (!cfg_full(&n->p.cfg, defs[i], &in) || !constant_of(n, &in, &value) ||
		    (i && value != *ret))
			return false;
		*ret = value;
	}
	return count > 0;
}

/* ---- destinations of a value ------------------------------------------------------------- */

int native_follow(const struct native *n, const struct flow_root *roots, size_t count,
		  struct flow_state **ret)
{
	_cleanup_free_ struct flow_state *st = flow_solve(&n->p.cfg, roots, count, 64);
	_cleanup_free_ uint8_t *at = planner_bytes(&n->p), *around = planner_bytes(&n->p);
	int r = 0;

	if (!st || !at || !around)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		at[roots[i].node] = 1;
	for (uint32_t i = 0; i < n->p.cfg.n && r == 0; i++)
		if (n->starts[i])
			r = cfg_reach(&n->p.cfg, i, at, around);
	for (uint32_t i = 0; i < n->p.cfg.n; i++)
		st[i].reached &= !around[i];
	*ret = TAKE_PTR(st);
	return r;
}

/* ---- sites ------------------------------------------------------------------------------- */

static bool same_site(const struct plan_site *a, const struct plan_site *b)
{
	return a->kind == b->kind && a->reg == b->reg && a->deref == b->deref &&
	       a->disp == b->disp && a->has_callable == b->has_callable &&
	       a->callable_reg == b->callable_reg && a->callable_deref == b->callable_deref &&
	       a->callable_disp == b->callable_disp;
}

static bool site_callable(struct plan_site *s, const struct flow_state *at)
{
	struct plan_site place = {0};

	if (!at->reached || (!at->regs && !at->nslots))
		return false;
	site_locate(&place, at);
	s->has_callable = true;
	s->callable_reg = place.reg;
	s->callable_deref = place.deref;
	s->callable_disp = place.disp;
	return true;
}

int native_site(struct native *n, uint32_t node, enum pyp_site_kind kind, const char *role,
		const struct flow_state *callable)
{
	struct plan *plan = n->p.plan;
	struct plan_site s;
	int r;

	if (n->p.cfg.v[node].in.probe != INSN_EMULATED)
		return -ENOENT;
	r = site_make(&n->p, &n->p.cfg, node, kind, role, &n->frame[node], &s);
	if (r < 0)
		return r;
	if (callable && !site_callable(&s, callable))
		return -ENOENT;
	for (unsigned int i = 0; i < plan->nsites; i++)
		if (plan->sites[i].vaddr == s.vaddr)
			return -EEXIST;
	for (unsigned int i = 0; i < plan->nnative; i++)
		if (plan->native[i].vaddr == s.vaddr) {
			plan->native[i].same_callable = false;
			return same_site(&plan->native[i], &s) ? 0 : -EEXIST;
		}
	if (plan->nnative == PYP_MAX_NATIVE_SITES)
		return -E2BIG;
	plan->native[plan->nnative++] = s;
	return 0;
}
