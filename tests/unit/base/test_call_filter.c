// SPDX-License-Identifier: BSD-2-Clause
/*
 * base/call_filter.c: the filters are run by a machine of our own, so that all calls can be tried
 * with all kinds of arguments. That the kernel accepts them, test_inspect, test_push and
 * test_scratch in tests/attack/ show.
 */
#include "base/call_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "harness/test.h"

#define ALLOWED	   SECCOMP_RET_ALLOW
#define FAILS(err) (SECCOMP_RET_ERRNO | (uint32_t)(err))
#define CALLS	   600

static const enum call_filter all[] = {CALL_FILTER_INSPECTOR, CALL_FILTER_OPENER,
				       CALL_FILTER_SENDER, CALL_FILTER_SCRATCH};

static struct sock_filter code[CALL_FILTER_MAX];
static size_t ncode;

static void compile(enum call_filter of)
{
	ncode = call_filter_compile(of, code, CALL_FILTER_MAX);
	cr_assert(ncode);
}

static bool holds(uint16_t op, uint32_t a, uint32_t k)
{
	return op == BPF_JEQ ? a == k : op == BPF_JGE ? a >= k : (a & k) != 0;
}

static uint32_t run(const struct seccomp_data *d)
{
	uint32_t a = 0;

	for (size_t at = 0; at < ncode; at++) {
		const struct sock_filter *c = &code[at];

		switch (BPF_CLASS(c->code)) {
		case BPF_RET:
			return c->k;
		case BPF_LD:
			cr_assert(c->k % 4 == 0 && c->k < sizeof(*d));
			memcpy(&a, (const char *)d + c->k, sizeof(a));
			break;
		case BPF_ALU:
			a &= c->k;
			break;
		default:
			at += holds(BPF_OP(c->code), a, c->k) ? c->jt : c->jf;
			break;
		}
	}
	cr_assert_fail("the filter ends without an answer");
	return 0;
}

static uint32_t call(int nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3)
{
	return run(&(struct seccomp_data){
		.nr = nr, .arch = AUDIT_ARCH_X86_64, .args = {a0, a1, a2, a3}});
}

Test(call_filter, lists)
{
	static const unsigned int counts[] = {26, 9, 69, 76};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		unsigned int n = 0;

		compile(all[i]);
		for (int nr = 0; nr < CALLS; nr++)
			n += call(nr, 0, 0, 0, 0) != FAILS(ENOSYS);
		cr_expect_eq(n, counts[i], "filter %d has %u calls", all[i], n);
	}
}

Test(call_filter, no_helper_may)
{
	static const int forbidden[] = {SYS_ptrace,
					SYS_kill,
					SYS_tgkill,
					SYS_fork,
					SYS_vfork,
					SYS_clone3,
					SYS_execve,
					SYS_bpf,
					SYS_unshare,
					SYS_setns,
					SYS_mount,
					SYS_setuid,
					SYS_capset,
					SYS_unlink,
					SYS_rename,
					SYS_openat2,
					SYS_prctl,
					SYS_io_uring_setup,
					SYS_seccomp,
					SYS_setxattr,
					SYS_pidfd_open,
					SYS_userfaultfd,
					SYS_process_vm_writev};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		compile(all[i]);
		for (size_t k = 0; k < sizeof(forbidden) / sizeof(forbidden[0]); k++)
			cr_expect_eq(call(forbidden[k], 0, 0, 0, 0), FAILS(ENOSYS), "%d",
				     forbidden[k]);
		/* other instruction sets */
		cr_assert_eq(call(SYS_read | 0x40000000, 0, 0, 0, 0), SECCOMP_RET_KILL_PROCESS);
		cr_assert_eq(run(&(struct seccomp_data){.nr = 3, .arch = AUDIT_ARCH_I386}),
			     SECCOMP_RET_KILL_PROCESS);
	}
}

Test(call_filter, inspector)
{
	const uint64_t own = MAP_PRIVATE | MAP_ANONYMOUS;

	compile(CALL_FILTER_INSPECTOR);
	cr_assert_eq(call(SYS_mmap, 0, 1, PROT_READ | PROT_WRITE, own), ALLOWED);
	cr_assert_eq(call(SYS_mmap, 0, 1, PROT_READ | PROT_EXEC, own), FAILS(EPERM));
	cr_assert_eq(call(SYS_mmap, 0, 1, PROT_READ, MAP_PRIVATE), FAILS(EPERM));
	cr_assert_eq(call(SYS_mprotect, 0, 1, PROT_READ, 0), ALLOWED);
	cr_assert_eq(call(SYS_mprotect, 0, 1, PROT_EXEC, 0), FAILS(EPERM));
	cr_assert_eq(call(SYS_openat, 0, 0, O_RDONLY, 0), FAILS(ENOSYS));
	cr_assert_eq(call(SYS_socket, AF_UNIX, 0, 0, 0), FAILS(ENOSYS));
	cr_assert_eq(call(SYS_pread64, 0, 0, 0, 0), ALLOWED);
}

