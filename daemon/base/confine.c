// SPDX-License-Identifier: BSD-2-Clause
/* Dropping the privileges of a helper process: see confine.h. */
#include "base/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sanitizer.h"

#define NOBODY 65534u

/* ---- limits ------------------------------------------------------------------------------ */

static int limit(__rlimit_resource_t what, rlim_t n)
{
	const struct rlimit r = {n, n};

	return setrlimit(what, &r) < 0 ? -errno : 0;
}

#if !SANITIZER_ADDRESS /* AddressSanitizer maps the whole address space */
/* The size of this process's address space: the first number of the file, in pages. */
static int read_mapped(uint64_t *ret)
{
	_cleanup_close_ int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	char text[128] = "";

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return -errno;
	*ret = strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
	return 0;
}

static int limit_memory(uint64_t more)
{
	uint64_t mapped = 0;
	int r = read_mapped(&mapped);

	return r < 0 ? r : limit(RLIMIT_AS, mapped + more);
}
#else
static int limit_memory(uint64_t more)
{
	(void)more;
	return 0;
}
#endif

static int set_limits(const struct confine *c)
{
	int r = limit_memory(c->memory);

	if (r == 0)
		r = limit(RLIMIT_CORE, 0);
	if (r == 0)
		r = limit(RLIMIT_FSIZE, 0);
	if (r == 0 && c->no_threads)
		r = limit(RLIMIT_NPROC, 0);
	return r == 0 ? limit(RLIMIT_NOFILE, c->files) : r;
}

/* ---- user and capabilities --------------------------------------------------------------- */

/* If ids cannot be changed, rely on the other restrictions. */
static int become_other_user(void)
{
	for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
		(void)prctl(PR_CAPBSET_DROP,
			    cap); /* needs CAP_SETPCAP, but execve() is not available anyway */
	(void)setgroups(0, NULL);
	if (setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) < 0 &&
	    errno != EPERM && errno != EINVAL)
		return -errno;
	return 0;
}

uint64_t confine_capabilities(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2] = {{0}};

	if (syscall(SYS_capget, &head, caps) < 0)
		return 0;
	return (uint64_t)caps[1].effective << 32 | caps[0].effective;
}

static int keep_capabilities(uint64_t keep)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2] = {{0}};

	if (syscall(SYS_capget, &head, caps) < 0)
		return -errno;
	for (int i = 0; i < 2; i++) {
		caps[i].permitted &= (uint32_t)(keep >> (32 * i));
		caps[i].effective &= caps[i].permitted;
		caps[i].inheritable = 0;
	}
	return syscall(SYS_capset, &head, caps) < 0 ? -errno : 0;
}

int confine(const struct confine *c, int parent)
{
	int r = prctl(PR_SET_DUMPABLE, 0) < 0 ? -errno : 0;

	if (r == 0 && c->limits)
		r = set_limits(c);
	if (r == 0 && c->own_user)
		r = become_other_user();
	if (r == 0)
		r = keep_capabilities(c->caps);
	/* changing the user resets both */
	if (r == 0 && (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0))
		r = -errno;
	if (r == 0 && getppid() != parent)
		r = -ESRCH;
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	return r == 0 ? call_filter_install(c->calls) : r;
}
