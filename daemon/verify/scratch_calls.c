// SPDX-License-Identifier: BSD-2-Clause
/*
 * The system calls of a scratch process: see scratch_priv.h.
 *
 * The list has the calls of interpreters since 3.6, of glibc's and musl's start-up, and of the
 * self-test. No call in it creates a process, socket, file or shared memory, or accesses another
 * process. All others fail with ENOSYS, which C libraries handle.
 */
#include "verify/scratch_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* the self-test starts one */
#define THREADS_MAX 8u

#define X32_BIT 0x40000000u

/* Missing in old C libraries' headers. The kernel makes probed processes call these. */
#ifndef SYS_uretprobe
#define SYS_uretprobe 335
#endif
#ifndef SYS_uprobe
#define SYS_uprobe 336
#endif

#define RETURN(action)	BPF_STMT(BPF_RET | BPF_K, (action))
#define REFUSE(err)	RETURN(SECCOMP_RET_ERRNO | (err))
#define LOAD(field)	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define AND(mask)	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, (mask))
#define IF(op, k, n, m) BPF_JUMP(BPF_JMP | (op) | BPF_K, (k), (n), (m))
/* Flags are in the low half of an argument. Between checks the accumulator holds the call's
 * number. */
#define ALLOW(call) IF(BPF_JEQ, SYS_##call, 0, 1), RETURN(SECCOMP_RET_ALLOW)
/* Allow the call only if the argument has no bit of mask. */
#define ALLOW_WITHOUT(call, arg, mask, err)                                                        \
	IF(BPF_JEQ, SYS_##call, 0, 4), LOAD(args[arg]), IF(BPF_JSET, (mask), 0, 1), REFUSE(err),   \
		RETURN(SECCOMP_RET_ALLOW)

/* Flags of open(2) for anything but reading */
#define WRITING (O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))

static int install(struct sock_filter *code, size_t n, unsigned int flags)
{
	const struct sock_fprog prog = {.len = (unsigned short)n, .filter = code};
	long r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);

	return r < 0 ? -errno : (int)r;
}

int scratch_watch_threads(int *ret_listener)
{
	static struct sock_filter code[] = {
		LOAD(nr),
		IF(BPF_JEQ, SYS_clone, 0, 3),
		LOAD(args[0]),
		IF(BPF_JSET, CLONE_THREAD, 0, 1),
		RETURN(SECCOMP_RET_USER_NOTIF),
		RETURN(SECCOMP_RET_ALLOW),
	};
	int fd = install(code, sizeof(code) / sizeof(*code), SECCOMP_FILTER_FLAG_NEW_LISTENER);

	if (fd < 0)
		return fd;
	*ret_listener = fd;
	return 0;
}

void scratch_answer_thread(int listener, unsigned int *started)
{
	/* The kernel's structure may be larger than ours. */
	union {
		struct seccomp_notif known;
		char room[1024];
	} question;
	union {
		struct seccomp_notif_resp known;
		char room[1024];
	} answer;

	memset(&question, 0, sizeof(question));
	memset(&answer, 0, sizeof(answer));
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &question) < 0)
		return;
	answer.known.id = question.known.id;
	if (*started < THREADS_MAX) {
		answer.known.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		(*started)++;
	} else {
		answer.known.error = -EAGAIN;
	}
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

/* clang-format off */
static struct sock_filter allowed[] = {
	LOAD(arch),
	IF(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0),
	RETURN(SECCOMP_RET_KILL_PROCESS),
	LOAD(nr),
	IF(BPF_JGE, X32_BIT, 0, 1),
	RETURN(SECCOMP_RET_KILL_PROCESS),

	/* The most frequent calls first */
	ALLOW(read), ALLOW(write), ALLOW(futex), ALLOW(clock_gettime), ALLOW(clock_nanosleep),
	ALLOW(munmap), ALLOW(mprotect), ALLOW(brk), ALLOW(madvise), ALLOW(mremap),

	/* RLIMIT_DATA does not limit shared memory. */
	IF(BPF_JEQ, SYS_mmap, 0, 5),
	LOAD(args[3]),
	AND(MAP_SHARED | MAP_ANONYMOUS),
	IF(BPF_JEQ, MAP_SHARED | MAP_ANONYMOUS, 0, 1),
	REFUSE(EPERM),
	RETURN(SECCOMP_RET_ALLOW),

