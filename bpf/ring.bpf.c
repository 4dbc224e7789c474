// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ring.bpf.h"

__noinline int wake_check(void)
{
	if (woken || bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) < ring_half)
		return BPF_RB_NO_WAKEUP;
	woken = 1; /* the daemon clears it when it drains the ring */
	return BPF_RB_FORCE_WAKEUP;
}

#define LATENCY_MOST_NS 1024 /* longer times mean that an interrupt occurred */

__noinline int latency_take(__u64 ts)
{
	__u64 ns = bpf_ktime_get_ns() - ts;

	if (ns >= LATENCY_MOST_NS)
		return 0;
	__sync_fetch_and_add(&latency_ns, ns);
	__sync_fetch_and_add(&latency_n, 1);
	return 0;
}
