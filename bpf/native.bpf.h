/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls of functions written in C. The evaluator is probed where it calls something, and what that is
 * decides: an object of one of three types is a C function, and is known by its PyMethodDef, which
 * cProfile tells them apart by as well. Everything else is another event's, or nobody's.
 *
 * The first time a PyMethodDef is seen its names are sent, while the object that is called is alive.
 * Memory of PyMethodDefs may be used again: a fingerprint (where the name and the function are) tells.
 */
#ifndef PYPROF_NATIVE_BPF_H
#define PYPROF_NATIVE_BPF_H

#include "thread.bpf.h"

const volatile __u32 builtins = 0; /* 1: the sites of C functions are attached to */
const volatile struct pyp_native_calls native_calls = {};

struct pyp_native_site native_sites[PYP_ALL_SITES] = {};
struct pyp_native_types native_types = {};

/* Direct-mapped, before the map: see core_method_entry. */
__u64 method_cache[CORE_METHOD_SLOTS] = {};

/* Frames that have a call of a C function under way: see native_open. */
__u64 native_cache[CORE_FRAME_SLOTS] = {};

struct method_state {
	__u64 print;
	__u32 id; /* counting: its number; 0: none yet */
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct method_state);
} methods SEC(".maps");

/*
 * PyCFunctionObject and PyMethodDescrObject from their type on (CPython 3.6 to 3.15,
 * Include/cpython/methodobject.h, descrobject.h).
 */
struct callable {
	__u64 type;
	union {
		struct {
			__u64 method, self, module;
		} function;
		struct {
			__u64 type, name, qualname, method;
		} descriptor;
	};
};
#define CALLABLE_TYPE 8 /* ob_type, in every object */

struct method_def {
	__u64 name, function;
};

#define TYPE_NAME    24	 /* PyTypeObject.tp_name */
#define TYPE_METHODS 232 /* tp_methods; tp_base is three words behind it */
#define METHOD_SIZE  32
#define METHODS_MAX  512
#define TYPE_BASES   16

/* What is called, if it is a C function. */
struct native_call {
	__u64 method;
	__u64 print;
	__u64 type;   /* the descriptor's; or the object that it is bound to, 0: none */
	__u64 module; /* m_module; 0: none */
	__u64 name;
	__u32 bound;
	__u32 tid;
};

static __always_inline int native_callable(struct pt_regs *ctx, __u64 cookie, __u64 *ret)
{
	__u32 i = PYP_COOKIE_SITE(cookie);
	const struct pyp_native_site *s;

	if (i >= PYP_ALL_SITES)
		return -1;
	s = &native_sites[i];
	*ret = arch_reg(ctx, s->reg);
	if (s->deref && user_read(ret, sizeof(*ret), *ret + (__s64)s->disp))
		return -1;
	*ret &= ~3ull;
	return 0;
}

/* 1: the object is a C function; 0: something else; -1: that could not be read. */
static __always_inline int native_call_read(__u64 object, struct native_call *ret)
{
	struct method_def def;
	struct callable c = {};

	if (user_read(&c, sizeof(c), object + CALLABLE_TYPE))
		return -1;
	if (c.type == native_types.function || c.type == native_types.cmethod) {
		ret->method = c.function.method;
		ret->type = c.function.self;
		ret->module = c.function.module;
		ret->bound = 1;
	} else if (c.type == native_types.descriptor) {
		ret->method = c.descriptor.method;
		ret->type = c.descriptor.type;
		ret->module = 0;
		ret->bound = 0;
	} else {
		return 0;
	}
	if (user_read(&def, sizeof(def), ret->method))
		return -1;
	ret->name = def.name;
	ret->print = core_method_print(def.name, def.function);
	return 1;
}

/* The same of what is called at a site. */
static __always_inline int native_call_of(struct pt_regs *ctx, __u64 cookie,
					  struct native_call *ret)
{
	__u64 object;

	return native_callable(ctx, cookie, &object) ? -1 : native_call_read(object, ret);
}

struct bases {
	__u64 method;
	__u64 type;
	__u64 found, methods;
};

/* The type whose array of methods it lies in: of those that begin before it, the last. */
static long bases_next(__u64 index, struct bases *b)
{
	__u64 part[4]; /* tp_methods, tp_members, tp_getset, tp_base */

	if (!b->type || user_read(part, sizeof(part), b->type + TYPE_METHODS))
		return 1;
	if (part[0] > b->methods && part[0] <= b->method &&
	    b->method - part[0] < METHODS_MAX * METHOD_SIZE &&
	    (b->method - part[0]) % METHOD_SIZE == 0) {
		b->found = b->type;
		b->methods = part[0];
	}
	b->type = part[3];
	return 0;
}

/* An array of methods ends with one without a name. */
static long method_is_named(__u64 index, struct bases *b)
{
	__u64 at = b->methods + index * METHOD_SIZE, name = 0;

	if (at >= b->method)
		return 1;
	if (user_read(&name, sizeof(name), at) || !name)
		b->found = 0;
	return !b->found;
}

/* The type among whose methods it is, of a type and its bases; 0: none. */
static __always_inline __u64 method_type(__u64 method, __u64 type)
{
	struct bases b = {.method = method, .type = type};

	bpf_loop(TYPE_BASES, bases_next, &b, 0);
	if (b.found)
		bpf_loop(METHODS_MAX, method_is_named, &b, 0);
	return b.found;
}

static __always_inline void type_name(char *to, __u32 size, __u64 type)
{
	__u64 name = 0;

	if (!type || user_read(&name, sizeof(name), type + TYPE_NAME) ||
	    bpf_probe_read_user_str(to, size, (const void *)name) < 0)
		to[0] = 0;
}

