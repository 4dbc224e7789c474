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

#include "frame.bpf.h"

extern const volatile __u32 builtins; /* 1: the sites of C functions are attached to */
extern const volatile struct pyp_native_calls native_calls;

extern struct pyp_native_site native_sites[PYP_ALL_SITES];
extern struct pyp_native_types native_types;

/* Direct-mapped, before the map: see core_method_entry. */
extern __u64 method_cache[CORE_METHOD_SLOTS];

/* Of sites at which one known function is called: its PyMethodDef, once it was seen there. */
extern __u64 native_same[PYP_ALL_SITES];

/* Tracing: frames that have a call of a C function under way; counting: see native_remember. */
extern __u64 native_cache[CORE_FRAME_SLOTS];

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

struct method_def {
	__u64 name, function;
};

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

/*
 * What is called at a site of one known function: its PyMethodDef, 0 if it is to be read. Its names were
 * sent; it belongs to the interpreter, which never frees it.
 */
static __always_inline __u64 native_same_get(__u64 cookie)
{
	__u32 i = PYP_COOKIE_SITE(cookie);

	return i < PYP_ALL_SITES ? core_same_method(native_same[i], epoch) : 0;
}

static __always_inline void native_same_set(__u64 cookie, __u64 method)
{
	__u32 i = PYP_COOKIE_SITE(cookie);

	if (i < PYP_ALL_SITES && native_sites[i].same)
		native_same[i] = core_same_entry(method, epoch);
}

/* 1: the object is a C function; 0: something else; -1: that could not be read. */
static __always_inline int native_call_read(__u64 object, struct native_call *ret)
{
	struct method_def def;
	struct callable c = {};

	if (user_read(&c, sizeof(c), object + layout.object_type))
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

/* First sight, or not in the cache. 0, or -1 if its names could not be sent. */
int method_lookup(struct native_call *c);

static __always_inline int method_known(struct native_call *c)
{
	if (method_cache[core_method_slot(c->method)] == core_method_entry(c->method, c->print))
		return 0;
	return method_lookup(c);
}

/*
 * Counting beside samples: what a frame has called last, where that cannot be read from its value stack.
 * Tracing's slots are free then; two of them make an entry, the PyMethodDef (0: the call is of no C
 * function) and the frame, mixed with it: what two threads have written half each is not recalled.
 */
static __always_inline void native_remember(__u64 frame, __u64 method)
{
	volatile __u64 *entry = &native_cache[core_frame_slot(frame) & ~1u];

	entry[1] = method;
	entry[0] = core_called_entry(frame, method);
}

static __always_inline int native_recall(__u64 frame, __u64 *ret)
{
	volatile __u64 *entry = &native_cache[core_frame_slot(frame) & ~1u];

	*ret = entry[1];
	return entry[0] == core_called_entry(frame, *ret) ? 0 : -1;
}

#endif