	/* Threads, but no processes. clone3 fails, as its flags are in memory; libraries then use
	 * clone. */
	IF(BPF_JEQ, SYS_clone, 0, 4),
	LOAD(args[0]),
	IF(BPF_JSET, CLONE_THREAD, 0, 1),
	RETURN(SECCOMP_RET_ALLOW),
	REFUSE(EPERM),

	/* Reading files */
	ALLOW_WITHOUT(open, 1, WRITING, EROFS),
	ALLOW_WITHOUT(openat, 2, WRITING, EROFS),
	ALLOW(close), ALLOW(readv), ALLOW(writev), ALLOW(pread64), ALLOW(lseek),
	ALLOW(stat), ALLOW(lstat), ALLOW(fstat), ALLOW(newfstatat), ALLOW(statx), ALLOW(fstatfs),
	ALLOW(access), ALLOW(faccessat), ALLOW(faccessat2), ALLOW(readlink), ALLOW(readlinkat),
	ALLOW(getdents64), ALLOW(getcwd), ALLOW(dup), ALLOW(poll), ALLOW(ppoll),
	ALLOW(select), ALLOW(pselect6),

	/* Descriptor flags, but no signals and no pipe sizes */
	IF(BPF_JEQ, SYS_fcntl, 0, 8),
	LOAD(args[1]),
	IF(BPF_JEQ, F_DUPFD, 4, 0),
	IF(BPF_JEQ, F_DUPFD_CLOEXEC, 3, 0),
	IF(BPF_JEQ, F_GETFD, 2, 0),
	IF(BPF_JEQ, F_SETFD, 1, 0),
	IF(BPF_JEQ, F_GETFL, 0, 1),
	RETURN(SECCOMP_RET_ALLOW),
	REFUSE(EPERM),

	/* Terminal check and close-on-exec */
	IF(BPF_JEQ, SYS_ioctl, 0, 6),
	LOAD(args[1]),
	IF(BPF_JEQ, TCGETS, 2, 0),
	IF(BPF_JEQ, FIOCLEX, 1, 0),
	IF(BPF_JEQ, FIONCLEX, 0, 1),
	RETURN(SECCOMP_RET_ALLOW),
	REFUSE(ENOTTY),

	/* Reading limits: both halves of the new limit's pointer are 0. */
	IF(BPF_JEQ, SYS_prlimit64, 0, 6),
	LOAD(args[2]),
	IF(BPF_JEQ, 0, 0, 3),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2]) + 4),
	IF(BPF_JEQ, 0, 0, 1),
	RETURN(SECCOMP_RET_ALLOW),
	REFUSE(EPERM),
	ALLOW(getrlimit),

	/* Start of processes and threads. The program itself is executed by execveat. */
	IF(BPF_JEQ, SYS_execveat, 0, 4),
	LOAD(args[4]),
	IF(BPF_JEQ, AT_EMPTY_PATH, 0, 1),
	RETURN(SECCOMP_RET_ALLOW),
	REFUSE(EPERM),
	ALLOW(arch_prctl), ALLOW(set_tid_address), ALLOW(set_robust_list), ALLOW(rseq),
	ALLOW(getrandom), ALLOW(membarrier), ALLOW(exit), ALLOW(exit_group),

	/* Signals of its own */
	ALLOW(rt_sigaction), ALLOW(rt_sigprocmask), ALLOW(rt_sigreturn), ALLOW(sigaltstack),
	ALLOW(restart_syscall),

	/* Time, and information about itself */
	ALLOW(gettimeofday), ALLOW(time), ALLOW(clock_getres), ALLOW(nanosleep), ALLOW(times),
	ALLOW(getrusage), ALLOW(getpid), ALLOW(getppid), ALLOW(gettid), ALLOW(getuid),
	ALLOW(geteuid), ALLOW(getgid), ALLOW(getegid), ALLOW(getgroups), ALLOW(uname),
	ALLOW(sysinfo), ALLOW(sched_getaffinity), ALLOW(sched_yield), ALLOW(getcpu),

	ALLOW(uretprobe), ALLOW(uprobe),
	REFUSE(ENOSYS),
};
/* clang-format on */

int scratch_allow_calls(void)
{
	return install(allowed, sizeof(allowed) / sizeof(*allowed), 0);
}
