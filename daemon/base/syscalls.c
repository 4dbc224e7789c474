// SPDX-License-Identifier: BSD-2-Clause
/* Names of system calls: see syscalls.h. */
#include "base/syscalls.h"

#include <stdio.h>

/* Designated by number; made by the Makefile. */
static const char *const names[] = {
#include "syscall_names.h"
};

const char *syscall_name(long nr, char *out, size_t size)
{
	if (nr >= 0 && (size_t)nr < sizeof(names) / sizeof(names[0]) && names[nr])
		return names[nr];
	snprintf(out, size, "system call %ld", nr);
	return out;
}
