// SPDX-License-Identifier: BSD-2-Clause
/*
 * Dropping the privileges of inspector and opener: see helper.h.
 *
 * The inspector, which parses the target's files, runs as nobody, without capabilities, without the
 * memory that the daemon shares with the kernel (rings), and with a list of system calls that
 * cannot open anything. Calls that are not in the list fail with ENOSYS.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sanitizer.h"
#include "inspect/helper.h"
#include "target/proc.h"
#include "target/target.h"

#define NOBODY	    65534u
#define MEMORY_MORE (UINT64_C(1536) << 20) /* bytes beyond the daemon's own mappings */
#define FILES_MAX   32u
#define SELF_MAPS   (16u << 20)
#define X32_BIT	    0x40000000u

#define RETURN(action)	BPF_STMT(BPF_RET | BPF_K, (action))
#define LOAD(field)	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF(op, k, n, m) BPF_JUMP(BPF_JMP | (op) | BPF_K, (k), (n), (m))
#define ALLOW(call)	IF(BPF_JEQ, SYS_##call, 0, 1), RETURN(SECCOMP_RET_ALLOW)
#define REFUSE(err)	RETURN(SECCOMP_RET_ERRNO | (err))
#define NATIVE_ONLY                                                                                \
	LOAD(arch), IF(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0), RETURN(SECCOMP_RET_KILL_PROCESS),        \
		LOAD(nr), IF(BPF_JGE, X32_BIT, 0, 1), RETURN(SECCOMP_RET_KILL_PROCESS)

/* clang-format off */
static struct sock_filter inspector_calls[] = {
	NATIVE_ONLY,
	ALLOW(pread64), ALLOW(read), ALLOW(write), ALLOW(lseek), ALLOW(recvmsg), ALLOW(sendmsg),
	ALLOW(close), ALLOW(dup), ALLOW(poll), ALLOW(fstat), ALLOW(newfstatat),
	ALLOW(munmap), ALLOW(mremap), ALLOW(brk), ALLOW(madvise),
	/* Private memory that is not executable */
	IF(BPF_JEQ, SYS_mmap, 0, 6),
	LOAD(args[2]),
	IF(BPF_JSET, PROT_EXEC, 3, 0),
	LOAD(args[3]),
	IF(BPF_JSET, MAP_ANONYMOUS, 0, 1),
	RETURN(SECCOMP_RET_ALLOW),
	REFUSE(EPERM),
	IF(BPF_JEQ, SYS_mprotect, 0, 4),
	LOAD(args[2]),
	IF(BPF_JSET, PROT_EXEC, 1, 0),
	RETURN(SECCOMP_RET_ALLOW),
	REFUSE(EPERM),
	ALLOW(futex), ALLOW(clock_gettime), ALLOW(nanosleep), ALLOW(clock_nanosleep),
	ALLOW(restart_syscall), ALLOW(rt_sigreturn), ALLOW(getpid), ALLOW(exit), ALLOW(exit_group),
	REFUSE(ENOSYS),
};

static struct sock_filter opener_calls[] = {
	NATIVE_ONLY,
	ALLOW(openat), ALLOW(recvmsg), ALLOW(sendmsg), ALLOW(process_vm_readv), ALLOW(close),
	ALLOW(poll), ALLOW(restart_syscall), ALLOW(exit), ALLOW(exit_group),
	REFUSE(ENOSYS),
};
/* clang-format on */

/* Builds with sanitizers (tests only) need other calls. */
static int allow_calls(struct sock_filter *code, size_t n)
{
#if SANITIZER_ADDRESS || defined(__SANITIZE_THREAD__)
	(void)code, (void)n;
	return 0;
#else
	const struct sock_fprog prog = {.len = (unsigned short)n, .filter = code};

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0 ? -errno : 0;
#endif
}

/*
 * Makes the kernel kill this process when its parent ends. The check detects a parent that ended
 * before the prctl().
 */
static int die_with(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	return getppid() == parent ? 0 : -ESRCH;
}

static int drop_capabilities(void)
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

static int limit(int what, rlim_t n)
{
	const struct rlimit r = {n, n};

	return setrlimit((__rlimit_resource_t)what, &r) < 0 ? -errno : 0;
}

/* Unmaps rings, which contain data of other targets. *ret_size: bytes that remain mapped. */
static int unmap_shared(uint64_t *ret_size)
{
	_cleanup_(target_maps_deinit) struct target_maps maps = {0};
	_cleanup_free_ char *text = NULL;
	size_t size;
	int r = proc_read(AT_FDCWD, "/proc/self/maps", SELF_MAPS, &text, &size);

	if (r == 0)
		r = target_maps_parse(text, size, &maps, NULL);
	for (size_t i = 0; i < maps.n; i++) {
		const struct target_map *m = &maps.v[i];

		if (m->shared)
			(void)munmap((void *)(uintptr_t)m->start, m->end - m->start);
		else
			*ret_size += m->end - m->start;
	}
	return r;
}

static int set_limits(uint64_t mapped)
{
	int r = limit(RLIMIT_CORE, 0);

	if (r == 0)
		r = limit(RLIMIT_FSIZE, 0);
	if (r == 0)
		r = limit(RLIMIT_NPROC, 0);
	if (r == 0)
		r = limit(RLIMIT_NOFILE, FILES_MAX);
#if !SANITIZER_ADDRESS /* AddressSanitizer maps the whole address space */
	if (r == 0)
		r = limit(RLIMIT_AS, mapped + MEMORY_MORE);
#else
	(void)mapped;
#endif
	return r;
}

int confine_opener(pid_t parent)
{
	int r = die_with(parent);

	if (r == 0)
		r = keep_capabilities_to_open();
	if (r == 0 && prctl(PR_SET_DUMPABLE, 0) < 0)
		r = -errno;
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	return r < 0 ? r : allow_calls(opener_calls, sizeof(opener_calls) / sizeof(*opener_calls));
}

int confine_inspector(pid_t parent)
{
	uint64_t mapped = 0;
	int r = prctl(PR_SET_DUMPABLE, 0) < 0 ? -errno : 0;

	if (r == 0)
		r = unmap_shared(&mapped);
	if (r == 0)
		r = set_limits(mapped);
	if (r == 0)
		r = drop_capabilities();
	/* changing the user resets this attribute and the death signal */
	if (r == 0 && prctl(PR_SET_DUMPABLE, 0) < 0)
		r = -errno;
	if (r == 0)
		r = die_with(parent);
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	return r < 0 ? r
		     : allow_calls(inspector_calls,
				   sizeof(inspector_calls) / sizeof(*inspector_calls));
}
