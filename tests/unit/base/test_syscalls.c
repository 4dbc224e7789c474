// SPDX-License-Identifier: BSD-2-Clause
/* base/syscalls: names by number. */
#include <sys/syscall.h>

#include "base/syscalls.h"
#include "harness/test.h"

Test(syscalls, names)
{
	char out[SYSCALL_NAME_MAX];

	cr_assert_str_eq(syscall_name(SYS_futex, out, sizeof(out)), "futex");
	cr_assert_str_eq(syscall_name(SYS_read, out, sizeof(out)), "read");
	cr_assert_str_eq(syscall_name(SYS_clock_nanosleep, out, sizeof(out)), "clock_nanosleep");
	cr_assert_str_eq(syscall_name(-1, out, sizeof(out)), "system call -1");
	cr_assert_str_eq(syscall_name(100000, out, sizeof(out)), "system call 100000");
}
