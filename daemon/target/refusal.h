/* SPDX-License-Identifier: BSD-2-Clause */
/* Why the kernel does not let this process read the memory of another one. */
#ifndef PYPROF_TARGET_REFUSAL_H
#define PYPROF_TARGET_REFUSAL_H

#include <sys/types.h>

#include "base/diag.h"

/* kernel.yama.ptrace_scope, 0 to 3; -1: this kernel has no Yama. */
int refusal_scope(void);

/*
 * The diagnosis for a process whose memory cannot be read (EPERM), in place of what diag contains.
 * scope: see refusal_scope(). Pure. Returns -EPERM.
 */
int refusal_explain(pid_t pid, int scope, struct diag *diag);

#endif
