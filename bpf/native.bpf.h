/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls of C functions. The probes are at the evaluator's call sites, and the type of the called
 * object decides: an object of one of three types is a C function, identified by its PyMethodDef as
 * in cProfile. For any other object this event produces no record.
 *
 * The first call through a PyMethodDef sends its names, while the called object is alive. The
 * memory of a PyMethodDef can be reused, unless it is part of the interpreter's file; a fingerprint
 * of its name and function pointers detects that.
 */
#ifndef PYPROF_NATIVE_BPF_H
#define PYPROF_NATIVE_BPF_H

#include "frame.bpf.h"

extern const volatile __u32 builtins; /* 1: the sites of C functions are attached */
extern const volatile struct pyp_native_calls native_calls;

extern struct pyp_native_site native_sites[PYP_ALL_SITES];
extern struct pyp_native_types native_types;

/* Direct-mapped cache in front of the map: see core_method_entry. */
extern __u64 method_cache[CORE_METHOD_SLOTS];

/* For sites that always call one known function: its PyMethodDef, once seen there. */
extern __u64 native_same[PYP_ALL_SITES];

/* Mode trace: frames with an open call of a C function. Mode count: see native_remember. */
extern __u64 native_cache[CORE_FRAME_SLOTS];

/*
 * The fields of PyCFunctionObject and PyMethodDescrObject from their type on (CPython 3.6 to 3.15,
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

#define PRINT_STATIC 1ull /* in place of the fingerprint: the PyMethodDef is never freed */

/* A call of a C function. */
struct native_call {
	__u64 method;
	__u64 print;
	__u64 type;   /* a descriptor's type, or the type of the bound object; 0: none */
	__u64 module; /* m_module; 0: none */
	__u32 bound;
	__u32 tid;
};

/*
 * The index of a site, less than PYP_ALL_SITES after a comparison. Of a 32-bit value made of two parts,
 * the verifier of 6.1 does not know that the upper half is 0.
 */
static __always_inline __u64 native_index(__u64 cookie)
{
	__u64 i = PYP_COOKIE_SITE(cookie);

	barrier_var(i);
	return i;
}

/* Whether the map of methods exists. Before Linux 6.8, functions that are never called are verified. */
#define HAVE_METHODS (builtins || native_calls.on)

static __always_inline int native_callable(struct pt_regs *ctx, __u64 cookie, __u64 *ret)
{
	__u64 i = native_index(cookie);
	const struct pyp_native_site *s;

	if (i >= PYP_ALL_SITES)
		return -1;
	s = &native_sites[i];
	*ret = arch_reg(ctx, s->reg);
	if (s->deref && user_read_wait(ret, sizeof(*ret), *ret + (__s64)s->disp))
		return -1;
	*ret &= ~3ull;
	return 0;
}

/*
 * The PyMethodDef at a site that always calls one known function; 0 if the program has to read it.
 * Its names were sent. It belongs to the interpreter, which never frees it.
 */
static __always_inline __u64 native_same_get(__u64 cookie)
{
	__u64 i = native_index(cookie);

	return i < PYP_ALL_SITES ? core_same_method(native_same[i], epoch) : 0;
}

static __always_inline void native_same_set(__u64 cookie, __u64 method)
{
	__u64 i = native_index(cookie);

	if (i < PYP_ALL_SITES && native_sites[i].same)
		native_same[i] = core_same_entry(method, epoch);
}

typedef long (*user_read_fn)(void *dst, __u32 size, __u64 addr);

/*
 * Fill *ret from the called object. Returns 1 if it is a C function, 0 if not, -1 if it cannot be
 * read.
 */
static __always_inline int native_call_read(__u64 object, user_read_fn read,
					    struct native_call *ret)
{
	struct method_def def;
	struct callable c = {};

	if (read(&c, sizeof(c), object + layout.object_type))
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
	ret->print = PRINT_STATIC;
	if (ret->method - native_types.image < native_types.image_size)
		return 1;
	if (read(&def, sizeof(def), ret->method))
		return -1;
	ret->print = core_method_print(def.name, def.function);
	return 1;
}

/* Like native_call_read, for the object that a site calls. */
static __always_inline int native_call_of(struct pt_regs *ctx, __u64 cookie,
					  struct native_call *ret)
{
	__u64 object;

	if (native_callable(ctx, cookie, &object))
		return -1;
	return native_call_read(object, user_read_wait, ret);
}

/*
 * Look up, or announce, a method that is not in the cache. Returns 0, or -1 if the ring was full.
 */
int method_lookup(struct native_call *c);

static __always_inline int method_known(struct native_call *c)
{
	if (method_cache[core_method_slot(c->method)] == core_method_entry(c->method, c->print))
		return 0;
	return method_lookup(c);
}

/*
 * Mode count with samples: store the frame's last callee, for versions where a sample cannot read
 * it from the value stack. native_cache is free in this mode. An entry takes two slots: the
 * PyMethodDef (0: not a C function) and the frame mixed with it, so that a pair written by two
 * threads does not match.
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
