/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why a thread is off its CPU: the reasons, and the reason of each system call. The reasons of a
 * context add up to its wall time minus its CPU time, to the nanosecond. Pure.
 */
#ifndef PYPROF_BASE_WAIT_H
#define PYPROF_BASE_WAIT_H

#include <stdint.h>

/* X(id, description). Reasons from disk to device are kinds of I/O, and count as one reason. */
#define WAIT_TABLE(X)                                                                              \
	X(gil, "waits for the GIL")                                                                \
	X(lock, "waits for a lock (a futex that is not the GIL's)")                                \
	X(runnable, "wants a CPU and has none")                                                    \
	X(disk, "files: read, write, fsync, open")                                                 \
	X(socket, "sockets: receive, send, accept, connect")                                       \
	X(poll, "poll, select, epoll with descriptors")                                            \
	X(pipe, "pipes")                                                                           \
	X(device, "other I/O: terminals, eventfd, ioctl")                                          \
	X(sleep, "sleeps: nanosleep, poll and select without descriptors")                         \
	X(fault, "page faults")                                                                    \
	X(process, "waits for child processes")                                                    \
	X(other, "other system calls, stopped, or not known")

enum wait_reason {
#define PYP_X(id, text) WAIT_##id,
	WAIT_TABLE(PYP_X)
#undef PYP_X
		WAITS
};

static inline int wait_is_io(enum wait_reason w)
{
	return w >= WAIT_disk && w <= WAIT_device;
}

/* The number of longest waits that a profile keeps of each reason. */
#define WAIT_LONGEST 16u

/* System calls with numbers from this one on are not distinguished. */
#define WAIT_SYSCALLS 512

/*
 * Returns what a blocked system call waits for, by its number and first two arguments. fd: enum
 * pyp_fd_kind of the first argument, used only if wait_by_fd() returns true. A futex counts as a
 * lock.
 */
enum wait_reason wait_of_syscall(int64_t nr, uint64_t arg0, uint64_t arg1, uint8_t fd);

/* Returns whether the reason depends on the kind of file of the first argument, a descriptor. */
int wait_by_fd(int64_t nr);

/* Returns whether the first argument of the system call is a descriptor. */
int wait_takes_fd(int64_t nr);

/* The identifier of a reason, such as "gil"; and the reason of an identifier, -1: there is none. */
const char *wait_name(enum wait_reason w);
int wait_find(const char *name);

#endif
