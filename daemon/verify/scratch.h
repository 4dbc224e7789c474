/* SPDX-License-Identifier: BSD-2-Clause */
/* The scratch process (private to verify/): starting it where the target lives, talking to it,
 * ending it. It cannot outlive us, nor its time limit. */
#ifndef PYPROF_VERIFY_SCRATCH_H
#define PYPROF_VERIFY_SCRATCH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"
#include "inspect/inspect.h"
#include "probe/probe.h"
#include "python/python.h"
#include "target/target.h"
#include "verify/scratch_group.h"

struct scratch {
	pid_t pid;    /* the interpreter; 0: none */
	int pidfd;    /* the interpreter's */
	pid_t keeper; /* our child, whose child it is */
	int in, out;
	int leash; /* both end when it is closed */
	struct scratch_group group;
	/* As scratch_discover found them; NULL: it has not. */
	struct target *target;
	struct python *python;
	struct inspect *inspect; /* reads its memory */
	uint64_t deadline_ns;
	void (*pump)(void *ctx); /* called while we wait, every few ms; may be NULL */
	void *pump_ctx;
};

struct scratch_opts {
	const struct target *target; /* whose interpreter it is; NULL: the program at path */
	const char *path;	     /* used if target is NULL */
	const char *script;
	void (*pump)(void *ctx); /* called while we wait, every few ms; may be NULL */
	void *pump_ctx;
};

/*
 * Run an interpreter on a script. An error (diag says which) if the target is not, or no longer,
 * the program and user that it was opened as, if the process cannot be set apart as it must be, or
 * if it does not start in time. scratch_end() in every case.
 */
int scratch_start(const struct scratch_opts *opts, struct scratch *ret, struct diag *diag);
/* Find it and its interpreter; an error if that is not the same build as `want`. */
int scratch_discover(struct scratch *s, const struct python *want, struct diag *diag);
/* Load what it takes to trace it with a plan, calls of C functions included or not; borrows both. */
int scratch_probe(const struct scratch *s, const struct plan *plan, bool builtins,
		  size_t ring_bytes, struct probe **ret, struct diag *diag);
/* Let it go on. */
int scratch_go(struct scratch *s);
/* Its next line; -ETIMEDOUT, -EPIPE when it has ended, -EMSGSIZE when the line is longer. */
int scratch_line(struct scratch *s, char *line, size_t size);
/* Does not wait for a process that cannot be killed. */
void scratch_end(struct scratch *s);

#endif
