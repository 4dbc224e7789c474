// SPDX-License-Identifier: BSD-2-Clause
/* Which locations must hold a value: see flow.h. */
#include "plan/flow.h"

#include <string.h>

enum { RSP = 4, RBP = 5 };

/* rax rcx rdx rsi rdi r8-r11: a call may change them (System V ABI). */
#define CALLER_SAVED 0x0fc7u

static bool is_stack(int base)
{
	return base == RSP || base == RBP;
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
 * A store to [base + disp] changes what overlaps it. Slots seen through the other stack register
 * may be the same memory: they go as well.
 */
static void slot_kill(struct flow_state *s, int base, int64_t disp, int64_t size)
{
	slots_drop(s, base == RSP ? RBP : RSP);
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

static void slots_shift(struct flow_state *s, int64_t by)
{
	for (int i = 0; i < s->nslots; i++)
		if (s->slot[i].base == RSP)
			s->slot[i].disp += (int32_t)by;
}

/* rsp changes: follow push, pop and add/sub immediate; forget its slots otherwise. */
static void flow_rsp(struct flow_state *s, const struct insn_full *in)
{
	switch (in->zi.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
		slots_shift(s, 8);
		return;
	case ZYDIS_MNEMONIC_POP:
		slots_shift(s, -8);
		return;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		if (in->op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
			int64_t by = in->op[1].imm.value.s;

			slots_shift(s, in->zi.mnemonic == ZYDIS_MNEMONIC_SUB ? by : -by);
			return;
		}
		break;
	default:
		break;
	}
	slots_drop(s, RSP);
}

/* Everything the instruction writes no longer holds the value. */
static void flow_kill(struct flow_state *s, const struct insn_full *in)
{
	bool rsp_written = false;

	for (int i = 0; i < in->zi.operand_count; i++) {
		const ZydisDecodedOperand *op = &in->op[i];
		int64_t disp;
		int r;

		if (!(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER) {
			r = insn_reg(op->reg.value);
			if (r >= 0)
				s->regs &= (uint16_t) ~(1u << r);
			if (r == RBP)
				slots_drop(s, RBP);
			rsp_written |= r == RSP;
		} else if (in->zi.mnemonic != ZYDIS_MNEMONIC_PUSH && insn_is_mem(op, &r, &disp) &&
			   is_stack(r)) {
			slot_kill(s, r, disp, op->size / 8);
		}
	}
	if (rsp_written)
		flow_rsp(s, in);
}

static bool flow_is_reg(const ZydisDecodedOperand *op, int *reg, unsigned int bits)
{
	return insn_is_reg(op, reg, 64) || (bits == 32 && insn_is_reg(op, reg, 32));
}

/* What a plain move of the whole value makes hold it; judged before the kill, applied after. */
static void flow_move(const struct flow_state *before, struct flow_state *after,
		      const struct insn_full *in, unsigned int bits)
{
	int dst, src;
	int64_t disp;

	if (in->zi.mnemonic != ZYDIS_MNEMONIC_MOV)
		return;
	if (flow_is_reg(&in->op[0], &dst, bits)) {
		bool holds = false;

		if (flow_is_reg(&in->op[1], &src, bits))
			holds = before->regs & (1u << src);
		else if (insn_is_mem(&in->op[1], &src, &disp) && is_stack(src))
			holds = flow_in_slot(before, src, disp);
		if (holds)
			after->regs |= (uint16_t)(1u << dst);
	} else if (insn_is_mem(&in->op[0], &dst, &disp) && is_stack(dst) &&
		   flow_is_reg(&in->op[1], &src, bits) && (before->regs & (1u << src))) {
		slot_add(after, dst, disp);
	}
}

static void flow_step(const struct cfg *cfg, uint32_t i, struct flow_state *s, unsigned int bits)
{
	const struct flow_state before = *s;
	struct insn_full in;

	if (cfg->v[i].in.flow == INSN_CALL || cfg->v[i].in.flow == INSN_CALL_IND) {
		s->regs &= (uint16_t)~CALLER_SAVED;
		return;
	}
	if (!cfg_full(cfg, i, &in)) {
		s->regs = 0;
		s->nslots = 0;
		return;
	}
	flow_kill(s, &in);
	flow_move(&before, s, &in, bits);
}

/* Intersect: returns whether *to changed. */
static bool flow_meet(struct flow_state *to, const struct flow_state *from)
{
	struct flow_state met = *to;

	if (!to->reached) {
		*to = *from;
		to->reached = true;
		return true;
	}
	met.regs &= from->regs;
	met.nslots = 0;
	for (int i = 0; i < to->nslots; i++)
		if (flow_in_slot(from, to->slot[i].base, to->slot[i].disp))
			met.slot[met.nslots++] = to->slot[i];
	if (met.regs == to->regs && met.nslots == to->nslots)
		return false;
	*to = met;
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
	if (to == CFG_NONE || !flow_meet(&states[to], s) || w->queued[to])
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
