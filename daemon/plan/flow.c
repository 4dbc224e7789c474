// SPDX-License-Identifier: BSD-2-Clause
/* Data flow of one value: see flow.h. */
#include "plan/flow.h"

#include <string.h>

static bool is_stack(const struct arch *arch, int base)
{
	return base == arch->sp || base == arch->fp;
}

static void slots_drop(struct flow_state *s, int base)
{
	for (int i = 0; i < s->nslots;) {
		if (s->slot[i].base == base)
			s->slot[i] = s->slot[--s->nslots];
		else
			i++;
	}
}

/*
 * A store to [base + disp] overwrites overlapping slots. Slots relative to the other stack register
 * may be the same memory, so they are dropped, too.
 */
static void slot_kill(const struct arch *arch, struct flow_state *s, int base, int64_t disp,
		      int64_t size)
{
	slots_drop(s, base == arch->sp ? arch->fp : arch->sp);
	for (int i = 0; i < s->nslots;) {
		if (s->slot[i].disp < disp + size && disp < s->slot[i].disp + 8)
			s->slot[i] = s->slot[--s->nslots];
		else
			i++;
	}
}

bool flow_in_slot(const struct flow_state *s, int base, int64_t disp)
{
	for (int i = 0; i < s->nslots; i++)
		if (s->slot[i].base == base && s->slot[i].disp == disp)
			return true;
	return false;
}

static void slot_add(struct flow_state *s, int base, int64_t disp)
{
	if (s->nslots < FLOW_SLOTS && !flow_in_slot(s, base, disp) && disp == (int32_t)disp)
		s->slot[s->nslots++] = (struct flow_slot){(uint8_t)base, (int32_t)disp};
}

/* The stack pointer changes: adjust slots if the distance is known, else drop them. */
static void flow_stack(const struct arch *arch, struct flow_state *s, const struct insn_full *in)
{
	if (!in->stack_known) {
		slots_drop(s, arch->sp);
		return;
	}
	for (int i = 0; i < s->nslots; i++)
		if (s->slot[i].base == arch->sp)
			s->slot[i].disp -= (int32_t)in->stack_add;
}

/* Drop all locations that the instruction writes. */
static void flow_kill(const struct arch *arch, struct flow_state *s, const struct insn_full *in)
{
	s->regs &= ~in->writes;
	if (insn_writes_reg(in, arch->fp))
		slots_drop(s, arch->fp);
	for (int i = 0; i < in->noperands; i++) {
		int64_t disp;
		int base;

		if (in->op[i].written && insn_is_mem(&in->op[i], &base, &disp) &&
		    is_stack(arch, base))
			slot_kill(arch, s, base, disp, in->op[i].bits / 8);
	}
	if (insn_writes_reg(in, arch->sp))
		flow_stack(arch, s, in);
}

static bool flow_is_reg(const struct insn_operand *op, int *reg, unsigned int bits)
{
	return insn_is_reg(op, reg, 64) || (bits == 32 && insn_is_reg(op, reg, 32));
}

/* Add the location that a move of the whole value writes. Uses the state before the instruction. */
static void flow_move(const struct arch *arch, const struct flow_state *before,
		      struct flow_state *after, const struct insn_full *in, unsigned int bits)
{
	int dst, src;
	int64_t disp;

	/* 3.14 and later: clearing the tag does not change the object. */
	if (bits == 64 && insn_is_untagging(in, &dst) && before->regs & insn_bit(dst))
		after->regs |= insn_bit(dst);
	if (in->kind != INSN_MOVE)
		return;
	if (flow_is_reg(&in->op[0], &dst, bits)) {
		bool holds = false;

		if (flow_is_reg(&in->op[1], &src, bits))
			holds = before->regs & insn_bit(src);
		else if (insn_is_mem(&in->op[1], &src, &disp) && is_stack(arch, src))
			holds = flow_in_slot(before, src, disp);
		if (holds)
			after->regs |= insn_bit(dst);
	} else if (insn_is_mem(&in->op[0], &dst, &disp) && is_stack(arch, dst) &&
		   flow_is_reg(&in->op[1], &src, bits) && (before->regs & insn_bit(src))) {
		slot_add(after, dst, disp);
	}
}

