// SPDX-License-Identifier: BSD-2-Clause
/* Predicates on instructions: see insn.h. */
#include "plan/arch/insn.h"

bool insn_is_reg(const struct insn_operand *op, int *reg, unsigned int bits)
{
	if (op->type != INSN_OP_REG || op->bits != bits || op->reg < 0)
		return false;
	*reg = op->reg;
	return true;
}

bool insn_is_mem(const struct insn_operand *op, int *base, int64_t *disp)
{
	if (op->type != INSN_OP_MEM || !op->plain || op->reg < 0)
		return false;
	*base = op->reg;
	*disp = op->value;
	return true;
}

bool insn_is_zero(const struct insn_operand *op)
{
	return op->type == INSN_OP_IMM && op->value == 0;
}

bool insn_const_address(const struct insn_operand *op, uint64_t *ret)
{
	if (!op->has_address)
		return false;
	*ret = op->address;
	return true;
}

bool insn_is_load(const struct insn_full *in, int *reg, int *base, int64_t *disp)
{
	return in->kind == INSN_MOVE && insn_is_reg(&in->op[0], reg, 64) &&
	       insn_is_mem(&in->op[1], base, disp);
}

bool insn_is_store(const struct insn_full *in, int *base, int64_t *disp)
{
	return in->kind == INSN_MOVE && in->op[0].bits == 64 && insn_is_mem(&in->op[0], base, disp);
}

bool insn_is_untagging(const struct insn_full *in, int *reg)
{
	return in->kind == INSN_AND && insn_is_reg(&in->op[0], reg, 64) &&
	       in->op[1].type == INSN_OP_IMM && in->op[1].value >= -4 && in->op[1].value < -1;
}

bool insn_writes_reg(const struct insn_full *in, int reg)
{
	return in->writes & insn_bit(reg);
}
