/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Records and the ring: heads, wake-ups of the daemon, and what the end of an event's program costs.
 */
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
 * Wake the daemon, once, when the ring is more than half full. The daemon drains on a timer, so
 * this is for bursts only; asking the ring costs 8 ns and waking 5 us, hence one event in 64.
 */
#define WAKE_SAMPLE 63

int wake_check(void);

static __always_inline __u64 wake_flags(__u64 ts)
{
	return ts & WAKE_SAMPLE ? BPF_RB_NO_WAKEUP : (__u32)wake_check();
}

/*
 * What a hit takes varies with what else the machine does, by a third from one second to the next
 * where it is shared. The time from an event's clock to the end of its program varies with it, and
 * is measured for one event in 16: none of those that may wake the daemon. What a hit costs is
 * known as a multiple of it.
 */
#define GAUGE_SAMPLE 15
#define GAUGE_AT     8

int gauge_take(__u64 ts);

static __always_inline void gauge_look(__u64 ts)
{
	if ((ts & GAUGE_SAMPLE) == GAUGE_AT)
		gauge_take(ts);
}

#endif
