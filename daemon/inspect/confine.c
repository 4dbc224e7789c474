// SPDX-License-Identifier: BSD-2-Clause
/*
 * Dropping the privileges of inspector and opener: see helper.h.
 *
 * The inspector, which parses the target's files, has a user of its own, no capabilities, and a
 * list of system calls that cannot open anything.
 */
#include <linux/capability.h>
#include <unistd.h>

#include "base/confine.h"
#include "inspect/helper.h"

#define MEMORY_MORE (UINT64_C(1536) << 20) /* bytes */
#define FILES_MAX   32u
#define BIT(cap)    (UINT64_C(1) << (cap))

/*
 * To open parts of any process: ptrace access, opening mapped files, reading other users' files.
 * For the second, uses CAP_SYS_ADMIN if the daemon does not have CAP_CHECKPOINT_RESTORE.
 */
int confine_opener(pid_t parent)
{
	const uint64_t restore = BIT(CAP_CHECKPOINT_RESTORE);
	const uint64_t map = confine_capabilities() & restore ? restore : BIT(CAP_SYS_ADMIN);

	return confine(&(struct confine){.calls = CALL_FILTER_OPENER,
					 .caps = BIT(CAP_SYS_PTRACE) | BIT(CAP_DAC_READ_SEARCH) |
						 map},
		       parent);
}

int confine_inspector(pid_t parent)
{
	return confine(&(struct confine){.calls = CALL_FILTER_INSPECTOR,
					 .own_user = true,
					 .limits = true,
					 .no_threads = true,
					 .files = FILES_MAX,
					 .memory = MEMORY_MORE},
		       parent);
}
