// SPDX-License-Identifier: BSD-2-Clause
/*
 * x86-64 with the System V calling convention. Zydis decodes (a maintained decoder without
 * allocations that reports read and write access of each operand). This is the only file that uses
 * Zydis.
 *
 * Cost classes: Linux arch/x86/kernel/uprobes.c (branch_setup_xol_ops, push_setup_xol_ops, the
 * good_insns tables), 5.10 to 6.18. An instruction is "emulated" only if all of them emulate it.
 */
#include <Zydis/Zydis.h>
#include <string.h>

#include "plan/arch/arch.h"

_Static_assert(INSN_OPERANDS >= ZYDIS_MAX_OPERAND_COUNT, "all operands fit");

static bool decoder_init(ZydisDecoder *decoder)
{
	return ZYAN_SUCCESS(
		ZydisDecoderInit(decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64));
}

static bool decode(const uint8_t *code, size_t max, ZydisDecodedInstruction *zi,
		   ZydisDecodedOperand *op)
{
	ZydisDecoder decoder;

	return decoder_init(&decoder) &&
	       ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, max, zi, op));
}

static bool has_prefix(const ZydisDecodedInstruction *zi)
{
	for (int i = 0; i < zi->raw.prefix_count; i++)
		if ((zi->raw.prefixes[i].value & 0xf0) != 0x40)
			return true;
	return false;
}

/* Instructions that all kernels since 5.10 emulate, without prefixes except REX.B on push */
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

/* Plain integer instructions that all kernels can single-step */
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
	/* Some kernels may rewrite long nops. */
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

static bool is_branch(const ZydisDecodedInstruction *zi)
{
	return zi->meta.category == ZYDIS_CATEGORY_COND_BR ||
	       zi->meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
	       zi->meta.category == ZYDIS_CATEGORY_CALL;
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

static bool x86_decode(const uint8_t *code, size_t max, uint64_t vaddr, struct insn *ret)
{
	ZydisDecoder decoder;
	ZydisDecoderContext context;
	ZydisDecodedInstruction zi;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	struct insn in = {.vaddr = vaddr};

	if (!decoder_init(&decoder) ||
	    !ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, &context, code, max, &zi)))
		return false;
	/* Only operands of branches are needed here, and decoding operands takes most of the
	 * time. */
	if (is_branch(&zi) && !ZYAN_SUCCESS(ZydisDecoderDecodeOperands(&decoder, &context, &zi, op,
								       zi.operand_count)))
		return false;
	in.len = zi.length;
	in.probe = (uint8_t)probe_class(&zi, code);
	in.flow = (uint8_t)flow_class(&zi, op, vaddr, &in.target);
	/* loop and jrcxz have no condition code; they are never probed. */
	if (in.flow == INSN_JCC) {
		uint8_t last = code[zi.raw.prefix_count];

		in.cc = (last == 0x0f ? code[zi.raw.prefix_count + 1] : last) & 0xf;
		in.cond = in.cc == 4   ? INSN_COND_EQUAL
			  : in.cc == 5 ? INSN_COND_UNEQUAL
				       : INSN_COND_OTHER;
	}
	*ret = in;
	return true;
}

/* x86 register number (rax 0 … r15 15); -1: not a general register. */
static int16_t general_reg(ZydisRegister reg)
{
	ZydisRegister whole;

	if (reg == ZYDIS_REGISTER_NONE)
		return -1;
	whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
	if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15)
		return -1;
	return (int16_t)(whole - ZYDIS_REGISTER_RAX);
}

static void fill_memory(const ZydisDecodedInstruction *zi, const ZydisDecodedOperandMem *mem,
			uint64_t vaddr, struct insn_operand *ret)
{
	ret->reg = general_reg(mem->base);
	ret->index = mem->scale == 1 ? general_reg(mem->index) : -1;
	ret->value = mem->disp.has_displacement ? mem->disp.value : 0;
	ret->plain = mem->index == ZYDIS_REGISTER_NONE &&
		     (mem->segment == ZYDIS_REGISTER_DS || mem->segment == ZYDIS_REGISTER_SS);
	/* rip-relative, or a 32-bit displacement without base, with or without index */
	ret->has_address = mem->disp.has_displacement &&
			   (mem->base == ZYDIS_REGISTER_RIP || mem->base == ZYDIS_REGISTER_NONE);
	ret->address = (uint64_t)ret->value;
	if (mem->base == ZYDIS_REGISTER_RIP)
		ret->address += vaddr + zi->length;
}

static void fill_operand(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *op,
			 uint64_t vaddr, struct insn_operand *ret)
{
	*ret = (struct insn_operand){.reg = -1, .index = -1, .bits = op->size};
	ret->written = op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
	switch (op->type) {
	case ZYDIS_OPERAND_TYPE_REGISTER:
		ret->type = INSN_OP_REG;
		ret->reg = general_reg(op->reg.value);
		return;
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		ret->type = INSN_OP_IMM;
		ret->value = op->imm.value.s;
		ret->has_address = !op->imm.is_relative;
		ret->address = op->imm.value.u;
		return;
	case ZYDIS_OPERAND_TYPE_MEMORY:
		ret->type = INSN_OP_MEM;
		fill_memory(zi, &op->mem, vaddr, ret);
		ret->computed = op->mem.type == ZYDIS_MEMOP_TYPE_AGEN;
		/* A push stores below the stack, so it changes no stack slot. */
		ret->written &= zi->mnemonic != ZYDIS_MNEMONIC_PUSH;
		return;
	default:
		return;
	}
}

