/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One x86-64 instruction: what the planner wants to know of it. Decoding is Zydis' (a maintained,
 * allocation-free decoder that reports every operand with its read/write action, which the data
 * flow of plan/flow.c needs); what the kernel makes of a probe there is said here.
 *
 * Source for the cost classes: Linux arch/x86/kernel/uprobes.c (branch_setup_xol_ops,
 * push_setup_xol_ops, the good_insns tables), 5.10 to 6.18: only the forms that all of them emulate
 * count as emulated.
 */
#ifndef PYPROF_PLAN_INSN_H
#define PYPROF_PLAN_INSN_H

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stdint.h>

#define INSN_NOTES 64

/* Where control goes next. */
enum insn_flow {
	INSN_NEXT,     /* the following instruction only */
	INSN_JMP,      /* target only */
	INSN_JCC,      /* target or next */
	INSN_CALL,     /* direct call, then next */
	INSN_CALL_IND, /* call through register or memory, then next */
	INSN_JMP_IND,  /* unknown: dispatch or switch */
	INSN_RET,
	INSN_STOP, /* ud2, hlt, int3: does not go on */
};

/* What the kernel does with a probe there. */
enum insn_probe {
	INSN_EMULATED,
	INSN_STEPPED,	/* single-stepped out of line */
	INSN_FORBIDDEN, /* refused by some kernel, or unsafe: never probed */
};

struct insn {
	uint64_t vaddr;
	uint64_t target; /* JMP, JCC, CALL */
	uint8_t len;
	uint8_t flow;  /* enum insn_flow */
	uint8_t probe; /* enum insn_probe */
	uint8_t cc;    /* JCC: condition code */
};

/* A decoded instruction with its operands, for data flow. */
struct insn_full {
	ZydisDecodedInstruction zi;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	uint64_t vaddr;
};

/* Decode at most `max` bytes at code, which lie at vaddr. false: not a valid instruction. */
bool insn_decode(const uint8_t *code, size_t max, uint64_t vaddr, struct insn *ret);
bool insn_decode_full(const uint8_t *code, size_t max, uint64_t vaddr, struct insn_full *ret);

/* Disassembly (Intel syntax) into out. */
void insn_format(const struct insn_full *in, char *out, size_t size);

/* General registers as x86 numbers them (rax 0 … r15 15); -1: not a general register. Sub-registers
 * count as their whole. */
int insn_reg(ZydisRegister reg);

/* Operand helpers. Visible operands only. */
bool insn_is_reg(const ZydisDecodedOperand *op, int *reg, unsigned int bits);
/* [base + disp] without index or segment override; base a general register. */
bool insn_is_mem(const ZydisDecodedOperand *op, int *base, int64_t *disp);
/* Does it write the general register, or a part of it? */
bool insn_writes_reg(const struct insn_full *in, int reg);
/* A constant address that the operand names: rip-relative, a plain 32-bit displacement (with or
 * without index), or an immediate. */
bool insn_const_address(const struct insn_full *in, const ZydisDecodedOperand *op, uint64_t *ret);

#endif
