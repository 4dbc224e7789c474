/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Everything in the BPF programs that depends on the instruction set (x86-64): the registers and
 * the branch conditions at a probe, and the address of a thread's pthread_t. daemon/plan/arch/
 * numbers registers and conditions in cookies the same way. The first half is pure C and is also
 * compiled for the host by tests/unit/bpf/test_core.c.
 */
#ifndef PYPROF_ARCH_BPF_H
#define PYPROF_ARCH_BPF_H

#include <linux/types.h>

/*
 * Returns 1 if the condition of a branch holds. flags: RFLAGS; cc: the low nibble of the Jcc
 * opcode. The code has no branches because 16 cases of compare-and-jump cost more than computing
 * all six flags.
 */
static inline __u32 arch_condition(__u64 flags, __u32 cc)
{
	__u32 cf = flags & 1;
	__u32 pf = (flags >> 2) & 1;
	__u32 zf = (flags >> 6) & 1;
	__u32 sf = (flags >> 7) & 1;
	__u32 of = (flags >> 11) & 1;
	__u32 lt = sf ^ of;
	/* Bit i holds the condition with code 2 * i; odd codes are the negations. */
	__u32 conds = of | cf << 1 | zf << 2 | (cf | zf) << 3 | sf << 4 | pf << 5 | lt << 6 |
		      (lt | zf) << 7;

	return ((conds >> ((cc >> 1) & 7)) ^ cc) & 1;
}

/* Returns 1 if the last comparison found its operands equal. */
static inline __u32 arch_equal(__u64 flags)
{
	return flags >> 6 & 1;
}

#ifdef PYP_BPF_SIDE

/*
 * A uprobe program's context. Its layout is user ABI and fixed, so CO-RE must not relocate accesses
 * to it.
 */
struct pt_regs {
	__u64 r15, r14, r13, r12, bp, bx;
	__u64 r11, r10, r9, r8, ax, cx, dx, si, di;
	__u64 orig_ax, ip, cs, flags, sp, ss;
};

/* 1 if these registers were saved in user mode. */
#define ARCH_IS_USER(ctx) (((ctx)->cs & 3) == 3)
#define ARCH_IP(ctx)	  ((ctx)->ip)
#define ARCH_SP(ctx)	  ((ctx)->sp)
#define ARCH_FLAGS(ctx)	  ((ctx)->flags)

/*
 * A thread's registers at kernel entry: the system call's number (negative if it entered by an
 * interrupt or a fault) and the first two arguments.
 */
#define ARCH_SYSCALL(regs)	((__s64)(regs)->orig_ax)
#define ARCH_SYSCALL_ARG0(regs) ((regs)->di)
#define ARCH_SYSCALL_ARG1(regs) ((regs)->si)
#define ARCH_SYSCALL_ARG2(regs) ((regs)->dx)
#define ARCH_SYSCALL_ARG3(regs) ((regs)->r10)
#define ARCH_NR_FUTEX		202
#define ARCH_NR_MMAP		9
#define ARCH_NR_MUNMAP		11
#define ARCH_NR_MREMAP		25

/*
 * Loads from the context must have constant offsets, because the verifier rejects a modified
 * context pointer. The asm keeps the compiler from merging the cases into one load at a computed
 * offset.
 */
#define ARCH_REG_CASE(n, field)                                                                    \
	case n:                                                                                    \
		asm volatile("%0 = *(u64 *)(%1 + %2)"                                              \
			     : "=r"(v)                                                             \
			     : "r"(ctx), "i"(__builtin_offsetof(struct pt_regs, field)));          \
		break

/* The value of general register `reg` (0 to 15, in the encoding of x86-64). */
static __inline __attribute__((always_inline)) __u64 arch_reg(struct pt_regs *ctx, __u32 reg)
{
	__u64 v = 0;

	switch (reg & 15) {
		ARCH_REG_CASE(0, ax);
		ARCH_REG_CASE(1, cx);
		ARCH_REG_CASE(2, dx);
		ARCH_REG_CASE(3, bx);
		ARCH_REG_CASE(4, sp);
		ARCH_REG_CASE(5, bp);
		ARCH_REG_CASE(6, si);
		ARCH_REG_CASE(7, di);
		ARCH_REG_CASE(8, r8);
		ARCH_REG_CASE(9, r9);
		ARCH_REG_CASE(10, r10);
		ARCH_REG_CASE(11, r11);
		ARCH_REG_CASE(12, r12);
		ARCH_REG_CASE(13, r13);
		ARCH_REG_CASE(14, r14);
		ARCH_REG_CASE(15, r15);
	}
	return v;
}

/* The processor-specific part of struct task_struct; CO-RE relocates it (see kern_min.h). */
struct thread_struct {
	unsigned long fsbase;
} __attribute__((preserve_access_index));

/* A task's pthread_t, for glibc and musl. */
#define ARCH_PTHREAD_SELF(task) ((task)->thread.fsbase)

#endif

#endif
