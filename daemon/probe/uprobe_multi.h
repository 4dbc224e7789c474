/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One uprobe link with many offsets (Linux 6.6), by the bare system call: neither the libbpf nor
 * the kernel headers we build against need to know it.
 */
#ifndef PYPROF_PROBE_UPROBE_MULTI_H
#define PYPROF_PROBE_UPROBE_MULTI_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What a program must be loaded with; it can then be attached in no other way. */
#define UPROBE_MULTI_ATTACH_TYPE 48

struct uprobe_multi_opts {
	int prog_fd;
	const char *path;
	const uint64_t *offsets; /* in the file */
	const uint64_t *cookies; /* NULL: all 0 */
	uint32_t n;
	pid_t pid; /* only this process; 0: every process that maps the file */
};

/* Returns the link's descriptor (close-on-exec; closing it takes the probes off) or -errno. */
int uprobe_multi_link(const struct uprobe_multi_opts *o);

#endif
