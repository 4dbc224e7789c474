/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A control group for a scratch process (private to verify/), if one can be created below ours: in
 * the memory and pids hierarchies of version 1, or in version 2 if our group is delegated. It
 * limits what RLIMIT_* cannot; without it, only those apply.
 */
#ifndef PYPROF_VERIFY_SCRATCH_GROUP_H
#define PYPROF_VERIFY_SCRATCH_GROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define SCRATCH_GROUPS 2u

struct scratch_group {
	unsigned int n; /* 0: none */
	struct {
		char path[PATH_MAX];
		int procs; /* open cgroup.procs, for writing */
	} v[SCRATCH_GROUPS];
	bool memory, pids; /* limits that are in effect */
};

/* Create groups if possible. ret->memory and ret->pids report the result; never fails. */
void scratch_group_new(struct scratch_group *ret);
/* Move this process into the groups. Returns 0 or a negative errno. */
int scratch_group_join(const struct scratch_group *g);
/* Remove the groups. A group with processes remains, and is removed when the next one is
 * created. */
void scratch_group_end(struct scratch_group *g);

/*
 * Pure: the directory of our group in the hierarchy of a version 1 controller, or of version 2
 * (""), from the texts of /proc/self/mountinfo and /proc/self/cgroup. -ENOENT: none, or its mount
 * does not include our group; -ENAMETOOLONG.
 */
int scratch_group_dir(const char *mounts, const char *groups, const char *controller, char *out,
		      size_t size);

#endif
