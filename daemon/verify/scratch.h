/* SPDX-License-Identifier: BSD-2-Clause */
/* The scratch process (private to verify/): starting it where the target lives, talking to it,
 * ending it. It cannot outlive us, nor its time limit. */
#ifndef PYPROF_VERIFY_SCRATCH_H
#define PYPROF_VERIFY_SCRATCH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"
#include "probe/probe.h"
#include "python/python.h"
#include "target/target.h"

struct scratch {
	pid_t pid;    /* the interpreter; 0: none */
	pid_t keeper; /* our child, whose child it is */
	int in, out;
	/* As scratch_discover found them; NULL: it has not. */
	struct target *target;
	struct python *python;
	uint64_t deadline_ns;
	void (*pump)(void *ctx); /* called while we wait, every few ms; may be NULL */
	void *pump_ctx;
};

/* Run the interpreter of a target (or the program at path, if target is NULL) on script. */
int scratch_start(const struct target *target, const char *path, const char *script,
		  struct scratch *ret, struct diag *diag);
/* Find it and its interpreter; an error if that is not the same build as `want`. */
int scratch_discover(struct scratch *s, const struct python *want, struct diag *diag);
/* Load what it takes to trace it with a plan; borrows both. */
int scratch_probe(const struct scratch *s, const struct plan *plan, size_t ring_bytes,
		  struct probe **ret, struct diag *diag);
/* Let it go on. */
int scratch_go(struct scratch *s);
/* Its next line; -ETIMEDOUT, or -EPIPE when it has ended. */
int scratch_line(struct scratch *s, char *line, size_t size);
void scratch_end(struct scratch *s);

#endif
