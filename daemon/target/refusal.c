// SPDX-License-Identifier: BSD-2-Clause
/* Yama's restrictions: see refusal.h. */
#include "target/refusal.h"

#include <errno.h>
#include <fcntl.h>

#include "base/cleanup.h"
#include "target/proc.h"

#define SCOPE_PATH "/proc/sys/kernel/yama/ptrace_scope"
#define TEXT_MAX   16

int refusal_scope(void)
{
	_cleanup_free_ char *text = NULL;

	if (proc_read(AT_FDCWD, SCOPE_PATH, TEXT_MAX, &text, NULL) < 0)
		return -1;
	return text[0] >= '0' && text[0] <= '3' ? text[0] - '0' : -1;
}

int refusal_explain(pid_t pid, int scope, struct diag *diag)
{
	static const struct {
		const char *permits, *hint;
	} by_scope[] = {
		[1] = {"permits it only to its ancestors and with CAP_SYS_PTRACE",
		       "run as root or with CAP_SYS_PTRACE, or set it to 0"},
		[2] = {"permits it only with CAP_SYS_PTRACE", "run as root or with CAP_SYS_PTRACE"},
		[3] = {"permits it to nobody",
		       "only a reboot changes it; pyprofctl ps needs no such permission"},
	};

	diag_clear(diag);
	if (scope < 1 || scope > 3)
		return diag_errno(diag, EPERM, "cannot read the memory of process %d", (int)pid);
	return diag_set(diag, -EPERM, PYP_EXIT_PERMISSION, by_scope[scope].hint,
			"cannot read the memory of process %d: kernel.yama.ptrace_scope is %d and "
			"%s",
			(int)pid, scope, by_scope[scope].permits);
}
