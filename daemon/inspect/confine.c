// SPDX-License-Identifier: BSD-2-Clause
/*
 * Dropping the privileges of inspector and opener: see helper.h.
 *
 * The inspector, which parses the target's files, runs as nobody, without capabilities, without the
 * memory that the daemon shares with the kernel (rings), and with a list of system calls that
 * cannot open anything (base/call_filter.c).
 */
#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/call_filter.h"
#include "base/confine.h"
#include "base/sanitizer.h"
#include "inspect/helper.h"
#include "target/target.h"

#define MEMORY_MORE (UINT64_C(1536) << 20) /* bytes beyond the daemon's own mappings */
#define FILES_MAX   32u

/*
 * Keeps the capabilities to open parts of any process: ptrace access, opening mapped files, and
 * reading other users' files. For the second, uses CAP_SYS_ADMIN if the daemon does not have
 * CAP_CHECKPOINT_RESTORE.
 */
static int keep_capabilities_to_open(void)
{
	const uint32_t ptrace = 1u << CAP_SYS_PTRACE, search = 1u << CAP_DAC_READ_SEARCH,
		       admin = 1u << CAP_SYS_ADMIN, restore = 1u << (CAP_CHECKPOINT_RESTORE - 32);
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2] = {{0}};

	if (syscall(SYS_capget, &head, caps) < 0)
		return -errno;
	caps[0].permitted &= ptrace | search | (caps[1].effective & restore ? 0 : admin);
	caps[1].permitted &= restore;
	for (int i = 0; i < 2; i++) {
		caps[i].effective &= caps[i].permitted;
		caps[i].inheritable = 0;
	}
	return syscall(SYS_capset, &head, caps) < 0 ? -errno : 0;
}

static int set_limits(uint64_t mapped)
{
	int r = confine_limit(RLIMIT_CORE, 0);

	if (r == 0)
		r = confine_limit(RLIMIT_FSIZE, 0);
	if (r == 0)
		r = confine_limit(RLIMIT_NPROC, 0);
	if (r == 0)
		r = confine_limit(RLIMIT_NOFILE, FILES_MAX);
#if !SANITIZER_ADDRESS /* AddressSanitizer maps the whole address space */
	if (r == 0)
		r = confine_limit(RLIMIT_AS, mapped + MEMORY_MORE);
#else
	(void)mapped;
#endif
	return r;
}

int confine_opener(pid_t parent)
{
	int r = confine_die_with(parent);

	if (r == 0)
		r = keep_capabilities_to_open();
	if (r == 0 && prctl(PR_SET_DUMPABLE, 0) < 0)
		r = -errno;
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	return r < 0 ? r : call_filter_install(CALL_FILTER_OPENER);
}

int confine_inspector(pid_t parent)
{
	uint64_t mapped = 0;
	int r = prctl(PR_SET_DUMPABLE, 0) < 0 ? -errno : 0;

	if (r == 0)
		r = target_unmap_shared(&mapped);
	if (r == 0)
		r = set_limits(mapped);
	if (r == 0)
		r = confine_drop_capabilities();
	/* changing the user resets this attribute and the death signal */
	if (r == 0 && prctl(PR_SET_DUMPABLE, 0) < 0)
		r = -errno;
	if (r == 0)
		r = confine_die_with(parent);
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	return r < 0 ? r : call_filter_install(CALL_FILTER_INSPECTOR);
}
