/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parts of dropping privileges in forked helper processes, for inspect/confine.c and
 * push/confine.c. Functions return 0 or a negative errno.
 */
#ifndef PYPROF_BASE_CONFINE_H
#define PYPROF_BASE_CONFINE_H

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>

#define X32_BIT 0x40000000u

/* A program's rows: the first is NATIVE_ONLY, the last REFUSE. IF skips n rows or m. */
#define RETURN(action)	BPF_STMT(BPF_RET | BPF_K, (action))
#define LOAD(field)	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF(op, k, n, m) BPF_JUMP(BPF_JMP | (op) | BPF_K, (k), (n), (m))
#define ALLOW(call)	IF(BPF_JEQ, SYS_##call, 0, 1), RETURN(SECCOMP_RET_ALLOW)
#define REFUSE(err)	RETURN(SECCOMP_RET_ERRNO | (err))
#define NATIVE_ONLY                                                                                \
	LOAD(arch), IF(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0), RETURN(SECCOMP_RET_KILL_PROCESS),        \
		LOAD(nr), IF(BPF_JGE, X32_BIT, 0, 1), RETURN(SECCOMP_RET_KILL_PROCESS)

/* Does nothing in builds with sanitizers (tests only), which need other calls. */
int confine_calls(struct sock_filter *code, size_t n);

/*
 * Makes the kernel kill this process when its parent ends; detects a parent that has ended already.
 */
int confine_die_with(pid_t parent);

/* Becomes the user nobody, without capabilities. */
int confine_drop_capabilities(void);

/* what: RLIMIT_… */
int confine_limit(int what, rlim_t n);

#endif
