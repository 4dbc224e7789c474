/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Threads: a thread first seen, or seen again after one of its events was lost, sends its whole
 * stack before the event. Until that has worked its events are dropped, and counted.
 *
 * Only the thread itself changes what we know about it (and its exit, when it runs no more), so
 * nothing here needs a lock.
 */
#ifndef PYPROF_THREAD_BPF_H
#define PYPROF_THREAD_BPF_H

#include "code.bpf.h"

#define FRAME_BLOCK 32 /* bytes at frame + layout.frame_block that hold code and previous */
#define FRAME_SPAN  96 /* at most this many up to and with owner */

/* Bytes from frame_block up to and with owner; FRAME_BLOCK where frames have no owner. */
const volatile __u32 frame_span = FRAME_BLOCK;

struct frame_head {
	__u64 code;
	__u64 previous;
	__u32 entry; /* it is the interpreter's own entry frame */
};

#define FRAME_FIELD(block, field)                                                                  \
	(*(__u64 *)((__u8 *)(block) + (layout.frame_##field - layout.frame_block)))

static __always_inline __u64 frame_code(void *block)
{
	return FRAME_FIELD(block, code) & ~(__u64)layout.code_tag_mask;
}

static __always_inline int frame_load(__u64 frame, struct frame_head *h)
{
	__u64 block[FRAME_SPAN / 8];
	__u32 owner = layout.frame_owner - layout.frame_block;

	if (user_read(block, frame_span, frame + layout.frame_block))
		return -1;
	h->code = frame_code(block);
	h->previous = FRAME_FIELD(block, previous);
	h->entry = 0;
	if (layout.frame_owner != 0xffff && owner < FRAME_SPAN)
		h->entry = ((__u8 *)block)[owner] >= layout.owner_entry;
	return 0;
}

/* A walk down a thread's frames; frame and code are set by walk_next. */
struct walk {
	__u64 next;
	__u64 frame;
	__u64 code;
	__u32 tid;
	__u32 pad;
};

enum walk_result { WALK_FRAME, WALK_END, WALK_CUT, WALK_FULL };

#define WALK_HOPS 8

/* CORE_CODE_* bits of a code object; less than 0: it could not be announced. */
typedef int (*walk_look_fn)(__u64 code, __u32 tid);

/*
 * The next frame of Python code: entry frames and code that is never counted are passed over.
 * WALK_CUT: the stack cannot be read further; `unknown`: the code object cannot be told.
 */
static __always_inline int walk_step(struct walk *w, walk_look_fn look, int unknown)
{
	struct frame_head h;
	__u64 frame;
	int marks;

	if (!w)
		return WALK_CUT;
	for (int i = 0; i < WALK_HOPS; i++) {
		frame = w->next;
		if (!frame)
			return WALK_END;
		if (frame_load(frame, &h))
			return WALK_CUT;
		w->next = h.previous;
		if (h.entry)
			continue;
		marks = look(h.code, w->tid);
		if (marks < 0)
			return unknown;
		if (marks & CORE_CODE_SKIP)
			continue;
		w->frame = frame;
		w->code = h.code;
		return WALK_FRAME;
	}
	return WALK_CUT;
}

/* A global function: the verifier looks at it once, not once per frame. */
__noinline int walk_next(struct walk *w)
{
	return walk_step(w, code_lookup, WALK_FULL);
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

/* One CHAIN record; returns 1 after the last. */
static long chain_record(__u64 index, struct chain *c)
{
	struct pyp_rec_chain *r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);
	__u32 arg = index ? 0 : c->flags;
	int end = WALK_FRAME;
	__u32 n = 0;

	if (!r) {
		c->failed = 1;
		return 1;
	}
	for (int i = 0; i < PYP_CHAIN_FRAMES; i++) {
		struct pyp_chain_frame f = {};

		if (end == WALK_FRAME)
			end = walk_next(&c->walk);
		if (end == WALK_FRAME) {
			f.frame = c->walk.frame;
			f.code = c->walk.code;
			n++;
		}
		r->frames[i] = f;
	}
	if (end == WALK_FULL)
		c->failed = 1;
	if (end == WALK_FRAME && index == CHAIN_RECORDS - 1)
		end = WALK_CUT;
	if (end != WALK_FRAME)
		arg |= PYP_CHAIN_LAST;
	if (end == WALK_CUT) {
		arg |= PYP_CHAIN_TRUNCATED;
		count(PYP_CNT_chain_truncated);
	}
	rec_head(&r->h, bpf_ktime_get_ns(), c->walk.tid, PYP_REC_CHAIN, 0, arg);
	r->first = index * PYP_CHAIN_FRAMES;
	r->count = n;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return end != WALK_FRAME;
}

/*
 * Two walks: names first, because what a CHAIN record mentions should be known when it is read,
 * and a record that is reserved but not submitted holds up everything behind it.
 */
static __noinline int chain_send(__u32 tid, __u64 frame, __u32 flags)
{
	struct walk names = {.next = frame, .tid = tid};
	struct chain c = {.walk = {.next = frame, .tid = tid}, .flags = flags};

	bpf_loop(PYP_CHAIN_MAX_DEPTH, walk_names, &names, 0);
	bpf_loop(CHAIN_RECORDS, chain_record, &c, 0);
	return c.failed ? -1 : 0;
}

static __always_inline int thread_cached(__u32 tid)
{
	return thread_cache[core_thread_slot(tid)] == core_thread_entry(tid, epoch);
}

static __always_inline void thread_cache_add(__u32 tid)
{
	thread_cache[core_thread_slot(tid)] = core_thread_entry(tid, epoch);
}

static __always_inline void thread_cache_drop(__u32 tid)
{
	__u64 *entry = &thread_cache[core_thread_slot(tid)];

	if (*entry >> 32 == tid)
		*entry = 0;
}

enum thread_sight { SIGHT_NONE, SIGHT_KNOWN, SIGHT_LOST };

/* Was its stack sent since attach, and have events of it been lost since then? */
static __always_inline enum thread_sight thread_sight(__u32 tid)
{
	struct thread_state *st;

	if (thread_cached(tid))
		return SIGHT_KNOWN;
	st = bpf_map_lookup_elem(&threads, &tid);
	if (!st || st->epoch != epoch)
		return SIGHT_NONE;
	return st->flags & THREAD_LOST ? SIGHT_LOST : SIGHT_KNOWN;
}

/* The caches know nothing of the thread: from now on its events follow its stack again. */
__noinline int thread_lost(__u32 tid)
{
	struct thread_state *st = bpf_map_lookup_elem(&threads, &tid);

	thread_cache_drop(tid);
	if (st)
		st->flags |= THREAD_LOST;
	count(PYP_CNT_lost_events);
	return 0;
}

/*
 * A suspended frame is cut off from its caller before some YIELD sites: its stack cannot be told.
 * Nothing is lost by dropping that event, since the thread's next one sends the stack.
 */
static __always_inline int yield_is_cut(__u32 kind, __u64 frame)
{
	struct frame_head h;

	return kind == PYP_SITE_YIELD && !frame_load(frame, &h) && !h.previous;
}

/*
 * A thread that is not in the cache: send its stack, innermost frame first from `frame` on, unless
 * it was sent already. Returns 0: its event may follow; -1: drop the event.
 */
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
		count(PYP_CNT_lost_chains);
		count(PYP_CNT_lost_events);
		return -1;
	}
	if (bpf_map_update_elem(&threads, &tid, &fresh, BPF_ANY))
		count(PYP_CNT_map_full);
	thread_cache_add(tid);
	return 0;
}

#endif
