// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Mode trace: a record for every call and return. One program serves all sites of the plan. */
#include "gc.bpf.h"
#include "hit.bpf.h"
#include "counters.bpf.h"
#include "memory.bpf.h"
#include "native.bpf.h"

/* The first four site kinds have the numbers of their record types. */
_Static_assert((int)PYP_SITE_ENTER == (int)PYP_REC_ENTER, "kinds are types");
_Static_assert((int)PYP_SITE_THROW == (int)PYP_REC_THROW, "kinds are types");
_Static_assert((int)PYP_SITE_LEAVE == (int)PYP_REC_LEAVE, "kinds are types");
_Static_assert((int)PYP_SITE_YIELD == (int)PYP_REC_YIELD, "kinds are types");

/*
 * Send what precedes an event: the thread's stack, if the daemon does not have it, and the resource
 * counters and memory sizes that have changed. Returns 0; -1 if the event must be dropped (already
 * counted).
 */
static __always_inline int event_prepare(const struct hit *h, __u64 frame)
{
	if (!thread_cached(h->tid) && thread_announce(h->tid, PYP_COOKIE_KIND(h->cookie), frame))
		return -1;
	if (counters)
		counters_look(bpf_get_current_task_btf(), h->tid);
	if (memory)
		memory_look(bpf_get_current_task_btf(), h->tid);
	return 0;
}

/* Reserve an event's record and fill its header. Returns NULL if the ring is full. */
static __always_inline void *event_reserve(const struct hit *h, __u64 size, __u32 type, __u32 arg)
{
	__u64 ts = bpf_ktime_get_ns();
	struct pyp_rec *r = ring_reserve(size);

	if (!r) {
		thread_lost(h->tid);
		return 0;
	}
	rec_head(r, ts, h->tid, type, PYP_COOKIE_SITE(h->cookie), arg);
	return r;
}

static __always_inline int event_submit(struct pyp_rec *r)
{
	__u64 ts = r->ts;

	ring_submit(r);
	wake_look(ts);
	latency_look(ts);
	return 0;
}

/* The CORE_CODE_* bits for a frame that is entered; 0 if the code object could not be announced. */
static __always_inline __u64 code_flags_of(__u64 code, __u32 tid)
{
	int flags = code_lookup(code, tid);

	return flags < 0 ? 0 : flags;
}

/*
 * The `arg` bits of an ENTER of a frame that can be suspended. If the frame cannot be read, the
 * entry counts as a resumption.
 */
static __noinline __u32 generator_arg(__u64 frame, __u64 code)
{
	__u64 at = 0;
	__s32 first = 0, lasti = 0;
	int start = 0;

	if (!layout.code_start)
		start = !user_read_wait(&lasti, sizeof(lasti), frame + layout.frame_instr) &&
			lasti < 0;
	else if (!user_read_wait(&at, sizeof(at), frame + layout.frame_instr) &&
		 !user_read_wait(&first, sizeof(first), code + layout.code_first))
		start = core_is_start(at - (code + layout.code_start), first);
	return PYP_ENTER_GENERATOR | (start ? PYP_ENTER_START : 0);
}

static __always_inline int on_enter(struct pt_regs *ctx, const struct hit *h)
{
	__u64 block[ENTRY_BLOCK / 8];
	struct pyp_rec_enter *r;
	__u64 code, caller, entry, frame = h->ptr;
	__u32 arg = 0, tid = h->tid;

	if (frame_block_read(block, frame))
		return frame_fault(tid);
	code = frame_code(block);
	caller = FRAME_FIELD(block, previous);
	if (!code) /* not a frame; 0 would match an empty cache entry */
		return frame_fault(tid);

	entry = code_cache[core_code_slot(code)];
	if (!core_code_hit(entry, code))
		entry = code_flags_of(code, tid);
	if (entry & CORE_CODE_SKIP || is_creation(frame, entry))
		return 0;
	if (!caller_is_clear(frame, block, caller, tid, ARCH_SP(ctx)))
		caller = caller_resolve(caller, tid, ARCH_SP(ctx));
	if (entry & CORE_CODE_SUSPENDS)
		arg = generator_arg(frame, code);
	frame_entered(frame, tid);
	if (event_prepare(h, caller))
		return 0;
	r = event_reserve(h, sizeof(*r), enter_type(ctx, h->cookie), arg);
	if (!r)
		return 0;
	r->frame = frame;
	r->code = code;
	r->caller = caller;
	return event_submit(&r->h);
}

const volatile struct pyp_raising raising = {};
__u32 report_raised =
	0; /* set by the daemon: LEAVE reports whether an exception leaves the frame */

/* The address of a frame's current instruction; 0: unknown. */
static __always_inline __u64 current_instr(__u64 frame)
{
	__u64 at = 0;
	__s32 index = -1;

	if (!raising.index_unit)
		return user_read_wait(&at, sizeof(at), frame + layout.frame_instr) ? 0 : at;
	if (user_read_wait(&index, sizeof(index), frame + layout.frame_instr) || index < 0 ||
	    user_read_wait(&at, sizeof(at), frame + layout.frame_code) ||
	    user_read_wait(&at, sizeof(at), at + raising.code_bytes))
		return 0;
	return at + raising.bytes_data + (__u64)index * raising.index_unit;
}

/* Up to four reads per leave, only while they are asked for. */
__noinline __u32 leave_arg(__u64 frame)
{
	__u8 code[4]; /* this instruction and the next one */
	__u64 at = current_instr(frame);

	if (!at || user_read_wait(code, sizeof(code), at))
		return 0;
	if (raising.ends[code[0] / 64] >> code[0] % 64 & 1)
		return 0;
	return raising.yield_from && code[2] == raising.yield_from ? 0 : PYP_LEAVE_RAISED;
}

