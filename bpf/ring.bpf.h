/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Record headers, the daemon's wakeup, and the measurement of the end of an event's program. */
#ifndef PYPROF_RING_BPF_H
#define PYPROF_RING_BPF_H

#include "maps.bpf.h"

static __always_inline void rec_head(struct pyp_rec *h, __u64 ts, __u32 tid, __u32 type, __u32 site,
				     __u32 arg)
{
	h->ts = ts;
	h->tid = tid;
	h->type = type;
	h->site = site;
	h->arg = arg;
}

/*
 * Wake the daemon once when the ring is more than half full. The daemon drains on a timer, so this
 * only matters in bursts. Querying the ring costs 8 ns and a wakeup 5 us, hence only one event in
 * 64 queries it.
 */
#define WAKE_SAMPLE 63

int wake_check(void);

static __always_inline __u64 wake_flags(__u64 ts)
{
	return ts & WAKE_SAMPLE ? BPF_RB_NO_WAKEUP : (__u32)wake_check();
}

/*
 * The probe-latency reference. On a shared machine the cost of a hit varies by a third from one
 * second to the next, and the time from an event's clock to the end of its program varies in
 * proportion. The program measures that time for one event in 16, excluding those that may wake the
 * daemon. The daemon stores the cost of a hit as a multiple of it.
 */
#define LATENCY_SAMPLE 15
#define LATENCY_AT     8

int latency_take(__u64 ts);

static __always_inline void latency_look(__u64 ts)
{
	if ((ts & LATENCY_SAMPLE) == LATENCY_AT)
		latency_take(ts);
}

#endif
