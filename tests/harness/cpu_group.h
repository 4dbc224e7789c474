/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cgroup of cgroup v1's cpu controller that limits the CPU time of its processes. Requires root.
 * One at a time; the test is skipped if the cgroup cannot be made.
 */
#ifndef PYPROF_TESTS_HARNESS_CPU_GROUP_H
#define PYPROF_TESTS_HARNESS_CPU_GROUP_H

#include <stdbool.h>
#include <sys/types.h>

#define CPU_GROUP_PERIOD 100000 /* us */

/* Make the cgroup, without a limit, or skip the test. */
void cpu_group_make(void);
/* Move a process, and thereby its future children, into the cgroup. */
void cpu_group_add(pid_t pid);
/* Microseconds per CPU_GROUP_PERIOD; -1: no limit. */
void cpu_group_quota(long us);
/* Wait until its processes have ended, with a deadline, and remove the cgroup, if there is one. */
void cpu_group_remove(void);
bool cpu_group_made(void);

#endif
