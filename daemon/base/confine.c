// SPDX-License-Identifier: BSD-2-Clause
/* Parts of dropping privileges: see confine.h. */
#include "base/confine.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOBODY 65534u

int confine_die_with(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	return getppid() == parent ? 0 : -ESRCH;
}

int confine_drop_capabilities(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};

	for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
		(void)prctl(PR_CAPBSET_DROP,
			    cap); /* needs CAP_SETPCAP, but execve() is not available anyway */
	/* If the user nobody does not exist, or ids cannot be changed, rely on the other
	 * restrictions. */
	(void)setgroups(0, NULL);
	if (setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) < 0 &&
	    errno != EPERM && errno != EINVAL)
		return -errno;
	return syscall(SYS_capset, &head, none) < 0 ? -errno : 0;
}

int confine_limit(int what, rlim_t n)
{
	const struct rlimit r = {n, n};

	return setrlimit((__rlimit_resource_t)what, &r) < 0 ? -errno : 0;
}
