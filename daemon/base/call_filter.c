// SPDX-License-Identifier: BSD-2-Clause
/* The table of system calls of confined helpers: see call_filter.h. */
#include "base/call_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sanitizer.h"

#define X32_BIT 0x40000000u

/* Missing in old C libraries' headers. The kernel makes probed processes call these. */
#ifndef SYS_uretprobe
#define SYS_uretprobe 335
#endif
#ifndef SYS_uprobe
#define SYS_uprobe 336
#endif

/* ---- the table --------------------------------------------------------------------------- */

enum test {
	NO_TEST,
	HAS_NONE,    /* the argument has no bit of the value */
	HAS_ANY,     /* a bit of the value */
	HAS_NOT_ALL, /* not all bits of the value */
	IS_ONE_OF,   /* one of n values */
	IS_NULL,     /* all 64 bits are 0; other tests look at the low half, where flags are */
};

#define VALUES_MAX 5
#define TESTS_MAX  2

struct arg_test {
	uint8_t test; /* enum test */
	uint8_t arg;  /* number of the argument, from 0 */
	uint8_t n;
	uint32_t value[VALUES_MAX];
};

struct call {
	uint16_t nr;
	uint8_t of;			  /* enum call_filter: the helpers that may call it */
	uint8_t err;			  /* the errno if a test fails */
	struct arg_test tests[TESTS_MAX]; /* all must hold */
};

#define I CALL_FILTER_INSPECTOR
#define O CALL_FILTER_OPENER
#define N CALL_FILTER_SENDER
#define S CALL_FILTER_SCRATCH

#define TEST(arg, test, ...)                                                                       \
	{                                                                                          \
		test, arg, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t),                   \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define CALL(name, of)                                                                             \
	{                                                                                          \
		SYS_##name, (of), 0,                                                               \
		{                                                                                  \
			{                                                                          \
				0                                                                  \
			}                                                                          \
		}                                                                                  \
	}