/* A pop loads the slot at the stack pointer. A push writes there; slots below the stack are
 * lost. */
static void flow_push(const struct arch *arch, const struct flow_state *before,
		      struct flow_state *after, const struct insn_full *in)
{
	int src;

	if (in->kind == INSN_POP && insn_is_reg(&in->op[0], &src, 64) && src != arch->sp &&
	    flow_in_slot(before, arch->sp, 0))
		after->regs |= insn_bit(src);
	if (in->kind != INSN_PUSH)
		return;
	for (int i = 0; i < after->nslots;) {
		if (after->slot[i].base == arch->sp && after->slot[i].disp < 8 &&
		    after->slot[i].disp > -8)
			after->slot[i] = after->slot[--after->nslots];
		else
			i++;
	}
	if (insn_is_reg(&in->op[0], &src, 64) && (before->regs & insn_bit(src)))
		slot_add(after, arch->sp, 0);
}

static void flow_step(const struct cfg *cfg, uint32_t i, struct flow_state *s, unsigned int bits)
{
	const struct flow_state before = *s;
	struct insn_full in;

	if (cfg->v[i].in.flow == INSN_CALL || cfg->v[i].in.flow == INSN_CALL_IND) {
		s->regs &= ~cfg->arch->caller_saved;
		return;
	}
	if (!cfg_full(cfg, i, &in)) {
		s->regs = 0;
		s->nslots = 0;
		return;
	}
	flow_kill(cfg->arch, s, &in);
	flow_push(cfg->arch, &before, s, &in);
	flow_move(cfg->arch, &before, s, &in, bits);
}

/* Intersect from into to. Returns whether *to changed. */
static bool flow_intersect(struct flow_state *to, const struct flow_state *from)
{
	struct flow_state intersection = *to;

	if (!to->reached) {
		*to = *from;
		to->reached = true;
		return true;
	}
	intersection.regs &= from->regs;
	intersection.nslots = 0;
	for (int i = 0; i < to->nslots; i++)
		if (flow_in_slot(from, to->slot[i].base, to->slot[i].disp))
			intersection.slot[intersection.nslots++] = to->slot[i];
	if (intersection.regs == to->regs && intersection.nslots == to->nslots)
		return false;
	*to = intersection;
	return true;
}

struct flow_work {
	uint32_t *stack;
	uint8_t *queued;
	size_t n;
};

static void flow_arrive(struct flow_work *w, struct flow_state *states, uint32_t to,
			const struct flow_state *s)
{
	if (to == CFG_NONE || !flow_intersect(&states[to], s) || w->queued[to])
		return;
	w->queued[to] = 1;
	w->stack[w->n++] = to;
}

struct flow_state *flow_solve(const struct cfg *cfg, const struct flow_root *roots, size_t n,
			      unsigned int bits)
{
	struct flow_state *states = calloc(cfg->n ? cfg->n : 1, sizeof(*states));
	_cleanup_free_ uint32_t *stack = calloc(cfg->n ? cfg->n : 1, sizeof(*stack));
	_cleanup_free_ uint8_t *queued = calloc(cfg->n ? cfg->n : 1, 1);
	struct flow_work w = {.stack = stack, .queued = queued};

	if (!states || !stack || !queued) {
		free(states);
		return NULL;
	}
	for (size_t i = 0; i < n; i++) {
		struct flow_state s = {.regs = roots[i].regs, .reached = true};

		for (uint8_t k = 0; k < roots[i].nslots; k++)
			slot_add(&s, roots[i].slot[k].base, roots[i].slot[k].disp);
		flow_arrive(&w, states, roots[i].node, &s);
	}
	while (w.n) {
		uint32_t i = w.stack[--w.n];
		struct flow_state s = states[i];

		w.queued[i] = 0;
		flow_step(cfg, i, &s, bits);
		flow_arrive(&w, states, cfg->v[i].next, &s);
		if (cfg->v[i].jump != cfg->v[i].next)
			flow_arrive(&w, states, cfg->v[i].jump, &s);
	}
	return states;
}
