// SPDX-License-Identifier: BSD-2-Clause
/*
 * System calls that can block, and what they wait for: see wait.h. The numbers are this machine's.
 */
#include "base/wait.h"

#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#include "pyprof/bpf_abi.h"

/* In addition to the reasons: it depends on the arguments. */
enum {
	BY_FD = WAITS, /* the kind of file of the first argument, a descriptor */
	IF_FIRST,      /* a sleep if the first argument is 0: select's number of descriptors */
	IF_SECOND,     /* a sleep if the second argument is 0: poll's number of descriptors */
};

#define CALL(name, wait) [SYS_##name] = 1 + (wait)

/* clang-format off */
static const uint8_t calls[WAIT_SYSCALLS] = { /* 0: unknown */
	CALL(read, BY_FD), CALL(write, BY_FD), CALL(readv, BY_FD), CALL(writev, BY_FD),
	CALL(pread64, BY_FD), CALL(pwrite64, BY_FD), CALL(preadv, BY_FD), CALL(pwritev, BY_FD),
	CALL(preadv2, BY_FD), CALL(pwritev2, BY_FD), CALL(sendfile, BY_FD), CALL(splice, BY_FD),
	CALL(tee, BY_FD), CALL(vmsplice, BY_FD), CALL(close, BY_FD), CALL(ioctl, BY_FD),
	CALL(fcntl, BY_FD), CALL(copy_file_range, BY_FD),
	CALL(fsync, WAIT_disk), CALL(fdatasync, WAIT_disk), CALL(sync, WAIT_disk),
	CALL(syncfs, WAIT_disk), CALL(sync_file_range, WAIT_disk), CALL(msync, WAIT_disk),
	CALL(openat, WAIT_disk), CALL(openat2, WAIT_disk), CALL(ftruncate, WAIT_disk),
	CALL(fallocate, WAIT_disk), CALL(fstat, WAIT_disk), CALL(newfstatat, WAIT_disk),
	CALL(statx, WAIT_disk), CALL(getdents64, WAIT_disk), CALL(unlinkat, WAIT_disk),
	CALL(renameat2, WAIT_disk), CALL(mkdirat, WAIT_disk), CALL(linkat, WAIT_disk),
	CALL(symlinkat, WAIT_disk), CALL(readlinkat, WAIT_disk), CALL(faccessat, WAIT_disk),
	CALL(fchmodat, WAIT_disk), CALL(fchownat, WAIT_disk), CALL(flock, WAIT_lock),
	CALL(readahead, WAIT_disk), CALL(fadvise64, WAIT_disk), CALL(statfs, WAIT_disk),
	CALL(fstatfs, WAIT_disk), CALL(truncate, WAIT_disk), CALL(chdir, WAIT_disk),
	CALL(getcwd, WAIT_disk), CALL(utimensat, WAIT_disk), CALL(lseek, WAIT_disk),
#ifdef SYS_open
	CALL(open, WAIT_disk), CALL(stat, WAIT_disk), CALL(lstat, WAIT_disk),
	CALL(access, WAIT_disk), CALL(unlink, WAIT_disk), CALL(rename, WAIT_disk),
	CALL(mkdir, WAIT_disk), CALL(rmdir, WAIT_disk), CALL(link, WAIT_disk),
	CALL(readlink, WAIT_disk), CALL(symlink, WAIT_disk), CALL(chmod, WAIT_disk),
	CALL(poll, IF_SECOND), CALL(select, IF_FIRST), CALL(epoll_wait, WAIT_poll),
	CALL(pause, WAIT_sleep), CALL(fork, WAIT_process), CALL(vfork, WAIT_process),
#endif
	CALL(recvfrom, WAIT_socket), CALL(recvmsg, WAIT_socket), CALL(recvmmsg, WAIT_socket),
	CALL(sendto, WAIT_socket), CALL(sendmsg, WAIT_socket), CALL(sendmmsg, WAIT_socket),
	CALL(accept, WAIT_socket), CALL(accept4, WAIT_socket), CALL(connect, WAIT_socket),
	CALL(shutdown, WAIT_socket), CALL(bind, WAIT_socket), CALL(listen, WAIT_socket),
	CALL(socket, WAIT_socket), CALL(setsockopt, WAIT_socket), CALL(getsockopt, WAIT_socket),
	CALL(ppoll, IF_SECOND), CALL(pselect6, IF_FIRST), CALL(epoll_pwait, WAIT_poll),
#ifdef SYS_epoll_pwait2
	CALL(epoll_pwait2, WAIT_poll),
#endif
	CALL(io_getevents, WAIT_disk), CALL(io_submit, WAIT_disk), CALL(io_uring_enter, WAIT_device),
	CALL(nanosleep, WAIT_sleep), CALL(clock_nanosleep, WAIT_sleep),
	CALL(wait4, WAIT_process), CALL(waitid, WAIT_process), CALL(clone, WAIT_process),
	CALL(clone3, WAIT_process), CALL(execve, WAIT_process),
	CALL(futex, WAIT_lock),
#ifdef SYS_futex_waitv
	CALL(futex_waitv, WAIT_lock),
#endif
	CALL(semop, WAIT_lock), CALL(semtimedop, WAIT_lock),
	CALL(restart_syscall, WAIT_sleep),
};
/* clang-format on */

static enum wait_reason of_fd(uint8_t fd)
{
	switch (fd) {
	case PYP_FD_FILE:
		return WAIT_disk;
	case PYP_FD_SOCKET:
		return WAIT_socket;
	case PYP_FD_PIPE:
		return WAIT_pipe;
	default:
		return WAIT_device;
	}
}

enum wait_reason wait_of_syscall(int64_t nr, uint64_t arg0, uint64_t arg1, uint8_t fd)
{
	uint8_t call = nr >= 0 && nr < WAIT_SYSCALLS ? calls[nr] : 0;

	switch (call ? call - 1 : WAIT_other) {
	case BY_FD:
		return of_fd(fd);
	case IF_FIRST:
		return (uint32_t)arg0 ? WAIT_poll : WAIT_sleep;
	case IF_SECOND:
		return (uint32_t)arg1 ? WAIT_poll : WAIT_sleep;
	default:
		return call ? (enum wait_reason)(call - 1) : WAIT_other;
	}
}

int wait_by_fd(int64_t nr)
{
	return nr >= 0 && nr < WAIT_SYSCALLS && calls[nr] == 1 + BY_FD;
}

int wait_takes_fd(int64_t nr)
{
	switch (nr) {
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_accept:
	case SYS_accept4:
	case SYS_connect:
	case SYS_shutdown:
	case SYS_fsync:
	case SYS_fdatasync:
	case SYS_sync_file_range:
	case SYS_ftruncate:
	case SYS_fallocate:
	case SYS_flock:
	case SYS_getdents64:
	case SYS_epoll_pwait:
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
#endif
#ifdef SYS_epoll_pwait2
	case SYS_epoll_pwait2:
#endif
		return 1;
	default:
		return wait_by_fd(nr);
	}
}

static const char *const names[WAITS] = {
#define PYP_X(id, text) [WAIT_##id] = #id,
	WAIT_TABLE(PYP_X)
#undef PYP_X
};

const char *wait_name(enum wait_reason w)
{
	return names[w];
}

int wait_find(const char *name)
{
	for (int i = 0; i < WAITS; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}
