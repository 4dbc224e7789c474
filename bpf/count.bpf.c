// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Mode count, for call counts without times. The program handles entries only and adds them up by
 * thread, caller and callee in a map. It sends nothing but names, so it loses nothing and the
 * daemon is idle.
 *
 * The map uses numbers for code objects, not addresses: a code object at a reused address gets its
 * own number, and the counts stay apart.
 *
 * The caller is the frame below, whose code object is a field of the frame. Reading it costs a
 * helper call, so the program caches the code of each frame. Every entry overwrites its frame's
 * cache entry, and no frame runs without an entry, so the cache is valid unless something other
 * than the evaluator runs frames (a JIT, a replaced evaluator). In that case the program reads the
 * frame.
 */
#include "gc.bpf.h"
#include "hit.bpf.h"
#include "native.bpf.h"

const volatile __u32 count_remembers = 0; /* 1: caching the code of frames is valid */
const volatile struct pyp_waiting waiting = {};
const volatile struct pyp_restart restart = {};

/* The next number. It only increases, because numbers are never reused. */
__u32 count_next = PYP_COUNT_FIRST;

struct count_state {
	__u64 codes[CORE_CODE_SLOTS];
	__u64 frames[CORE_COUNT_FRAMES];
};

/* Direct-mapped caches of one-word entries: see core_count_entry. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct count_state);
} count_state SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PYP_COUNT_EDGES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct pyp_edge);
	__type(value, __u64);
} edges SEC(".maps");

/* Position of the number in a value of the map of codes, above the CORE_CODE_* bits. */
#define COUNT_ID_SHIFT 8

/* What a value keeps when a number is given to its code object. */
#define COUNT_KEPT (~0ull << PYP_CODE_STAMP_SHIFT | CORE_CODE_UNNAMED)

static __always_inline int count_id_send(__u64 code, __u32 id, __u32 tid)
{
	struct pyp_rec_code_id *r = ring_reserve(sizeof(*r));

	if (!r)
		return -1;
	rec_head(&r->h, bpf_ktime_get_ns(), tid, PYP_REC_CODE_ID, 0, 0);
	r->code = code;
	r->id = id;
	r->pad = 0;
	ring_submit(r);
	return 0;
}

/*
 * Take a new number and send its CODE_ID record. Returns PYP_COUNT_LOST if that fails. The second
 * check catches numbers that other threads took meanwhile; the first one keeps count_next from
 * overflowing to 0.
 */
static __always_inline __u32 count_take(__u64 code, __u32 tid)
{
	__u32 id = PYP_COUNT_IDS;

	if (count_next < PYP_COUNT_IDS)
		id = __sync_fetch_and_add(&count_next, 1);
	if (id >= PYP_COUNT_IDS) {
		count(PYP_LOSS_map_full);
		return PYP_COUNT_LOST;
	}
	if (count_id_send(code, id, tid)) {
		count(PYP_LOSS_lost_codes);
		return PYP_COUNT_LOST;
	}
	return id;
}

/*
 * Assign a number to an announced code object. Threads that run in parallel may give one code
 * object several numbers; the daemon receives a CODE_ID record for each.
 */
static __always_inline __u32 count_number(__u64 code, __u64 flags, __u32 tid)
{
	__u64 value, *known;
	__u32 id;

	if (flags & CORE_CODE_SKIP)
		return PYP_COUNT_SKIP;
	id = count_take(code, tid);
	if (id == PYP_COUNT_LOST)
		return id;
	known = bpf_map_lookup_elem(&codes, &code);
	value = known ? *known & COUNT_KEPT : 0;
	value |= (__u64)id << COUNT_ID_SHIFT | flags;
	if (bpf_map_update_elem(&codes, &code, &value, BPF_ANY))
		count(PYP_LOSS_map_full);
	return id;
}

