// SPDX-License-Identifier: BSD-2-Clause
/* What is said if the kernel refuses to let a process's memory be read. */
#include <errno.h>

#include "harness/test.h"
#include "target/refusal.h"

static void expect(int scope, const char *why, const char *hint)
{
	struct diag d = {0};

	/* What the inspector says at first */
	(void)diag_errno(&d, EPERM, "cannot read the stacks of process %d", 0);
	cr_assert_eq(refusal_explain(448, scope, &d), -EPERM);
	cr_assert_eq(d.exit, PYP_EXIT_PERMISSION);
	cr_assert_neq(strstr(d.msg, "cannot read the memory of process 448: "), NULL, "%s", d.msg);
	cr_assert_neq(strstr(d.msg, why), NULL, "%s", d.msg);
	cr_assert_neq(strstr(d.hint, hint), NULL, "%s", d.hint);
}

Test(refusal, names_the_setting)
{
	expect(1, "kernel.yama.ptrace_scope is 1 and permits it only to its ancestors",
	       "set it to 0");
	expect(2, "ptrace_scope is 2 and permits it only with CAP_SYS_PTRACE",
	       "with CAP_SYS_PTRACE");
	expect(3, "ptrace_scope is 3 and permits it to nobody", "only a reboot");
}

Test(refusal, without_yama)
{
	expect(0, "Operation not permitted", "");
	expect(-1, "Operation not permitted", "");
	expect(4, "Operation not permitted", "");
	cr_assert_eq(refusal_explain(448, 1, NULL), -EPERM);
}

Test(refusal, scope_of_this_machine)
{
	int scope = refusal_scope();

	cr_assert(scope >= -1 && scope <= 3, "%d", scope);
}
