// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "thread.bpf.h"

#include "ring.bpf.h"
#include "walk.bpf.h"

/* A global function, so the verifier checks it once rather than once per frame. */
__noinline int walk_next(struct walk *w)
{
	return walk_step(w, frame_load_wait, code_lookup, WALK_FULL);
}

static long walk_names(__u64 index, struct walk *w)
{
	return walk_next(w) != WALK_FRAME;
}

#define CHAIN_RECORDS (PYP_CHAIN_MAX_DEPTH / PYP_CHAIN_FRAMES)

struct chain {
	struct walk walk;
	__u32 flags; /* of the first record */
	__u32 failed;
};

/*
 * Send one CHAIN record. Returns 1 after the last. The frames are counted in the record: Linux 6.1
 * verifies the loop once per value of a variable, beyond its limit.
 */
static long chain_record(__u64 index, struct chain *c)
{
	struct pyp_rec_chain *r = ring_reserve(sizeof(*r));
	__u32 arg = index ? 0 : c->flags;
	int end = WALK_FRAME;
	volatile __u32 *n;

	if (!r) {
		c->failed = 1;
		return 1;
	}
	n = &r->count;
	*n = 0;
	/* Before the loop, so that the verifier does not follow the rest of it from each end. */
	__builtin_memset(r->frames, 0, sizeof(r->frames));
	for (int i = 0; i < PYP_CHAIN_FRAMES; i++) {
		end = walk_next(&c->walk);
		if (end != WALK_FRAME)
			break;
		r->frames[i].frame = c->walk.frame;
		r->frames[i].code = c->walk.code;
		++*n;
	}
	if (end == WALK_FULL)
		c->failed = 1;
	arg |= walk_flags(end, index == CHAIN_RECORDS - 1);
	if (arg & PYP_CHAIN_TRUNCATED)
		count(PYP_LOSS_chain_truncated);
	rec_head(&r->h, bpf_ktime_get_ns(), c->walk.tid, PYP_REC_CHAIN, 0, arg);
	r->first = index * PYP_CHAIN_FRAMES;
	ring_submit(r);
	return !!(arg & PYP_CHAIN_LAST);
}

/*
 * Two walks: the first sends names, so that the daemon knows every code object of a CHAIN record,
 * and because a record that is reserved but not submitted blocks all later ones.
 */
static __always_inline int chain_send(__u32 tid, __u64 frame, __u32 flags)
{
	struct chain c = {.walk = {.next = frame, .tid = tid}, .flags = flags};

	bpf_loop(PYP_CHAIN_MAX_DEPTH, walk_names, &c.walk, 0);
	c.walk.next = frame;
	bpf_loop(CHAIN_RECORDS, chain_record, &c, 0);
	return c.failed ? -1 : 0;
}

__noinline int thread_lost(__u32 tid)
{
	struct thread_state *st = bpf_map_lookup_elem(&threads, &tid);

	thread_cache_drop(tid);
	if (st)
		st->flags |= THREAD_LOST;
	count(PYP_LOSS_lost_events);
	return 0;
}

/*
 * Before some YIELD sites the interpreter has already detached the suspended frame from its caller,
 * so its stack cannot be read. Dropping that event loses nothing: the thread's next event sends the
 * stack.
 */
static __always_inline int yield_is_cut(__u32 kind, __u64 frame)
{
	__u64 previous = 0;

	return kind == PYP_SITE_YIELD &&
	       !user_read_wait(&previous, sizeof(previous), frame + layout.frame_previous) &&
	       !previous;
}

__noinline int thread_announce(__u32 tid, __u32 kind, __u64 frame)
{
	struct thread_state *st = bpf_map_lookup_elem(&threads, &tid);
	struct thread_state fresh = {.epoch = epoch};
	int known = st && st->epoch == epoch;

	if (known && !(st->flags & THREAD_LOST)) {
		thread_cache_add(tid);
		return 0;
	}
	if (yield_is_cut(kind, frame))
		return -1;
	if (chain_send(tid, frame, known ? PYP_CHAIN_RESYNC : 0)) {
		count(PYP_LOSS_lost_chains);
		count(PYP_LOSS_lost_events);
		return -1;
	}
	if (bpf_map_update_elem(&threads, &tid, &fresh, BPF_ANY))
		count(PYP_LOSS_map_full);
	thread_cache_add(tid);
	return 0;
}
