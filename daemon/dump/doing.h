/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads what a thread is doing from the kernel (private to dump/). */
#ifndef PYPROF_DUMP_DOING_H
#define PYPROF_DUMP_DOING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A thread's system call. */
struct doing_call {
	bool running; /* not in the kernel: it uses a CPU or waits for one */
	long nr; /* number; -1: waiting in the kernel outside of system calls, e.g. page fault */
	uint64_t arg[2]; /* the first two arguments */
};

/* Parses the text of /proc/PID/task/TID/syscall. Pure. -EINVAL: invalid text. */
int doing_parse(const char *text, struct doing_call *ret);

/* Returns whether the first argument of this system call is a file descriptor. Pure. */
bool doing_takes_descriptor(const char *name);

/*
 * Writes what the thread is doing to out (size bytes), human-readable; "" if the kernel does not
 * report it, for lack of privileges.
 */
void doing_read(pid_t pid, pid_t tid, char *out, size_t size);

#endif