static __always_inline int on_leave(const struct hit *h)
{
	struct pyp_rec_leave *r;
	__u32 arg = 0;

	frame_left(h->ptr, h->tid);
	if (event_prepare(h, h->ptr))
		return 0;
	if (report_raised && PYP_COOKIE_KIND(h->cookie) == PYP_SITE_LEAVE)
		arg = leave_arg(h->ptr);
	r = event_reserve(h, sizeof(*r), PYP_COOKIE_KIND(h->cookie), arg);
	if (!r)
		return 0;
	r->frame = h->ptr;
	return event_submit(&r->h);
}

/*
 * Most calls at generic sites are not calls of C functions, and their ends produce no record. A
 * slot therefore records which frame has an open call of a C function. Frames share slots: once two
 * frames have met in one, every end in it is sent, and the daemon ignores those without a call. The
 * update is atomic so that another thread cannot cause a lost end.
 */
static __always_inline void native_open(__u64 frame)
{
	__u64 *slot = &native_cache[core_frame_slot(frame)];
	__u64 before = __sync_val_compare_and_swap(slot, 0, frame);

	if (before && before != frame)
		__sync_lock_test_and_set(slot, CORE_NATIVE_MANY);
}

static __always_inline int native_is_open(__u64 frame)
{
	return __sync_val_compare_and_swap(&native_cache[core_frame_slot(frame)], frame, 0) != 0;
}

/* Send a record about the current frame. The frame runs, so the thread's stack starts with it. */
static __always_inline int native_send(const struct hit *h, __u64 method, __u32 type)
{
	struct pyp_rec_c_call *r;

	if (event_prepare(h, h->ptr))
		return 0;
	r = event_reserve(h, sizeof(*r), type, 0);
	if (!r)
		return 0;
	r->frame = h->ptr;
	r->method = method;
	return event_submit(&r->h);
}

/* Identify the callee. Returns 1 for a C function, 0 for anything else, -1 if it cannot be read. */
static __always_inline int native_look(struct pt_regs *ctx, const struct hit *h,
				       struct native_call *c)
{
	int is;

	c->method = native_same_get(h->cookie);
	if (c->method)
		return 1;
	is = native_call_of(ctx, h->cookie, c);
	/*
	 * If the names could not be sent, the daemon does not know the function; the loss is
	 * counted.
	 */
	if (is > 0 && !method_known(c))
		native_same_set(h->cookie, c->method);
	return is;
}

static __always_inline int on_native(struct pt_regs *ctx, const struct hit *h)
{
	struct native_call c = {.tid = h->tid};
	int is = native_look(ctx, h, &c);

	if (is < 0)
		return frame_fault(h->tid);
	if (!is)
		return 0;
	if (PYP_COOKIE_KIND(h->cookie) == PYP_SITE_C_INSTANT)
		return native_send(h, c.method, PYP_REC_C_INSTANT);
	native_open(h->ptr);
	return native_send(h, c.method, PYP_REC_C_ENTER);
}

static __always_inline int on_native_leave(const struct hit *h)
{
	if (!native_is_open(h->ptr))
		return 0;
	return native_send(h, 0, PYP_REC_C_LEAVE);
}

static __always_inline int gc_send(const struct hit *h, __u32 type, __u64 frame)
{
	struct pyp_rec_gc *r = event_reserve(h, sizeof(*r), type, gc_generation(h));

	if (!r)
		return 0;
	r->frame = frame;
	return event_submit(&r->h);
}

/* A thread without a frame and without a known stack produces no record. */
static __always_inline int on_gc_start(struct pt_regs *ctx, const struct hit *h)
{
	__u64 frame = gc_frame(h->tid, ARCH_SP(ctx));

	if ((!frame && !thread_cached(h->tid)) || event_prepare(h, frame))
		return 0;
	return gc_send(h, PYP_REC_GC_START, frame);
}

/* After a loss the thread's next event sends its stack, which no longer includes the collection. */
static __always_inline int on_gc_stop(const struct hit *h)
{
	if (thread_sight(h->tid) != SIGHT_KNOWN)
		return 0;
	if (counters)
		counters_look(bpf_get_current_task_btf(), h->tid);
	return gc_send(h, PYP_REC_GC_STOP, 0);
}

SEC("uprobe")
int on_site(struct pt_regs *ctx)
{
	struct hit h;

	if (hit_take(ctx, &h))
		return 0;
	switch (PYP_COOKIE_KIND(h.cookie)) {
	case PYP_SITE_ENTER:
	case PYP_SITE_THROW:
		return on_enter(ctx, &h);
	case PYP_SITE_LEAVE:
	case PYP_SITE_YIELD:
		return on_leave(&h);
	case PYP_SITE_CODE_FREE:
		return on_code_free(h.cookie, h.ptr, h.tid);
	case PYP_SITE_C_ENTER:
	case PYP_SITE_C_INSTANT:
		return builtins ? on_native(ctx, &h) : 0;
	case PYP_SITE_C_LEAVE:
		return builtins ? on_native_leave(&h) : 0;
	case PYP_SITE_GC_START:
		return collections ? on_gc_start(ctx, &h) : 0;
	case PYP_SITE_GC_STOP:
		return collections ? on_gc_stop(&h) : 0;
	}
	return 0; /* a sweep's link: its hits are ignored */
}
