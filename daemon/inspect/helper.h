/* SPDX-License-Identifier: BSD-2-Clause */
/* The inspector and opener processes (private to inspect/ and its tests) */
#ifndef PYPROF_INSPECT_HELPER_H
#define PYPROF_INSPECT_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct inspect_opts;

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
 * Runs the process; does not return. Closes all other descriptors. parent: when the process with
 * this pid ends, this one ends.
 */
_Noreturn void opener_run(const struct inspect_opts *opts, int ask, pid_t parent);
_Noreturn void inspector_run(const struct inspect_opts *opts, int chan, int ask, pid_t parent);

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