Test(call_filter, opener)
{
	compile(CALL_FILTER_OPENER);
	cr_assert_eq(call(SYS_openat, 0, 0, O_RDONLY, 0), ALLOWED);
	cr_assert_eq(call(SYS_process_vm_readv, 1, 0, 0, 0), ALLOWED);
	cr_assert_eq(call(SYS_read, 0, 0, 0, 0), FAILS(ENOSYS));
	cr_assert_eq(call(SYS_write, 0, 0, 0, 0), FAILS(ENOSYS));
}

Test(call_filter, sender)
{
	compile(CALL_FILTER_SENDER);
	cr_assert_eq(call(SYS_socket, AF_INET, 0, 0, 0), ALLOWED);
	cr_assert_eq(call(SYS_socket, AF_INET6, 0, 0, 0), ALLOWED);
	cr_assert_eq(call(SYS_socket, AF_NETLINK, 0, 0, 0), ALLOWED);
	cr_assert_eq(call(SYS_socket, AF_UNIX, 0, 0, 0), FAILS(EAFNOSUPPORT));
	cr_assert_eq(call(SYS_openat, 0, 0, O_RDONLY | O_CLOEXEC, 0), ALLOWED);
	cr_assert_eq(call(SYS_openat, 0, 0, O_RDWR, 0), FAILS(EPERM));
	cr_assert_eq(call(SYS_openat, 0, 0, O_TMPFILE, 0), FAILS(EPERM));
	cr_assert_eq(call(SYS_clone, CLONE_THREAD | CLONE_VM, 0, 0, 0), ALLOWED);
	cr_assert_eq(call(SYS_clone, SIGCHLD, 0, 0, 0), FAILS(EPERM));
	cr_assert_eq(call(SYS_ioctl, 0, FIONBIO, 0, 0), ALLOWED);
	cr_assert_eq(call(SYS_ioctl, 0, TIOCSTI, 0, 0), FAILS(ENOTTY));
	cr_assert_eq(call(SYS_mmap, 0, 1, PROT_READ | PROT_EXEC, 0), ALLOWED);
	cr_assert_eq(call(SYS_mmap, 0, 1, PROT_WRITE | PROT_EXEC, 0), FAILS(EPERM));
	cr_assert_eq(call(SYS_mprotect, 0, 1, PROT_EXEC, 0), FAILS(EPERM));
}

Test(call_filter, scratch)
{
	const int fcntls[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL};

	compile(CALL_FILTER_SCRATCH);
	for (size_t i = 0; i < sizeof(fcntls) / sizeof(fcntls[0]); i++)
		cr_expect_eq(call(SYS_fcntl, 0, (uint64_t)fcntls[i], 0, 0), ALLOWED);
	cr_assert_eq(call(SYS_fcntl, 0, F_SETOWN, 0, 0), FAILS(EPERM));
	cr_assert_eq(call(SYS_fcntl, 0, F_SETPIPE_SZ, 0, 0), FAILS(EPERM));
	cr_assert_eq(call(SYS_prlimit64, 0, 0, 0, 1), ALLOWED);
	cr_assert_eq(call(SYS_prlimit64, 0, 0, UINT64_C(1) << 32, 1), FAILS(EPERM));
	cr_assert_eq(call(SYS_prlimit64, 0, 0, 8, 1), FAILS(EPERM));
	cr_assert_eq(call(SYS_open, 0, O_RDONLY, 0, 0), ALLOWED);
	cr_assert_eq(call(SYS_open, 0, O_WRONLY, 0, 0), FAILS(EROFS));
	cr_assert_eq(call(SYS_mmap, 0, 1, PROT_EXEC, MAP_PRIVATE), ALLOWED);
	cr_assert_eq(call(SYS_mmap, 0, 1, 0, MAP_SHARED), ALLOWED);
	cr_assert_eq(call(SYS_mmap, 0, 1, 0, MAP_SHARED | MAP_ANONYMOUS), FAILS(EPERM));
	cr_assert_eq(run(&(struct seccomp_data){.nr = SYS_execveat,
						.arch = AUDIT_ARCH_X86_64,
						.args = {3, 0, 0, 0, AT_EMPTY_PATH}}),
		     ALLOWED);
	cr_assert_eq(call(SYS_execveat, 3, 0, 0, 0), FAILS(EPERM));
}

Test(call_filter, too_long)
{
	cr_assert_eq(call_filter_compile(CALL_FILTER_SENDER, code, 20), 0);
}