/* The number of a code object that is not in the cache, with the CORE_COUNT_CREATES flag. */
__noinline __u32 count_lookup(__u64 code, __u32 tid)
{
	__u64 *known = bpf_map_lookup_elem(&codes, &code);
	__u64 flags = known ? *known & CORE_CODE_FLAGS : 0;
	__u32 id = known ? *known >> COUNT_ID_SHIFT : 0, zero = 0;
	struct count_state *st = bpf_map_lookup_elem(&count_state, &zero);
	int r;

	if (!known) {
		code_wait(code);
		r = code_announce(code, tid);
		if (r < 0)
			return PYP_COUNT_LOST;
		flags = r;
	}
	if (!id)
		id = count_number(code, flags, tid);
	if (id == PYP_COUNT_LOST)
		return id;
	if (flags & CORE_CODE_CREATES)
		id |= CORE_COUNT_CREATES;
	if (st)
		st->codes[core_code_slot(code)] = core_count_entry(code, id);
	return id;
}

static __always_inline __u32 count_code(struct count_state *st, __u64 code, __u32 tid)
{
	__u64 entry = st->codes[core_code_slot(code)];

	return core_count_hit(entry, code) ? core_count_id(entry) : count_lookup(code, tid);
}

/* The number of the code object that a frame runs. */
static __always_inline __u32 count_frame(struct count_state *st, __u64 frame, __u32 tid)
{
	__u64 *entry = &st->frames[core_count_frame_slot(frame)];
	struct frame_head h = {};
	__u32 id;

	if (count_remembers && core_count_hit(*entry, frame))
		return core_count_id(*entry);
	if (frame_load_wait(frame, &h)) {
		count(PYP_LOSS_fault_frame);
		return PYP_COUNT_LOST;
	}
	id = count_code(st, h.code, tid) & ~CORE_COUNT_CREATES;
	if (id != PYP_COUNT_LOST)
		*entry = core_count_entry(frame, id);
	return id;
}

/* The address of the instruction at which a frame will continue; 0 if it cannot be read. */
static __always_inline __u64 frame_next_instr(__u64 frame)
{
	__u64 at = 0;
	__s32 index = 0;

	if (waiting.style == PYP_WAITING_NEXT || waiting.style == PYP_WAITING_PREV) {
		if (user_read_wait(&at, sizeof(at), frame + waiting.frame_instr))
			return 0;
		return waiting.style == PYP_WAITING_PREV ? at + 2 : at;
	}
	if (user_read_wait(&index, sizeof(index), frame + waiting.frame_instr) || index < 0 ||
	    user_read_wait(&at, sizeof(at), frame + layout.frame_code) ||
	    user_read_wait(&at, sizeof(at), at + waiting.code_bytes))
		return 0;
	return at + waiting.bytes_data + (__u64)index * waiting.index_unit + 2;
}

/* Returns 1 if a frame is suspended in `yield from` or `await`. */
static __always_inline int frame_waits(__u64 frame)
{
	__u64 at = frame_next_instr(frame);
	__u8 unit[2];

	if (!at || user_read_wait(unit, sizeof(unit), at) || (unit[1] & 3) < waiting.least_arg)
		return 0;
	for (int i = 0; i < PYP_WAITING_OPS; i++)
		if (waiting.op[i] && unit[0] == waiting.op[i])
			return 1;
	return 0;
}

struct passing {
	__u64 frame;
	__u64 sp;
	__u32 tid;
	__u32 pad;
};

static long passing_next(__u64 index, struct passing *p)
{
	__u64 previous = 0;

	if (!p->frame || !frame_waits(p->frame) ||
	    user_read_wait(&previous, sizeof(previous), p->frame + layout.frame_previous) ||
	    !previous)
		return 1;
	p->frame = caller_resolve(previous, p->tid, p->sp);
	return 0;
}

#define PASSING_MAX 4096

