/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One instruction, independent of the instruction set: what the planner needs to know about it. A
 * back end (plan/arch/arch.h) fills these structures from the code.
 *
 * Registers are general registers, numbered as the instruction set numbers them; that number is
 * also what a probe's cookie carries. A part of a register counts as the whole register.
 */
#ifndef PYPROF_PLAN_ARCH_INSN_H
#define PYPROF_PLAN_ARCH_INSN_H

#include <stdbool.h>
#include <stdint.h>

#define INSN_REGS_MAX  32 /* registers of any instruction set */
#define INSN_BYTES_MAX 15
#define INSN_OPERANDS  10
#define INSN_NO_CC     0xff

/* Bit r: general register r. */
typedef uint32_t insn_regs;

static inline insn_regs insn_bit(int reg)
{
	return reg < 0 ? 0 : (insn_regs)1 << reg;
}

/* Where control goes next. */
enum insn_flow {
	INSN_NEXT,     /* the following instruction only */
	INSN_JMP,      /* target only */
	INSN_JCC,      /* target or next */
	INSN_CALL,     /* direct call, then next */
	INSN_CALL_IND, /* call through register or memory, then next */
	INSN_JMP_IND,  /* unknown: dispatch or switch */
	INSN_RET,
	INSN_STOP, /* traps: does not go on */
};

/* What the kernel does with a probe there. */
enum insn_probe {
	INSN_EMULATED,
	INSN_STEPPED,	/* single-stepped out of line */
	INSN_FORBIDDEN, /* refused by some kernel, or unsafe: never probed */
};

/* When a conditional branch is taken. */
enum insn_cond {
	INSN_COND_OTHER,
	INSN_COND_EQUAL,   /* the compared operands are equal; of a test: the result is 0 */
	INSN_COND_UNEQUAL, /* the opposite */
};

struct insn {
	uint64_t vaddr;
	uint64_t target; /* JMP, JCC, CALL */
	uint8_t len;	 /* bytes, at most INSN_BYTES_MAX */
	uint8_t flow;	 /* enum insn_flow */
	uint8_t probe;	 /* enum insn_probe */
	uint8_t cond;	 /* JCC: enum insn_cond */
	uint8_t cc;	 /* JCC: condition code for the BPF side (bpf/arch.bpf.h), 4 bits;
			  * INSN_NO_CC: the BPF side cannot evaluate it */
};

/* What the planner's proofs distinguish. */
enum insn_kind {
	INSN_OTHER,
	INSN_MOVE,    /* operand 0 becomes operand 1: a load, a store or a copy */
	INSN_COMPARE, /* compares operand 0 with operand 1 */
	INSN_TEST,    /* compares (operand 0 & operand 1) with 0 */
	INSN_AND,     /* operand 0 becomes operand 0 & operand 1 */
	INSN_PUSH,    /* puts operand 0 on the stack */
	INSN_POP,     /* takes operand 0 from the stack */
};

enum insn_operand_type { INSN_OP_OTHER, INSN_OP_REG, INSN_OP_MEM, INSN_OP_IMM };

struct insn_operand {
	uint8_t type;  /* enum insn_operand_type */
	int16_t reg;   /* REG: the register; MEM: the base; -1: none, or not a general register */
	int16_t index; /* MEM: the register added to the base as it is, -1: none */
	uint16_t bits;
	bool written;
	bool plain;	  /* MEM: at base + value, without an index or another segment */
	bool computed;	  /* MEM: only the address is computed, nothing is accessed */
	bool has_address; /* the operand is, or refers to, a constant address: */
	uint64_t address;
	int64_t value; /* IMM: the constant, sign-extended; MEM: the displacement */
};

/* An instruction with its operands, for data flow. */
struct insn_full {
	uint64_t vaddr;
	insn_regs writes;  /* registers it may change */
	uint8_t kind;	   /* enum insn_kind */
	uint8_t noperands; /* all; the first nexplicit of them are written in the assembly */
	uint8_t nexplicit; /* at least two operands can be read: those missing are OTHER */
	bool writes_flags; /* changes the flags that conditional branches test */
	bool landing_pad;  /* marks a place for indirect branches; the processor checks for it */
	bool stack_known;  /* where it writes the stack pointer: it adds stack_add */
	int64_t stack_add;
	struct insn_operand op[INSN_OPERANDS];
};

/* All below: false if the operand is of another type; outputs are written only on true. */

/* A general register, used with this width. */
bool insn_is_reg(const struct insn_operand *op, int *reg, unsigned int bits);
/* Memory at [base + disp], base a general register. */
bool insn_is_mem(const struct insn_operand *op, int *base, int64_t *disp);
bool insn_is_zero(const struct insn_operand *op);
/* An address that the operand names, constant in the code. */
bool insn_const_address(const struct insn_operand *op, uint64_t *ret);
/* A load of a whole 64-bit register from [base + disp]. */
bool insn_is_load(const struct insn_full *in, int *reg, int *base, int64_t *disp);
/* A 64-bit store to [base + disp]; operand 1 is what is stored. */
bool insn_is_store(const struct insn_full *in, int *base, int64_t *disp);
/* Does it remove the tag of a pointer that is in the register, that is one or both of its lowest bits? */
bool insn_is_untagging(const struct insn_full *in, int *reg);
/* Does it write the register, or a part of it? */
bool insn_writes_reg(const struct insn_full *in, int reg);

#endif
