/* SPDX-License-Identifier: BSD-2-Clause */
/* The two processes that look into a target (private to inspect/, and its tests). */
#ifndef PYPROF_INSPECT_HELPER_H
#define PYPROF_INSPECT_HELPER_H

#include <stdint.h>
#include <sys/types.h>

#include "inspect/inspect.h"

/* What the inspector asks of the opener, in one message; the answer is an int32_t, 0 or a negative
 * errno, with the descriptor beside it, or for OPENER_READ with the bytes behind it. */
#define OPENER_FILE	100u /* instead of a target_part: opts->path */
#define OPENER_READ	101u /* memory at start; n bytes */
#define OPENER_READ_MAX 65536u
struct opener_msg {
	uint32_t part; /* enum target_part, or one of the above */
	uint32_t n;
	uint64_t start, end;
};

/* The bodies of the processes; they do not return. All other descriptors are closed. parent: whose
 * end ends them. */
_Noreturn void opener_run(const struct inspect_opts *opts, int ask, pid_t parent);
_Noreturn void inspector_run(const struct inspect_opts *opts, int chan, int ask, pid_t parent);

/* Give up what the process is not to have; at last, all system calls but those it needs. 0 or a
 * negative errno. */
int confine_opener(pid_t parent);
int confine_inspector(pid_t parent);

/* Tests: called instead of the inspector's work, confined as that is. */
extern void (*inspect_test_helper)(int chan);

/* All of it; false: the other end has gone. */
bool channel_write(int fd, const void *data, size_t n);
bool channel_read(int fd, void *data, size_t n);

#endif
