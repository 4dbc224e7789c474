/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for a thread or a process that may be blocked for ever. It is looked at now and then, and
 * only looks that find it blocked use the patience up: as long as it runs or waits for a processor
 * it is waited for, and a machine that stood still for a while has cost one look. Pure.
 */
#ifndef PYPROF_BASE_PATIENCE_H
#define PYPROF_BASE_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#define PATIENCE_LOOKS 6 /* that find it blocked, one after the other */

struct patience {
	uint64_t next_ns; /* when to look; CLOCK_MONOTONIC, like all times here */
	uint64_t step_ns;
	unsigned int blocked,
		left; /* looks that found it blocked in a row; looks until the limit */
};

/* blocked_ms: how long it may be blocked; limit_ms: how long it may take if it is not. */
struct patience patience_new(uint64_t now_ns, unsigned int blocked_ms, unsigned int limit_ms);

/* To be called when next_ns has come; runs: whether it uses a processor, or waits for one. True:
 * it is waited for no longer. */
bool patience_ends(struct patience *p, uint64_t now_ns, bool runs);

#endif
