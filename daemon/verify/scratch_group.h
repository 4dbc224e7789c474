/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A control group of a scratch process's own (private to verify/), where the system lets us make
 * one below ours: in the memory and pids hierarchies of version 1, or in version 2 where ours is
 * delegated to us. It bounds what the limits of a process (RLIMIT_*) do not see; where there is
 * none those have to do.
 */
#ifndef PYPROF_VERIFY_SCRATCH_GROUP_H
#define PYPROF_VERIFY_SCRATCH_GROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define SCRATCH_GROUPS 2u

struct scratch_group {
	unsigned int n; /* 0: there is none */
	struct {
		char path[PATH_MAX];
		int procs; /* cgroup.procs, to be written to */
	} v[SCRATCH_GROUPS];
	bool memory, pids; /* what is bounded by them */
};

/* Make what may be made. Never an error: ret->memory and ret->pids say what there is. */
void scratch_group_new(struct scratch_group *ret);
/* Move this process into them. 0 or a negative errno. */
int scratch_group_join(const struct scratch_group *g);
/* Take them away, which works as soon as no process is in them: what is left is taken away when the
 * next are made. */
void scratch_group_end(struct scratch_group *g);

/*
 * Pure: from the texts of /proc/self/mountinfo and /proc/self/cgroup, the directory of our own group
 * in the hierarchy of a controller of version 1, or in that of version 2 ("").  -ENOENT: there is
 * none, or it is mounted where ours cannot be seen; -ENAMETOOLONG.
 */
int scratch_group_dir(const char *mounts, const char *groups, const char *controller, char *out,
		      size_t size);

#endif
