/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Child processes of a target that is being attached: a server that forks its workers hardly uses
 * CPU time itself, so an attach without them reports their number.
 */
#ifndef PYPROF_SESSION_WORKERS_H
#define PYPROF_SESSION_WORKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WORKERS_MAX  256
#define WORKERS_TEXT 192

/* A process and its CPU time. */
struct worker {
	pid_t pid;
	uint64_t cpu_ns;
};

struct workers {
	struct worker own, v[WORKERS_MAX];
	size_t n;
	bool more; /* there may be others, which are left out */
	uint64_t since_ns;
};

/*
 * Lists children of the process, and theirs, that run the same program: those that can be followed.
 * Reads their CPU times now.
 */
void workers_find(pid_t pid, struct workers *ret);

/* The CPU time (ns) that they have used since then, and in all. */
struct workers_use {
	size_t n;
	bool more;
	uint64_t span_ns;
	uint64_t own_ns, theirs_ns; /* in this span */
	uint64_t own_ever_ns, theirs_ever_ns;
	pid_t pid[WORKERS_MAX];
};
struct workers_use workers_use(const struct workers *w);

/*
 * Describes what they do, and how to include them: "its 4 Python children use 1.9 CPUs, ...". Pure. NULL:
 * there are none.
 */
const char *workers_text(const struct workers_use *u, char out[WORKERS_TEXT]);

#endif