/* A str of Latin-1 characters that fit; else none. */
static __always_inline void module_name(char *to, __u32 size, __u64 object)
{
	struct core_string s = {};
	__u64 length = 0;
	__u32 state = 0;

	to[0] = 0;
	if (!object || user_read(&length, sizeof(length), object + layout.str_length) ||
	    user_read(&state, sizeof(state), object + layout.str_state) || length >= size)
		return;
	s = core_string_shape(length, state, layout.str_kind_shift, layout.str_ascii_data,
			      layout.str_compact_data);
	if (s.kind != 1 || bpf_probe_read_user_str(to, size, (const void *)(object + s.offset)) < 0)
		to[0] = 0;
}

static __always_inline int method_send(const struct native_call *c)
{
	struct pyp_rec_method *r;
	__u32 kind = PYP_METHOD_DESCRIPTOR;
	__u64 type = c->type, self_type = 0;

	if (c->bound) {
		/* It is bound to an object, whose type is one read further. */
		if (!c->type || user_read(&self_type, sizeof(self_type), c->type + CALLABLE_TYPE))
			self_type = 0;
		type = method_type(c->method, self_type);
		kind = type ? PYP_METHOD_BOUND : PYP_METHOD_FUNCTION;
	}
	r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);
	if (!r)
		return -1;
	rec_head(&r->h, bpf_ktime_get_ns(), c->tid, PYP_REC_METHOD, 0, kind);
	r->method = c->method;
	r->self_type = self_type;
	__builtin_memset(r->name, 0, sizeof(r->name));
	__builtin_memset(r->type, 0, sizeof(r->type));
	__builtin_memset(r->module, 0, sizeof(r->module));
	if (bpf_probe_read_user_str(r->name, sizeof(r->name), (const void *)c->name) < 0) {
		r->h.arg |= PYP_METHOD_UNREADABLE;
		count(PYP_CNT_fault_string);
	}
	type_name(r->type, sizeof(r->type), type);
	module_name(r->module, sizeof(r->module), c->module);
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

/* First sight, or not in the cache. 0, or -1 if its names could not be sent. */
__noinline int method_lookup(struct native_call *c)
{
	struct method_state fresh = {}, *known;
	__u64 method;

	if (!c)
		return -1;
	method = c->method;
	known = bpf_map_lookup_elem(&methods, &method);
	if (!known || known->print != c->print) {
		if (method_send(c)) {
			count(PYP_CNT_lost_codes);
			return -1;
		}
		fresh.print = c->print;
		if (bpf_map_update_elem(&methods, &method, &fresh, BPF_ANY))
			count(PYP_CNT_map_full);
	}
	method_cache[core_method_slot(method)] = core_method_entry(method, c->print);
	return 0;
}

static __always_inline int method_known(struct native_call *c)
{
	if (method_cache[core_method_slot(c->method)] == core_method_entry(c->method, c->print))
		return 0;
	return method_lookup(c);
}

/*
 * Most calls at generic sites are none of a C function, and their ends are no events. So it is
 * remembered of each frame whether it has a call under way, in a slot that other frames use, too: from
 * when two have met there, ends are sent whether they belong to a call or not, and the daemon knows.
 * Atomic, as no end may be missed because of another thread.
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

/*
 * Counting beside samples: what a frame has called last, where that cannot be read from its value stack.
 * Tracing's slots are free then; two of them make an entry, the frame and the PyMethodDef (0: the call
 * is of no C function). A thread that writes the entry while another one's sample reads it may
 * misname that sample.
 */
static __always_inline void native_remember(__u64 frame, __u64 method)
{
	volatile __u64 *entry = &native_cache[core_frame_slot(frame) & ~1u];

	entry[0] = 0;
	entry[1] = method;
	entry[0] = frame;
}

static __always_inline int native_recall(__u64 frame, __u64 *ret)
{
	volatile __u64 *entry = &native_cache[core_frame_slot(frame) & ~1u];

	if (entry[0] != frame)
		return -1;
	*ret = entry[1];
	return entry[0] == frame ? 0 : -1;
}

static __always_inline int native_send(__u64 cookie, __u64 frame, __u64 method, __u32 type,
				       __u32 tid)
{
	struct pyp_rec_c_call *r;
	__u64 ts;

	/* The frame runs: the thread's stack begins with it. */
	if (!thread_cached(tid) && thread_announce(tid, PYP_COOKIE_KIND(cookie), frame))
		return 0;
	if (metrics)
		metrics_look(bpf_get_current_task_btf(), tid);
	ts = bpf_ktime_get_ns();
	r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);
	if (!r)
		return thread_lost(tid);
	rec_head(&r->h, ts, tid, type, PYP_COOKIE_SITE(cookie), 0);
	r->frame = frame;
	r->method = method;
	bpf_ringbuf_submit(r, wake_flags(ts));
	gauge_look(ts);
	return 0;
}

static __always_inline int on_native(struct pt_regs *ctx, const struct hit *h)
{
	struct native_call c = {.tid = h->tid};
	int is = native_call_of(ctx, h->cookie, &c);

	if (is < 0)
		return frame_fault(h->tid);
	/* Where its names could not be sent it is unknown to the daemon, and counted so. */
	if (!is)
		return 0;
	method_known(&c);
	if (PYP_COOKIE_KIND(h->cookie) == PYP_SITE_C_INSTANT)
		return native_send(h->cookie, h->ptr, c.method, PYP_REC_C_INSTANT, h->tid);
	native_open(h->ptr);
	return native_send(h->cookie, h->ptr, c.method, PYP_REC_C_ENTER, h->tid);
}

static __always_inline int on_native_leave(const struct hit *h)
{
	if (!native_is_open(h->ptr))
		return 0;
	return native_send(h->cookie, h->ptr, 0, PYP_REC_C_LEAVE, h->tid);
}

#endif
