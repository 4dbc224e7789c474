// SPDX-License-Identifier: BSD-2-Clause
/*
 * Dropping the privileges of a sender: see confine.h.
 *
 * The list of system calls is what libcurl, its TLS library and glibc's resolver use, which loads
 * its modules when a name is looked up. Calls that are not in the list fail with ENOSYS; clone3,
 * whose flags a filter cannot see, is one of them: glibc uses clone instead.
 */
#include "push/confine.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/confine.h"
#include "target/target.h"

#define MEMORY_MORE (UINT64_C(512) << 20) /* bytes beyond the daemon's own mappings */
#define FILES_MAX   64u

/* clang-format off */
static struct sock_filter calls[] = {
	NATIVE_ONLY,
	ALLOW(read), ALLOW(write), ALLOW(readv), ALLOW(writev), ALLOW(pread64), ALLOW(lseek),
	ALLOW(recvfrom), ALLOW(recvmsg), ALLOW(recvmmsg), ALLOW(sendto), ALLOW(sendmsg),
	ALLOW(sendmmsg), ALLOW(connect), ALLOW(bind), ALLOW(shutdown), ALLOW(getsockname),
	ALLOW(getpeername), ALLOW(getsockopt), ALLOW(setsockopt), ALLOW(pipe2),
	ALLOW(poll), ALLOW(ppoll), ALLOW(select), ALLOW(pselect6), ALLOW(close), ALLOW(fcntl),
	ALLOW(fstat), ALLOW(newfstatat), ALLOW(stat), ALLOW(access), ALLOW(faccessat),
	ALLOW(readlink), ALLOW(getdents64),
	ALLOW(munmap), ALLOW(mremap), ALLOW(brk), ALLOW(madvise),
	ALLOW(futex), ALLOW(set_robust_list), ALLOW(rseq), ALLOW(sched_yield),
	ALLOW(sched_getaffinity), ALLOW(rt_sigprocmask), ALLOW(rt_sigaction), ALLOW(rt_sigreturn),
	ALLOW(sigaltstack), ALLOW(getpid), ALLOW(gettid), ALLOW(getuid), ALLOW(geteuid),
	ALLOW(getgid), ALLOW(getegid), ALLOW(uname), ALLOW(sysinfo), ALLOW(getrandom),
	ALLOW(clock_gettime), ALLOW(gettimeofday), ALLOW(nanosleep), ALLOW(clock_nanosleep),
	ALLOW(restart_syscall), ALLOW(exit), ALLOW(exit_group),
	/* Sockets of these families; pairs of sockets reach nobody else. */
	IF(BPF_JEQ, SYS_socketpair, 0, 1),
	RETURN(SECCOMP_RET_ALLOW),
	IF(BPF_JEQ, SYS_socket, 0, 6),
	LOAD(args[0]),
	IF(BPF_JEQ, AF_INET, 2, 0),
	IF(BPF_JEQ, AF_INET6, 1, 0),
	IF(BPF_JEQ, AF_NETLINK, 0, 1),
	RETURN(SECCOMP_RET_ALLOW),
	REFUSE(EAFNOSUPPORT),
	/* Files, for reading */
	IF(BPF_JEQ, SYS_openat, 0, 4),
	LOAD(args[2]),
	IF(BPF_JSET, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 1, 0),
	RETURN(SECCOMP_RET_ALLOW),
	REFUSE(EPERM),
	/* Threads, but no processes */
	IF(BPF_JEQ, SYS_clone, 0, 4),
	LOAD(args[0]),
	IF(BPF_JSET, CLONE_THREAD, 0, 1),
	RETURN(SECCOMP_RET_ALLOW),
	REFUSE(EPERM),
	IF(BPF_JEQ, SYS_ioctl, 0, 5),
	LOAD(args[1]),
	IF(BPF_JEQ, FIONREAD, 1, 0),
	IF(BPF_JEQ, FIONBIO, 0, 1),
	RETURN(SECCOMP_RET_ALLOW),
	REFUSE(ENOTTY),
	/* Memory that is never both writable and executable */
	IF(BPF_JEQ, SYS_mmap, 0, 6),
	LOAD(args[2]),
	IF(BPF_JSET, PROT_EXEC, 0, 3),
	IF(BPF_JSET, PROT_WRITE, 1, 0),
	RETURN(SECCOMP_RET_ALLOW),
	REFUSE(EPERM),
	RETURN(SECCOMP_RET_ALLOW),
	IF(BPF_JEQ, SYS_mprotect, 0, 4),
	LOAD(args[2]),
	IF(BPF_JSET, PROT_EXEC, 1, 0),
	RETURN(SECCOMP_RET_ALLOW),
	REFUSE(EPERM),
	REFUSE(ENOSYS),
};
/* clang-format on */

static int set_limits(uint64_t memory)
{
	int r = confine_limit(RLIMIT_CORE, 0);

	if (r == 0)
		r = confine_limit(RLIMIT_FSIZE, 0);
	if (r == 0)
		r = confine_limit(RLIMIT_NOFILE, FILES_MAX);
#ifndef __SANITIZE_ADDRESS__ /* AddressSanitizer maps the whole address space */
	if (r == 0)
		r = confine_limit(RLIMIT_AS, memory + MEMORY_MORE);
#else
	(void)memory;
#endif
	return r;
}

int confine_sender(pid_t parent, size_t memory)
{
	uint64_t mapped = 0;
	int r = prctl(PR_SET_DUMPABLE, 0) < 0 ? -errno : 0;

	if (r == 0)
		r = target_unmap_shared(&mapped);
	if (r == 0)
		r = set_limits(mapped + memory);
	if (r == 0)
		r = confine_drop_capabilities();
	/* changing the user resets this attribute and the death signal */
	if (r == 0 && prctl(PR_SET_DUMPABLE, 0) < 0)
		r = -errno;
	if (r == 0)
		r = confine_die_with(parent);
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	return r < 0 ? r : confine_calls(calls, sizeof(calls) / sizeof(*calls));
}
