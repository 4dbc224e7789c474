/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A timeout for a thread or process that may block for ever. The caller polls its state, and only
 * polls that find it blocked count towards the timeout: a thread that runs or waits for a CPU is
 * not punished for a busy machine, and a suspended machine costs one poll. An upper limit applies
 * in any case. Pure.
 */
#ifndef PYPROF_BASE_STALL_TIMEOUT_H
#define PYPROF_BASE_STALL_TIMEOUT_H

#include <stdbool.h>
#include <stdint.h>

#define STALL_TIMEOUT_POLLS 6 /* consecutive polls that find it blocked until the timeout */

struct stall_timeout {
	uint64_t next_ns; /* time of the next poll, CLOCK_MONOTONIC like all times here */
	uint64_t step_ns;
	unsigned int blocked,
		left; /* consecutive polls that found it blocked; polls left until the limit */
};

/* blocked_ms: timeout while blocked; limit_ms: timeout in any case */
struct stall_timeout stall_timeout_new(uint64_t now_ns, unsigned int blocked_ms,
				       unsigned int limit_ms);

/* Call at next_ns with the polled state. runs: it uses a CPU or waits for one. Returns true if the
 * timeout has expired. */
bool stall_timeout_expired(struct stall_timeout *p, uint64_t now_ns, bool runs);

#endif
