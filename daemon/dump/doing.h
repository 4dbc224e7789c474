/* SPDX-License-Identifier: BSD-2-Clause */
/* What a thread is doing, as the kernel shows it: private to dump/. */
#ifndef PYPROF_DUMP_DOING_H
#define PYPROF_DUMP_DOING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A thread's system call. */
struct doing_call {
	bool running; /* none: it uses a CPU, or waits for one */
	long nr;      /* -1: it waits in the kernel outside of system calls, as in a page fault */
	uint64_t arg[2]; /* its first arguments */
};

/* Parse the text of /proc/PID/task/TID/syscall. Pure. -EINVAL: it is no such text. */
int doing_parse(const char *text, struct doing_call *ret);

/* Does the first argument of this system call name a descriptor? Pure. */
bool doing_takes_descriptor(const char *name);

/* For people; "" where the kernel does not say, for want of privileges. */
void doing_read(pid_t pid, pid_t tid, char *out, size_t size);

#endif
