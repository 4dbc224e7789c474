// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ring.bpf.h"

/* A record that is discarded wakes the daemon, too. If there is no room, one is pending. */
__noinline int ring_wake(void)
{
	void *record = bpf_ringbuf_reserve(&wakes, 8, 0);

	if (record)
		bpf_ringbuf_discard(record, BPF_RB_FORCE_WAKEUP);
	return 0;
}

__noinline int wake_check(void)
{
	if (woken || RING_LOAD(ring_pos.written) - RING_LOAD(ring_pos.read) < ring_size / 2)
		return 0;
	woken = 1; /* the daemon clears it when it drains the ring */
	return ring_wake();
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

__noinline __u64 ring_claim_cold(__u64 bytes)
{
	return ring_claim(bytes);
}
