/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Other tracers of a process: multi-uprobe links of other programs at the same instructions. The
 * kernel lists links since 5.8 and reports what a multi-uprobe link probes since 6.8, to processes
 * with CAP_SYS_ADMIN. Probes of perf events are not listed.
 */
#ifndef PYPROF_PROBE_TRACERS_H
#define PYPROF_PROBE_TRACERS_H

#include <stdint.h>
#include <sys/types.h>

struct tracers {
	uint32_t links; /* number of other programs' links; 0: none or unknown */
	pid_t owner;	/* a process with one of them, or its daemon; 0: not found */
};

struct tracers_of {
	pid_t pid;	  /* the target */
	const char *path; /* the probed file, as shown by /proc */
	const uint64_t *offsets;
	uint32_t n;
};

/*
 * Searches for them. It holds each link for a moment, so this process may have to complete a link's
 * release: call it where 50 ms are acceptable and where the process is not killed (probe/holder.h).
 * Returns 0 or -errno: -EPERM; -ENOTSUP (not reported by this kernel).
 */
int tracers_find(const struct tracers_of *of, struct tracers *ret);

/* Adds or removes an own link, which searches ignore. Thread-safe. */
void tracers_add_own(int link_fd, uint32_t *ret_id);
void tracers_drop_own(uint32_t id);

/* The name of the process that holds a daemon's links; the daemon is its parent. */
#define TRACERS_HOLDER "pyprofd-probes"

#endif
