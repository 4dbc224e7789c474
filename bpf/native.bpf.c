// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "native.bpf.h"

#include "ring.bpf.h"

const volatile __u32 builtins = 0;
const volatile struct pyp_native_calls native_calls = {};

struct pyp_native_site native_sites[PYP_ALL_SITES] = {};
struct pyp_native_types native_types = {};
__u64 method_cache[CORE_METHOD_SLOTS] = {};
__u64 native_same[PYP_ALL_SITES] = {};
__u64 native_cache[CORE_FRAME_SLOTS] = {};

/* Fields of PyTypeObject. The object header ends one word after ob_type. */
#define TYPE_NAME    (layout.object_type + 16)
#define TYPE_METHODS (layout.object_type + 224) /* tp_methods; tp_base is three words later */
#define METHOD_SIZE  32
#define METHODS_MAX  512
#define TYPE_BASES   16

struct bases {
	__u64 method;
	__u64 type;
	__u64 found, methods;
};

/* Find the type whose method array contains the method: the last array that starts before it. */
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

/* An array of methods ends with an entry without a name. */
static long method_is_named(__u64 index, struct bases *b)
{
	__u64 at = b->methods + index * METHOD_SIZE, name = 0;

	if (at >= b->method)
		return 1;
	if (user_read(&name, sizeof(name), at) || !name)
		b->found = 0;
	return !b->found;
}

/* Returns the type, among `type` and its bases, whose methods include `method`; 0 if none does. */
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

/* Copy a str of Latin-1 characters if it fits; otherwise store an empty string. */
static __always_inline void module_name(char *to, __u32 size, __u64 object)
{
	struct core_string s = {};

	to[0] = 0;
	if (object)
		s = string_shape(user_read, object);
	if (s.kind != 1 || s.units >= size ||
	    bpf_probe_read_user_str(to, size, (const void *)(object + s.offset)) < 0)
		to[0] = 0;
}

static __always_inline int method_send(const struct native_call *c)
{
	struct pyp_rec_method *r;
	__u32 kind = PYP_METHOD_DESCRIPTOR;
	__u64 type = c->type, self_type = 0, name = 0;

	if (c->bound) {
		/* The callee is bound to an object; its type takes one more read. */
		if (!c->type ||
		    user_read(&self_type, sizeof(self_type), c->type + layout.object_type))
			self_type = 0;
		type = method_type(c->method, self_type);
		kind = type ? PYP_METHOD_BOUND : PYP_METHOD_FUNCTION;
	}
	r = ring_reserve(sizeof(*r));
	if (!r)
		return -1;
	rec_head(&r->h, bpf_ktime_get_ns(), c->tid, PYP_REC_METHOD, 0, kind);
	r->method = c->method;
	r->self_type = self_type;
	__builtin_memset(r->name, 0, sizeof(r->name));
	__builtin_memset(r->type, 0, sizeof(r->type));
	__builtin_memset(r->module, 0, sizeof(r->module));
	if (user_read(&name, sizeof(name), c->method) ||
	    bpf_probe_read_user_str(r->name, sizeof(r->name), (const void *)name) < 0) {
		r->h.arg |= PYP_METHOD_UNREADABLE;
		count(PYP_LOSS_fault_string);
	}
	type_name(r->type, sizeof(r->type), type);
	module_name(r->module, sizeof(r->module), c->module);
	ring_submit(r);
	return 0;
}

__noinline int method_lookup(struct native_call *c)
{
	struct method_state fresh = {}, *known;
	__u64 method;

	if (!c || !HAVE_METHODS)
		return -1;
	method = c->method;
	known = bpf_map_lookup_elem(&methods, &method);
	if (!known || known->print != c->print) {
		if (method_send(c)) {
			count(PYP_LOSS_lost_codes);
			return -1;
		}
		fresh.print = c->print;
		if (bpf_map_update_elem(&methods, &method, &fresh, BPF_ANY))
			count(PYP_LOSS_map_full);
	}
	method_cache[core_method_slot(method)] = core_method_entry(method, c->print);
	return 0;
}
