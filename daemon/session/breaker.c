// SPDX-License-Identifier: BSD-2-Clause
/* Stops targets whose probes cost too much: see breaker.h. */
#include "session/breaker.h"

#include <stdio.h>
#include <time.h>

#define NS_PER_S 1000000000ull

void breaker_reset(struct breaker *b)
{
	*b = (struct breaker){0};
}

static void describe(struct breaker *b, uint32_t percent, double probes_ns, double own_ns,
		     uint64_t unix_ns)
{
	time_t s = (time_t)(unix_ns / NS_PER_S);
	char at[32] = "", cost[32] = "all";
	struct tm tm;

	if (gmtime_r(&s, &tm))
		strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%SZ", &tm);
	if (own_ns > 0)
		snprintf(cost, sizeof(cost), "%.0f %%", 100 * probes_ns / own_ns);
	snprintf(b->text, sizeof(b->text),
		 "stopped at %s: probes took more than %u %% of its own CPU time for 10 seconds, "
		 "at last %s (--stop-above)",
		 at, percent, cost);
}

bool breaker_trips(struct breaker *b, uint32_t percent, double probes_ns, double own_ns,
		   uint64_t now_ns, uint64_t unix_ns)
{
	bool above = percent && probes_ns > 0 && probes_ns * 100 > own_ns * percent;

	if (!above || !b->above_ns)
		b->above_ns = above ? now_ns : 0;
	if (!above || b->text[0] || now_ns - b->above_ns < BREAKER_NS)
		return false;
	describe(b, percent, probes_ns, own_ns, unix_ns);
	return true;
}
