/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A uprobe link with many offsets (Linux 6.6), by direct system call, so that older versions of
 * libbpf and of the kernel headers suffice for the build.
 */
#ifndef PYPROF_PROBE_UPROBE_MULTI_H
#define PYPROF_PROBE_UPROBE_MULTI_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The attach type for loading the program, which then cannot be attached in another way. */
#define UPROBE_MULTI_ATTACH_TYPE 48

struct uprobe_multi_opts {
	int prog_fd;
	const char *path;
	const uint64_t *offsets; /* offsets in the file */
	const uint64_t *cookies; /* NULL: all 0 */
	uint32_t n;
	pid_t pid; /* only this process; 0: every process with the file mapped */
};

/* Returns the link's descriptor (close-on-exec; closing it detaches the probes) or -errno. */
int uprobe_multi_link(const struct uprobe_multi_opts *o);

#endif
