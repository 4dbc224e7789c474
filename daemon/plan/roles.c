// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which registers hold the current frame when an opcode's handler starts. A computed goto may lead
 * to any handler, so a value that several handlers need is in the same place at the start of every
 * one of them. Since 3.11 nearly every handler begins with `frame->prev_instr = next_instr` (3.13:
 * instr_ptr): a 64-bit store to a known offset from a register that the handler has not changed.
 * Handlers vote with that store.
 */
#include "plan/planner.h"

#include <errno.h>
#include <string.h>

#define VOTES_MIN 10u

static bool seen_before(const struct planner *p, unsigned int op)
{
	for (unsigned int i = 0; i < op; i++)
		if (p->handler[i] == p->handler[op])
			return true;
	return false;
}

/* The base register of the first store to frame_instr on the line whose base and source are as they
 * were at the line's start; -1: none. */
static int line_vote(const struct planner *p, const struct line *line)
{
	uint16_t written = 0;

	for (unsigned int i = 0; i < line->n; i++) {
		struct insn_full in;
		int64_t disp;
		int base, src;

		if (!cfg_full(&p->cfg, line->v[i], &in))
			return -1;
		if (in.zi.mnemonic == ZYDIS_MNEMONIC_MOV && in.op[0].size == 64 &&
		    insn_is_mem(&in.op[0], &base, &disp) && insn_is_reg(&in.op[1], &src, 64) &&
		    disp == p->layout->frame_instr && base != 4 && !(written & (1u << base)))
			return base;
		for (int k = 0; k < in.zi.operand_count; k++) {
			int r = in.op[k].type == ZYDIS_OPERAND_TYPE_REGISTER
					? insn_reg(in.op[k].reg.value)
					: -1;

			if (r >= 0 && (in.op[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
				written |= (uint16_t)(1u << r);
		}
	}
	return -1;
}

int roles_find(struct planner *p)
{
	unsigned int votes[16] = {0}, best = 0;

	for (unsigned int op = 0; op < PLAN_OPCODES; op++) {
		struct line line;
		int r;

		if (seen_before(p, op))
			continue;
		line_build(&p->cfg, cfg_find(&p->cfg, p->handler[op]), &(struct line_opts){0},
			   &line);
		r = line_vote(p, &line);
		if (r >= 0 && ++votes[r] > votes[best])
			best = (unsigned int)r;
	}
	if (votes[best] < VOTES_MIN)
		return planner_missing(p, "register of the frame (only %u handlers show one)",
				       votes[best]);
	for (unsigned int r = 0; r < 16; r++)
		if (votes[r] >= VOTES_MIN)
			p->roles |= (uint16_t)(1u << r);
	return 0;
}
