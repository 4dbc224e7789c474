/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * --stop-above: a target whose probes take too much of it, for too long, is stopped. Pure.
 */
#ifndef PYPROF_SESSION_BREAKER_H
#define PYPROF_SESSION_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

/* So long, in ns, before it trips. */
#define BREAKER_NS   10000000000ull
#define BREAKER_TEXT 160

struct breaker {
	uint64_t above_ns;	 /* since when; 0: not above */
	char text[BREAKER_TEXT]; /* when and why it has tripped, for people; "": it has not */
};

/* Tracing begins. */
void breaker_reset(struct breaker *b);

/*
 * In the last second or so probes have taken probes_ns of the CPU time, and the program own_ns (0 or
 * less: nothing, as far as can be told). percent: the limit; 0: none. True: it trips now, and text is
 * set. now_ns: CLOCK_MONOTONIC; unix_ns: CLOCK_REALTIME.
 */
bool breaker_trips(struct breaker *b, uint32_t percent, double probes_ns, double own_ns,
		   uint64_t now_ns, uint64_t unix_ns);

#endif
