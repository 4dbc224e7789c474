/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * --stop-above: detects that the probes of a target have exceeded a share of its CPU time for too
 * long, so that the caller stops it. Pure.
 */
#ifndef PYPROF_SESSION_BREAKER_H
#define PYPROF_SESSION_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

/* How long the share must be exceeded before the breaker trips, in ns. */
#define BREAKER_NS   10000000000ull
#define BREAKER_TEXT 160

struct breaker {
	uint64_t above_ns; /* CLOCK_MONOTONIC since when the share is exceeded; 0: it is not */
	char text[BREAKER_TEXT]; /* time and reason, human-readable; "": not tripped */
};

/* Resets the breaker. Call it whenever tracing begins. */
void breaker_reset(struct breaker *b);

/*
 * Takes one measurement, about once a second. Since the last one, probes have used probes_ns of CPU
 * time and the program itself own_ns (0 or less: too little to be measured). percent: the limit on
 * probes_ns / own_ns; 0: none. now_ns: CLOCK_MONOTONIC; unix_ns: CLOCK_REALTIME. Returns true if
 * the breaker trips now, and sets text; until the next reset it does not trip again.
 */
bool breaker_trips(struct breaker *b, uint32_t percent, double probes_ns, double own_ns,
		   uint64_t now_ns, uint64_t unix_ns);

#endif
