/* SPDX-License-Identifier: BSD-2-Clause */
/* The scratch process (private to verify/): starts it in the target's environment, communicates
 * with it, ends it. It cannot outlive the daemon or its time limit. */
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

/* Processes of self-tests that could not be ended: then no more are started. */
#define SCRATCH_STUCK_MAX 4u

struct scratch {
	pid_t pid;    /* the interpreter; 0: none */
	int pidfd;    /* of the interpreter */
	pid_t keeper; /* the daemon's child and the interpreter's parent */
	int in, out;
	int leash; /* closing it ends both */
	struct scratch_group group;
	/* From scratch_discover(); NULL before */
	struct target *target;
	struct python *python;
	struct inspect *inspect; /* reads the interpreter's memory */
	uint64_t deadline_ns;
};

struct scratch_opts {
	const struct target *target; /* target whose interpreter is run; NULL: run path */
	const char *path;	     /* only if target is NULL */
	const char *script;
};

/*
 * Run an interpreter with a script. Fails if the target no longer has the program and user that it
 * was opened with, if the process cannot be isolated, or if it does not start in time. Call
 * scratch_end() in any case.
 */
int scratch_start(const struct scratch_opts *opts, struct scratch *ret, struct diag *diag);
/* Find the interpreter in the scratch process. Fails if it is not the same build as `want`. */
int scratch_discover(struct scratch *s, const struct python *want, struct diag *diag);
/* Load the probes for a plan, optionally with calls of C functions. Borrows s and plan; *ret is
 * owned by the caller. */
int scratch_probe(const struct scratch *s, const struct plan *plan, bool builtins,
		  size_t ring_bytes, struct probe **ret, struct diag *diag);
/* Let the script continue. */
int scratch_go(struct scratch *s);
/* Read the next line. -ETIMEDOUT; -EPIPE: it has ended; -EMSGSIZE: the line is too long. */
int scratch_line(struct scratch *s, char *line, size_t size);
/* End it, without waiting for a process that cannot be killed. */
void scratch_end(struct scratch *s);

#endif
