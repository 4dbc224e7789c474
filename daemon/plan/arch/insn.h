/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Instructions, independent of the instruction set, as far as the planner needs them. Back ends
 * (plan/arch/arch.h) fill these structures.
 *
 * Registers are general registers with the numbers of the instruction set; probe cookies use the
 * same numbers. A part of a register counts as the whole register.
 */
#ifndef PYPROF_PLAN_ARCH_INSN_H
#define PYPROF_PLAN_ARCH_INSN_H

#include <stdbool.h>
#include <stdint.h>

#define INSN_REGS_MAX  32 /* maximum of all instruction sets */
#define INSN_BYTES_MAX 15
#define INSN_OPERANDS  10
#define INSN_NO_CC     0xff

/* Bit r is general register r. */
typedef uint32_t insn_regs;

static inline insn_regs insn_bit(int reg)
{
	return reg < 0 ? 0 : (insn_regs)1 << reg;
}

/* Control flow after an instruction */
enum insn_flow {
	INSN_NEXT,     /* to the next instruction */
	INSN_JMP,      /* to target */
	INSN_JCC,      /* to target or the next */
	INSN_CALL,     /* direct call, then the next */
	INSN_CALL_IND, /* call through register or memory, then the next */
	INSN_JMP_IND,  /* unknown target: dispatch or switch */
	INSN_RET,
	INSN_STOP, /* traps; no successor */
};

/* How the kernel executes a probed instruction */
enum insn_probe {
	INSN_EMULATED,
	INSN_STEPPED,	/* single-stepped out of line */
	INSN_FORBIDDEN, /* some kernel refuses it, or it is unsafe; never probed */
};

/* Condition of a conditional branch, or of a SET */
enum insn_cond {
	INSN_COND_OTHER,
	INSN_COND_EQUAL,   /* operands are equal; after a test: the result is 0 */
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

/* Kinds of instructions that the planner's proofs distinguish */
enum insn_kind {
	INSN_OTHER,
	INSN_MOVE,    /* load, store or copy of operand 1 to operand 0 */
	INSN_COMPARE, /* compares operand 0 with operand 1 */
	INSN_TEST,    /* compares (operand 0 & operand 1) with 0 */
	INSN_AND,     /* operand 0 becomes operand 0 & operand 1 */
	INSN_OR,      /* operand 0 becomes operand 0 | operand 1 */
	INSN_SET,     /* operand 0 becomes 1 if `cond` holds, else 0 */
	INSN_PUSH,    /* pushes operand 0 */
	INSN_POP,     /* pops into operand 0 */
};

enum insn_operand_type { INSN_OP_OTHER, INSN_OP_REG, INSN_OP_MEM, INSN_OP_IMM };

struct insn_operand {
	uint8_t type;  /* enum insn_operand_type */
	int16_t reg;   /* REG: the register; MEM: the base; -1: none or not a general register */
	int16_t index; /* MEM: register added to the base without scaling; -1: none */
	uint16_t bits;
	bool written;
	bool plain;	  /* MEM: base + value, without index and segment */
	bool computed;	  /* MEM: only computes the address, without an access */
	bool has_address; /* the operand is or refers to the constant `address` */
	uint64_t address;
	int64_t value; /* IMM: constant, sign-extended; MEM: displacement */
};

/* An instruction with its operands, for data flow analysis */
struct insn_full {
	uint64_t vaddr;
	insn_regs writes;  /* registers that it may change */
	uint8_t kind;	   /* enum insn_kind */
	uint8_t cond;	   /* SET: enum insn_cond */
	uint8_t noperands; /* number of operands; the first nexplicit are written in assembly */
	uint8_t nexplicit; /* op[0] and op[1] are always valid; missing ones are OTHER */
	bool writes_flags; /* changes flags that conditional branches test */
	bool landing_pad;  /* valid target of indirect branches that the processor checks */
	bool stack_known;  /* it changes the stack pointer by exactly stack_add */
	int64_t stack_add;
	struct insn_operand op[INSN_OPERANDS];
};

/*
 * The following functions return false if the operand has another type, and set outputs only if
 * they return true.
 */

/* Returns whether op is a general register of this width. */
bool insn_is_reg(const struct insn_operand *op, int *reg, unsigned int bits);
/* Returns whether op is memory at [base + disp], with a general register as base. */
bool insn_is_mem(const struct insn_operand *op, int *base, int64_t *disp);
bool insn_is_zero(const struct insn_operand *op);
/* Returns whether op is, or refers to, a constant address. */
bool insn_const_address(const struct insn_operand *op, uint64_t *ret);
/* Returns whether in loads a 64-bit register from [base + disp]. */
bool insn_is_load(const struct insn_full *in, int *reg, int *base, int64_t *disp);
/* Returns whether in is a 64-bit store to [base + disp]; it stores operand 1. */
bool insn_is_store(const struct insn_full *in, int *base, int64_t *disp);
/*
 * Returns whether in clears one or both of the two lowest bits, the tag of a pointer, in a
 * register.
 */
bool insn_is_untagging(const struct insn_full *in, int *reg);
/* Returns whether in writes the register or a part of it. */
bool insn_writes_reg(const struct insn_full *in, int reg);

#endif