static enum insn_kind kind_of(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		return INSN_MOVE;
	case ZYDIS_MNEMONIC_CMP:
		return INSN_COMPARE;
	case ZYDIS_MNEMONIC_TEST:
		return INSN_TEST;
	case ZYDIS_MNEMONIC_AND:
		return INSN_AND;
	case ZYDIS_MNEMONIC_OR:
		return INSN_OR;
	case ZYDIS_MNEMONIC_SETZ:
	case ZYDIS_MNEMONIC_SETNZ:
		return INSN_SET;
	case ZYDIS_MNEMONIC_PUSH:
		return INSN_PUSH;
	case ZYDIS_MNEMONIC_POP:
		return INSN_POP;
	default:
		return INSN_OTHER;
	}
}

/* push, pop, and add or sub of a constant change the stack pointer by a known distance. */
static bool stack_add(const ZydisDecodedInstruction *zi, const ZydisDecodedOperand *op,
		      int64_t *ret)
{
	switch (zi->mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
		*ret = -8;
		return true;
	case ZYDIS_MNEMONIC_POP:
		*ret = 8;
		return true;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		if (op[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return false;
		*ret = op[1].imm.value.s;
		if (zi->mnemonic == ZYDIS_MNEMONIC_SUB)
			*ret = -*ret;
		return true;
	default:
		return false;
	}
}

static bool writes_flags(const ZydisDecodedInstruction *zi)
{
	const ZydisAccessedFlags *f = zi->cpu_flags;

	return f && (f->modified | f->set_0 | f->set_1 | f->undefined);
}

/* call, jmp, jcc: their opcodes are followed by a distance of 32 bits */
static bool is_branch_to(const uint8_t *code, size_t max, uint64_t vaddr, uint64_t target)
{
	size_t opcode = code[0] == 0x0f ? 2 : 1;
	int32_t distance;

	if (max < opcode + sizeof(distance) || (opcode == 2 && (code[1] & 0xf0) != 0x80))
		return false;
	memcpy(&distance, code + opcode, sizeof(distance));
	return vaddr + opcode + sizeof(distance) + (uint64_t)(int64_t)distance == target;
}

static size_t x86_find_branch(const uint8_t *code, size_t n, uint64_t vaddr, uint64_t target)
{
	size_t i = 0;

	for (; i < n; i++)
		if (((code[i] & 0xfe) == 0xe8 || code[i] == 0x0f) &&
		    is_branch_to(code + i, n - i, vaddr + i, target))
			break;
	return i;
}

static bool x86_decode_full(const uint8_t *code, size_t max, uint64_t vaddr, struct insn_full *ret)
{
	ZydisDecodedInstruction zi;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];

	if (!decode(code, max, &zi, op))
		return false;
	ret->vaddr = vaddr;
	ret->writes = 0;
	ret->kind = (uint8_t)kind_of(zi.mnemonic);
	ret->cond = zi.mnemonic == ZYDIS_MNEMONIC_SETZ	  ? INSN_COND_EQUAL
		    : zi.mnemonic == ZYDIS_MNEMONIC_SETNZ ? INSN_COND_UNEQUAL
							  : INSN_COND_OTHER;
	ret->noperands = zi.operand_count;
	ret->nexplicit = zi.operand_count_visible;
	ret->writes_flags = writes_flags(&zi);
	ret->landing_pad = zi.mnemonic == ZYDIS_MNEMONIC_ENDBR64;
	ret->stack_add = 0;
	ret->stack_known = stack_add(&zi, op, &ret->stack_add);
	ret->op[0].type = ret->op[1].type = INSN_OP_OTHER;
	for (int i = 0; i < zi.operand_count; i++) {
		fill_operand(&zi, &op[i], vaddr, &ret->op[i]);
		if (ret->op[i].type == INSN_OP_REG && ret->op[i].written)
			ret->writes |= insn_bit(ret->op[i].reg);
	}
	return true;
}

static void x86_format(const uint8_t *code, size_t max, uint64_t vaddr, char *out, size_t size)
{
	ZydisDecodedInstruction zi;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	ZydisFormatter formatter;

	out[0] = '\0';
	if (!decode(code, max, &zi, op) ||
	    !ZYAN_SUCCESS(ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL)))
		return;
	if (!ZYAN_SUCCESS(ZydisFormatterFormatInstruction(
		    &formatter, &zi, op, zi.operand_count_visible, out, size, vaddr, NULL)))
		out[0] = '\0';
}

enum { RAX = 0, RDX = 2, RSP = 4, RBP = 5, RSI = 6, RDI = 7 };

const struct arch arch_x86_64 = {
	.name = "x86-64",
	.nregs = 16,
	.sp = RSP,
	.fp = RBP,
	.arg = {RDI, RSI, RDX},
	.result = RAX,
	.caller_saved = 0x0fc7, /* rax rcx rdx rsi rdi r8-r11 */
	.decode = x86_decode,
	.find_branch = x86_find_branch,
	.decode_full = x86_decode_full,
	.format = x86_format,
};

const struct arch *arch_native(void)
{
	return &arch_x86_64;
}