/*
 * The caller of a generator that an exception is thrown into. The interpreter passes the exception
 * straight to the innermost generator of a `yield from` chain; the outer ones look like callers but
 * do not run, so the real caller is below them. (In 3.9 the outer generator is detached from the
 * frames below it, and is reported as the caller instead.)
 */
static __always_inline __u64 thrower(__u64 caller, __u32 tid, __u64 sp)
{
	struct passing p = {.frame = caller, .sp = sp, .tid = tid};

	if (waiting.style != PYP_WAITING_NONE)
		bpf_loop(PASSING_MAX, passing_next, &p, 0);
	return p.frame;
}

static __always_inline int count_lost(enum pyp_loss why)
{
	count(why);
	count(PYP_LOSS_lost_events);
	return 0;
}

static __always_inline int count_add(__u32 tid, __u32 caller, __u32 callee)
{
	struct pyp_edge key = {.tid = tid, .caller = caller, .callee = callee};
	__u64 one = 1, *n = bpf_map_lookup_elem(&edges, &key);

	if (n) {
		++*n; /* no other thread updates this key */
		return 0;
	}
	if (bpf_map_update_elem(&edges, &key, &one, BPF_NOEXIST))
		return count_lost(PYP_LOSS_map_full);
	return 0;
}

/* Returns 1 if the instruction of this entry will execute again, causing a duplicate event. */
static __always_inline int enter_restarts(struct pt_regs *ctx, const struct hit *h, __u64 code)
{
	__u64 interp, theirs, own;

	if (!PYP_COOKIE_RESTARTS(h->cookie) || !restart.code_version ||
	    (PYP_COOKIE_UNEQUAL(h->cookie) && arch_equal(ARCH_FLAGS(ctx))))
		return 0;
	return !user_read_wait(&interp, sizeof(interp), sampling_at.interp_head) &&
	       !user_read_wait(&theirs, sizeof(theirs), interp + restart.interp_version) &&
	       !user_read_wait(&own, sizeof(own), code + restart.code_version) && own != theirs;
}

static __always_inline int count_enter(struct pt_regs *ctx, const struct hit *h)
{
	__u32 zero = 0, id, caller_id = PYP_COUNT_OUTSIDE;
	struct count_state *st = bpf_map_lookup_elem(&count_state, &zero);
	__u64 block[ENTRY_BLOCK / 8];
	__u64 code, caller;

	if (!st)
		return 0;
	if (frame_block_read(block, h->ptr))
		return count_lost(PYP_LOSS_fault_frame);
	code = frame_code(block);
	caller = FRAME_FIELD(block, previous);
	if (!code)
		return count_lost(PYP_LOSS_fault_frame);
	if (enter_restarts(ctx, h, code))
		return 0;
	id = count_code(st, code, h->tid);
	if (id == PYP_COUNT_SKIP ||
	    (id & CORE_COUNT_CREATES && is_creation(h->ptr, CORE_CODE_CREATES)))
		return 0;
	id &= ~CORE_COUNT_CREATES;
	if (id == PYP_COUNT_LOST)
		count(PYP_LOSS_lost_events);
	if (!caller_is_clear(h->ptr, block, caller, h->tid, ARCH_SP(ctx)))
		caller = caller_resolve(caller, h->tid, ARCH_SP(ctx));
	if (enter_type(ctx, h->cookie) == PYP_REC_THROW)
		caller = thrower(caller, h->tid, ARCH_SP(ctx));
	st->frames[core_count_frame_slot(h->ptr)] =
		id == PYP_COUNT_LOST ? 0 : core_count_entry(h->ptr, id);
	if (caller)
		caller_id = count_frame(st, caller, h->tid);
	return count_add(h->tid, caller_id, id);
}