#define CALL_IF(name, of, err, ...)                                                                \
	{                                                                                          \
		SYS_##name, (of), (err),                                                           \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

/* Flags of open(2) for anything but reading */
#define WRITING (O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY))

/*
 * The most frequent calls first. No call here creates a process or reaches another one, but for
 * the opener's process_vm_readv, and clone is for threads only. clone3, whose flags a filter cannot
 * see, is missing: libraries then use clone.
 */
/* clang-format off */
static const struct call calls[] = {
	CALL(read, I | N | S), CALL(write, I | N | S), CALL(pread64, I | N | S),
	CALL(recvmsg, I | O | N), CALL(sendmsg, I | O | N), CALL(process_vm_readv, O),
	CALL(futex, I | N | S), CALL(clock_gettime, I | N | S), CALL(poll, I | O | N | S),
	CALL(clock_nanosleep, I | N | S), CALL(nanosleep, I | N | S), CALL(close, I | O | N | S),
	CALL(lseek, I | N | S), CALL(dup, I | S), CALL(fstat, I | N | S),
	CALL(newfstatat, I | N | S), CALL(readv, N | S), CALL(writev, N | S),

	/* Memory. The inspector's is private and never executable, the sender's never both writable
	 * and executable; RLIMIT_DATA does not limit memory that the scratch process shares. */
	CALL(munmap, I | N | S), CALL(brk, I | N | S), CALL(madvise, I | N | S),
	CALL(mremap, I | N | S),
	CALL_IF(mmap, I, EPERM, TEST(2, HAS_NONE, PROT_EXEC), TEST(3, HAS_ANY, MAP_ANONYMOUS)),
	CALL_IF(mmap, N, EPERM, TEST(2, HAS_NOT_ALL, PROT_WRITE | PROT_EXEC)),
	CALL_IF(mmap, S, EPERM, TEST(3, HAS_NOT_ALL, MAP_SHARED | MAP_ANONYMOUS)),
	CALL_IF(mprotect, I | N, EPERM, TEST(2, HAS_NONE, PROT_EXEC)),
	CALL(mprotect, S),

	/* Files, for reading. The opener gets no path but through numbers. */
	CALL(openat, O),
	CALL_IF(openat, N, EPERM, TEST(2, HAS_NONE, WRITING)),
	CALL_IF(openat, S, EROFS, TEST(2, HAS_NONE, WRITING)),
	CALL_IF(open, S, EROFS, TEST(1, HAS_NONE, WRITING)),
	CALL(stat, N | S), CALL(lstat, S), CALL(statx, S), CALL(fstatfs, S), CALL(access, N | S),
	CALL(faccessat, N | S), CALL(faccessat2, S), CALL(readlink, N | S), CALL(readlinkat, S),
	CALL(getdents64, N | S), CALL(getcwd, S),
	CALL(ppoll, N | S), CALL(select, N | S), CALL(pselect6, N | S),

	/* Descriptor flags; for the scratch process no signals and no sizes of pipes */
	CALL(fcntl, N),
	CALL_IF(fcntl, S, EPERM,
		TEST(1, IS_ONE_OF, F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL)),
	CALL_IF(ioctl, N, ENOTTY, TEST(1, IS_ONE_OF, FIONREAD, FIONBIO)),
	CALL_IF(ioctl, S, ENOTTY, TEST(1, IS_ONE_OF, TCGETS, FIOCLEX, FIONCLEX)),

	/* Sockets of these families; pairs of sockets and pipes reach no other process. */
	CALL_IF(socket, N, EAFNOSUPPORT, TEST(0, IS_ONE_OF, AF_INET, AF_INET6, AF_NETLINK)),
	CALL(socketpair, N), CALL(pipe2, N), CALL(connect, N), CALL(bind, N), CALL(shutdown, N),
	CALL(recvfrom, N), CALL(recvmmsg, N), CALL(sendto, N), CALL(sendmmsg, N),
	CALL(getsockname, N), CALL(getpeername, N), CALL(getsockopt, N), CALL(setsockopt, N),

	/* Threads, but no processes. The scratch process's program is executed by execveat. */
	CALL_IF(clone, N | S, EPERM, TEST(0, HAS_ANY, CLONE_THREAD)),
	CALL_IF(execveat, S, EPERM, TEST(4, IS_ONE_OF, AT_EMPTY_PATH)),
	CALL(arch_prctl, S), CALL(set_tid_address, S), CALL(set_robust_list, N | S),
	CALL(rseq, N | S), CALL(membarrier, S), CALL(exit, I | O | N | S),
	CALL(exit_group, I | O | N | S),

	/* Signals of its own */
	CALL(restart_syscall, I | O | N | S), CALL(rt_sigreturn, I | N | S),
	CALL(rt_sigaction, N | S), CALL(rt_sigprocmask, N | S), CALL(sigaltstack, N | S),

	/* Limits, for reading: there is no new one. */
	CALL_IF(prlimit64, S, EPERM, TEST(2, IS_NULL, 0)),
	CALL(getrlimit, S),

	/* Time, and information about itself */
	CALL(gettimeofday, N | S), CALL(time, S), CALL(clock_getres, S), CALL(times, S),
	CALL(getrusage, S), CALL(getpid, I | N | S), CALL(getppid, S), CALL(gettid, N | S),
	CALL(getuid, N | S), CALL(geteuid, N | S), CALL(getgid, N | S), CALL(getegid, N | S),
	CALL(getgroups, S), CALL(uname, N | S), CALL(sysinfo, N | S), CALL(getrandom, N | S),
	CALL(sched_getaffinity, N | S), CALL(sched_yield, N | S), CALL(getcpu, S),

	CALL(uretprobe, S), CALL(uprobe, S),
};
/* clang-format on */

#undef I
#undef O
#undef N
#undef S

/* ---- the compiler ------------------------------------------------------------------------ */

struct program {
	struct sock_filter *code;
	size_t n, max;
	bool too_long;
};

static void emit(struct program *p, struct sock_filter insn)
{
	if (p->n < p->max)
		p->code[p->n++] = insn;
	else
		p->too_long = true;
}

static void load(struct program *p, size_t offset)
{
	emit(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void compute_and(struct program *p, uint32_t mask)
{
	emit(p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
}

/* Skips so many instructions if the comparison holds, or if it does not. */
static void compare(struct program *p, uint16_t op, uint32_t k, uint8_t holds, uint8_t fails)
{
	emit(p, (struct sock_filter)BPF_JUMP((uint16_t)(BPF_JMP | op | BPF_K), k, holds, fails));
}

static void ret(struct program *p, uint32_t action)
{
	emit(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

/* A jump of 0 that target() sets */
#define LATER 0xff

/* Makes the jumps that were left open since `from` lead to the next instruction. */
static void target(struct program *p, size_t from)
{
	for (size_t i = from; i < p->n; i++) {
		const uint8_t skip = (uint8_t)(p->n - i - 1);

		if (BPF_CLASS(p->code[i].code) != BPF_JMP)
			continue;
		p->code[i].jt = p->code[i].jt == LATER ? skip : p->code[i].jt;
		p->code[i].jf = p->code[i].jf == LATER ? skip : p->code[i].jf;
	}
}

/* Goes on if the test holds, else jumps LATER. */
static void compile_test(struct program *p, const struct arg_test *t)
{
	const size_t low = offsetof(struct seccomp_data, args) + t->arg * sizeof(uint64_t);

	if (t->test == NO_TEST)
		return;
	load(p, low);
	switch (t->test) {
	case HAS_NONE:
		compare(p, BPF_JSET, t->value[0], LATER, 0);
		break;
	case HAS_ANY:
		compare(p, BPF_JSET, t->value[0], 0, LATER);
		break;
	case HAS_NOT_ALL:
		compute_and(p, t->value[0]);
		compare(p, BPF_JEQ, t->value[0], LATER, 0);
		break;
	case IS_NULL:
		compare(p, BPF_JEQ, 0, 0, LATER);
		load(p, low + sizeof(uint32_t));
		compare(p, BPF_JEQ, 0, 0, LATER);
		break;
	default:
		for (uint8_t i = 0; i < t->n; i++)
			compare(p, BPF_JEQ, t->value[i], (uint8_t)(t->n - 1 - i),
				i + 1 < t->n ? 0 : LATER);
		break;
	}
}

/* Between calls, the accumulator has the number of the call. */
static void compile_call(struct program *p, const struct call *c)
{
	const size_t from = p->n;
	size_t tests;

	compare(p, BPF_JEQ, c->nr, 0, LATER);
	tests = p->n;
	for (size_t i = 0; i < TESTS_MAX; i++)
		compile_test(p, &c->tests[i]);
	ret(p, SECCOMP_RET_ALLOW);
	if (c->tests[0].test != NO_TEST) {
		target(p, tests);
		ret(p, SECCOMP_RET_ERRNO | c->err);
	}
	target(p, from);
}

size_t call_filter_compile(enum call_filter of, struct sock_filter *out, size_t max)
{
	struct program p = {.code = out, .max = max};

	load(&p, offsetof(struct seccomp_data, arch));
	compare(&p, BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0);
	ret(&p, SECCOMP_RET_KILL_PROCESS);
	load(&p, offsetof(struct seccomp_data, nr));
	compare(&p, BPF_JGE, X32_BIT, 0, 1);
	ret(&p, SECCOMP_RET_KILL_PROCESS);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].of & of)
			compile_call(&p, &calls[i]);
	ret(&p, SECCOMP_RET_ERRNO | ENOSYS);
	return p.too_long ? 0 : p.n;
}

int call_filter_install(enum call_filter of)
{
	struct sock_filter code[CALL_FILTER_MAX];
	const struct sock_fprog prog = {
		.len = (unsigned short)call_filter_compile(of, code, CALL_FILTER_MAX),
		.filter = code,
	};

#if SANITIZER_ADDRESS || defined(__SANITIZE_THREAD__)
	if (of != CALL_FILTER_SCRATCH)
		return 0;
#endif
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0 ? -errno : 0;
}
