/* SPDX-License-Identifier: BSD-2-Clause */
/* Clocks, in nanoseconds. */
#ifndef PYPROF_BASE_CLOCK_H
#define PYPROF_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define CLOCK_NS_PER_S UINT64_C(1000000000)

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts); /* cannot fail with a valid clock */
	return (uint64_t)ts.tv_sec * CLOCK_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* CLOCK_MONOTONIC: the clock of events and snapshots */
static inline uint64_t clock_monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/*
 * The CPU time of a process, threads that have ended included. It is exact and needs no permission.
 * False, and *ret is unchanged: the process has ended.
 */
static inline bool clock_process_cpu_ns(pid_t pid, uint64_t *ret)
{
	clockid_t clock;
	struct timespec ts;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &ts) < 0)
		return false;
	*ret = (uint64_t)ts.tv_sec * CLOCK_NS_PER_S + (uint64_t)ts.tv_nsec;
	return true;
}

/* Nanoseconds since 1970 */
static inline uint64_t clock_unix_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

#endif
