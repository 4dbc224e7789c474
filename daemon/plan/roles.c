// SPDX-License-Identifier: BSD-2-Clause
/*
 * Finds the registers or stack slots that hold the current frame when an opcode's handler starts. A
 * computed goto may jump to any handler, so a value that several handlers need is in the same place
 * at the start of each. Since 3.11 nearly all handlers begin with `frame->prev_instr = next_instr`
 * (3.13: instr_ptr): a 64-bit store to a known offset from a register that the handler has not
 * changed. Each handler with that store votes for its register.
 */
#include "plan/planner.h"

#include <errno.h>
#include <string.h>

#define VOTES_MIN 10u
#define SLOTS_MAX 16u

struct vote_count {
	unsigned int regs[INSN_REGS_MAX];
	struct {
		int32_t disp;
		unsigned int votes;
	} slot[SLOTS_MAX];
	unsigned int nslots;
};

static bool seen_before(const struct planner *p, unsigned int op)
{
	for (unsigned int i = 0; i < op; i++)
		if (p->handler[i] == p->handler[op])
			return true;
	return false;
}

/* A handler's vote: a register, or the stack slot from which it has just loaded one */
struct vote {
	int reg; /* -1: no vote */
	bool slot;
	int32_t disp;
};

static bool is_frame_store(const struct planner *p, const struct insn_full *in, int *base)
{
	int64_t disp;
	int src;

	return insn_is_store(in, base, &disp) && insn_is_reg(&in->op[1], &src, 64) &&
	       disp == p->layout->bpf.frame_instr && *base != p->cfg.arch->sp;
}

/* Returns whether the instruction loads a whole register from a stack slot. */
static bool is_slot_load(const struct planner *p, const struct insn_full *in, int *reg,
			 int32_t *slot)
{
	int64_t disp;
	int base;

	if (!insn_is_load(in, reg, &base, &disp) || base != p->cfg.arch->sp ||
	    disp != (int32_t)disp)
		return false;
	*slot = (int32_t)disp;
	return true;
}

/* The base register of the first store to frame_instr on the line, if unchanged since the line's
 * start, or the slot from which it was loaded. */
static struct vote line_vote(const struct planner *p, const struct line *line)
{
	const struct vote nothing = {.reg = -1};
	const int sp = p->cfg.arch->sp;
	insn_regs written = 0, loaded = 0;
	int32_t slot[INSN_REGS_MAX], from;
	int base, reg;

	for (unsigned int i = 0; i < line->n; i++) {
		struct insn_full in;

		if (!cfg_full(&p->cfg, line->v[i], &in))
			return nothing;
		if (is_frame_store(p, &in, &base)) {
			if (!(written & insn_bit(base)))
				return (struct vote){.reg = base};
			if (loaded & insn_bit(base))
				return (struct vote){sp, true, slot[base]};
		}
		written |= in.writes;
		loaded &= ~in.writes;
		if (is_slot_load(p, &in, &reg, &from) && !(written & insn_bit(sp))) {
			loaded |= insn_bit(reg);
			slot[reg] = from;
		}
	}
	return nothing;
}

/* Compilers that run out of registers keep the frame in a stack slot. */
static void count_vote(struct vote_count *c, const struct vote *v)
{
	if (v->reg < 0)
		return;
	if (!v->slot) {
		c->regs[v->reg]++;
		return;
	}
	for (unsigned int i = 0; i < c->nslots; i++)
		if (c->slot[i].disp == v->disp) {
			c->slot[i].votes++;
			return;
		}
	if (c->nslots < SLOTS_MAX) {
		c->slot[c->nslots].disp = v->disp;
		c->slot[c->nslots++].votes = 1;
	}
}

int roles_find(struct planner *p)
{
	struct vote_count c = {0};
	unsigned int best = 0;

	for (unsigned int op = 0; op < PLAN_OPCODES; op++) {
		struct line line;
		struct vote v;

		if (seen_before(p, op))
			continue;
		line_build(&p->cfg, cfg_find(&p->cfg, p->handler[op]), &(struct line_opts){0},
			   &line);
		v = line_vote(p, &line);
		count_vote(&c, &v);
	}
	for (int r = 0; r < p->cfg.arch->nregs; r++) {
		best = c.regs[r] > best ? c.regs[r] : best;
		if (c.regs[r] >= VOTES_MIN)
			p->roles |= insn_bit(r);
	}
	for (unsigned int i = 0; i < c.nslots; i++) {
		best = c.slot[i].votes > best ? c.slot[i].votes : best;
		if (c.slot[i].votes >= VOTES_MIN && p->nrole_slots < FLOW_SLOTS)
			p->role_slot[p->nrole_slots++] =
				(struct flow_slot){p->cfg.arch->sp, c.slot[i].disp};
	}
	if (!p->roles && !p->nrole_slots)
		return planner_missing(p, "location of the frame (only %u handlers vote for it)",
				       best);
	return 0;
}
