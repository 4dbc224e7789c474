/* SPDX-License-Identifier: BSD-2-Clause */
/* Clocks, in nanoseconds. */
#ifndef PYPROF_BASE_CLOCK_H
#define PYPROF_BASE_CLOCK_H

#include <stdint.h>
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

/* Nanoseconds since 1970 */
static inline uint64_t clock_unix_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

#endif
