// SPDX-License-Identifier: BSD-2-Clause
/* One x86-64 instruction: decoding through Zydis, and what a probe there costs. See insn.h. */
#include "plan/insn.h"

#include <string.h>

static bool decode(const uint8_t *code, size_t max, ZydisDecodedInstruction *zi,
		   ZydisDecodedOperand *op)
{
	ZydisDecoder decoder;

	if (!ZYAN_SUCCESS(
		    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
		return false;
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, max, zi, op));
}

static bool has_prefix(const ZydisDecodedInstruction *zi)
{
	for (int i = 0; i < zi->raw.prefix_count; i++)
		if ((zi->raw.prefixes[i].value & 0xf0) != 0x40)
			return true;
	return false;
}

/* The forms that every kernel since 5.10 emulates, without any prefix but REX.B on push. */
static bool is_emulated(const ZydisDecodedInstruction *zi, const uint8_t *code)
{
	uint8_t b = code[0];

	if (has_prefix(zi))
		return false;
	if (zi->length == 1 && b == 0x90)
		return true;
	if (zi->length == 1 && b >= 0x50 && b <= 0x57)
		return true;
	if (zi->length == 2 && b == 0x41 && code[1] >= 0x50 && code[1] <= 0x57)
		return true;
	if (zi->length == 2 && (b == 0xeb || (b >= 0x70 && b <= 0x7f)))
		return true;
	if (zi->length == 5 && (b == 0xe9 || b == 0xe8))
		return true;
	return zi->length == 6 && b == 0x0f && code[1] >= 0x80 && code[1] <= 0x8f;
}

/* Plain integer instructions that single-step harmlessly on every kernel. */
static bool is_stepped(const ZydisDecodedInstruction *zi)
{
	if (zi->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return false;
	for (int i = 0; i < zi->raw.prefix_count; i++) {
		uint8_t p = zi->raw.prefixes[i].value;

		if (p != 0x66 && (p & 0xf0) != 0x40)
			return zi->mnemonic == ZYDIS_MNEMONIC_ENDBR64;
	}
	switch (zi->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX:
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
	case ZYDIS_MNEMONIC_LEA:
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_TEST:
	case ZYDIS_MNEMONIC_AND:
	case ZYDIS_MNEMONIC_OR:
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_SAR:
	case ZYDIS_MNEMONIC_SHR:
	case ZYDIS_MNEMONIC_SHL:
	case ZYDIS_MNEMONIC_NEG:
	case ZYDIS_MNEMONIC_NOT:
		return true;
	default:
		return false;
	}
}

static enum insn_probe probe_class(const ZydisDecodedInstruction *zi, const uint8_t *code)
{
	if (is_emulated(zi, code))
		return INSN_EMULATED;
	/* A no-op in disguise may be rewritten by some kernels: leave every nop alone. */
	if (zi->mnemonic == ZYDIS_MNEMONIC_NOP)
		return INSN_FORBIDDEN;
	return is_stepped(zi) ? INSN_STEPPED : INSN_FORBIDDEN;
}

static bool branch_target(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *op,
			  uint64_t vaddr, uint64_t *ret)
{
	return op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
	       ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(zi, &op[0], vaddr, ret));
}

static enum insn_flow flow_class(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *op,
				 uint64_t vaddr, uint64_t *target)
{
	switch (zi->meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
		return branch_target(zi, op, vaddr, target) ? INSN_JCC : INSN_STOP;
	case ZYDIS_CATEGORY_UNCOND_BR:
		return branch_target(zi, op, vaddr, target) ? INSN_JMP : INSN_JMP_IND;
	case ZYDIS_CATEGORY_CALL:
		return branch_target(zi, op, vaddr, target) ? INSN_CALL : INSN_CALL_IND;
	case ZYDIS_CATEGORY_RET:
		return INSN_RET;
	default:
		break;
	}
	switch (zi->mnemonic) {
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT3:
		return INSN_STOP;
	default:
		return INSN_NEXT;
	}
}

bool insn_decode(const uint8_t *code, size_t max, uint64_t vaddr, struct insn *ret)
{
	ZydisDecodedInstruction zi;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	struct insn in = {.vaddr = vaddr};

	if (!decode(code, max, &zi, op))
		return false;
	in.len = zi.length;
	in.probe = (uint8_t)probe_class(&zi, code);
	in.flow = (uint8_t)flow_class(&zi, op, vaddr, &in.target);
	/* loop and jrcxz branch without a condition code: decoded, never probed. */
	if (in.flow == INSN_JCC) {
		uint8_t last = code[zi.raw.prefix_count];

		in.cc = (last == 0x0f ? code[zi.raw.prefix_count + 1] : last) & 0xf;
	}
	*ret = in;
	return true;
}

bool insn_decode_full(const uint8_t *code, size_t max, uint64_t vaddr, struct insn_full *ret)
{
	ret->vaddr = vaddr;
	return decode(code, max, &ret->zi, ret->op);
}

void insn_format(const struct insn_full *in, char *out, size_t size)
{
	ZydisFormatter formatter;

	out[0] = '\0';
	if (!ZYAN_SUCCESS(ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL)))
		return;
	if (!ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&formatter, &in->zi, in->op,
							  in->zi.operand_count_visible, out, size,
							  in->vaddr, NULL)))
		out[0] = '\0';
}

int insn_reg(ZydisRegister reg)
{
	ZydisRegister whole;

	if (reg == ZYDIS_REGISTER_NONE)
		return -1;
	whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
	if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15)
		return -1;
	return (int)(whole - ZYDIS_REGISTER_RAX);
}

bool insn_is_reg(const ZydisDecodedOperand *op, int *reg, unsigned int bits)
{
	if (op->type != ZYDIS_OPERAND_TYPE_REGISTER || op->size != bits)
		return false;
	*reg = insn_reg(op->reg.value);
	return *reg >= 0;
}

bool insn_is_mem(const ZydisDecodedOperand *op, int *base, int64_t *disp)
{
	if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->mem.index != ZYDIS_REGISTER_NONE)
		return false;
	if (op->mem.segment != ZYDIS_REGISTER_DS && op->mem.segment != ZYDIS_REGISTER_SS)
		return false;
	*base = insn_reg(op->mem.base);
	*disp = op->mem.disp.has_displacement ? op->mem.disp.value : 0;
	return *base >= 0;
}

bool insn_const_address(const struct insn_full *in, const ZydisDecodedOperand *op, uint64_t *ret)
{
	if (op->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && !op->imm.is_relative) {
		*ret = op->imm.value.u;
		return true;
	}
	if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || !op->mem.disp.has_displacement)
		return false;
	if (op->mem.base == ZYDIS_REGISTER_RIP)
		*ret = in->vaddr + in->zi.length + (uint64_t)op->mem.disp.value;
	else if (op->mem.base == ZYDIS_REGISTER_NONE)
		*ret = (uint64_t)op->mem.disp.value;
	else
		return false;
	return true;
}

bool insn_writes_reg(const struct insn_full *in, int reg)
{
	for (int k = 0; k < in->zi.operand_count; k++)
		if (in->op[k].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    (in->op[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
		    insn_reg(in->op[k].reg.value) == reg)
			return true;
	return false;
}
