/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of system calls, as the headers that this was built with have them (asm/unistd.h). Pure. */
#ifndef PYPROF_BASE_SYSCALLS_H
#define PYPROF_BASE_SYSCALLS_H

#include <stddef.h>

#define SYSCALL_NAME_MAX 32

/* "futex"; "system call 1234" where the number has no name, written to out (size bytes). Returns out or
 * a constant string. */
const char *syscall_name(long nr, char *out, size_t size);

#endif
