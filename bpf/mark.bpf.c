// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Marks: instructions of the evaluator that are executed rarely enough to be counted all the time. How
 * often they are executed in a window, and in all, shows which part of the program's work the window has
 * seen, whatever the probes cost there. Before and during an exact trace they are only counted. A mark's
 * cookie is its number + 1.
 */
#include "ids.bpf.h"
#include "ring.bpf.h"

const volatile __u32 mark_records = 0;

/* Since load; marks of several threads are counted at the same time. */
__u64 mark_hits[PYP_MARKS];

/* The same by thread, as far as there is room. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PYP_MARK_THREADS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, __u64);
} mark_threads SEC(".maps");

static __always_inline void mark_thread(__u32 tid)
{
	__u64 one = 1, *n = bpf_map_lookup_elem(&mark_threads, &tid);

	if (n)
		++*n; /* no other thread updates this key */
	else
		bpf_map_update_elem(&mark_threads, &tid, &one, BPF_NOEXIST);
}

SEC("uprobe")
int on_mark(struct pt_regs *ctx)
{
	__u64 mark = bpf_get_attach_cookie(ctx) - 1, id; /* without a cookie: too large */
	struct pyp_rec *r;

	hit_slower();
	if (!active || mark >= PYP_MARKS)
		return 0;
	id = current_ids();
	if (check_tgid && id >> 32 != target_tgid)
		return 0;
	__sync_fetch_and_add(&mark_hits[mark], 1);
	if (!mark_records)
		return 0;
	mark_thread(id);
	if (active != PYP_ACTIVE_ON)
		return 0;
	r = ring_reserve(sizeof(*r));
	if (!r) {
		count(PYP_LOSS_lost_events);
		return 0;
	}
	rec_head(r, bpf_ktime_get_ns(), id, PYP_REC_MARK, 0, 0);
	ring_submit(r);
	return 0;
}
