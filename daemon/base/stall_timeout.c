// SPDX-License-Identifier: BSD-2-Clause
/* Timeouts for threads and processes that may be blocked: see stall_timeout.h. */
#include "base/stall_timeout.h"

#define NS_PER_MS UINT64_C(1000000)

struct stall_timeout stall_timeout_new(uint64_t now_ns, unsigned int blocked_ms,
				       unsigned int limit_ms)
{
	const uint64_t step = blocked_ms * NS_PER_MS / STALL_TIMEOUT_POLLS;

	return (struct stall_timeout){
		.next_ns = now_ns + step,
		.step_ns = step,
		.left = (unsigned int)(limit_ms * NS_PER_MS / step),
	};
}

bool stall_timeout_expired(struct stall_timeout *p, uint64_t now_ns, bool runs)
{
	p->blocked = runs ? 0 : p->blocked + 1;
	p->left -= p->left > 0;
	p->next_ns = now_ns + p->step_ns;
	return p->blocked >= STALL_TIMEOUT_POLLS || p->left == 0;
}
