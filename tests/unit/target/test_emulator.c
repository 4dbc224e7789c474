// SPDX-License-Identifier: BSD-2-Clause
/* Programs under valgrind, qemu and rr are detected by their executable or their tracer. */
#include <errno.h>
#include <unistd.h>

#include "harness/test.h"
#include "target/target.h"

static void check(const char *exe, const char *tracer, const char *expected)
{
	const char *found = target_emulator_of(exe, tracer);

	cr_assert(!found == !expected && (!found || strcmp(found, expected) == 0), "%s %s: %s", exe,
		  tracer, found);
}

Test(emulator, by_name)
{
	check("/usr/libexec/valgrind/memcheck-amd64-linux", "", "valgrind");
	check("/usr/lib/valgrind/callgrind-amd64-linux", "", "valgrind");
	check("/usr/bin/qemu-x86_64-static", "", "qemu");
	check("qemu-aarch64", "", "qemu");
	check("/usr/bin/python3.11", "rr", "rr");
	check("/usr/bin/python3.11", "", NULL);
	check("/usr/bin/python3.11", "gdb", NULL);
	check("/opt/qemu-tools/python3", "", NULL);
	check("/usr/bin/valgrind-notes", "", NULL);
	check("", "", NULL);
}

Test(emulator, this_one_is_none)
{
	_cleanup_(target_freep) struct target *t = NULL;
	struct diag diag = {0};

	assert_diag_ok(target_open(getpid(), &t, &diag), &diag);
	assert_diag_ok(target_check_native(t, &diag), &diag);
	snprintf(t->exe, sizeof(t->exe), "/usr/bin/qemu-aarch64");
	assert_err(target_check_native(t, &diag), -ENOEXEC);
	cr_assert_eq(diag.exit, PYP_EXIT_UNTRACEABLE);
	cr_assert(strstr(diag.msg, "runs under qemu"), "%s", diag.msg);
}
