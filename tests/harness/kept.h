/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums of the intervals that continuous mode keeps, compared with a process's CPU time. */
#ifndef PYPROF_TESTS_HARNESS_KEPT_H
#define PYPROF_TESTS_HARNESS_KEPT_H

#include <jansson.h>
#include <stdint.h>

/* list: as `pyprofctl history --json` prints it. The sum of a number of its intervals. */
int64_t kept_sum(const json_t *list, const char *key);

/* CPU time that a hypervisor has taken away, of all CPUs, with the resolution of /proc/stat, seconds */
double kept_stolen_s(void);

/*
 * Checks that the intervals' samples at this rate are a process's CPU time in seconds. The deviation of n samples is
 * at most their root, of which 5.7 are exceeded once in 10^8 times; while a hypervisor has the CPU, there are none.
 */
void kept_check_sum(const json_t *list, unsigned int rate, double cpu_s, double stolen_s);

#endif
