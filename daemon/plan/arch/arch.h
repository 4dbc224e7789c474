/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interface between the planner and an instruction set with its calling convention. The planner
 * decodes only through this table. To add a back end: fill a struct arch in a file in this
 * directory, return it from arch_native(), and add its part of the BPF side (bpf/arch.bpf.h).
 */
#ifndef PYPROF_PLAN_ARCH_ARCH_H
#define PYPROF_PLAN_ARCH_ARCH_H

#include <stddef.h>

#include "plan/arch/insn.h"

struct arch {
	const char *name;
	uint8_t nregs;		/* number of general registers, at most INSN_REGS_MAX */
	uint8_t sp, fp;		/* stack pointer; register that may be a frame pointer */
	uint8_t arg[3];		/* registers of a function's first integer arguments */
	uint8_t result;		/* register of an integer result */
	insn_regs caller_saved; /* registers that a call may change */
	bool load_store;	/* compares registers only, so values are loaded first */
	bool compare_branch;	/* conditional branches may compare (see insn_full.kind) */

	/*
	 * Decode the instruction at code, whose address in the program is vaddr, reading at most
	 * `max` bytes. Total and pure: any bytes give an instruction or false.
	 */
	bool (*decode)(const uint8_t *code, size_t max, uint64_t vaddr, struct insn *ret);
	/*
	 * The first offset below n at which a direct call of or jump to target can be, else n. A
	 * cheap filter before decode; there may be none. NULL: every offset must be decoded.
	 */
	size_t (*find_branch)(const uint8_t *code, size_t n, uint64_t vaddr, uint64_t target);
	bool (*decode_full)(const uint8_t *code, size_t max, uint64_t vaddr, struct insn_full *ret);
	/* Disassemble into out, which is never NULL; "" if it is not an instruction. */
	void (*format)(const uint8_t *code, size_t max, uint64_t vaddr, char *out, size_t size);
};

extern const struct arch arch_x86_64;

/* The instruction set of this build */
const struct arch *arch_native(void);

#endif
