/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cgroup that limits the CPU time of its processes, of cgroup v1's cpu controller. Root only. One
 * at a time; the test is skipped if it cannot be made.
 */
#ifndef PYPROF_TESTS_HARNESS_CPU_GROUP_H
#define PYPROF_TESTS_HARNESS_CPU_GROUP_H

#include <stdbool.h>
#include <sys/types.h>

#define CPU_GROUP_PERIOD_US 100000

/* Make it, without a limit, or skip the test. */
void cpu_group_make(void);
/* Move a process into it, with its future children. */
void cpu_group_add(pid_t pid);
/* Microseconds per CPU_GROUP_PERIOD_US; -1: no limit. */
void cpu_group_quota(long us);
/* Wait until its processes have ended, with a deadline, and remove it, if one was made. */
void cpu_group_remove(void);
bool cpu_group_made(void);

#endif
