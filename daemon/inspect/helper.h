/* SPDX-License-Identifier: BSD-2-Clause */
/* The inspector and opener processes (private to inspect/ and its tests) */
#ifndef PYPROF_INSPECT_HELPER_H
#define PYPROF_INSPECT_HELPER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/helper.h"
#include "python/python.h"
#include "target/target.h"

/*
 * A request of the inspector to the opener, one message each. The reply is an int32_t, 0 or a
 * negative errno, with a descriptor attached, or with the bytes for OPENER_READ.
 */
#define OPENER_FILE	100u /* instead of a target_part: the file opts->path */
#define OPENER_READ	101u /* n bytes of memory at start */
#define OPENER_READ_MAX 65536u
struct opener_msg {
	uint32_t part; /* enum target_part, or one of the above */
	uint32_t n;
	uint64_t start, end;
};

/*
 * What both processes are started with, in addition to descriptors: one end of the socket between
 * them (INSPECT_ASK) and the target's pidfd (INSPECT_PIDFD). Plain data, as it is sent to another
 * process; answer_find.c sends layouts in the same way.
 */
#define INSPECT_ASK   0
#define INSPECT_PIDFD 1
struct inspect_job {
	bool has_target, has_like, plan, breaks, check, details;
	struct target target;
	char path[PATH_MAX]; /* without a target */
	struct python like;
	uint16_t refined[PYTHON_REFINED]; /* of its layout */
	uint64_t like_exec_id;
	uintptr_t test_helper; /* helper_number_of(inspect_test_helper) */
};

/* The processes. Their context is a struct inspect_job. */
void opener_run(struct helper_side *side);
void inspector_run(struct helper_side *side);

/*
 * Drops privileges, and finally all system calls that the process does not need. Returns 0 or a
 * negative errno.
 */
int confine_opener(pid_t parent);
int confine_inspector(pid_t parent);

/* For tests: called instead of the inspector's work, with the same restrictions. */
extern void (*inspect_test_helper)(int chan);

/* Transfers all n bytes. Returns false if the other end is closed. */
bool channel_write(int fd, const void *data, size_t n);
bool channel_read(int fd, void *data, size_t n);

#endif
