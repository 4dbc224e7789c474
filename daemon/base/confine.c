// SPDX-License-Identifier: BSD-2-Clause
/* Dropping the privileges of a helper process: see confine.h. */
#include "base/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sanitizer.h"

/*
 * The users of helpers: each has the one of its own pid, in a range that nothing else uses
 * (systemd's list of ranges has no owner for it, and it is above what directory services assign).
 * packaging/pyprofd.sysusers reserves it by its first user, whose entry may move it. Where another
 * process or an entry has the user, the next such range is used.
 */
#define HELPER_USER "pyprofd-helper"
#define FIRST_UID   0x7a000000u
#define RANGE	    (1u << 22) /* as many as there can be pids */
#define RANGES	    8u
/* In a user namespace that lacks them: the part of the first 65536 that distributions do not use */
#define SMALL_FIRST_UID 60578u
#define SMALL_RANGE	606u

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

/* The first user of the range. */
static uid_t first_uid(FILE *passwd)
{
	uid_t first = FIRST_UID;

	for (struct passwd *e; passwd && (e = fgetpwent(passwd));)
		if (strcmp(e->pw_name, HELPER_USER) == 0)
			first = e->pw_uid;
	return first;
}

static bool has_entry(FILE *passwd, uid_t uid)
{
	bool has = false;

	if (passwd)
		rewind(passwd);
	for (struct passwd *e; passwd && !has && (e = fgetpwent(passwd));)
		has = e->pw_uid == uid;
	return has;
}

static bool has_process(uid_t uid)
{
	errno = 0;
	return getpriority(PRIO_USER, uid) != -1 || errno != ESRCH;
}

/* 0, or a negative errno: -EINVAL: this user namespace has no such user. */
static int become(uid_t uid)
{
	if (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
		return -errno;
	return 0;
}

/* The i-th user that this process may become; another process has others. */
static uid_t uid_of(uid_t first, uid_t pid, uint32_t i)
{
	if (i < RANGES)
		return first + i * RANGE + pid;
	return SMALL_FIRST_UID + (pid + (i - RANGES) * (1 + pid / SMALL_RANGE)) % SMALL_RANGE;
}

/*
 * Only processes of the same user could send signals to this one, or change its limits. If ids
 * cannot be changed, rely on the other restrictions.
 */
static int become_own_user(void)
{
	_cleanup_fclose_ FILE *passwd = fopen("/etc/passwd", "re");
	const uid_t first = first_uid(passwd);
	int r = -EINVAL;

	for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
		(void)prctl(PR_CAPBSET_DROP,
			    cap); /* needs CAP_SETPCAP, but execve() is not available anyway */
	(void)setgroups(0, NULL);
	for (uint32_t i = 0; r == -EINVAL && i < 2 * RANGES; i++) {
		const uid_t uid = uid_of(first, (uid_t)getpid(), i);

		if (!has_process(uid) && !has_entry(passwd, uid))
			r = become(uid);
	}
	return r == -EPERM || r == -EINVAL ? 0 : r;
}

uint64_t confine_capabilities(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2] = {{0}};

	if (syscall(SYS_capget, &head, caps) < 0)
		return 0;
	return (uint64_t)caps[1].effective << 32 | caps[0].effective;
}

int confine_keep_capabilities(uint64_t keep)
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
		r = become_own_user();
	if (r == 0)
		r = confine_keep_capabilities(c->caps);
	/* changing the user resets both */
	if (r == 0 && (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0))
		r = -errno;
	if (r == 0 && getppid() != parent)
		r = -ESRCH;
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	return r == 0 ? call_filter_install(c->calls) : r;
}
