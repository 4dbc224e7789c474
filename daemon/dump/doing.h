/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads what a thread is doing from the kernel (private to dump/). */
#ifndef PYPROF_DUMP_DOING_H
#define PYPROF_DUMP_DOING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "python/python.h"
#include "target/target.h"

/* A thread's system call. */
struct doing_call {
	bool running; /* not in the kernel: it uses a CPU or waits for one */
	long nr; /* number; -1: waiting in the kernel outside of system calls, e.g. page fault */
	uint64_t arg[2]; /* the first two arguments */
};

/* Parses the text of /proc/PID/task/TID/syscall. Pure. -EINVAL: invalid text. */
int doing_parse(const char *text, struct doing_call *ret);

enum doing_kind {
	DOING_UNKNOWN, /* the kernel does not report it, for lack of privileges */
	DOING_RUNNING, /* it uses a CPU or waits for one */
	DOING_FAULT,   /* waits in the kernel, outside of system calls */
	DOING_GIL,     /* waits for the GIL */
	DOING_LOCK,    /* waits for another lock, in futex */
	DOING_SLEEP,
	DOING_CALL, /* another system call */
	DOING_KINDS
};

struct doing {
	enum doing_kind kind;
	char text[320]; /* "read of descriptor 5 (pipe:[81])", "running", ...; "": unknown */
};

/* The kind of a system call. gils: as from inspect_gils(), all zero: unknown. Pure. */
enum doing_kind doing_kind_of(const struct doing_call *c, const char *name,
			      const struct pyp_gil_range gils[PYP_GIL_RANGES]);
/* A kind in JSON; NULL: unknown. */
const char *doing_kind_name(enum doing_kind kind);

/* Reads what a thread of the process is doing. */
void doing_read(const struct target *t, pid_t tid, const struct pyp_gil_range gils[PYP_GIL_RANGES],
		struct doing *ret);

#endif
