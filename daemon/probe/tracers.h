/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Other tracers of a process: multi-uprobe links of other programs that put probes at the same
 * instructions. The kernel lists links since 5.8 and says what a multi-uprobe link probes since 6.8,
 * to those with CAP_SYS_ADMIN. Probes made by perf events are not listed.
 */
#ifndef PYPROF_PROBE_TRACERS_H
#define PYPROF_PROBE_TRACERS_H

#include <stdint.h>
#include <sys/types.h>

struct tracers {
	uint32_t links; /* of others; 0: none, or it cannot be found out */
	pid_t owner; /* a process that has one of them: the daemon, where it is one; 0: not found */
};

struct tracers_of {
	pid_t pid;	  /* the target */
	const char *path; /* of the file that is probed, as /proc shows it */
	const uint64_t *offsets;
	uint32_t n;
};

/*
 * Look for them. To hold a link for a moment, as this does, can make its release ours: call it where
 * that may take 50 ms, and where nobody kills (probe/holder.h). 0 or -errno: -EPERM, -ENOTSUP (this
 * kernel does not say).
 */
int tracers_find(const struct tracers_of *of, struct tracers *ret);

/* A link of our own, which is not to be found; and no more. Any thread. */
void tracers_add_own(int link_fd, uint32_t *ret_id);
void tracers_drop_own(uint32_t id);

/* The name of the process that holds a daemon's links; its parent is the daemon. */
#define TRACERS_HOLDER "pyprofd-probes"

#endif