/* The number of a C function that is not in the cache. */
__noinline __u32 count_method_lookup(struct native_call *c)
{
	struct method_state *known;
	__u64 method;
	__u32 id;

	if (!c || !HAVE_METHODS || method_lookup(c))
		return PYP_COUNT_LOST;
	method = c->method;
	known = bpf_map_lookup_elem(&methods, &method);
	if (!known)
		return PYP_COUNT_LOST;
	if (known->id)
		return known->id;
	id = count_take(method, c->tid);
	if (id != PYP_COUNT_LOST)
		known->id = id;
	return id;
}

static __always_inline __u32 count_method(struct count_state *st, struct native_call *c)
{
	__u64 *entry = &st->codes[core_code_slot(c->method)];
	__u32 id;

	if (method_cache[core_method_slot(c->method)] == core_method_entry(c->method, c->print) &&
	    core_count_hit(*entry, c->method))
		return core_count_id(*entry);
	id = count_method_lookup(c);
	if (id != PYP_COUNT_LOST)
		*entry = core_count_entry(c->method, id);
	return id;
}

/* The number of the only function that a site calls, if it is in the cache; else PYP_COUNT_LOST. */
static __always_inline __u32 count_same(struct count_state *st, __u64 method)
{
	__u64 entry;

	if (!method || !st)
		return PYP_COUNT_LOST;
	entry = st->codes[core_code_slot(method)];
	return core_count_hit(entry, method) ? core_count_id(entry) : PYP_COUNT_LOST;
}

static __always_inline int count_native(struct pt_regs *ctx, const struct hit *h)
{
	struct native_call c = {.tid = h->tid, .method = native_same_get(h->cookie)};
	__u32 zero = 0, id;
	struct count_state *st = bpf_map_lookup_elem(&count_state, &zero);
	int is;

	id = count_same(st, c.method);
	is = id == PYP_COUNT_LOST ? native_call_of(ctx, h->cookie, &c) : 1;

	if (native_calls.remember)
		native_remember(h->ptr, is > 0 ? c.method : 0);
	if (is < 0)
		return count_lost(PYP_LOSS_fault_frame);
	if (!is || !st)
		return 0;
	if (id == PYP_COUNT_LOST)
		id = count_method(st, &c);
	if (id == PYP_COUNT_LOST)
		count(PYP_LOSS_lost_events);
	else
		native_same_set(h->cookie, c.method);
	return count_add(h->tid, count_frame(st, h->ptr, h->tid), id);
}

static __always_inline int count_gc(struct pt_regs *ctx, const struct hit *h)
{
	__u32 zero = 0, caller = PYP_COUNT_OUTSIDE;
	struct count_state *st = bpf_map_lookup_elem(&count_state, &zero);
	__u64 frame = gc_frame(h->tid, ARCH_SP(ctx));

	if (!st)
		return 0;
	if (frame)
		caller = count_frame(st, frame, h->tid);
	return count_add(h->tid, caller, PYP_COUNT_GC + gc_generation(h));
}

static __always_inline int count_code_free(const struct hit *h)
{
	__u32 zero = 0;
	struct count_state *st = bpf_map_lookup_elem(&count_state, &zero);
	__u64 *entry;

	if (st) {
		entry = &st->codes[core_code_slot(h->ptr)];
		if (core_count_hit(*entry, h->ptr))
			*entry = 0;
	}
	return on_code_free(h->cookie, h->ptr, h->tid);
}

SEC("uprobe")
int on_site_count(struct pt_regs *ctx)
{
	struct hit h;

	if (hit_take(ctx, &h))
		return 0;
	switch (PYP_COOKIE_KIND(h.cookie)) {
	case PYP_SITE_ENTER:
	case PYP_SITE_THROW:
		return count_enter(ctx, &h);
	case PYP_SITE_CODE_FREE:
		return count_code_free(&h);
	case PYP_SITE_C_ENTER:
	case PYP_SITE_C_INSTANT:
		return builtins ? count_native(ctx, &h) : 0;
	case PYP_SITE_GC_START:
		return collections ? count_gc(ctx, &h) : 0;
	}
	return 0;
}
