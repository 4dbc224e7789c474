/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The ring (bpf_ring.h), record headers, the daemon's wakeup, and the measurement of the end of an
 * event's program.
 */
#ifndef PYPROF_RING_BPF_H
#define PYPROF_RING_BPF_H

#include "maps.bpf.h"

#define RING_LOAD(v) (*(volatile typeof(v) *)&(v))

/* Not a position: the ring is full. */
#define RING_FULL (~0ull)

#define RING_TRIES 16 /* each failure means that another program has succeeded */

/*
 * Claim space. Returns its position, or RING_FULL. The reader may have passed `at` if that is out of
 * date; the difference is then negative. Inlined, because the kernel limits the depth of calls.
 */
static __always_inline __u64 ring_claim(__u64 bytes)
{
	__u64 at = RING_LOAD(ring_pos.written), was;

#pragma clang loop unroll(disable)
	for (int i = 0; i < RING_TRIES; i++) {
		if ((__s64)(at + bytes - RING_LOAD(ring_pos.read)) > (__s64)ring_size)
			break;
		was = __sync_val_compare_and_swap(&ring_pos.written, at, at + bytes);
		if (was == at)
			return at;
		at = was;
	}
	return RING_FULL;
}

/* The same, for code that runs seldom: a global function, so the verifier follows its loop once. */
__u64 ring_claim_cold(__u64 bytes);

/* The record at a claimed position. */
static __always_inline void *ring_record(__u64 at, __u64 bytes)
{
	volatile __u64 *header;
	__u32 chunk;
	void *data;

	if (at == RING_FULL)
		return 0;
	chunk = (at & (ring_size - 1)) >> PYP_RING_SHIFT;
	data = bpf_map_lookup_elem(&records, &chunk);
	if (!data) /* impossible: all chunks exist */
		return 0;
	header = data + (at & ring_mask);
	*header = PYP_RING_HEADER(at, bytes | PYP_RING_BUSY, ring_key);
	return (void *)(header + 1);
}

/*
 * Claim space for a record of constant size. Returns the record, to be filled completely and
 * submitted; NULL: the ring is full.
 */
static __always_inline void *ring_reserve(__u32 size)
{
	const __u64 bytes = PYP_RING_BYTES(size);

	return ring_record(ring_claim(bytes), bytes);
}

/* The same by ring_claim_cold(). */
static __always_inline void *ring_reserve_cold(__u32 size)
{
	const __u64 bytes = PYP_RING_BYTES(size);

	return ring_record(ring_claim_cold(bytes), bytes);
}

/* Let the daemon read the record. x86-64 does not reorder stores; the barrier binds the compiler. */
static __always_inline void ring_submit(void *record)
{
	volatile __u64 *header = (__u64 *)record - 1;

	barrier();
	*header ^= PYP_RING_BUSY;
}

/* Wake the daemon. Returns 0. */
int ring_wake(void);

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
 * only matters in bursts. A wakeup costs 5 us; one event in 64 checks.
 */
#define WAKE_SAMPLE 63

int wake_check(void);

static __always_inline void wake_look(__u64 ts)
{
	if (!(ts & WAKE_SAMPLE))
		wake_check();
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
