/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An instruction set and its calling convention: the seam between the planner and a back end. The
 * planner decodes through this table alone. To add a back end: fill a struct arch in a file of its own
 * in this directory, return it from arch_native(), give its code specimens (plan/arch/specimen.h)
 * and its half of the BPF side (bpf/arch.bpf.h).
 */
#ifndef PYPROF_PLAN_ARCH_ARCH_H
#define PYPROF_PLAN_ARCH_ARCH_H

#include <stddef.h>

#include "plan/arch/insn.h"

struct arch {
	const char *name;
	uint8_t nregs;		/* general registers; at most INSN_REGS_MAX */
	uint8_t sp, fp;		/* stack pointer; the register that may point to a C frame */
	uint8_t arg[3];		/* where a function's first integer arguments are */
	uint8_t result;		/* where it returns an integer */
	insn_regs caller_saved; /* what a call may change */
	bool load_store;	/* comparisons take registers only: values are loaded before */
	bool compare_branch;	/* a conditional branch may compare by itself (its kind says so) */

	/*
	 * Decode the instruction at code, of which at most `max` bytes may be read, and which the
	 * program has at vaddr. Total and pure: any bytes give an instruction or false.
	 */
	bool (*decode)(const uint8_t *code, size_t max, uint64_t vaddr, struct insn *ret);
	/*
	 * Can a direct call of, or jump to, target be at code? A cheap question to ask of every address
	 * before decode; it may say true where there is none. NULL: every address must be decoded.
	 */
	bool (*may_branch)(const uint8_t *code, size_t max, uint64_t vaddr, uint64_t target);
	bool (*decode_full)(const uint8_t *code, size_t max, uint64_t vaddr, struct insn_full *ret);
	/* Disassemble into out (never NULL; "" if it is no instruction). */
	void (*format)(const uint8_t *code, size_t max, uint64_t vaddr, char *out, size_t size);
};

extern const struct arch arch_x86_64;

/* The instruction set of the machine that this was compiled for. */
const struct arch *arch_native(void);

#endif
