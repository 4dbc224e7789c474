/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * All that the BPF side knows about the instruction set, here x86-64: registers and conditions at a
 * probe, and where a thread's own pthread_t is. The numbers of registers and conditions in a cookie
 * are those of daemon/plan/arch/. The first half is pure, and compiled for the host as well, for
 * tests/unit/bpf/test_core.c.
 */
#ifndef PYPROF_ARCH_BPF_H
#define PYPROF_ARCH_BPF_H

#include <linux/types.h>

/*
 * Does the condition of a branch hold? cc: the low nibble of the Jcc opcode. Branch-free on purpose:
 * 16 cases of compare-and-jump cost more than the six flags together.
 */
static inline __u32 arch_condition(__u64 flags, __u32 cc)
{
	__u32 cf = flags & 1;
	__u32 pf = (flags >> 2) & 1;
	__u32 zf = (flags >> 6) & 1;
	__u32 sf = (flags >> 7) & 1;
	__u32 of = (flags >> 11) & 1;
	__u32 lt = sf ^ of;
	/* Bit i: the condition with code 2 * i; odd codes are the negations. */
	__u32 conds = of | cf << 1 | zf << 2 | (cf | zf) << 3 | sf << 4 | pf << 5 | lt << 6 |
		      (lt | zf) << 7;

	return ((conds >> ((cc >> 1) & 7)) ^ cc) & 1;
}

/* Did the last comparison find its operands equal? */
static inline __u32 arch_equal(__u64 flags)
{
	return flags >> 6 & 1;
}

#ifdef PYP_BPF_SIDE

/* A uprobe program's context: user-visible and fixed, so accesses to it must not be relocated. */
struct pt_regs {
	__u64 r15, r14, r13, r12, bp, bx;
	__u64 r11, r10, r9, r8, ax, cx, dx, si, di;
	__u64 orig_ax, ip, cs, flags, sp, ss;
};

/* Did these registers belong to user code? */
#define ARCH_IS_USER(ctx) (((ctx)->cs & 3) == 3)
#define ARCH_IP(ctx)	  ((ctx)->ip)
#define ARCH_SP(ctx)	  ((ctx)->sp)
#define ARCH_FLAGS(ctx)	  ((ctx)->flags)

/* A thread's registers as it entered the kernel: the system call's number, less than 0 outside of one,
 * and its first two arguments. */
#define ARCH_SYSCALL(regs)	((__s64)(regs)->orig_ax)
#define ARCH_SYSCALL_ARG0(regs) ((regs)->di)
#define ARCH_SYSCALL_ARG1(regs) ((regs)->si)
#define ARCH_NR_FUTEX		202

/*
 * Context loads must have constant offsets: the verifier refuses a modified context pointer. The
 * asm keeps the compiler from merging the cases into one load at a computed offset.
 */
#define ARCH_REG_CASE(n, field)                                                                    \
	case n:                                                                                    \
		asm volatile("%0 = *(u64 *)(%1 + %2)"                                              \
			     : "=r"(v)                                                             \
			     : "r"(ctx), "i"(__builtin_offsetof(struct pt_regs, field)));          \
		break

/* The general register of that number. */
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

/* The part of struct task_struct that depends on the processor, moved by CO-RE (see kern_min.h). */
struct thread_struct {
	unsigned long fsbase;
} __attribute__((preserve_access_index));

/* A thread's pthread_t (glibc, musl). */
#define ARCH_PTHREAD_SELF(task) ((task)->thread.fsbase)

#endif

#endif
