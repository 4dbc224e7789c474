/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of system calls, from the headers used by this build (asm/unistd.h). Pure. */
#ifndef PYPROF_BASE_SYSCALLS_H
#define PYPROF_BASE_SYSCALLS_H

#include <stddef.h>

#define SYSCALL_NAME_MAX 32

/*
 * Returns the name of a system call, "futex", as a constant string; or, if the number has no name,
 * "system call 1234", written to out (size bytes).
 */
const char *syscall_name(long nr, char *out, size_t size);

#endif
