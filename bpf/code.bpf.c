// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "code.bpf.h"

#include "ring.bpf.h"

/* The fields of a STRING record other than the characters. */
struct string_msg {
	__u64 code;
	__u64 object;
	struct core_string shape;
	__u32 tid;
	__u32 which;
	__u32 flags; /* also those that string_fill finds */
};

static __always_inline void string_fill(struct pyp_rec_string *r, struct string_msg *m, __u32 room)
{
	__u64 bytes = m->shape.bytes;

	/* A read from an invalid address zero-fills: the cheapest way to initialise the buffer. */
	user_read(r->data, room, 0);
	if (bytes > room) {
		bytes = room; /* room is a multiple of 4, so no character is split */
		m->flags |= PYP_STRING_TRUNCATED;
	}
	if (!m->shape.kind || user_read(r->data, bytes, m->object + m->shape.offset)) {
		bytes = 0;
		m->flags = PYP_STRING_UNREADABLE;
	}
	rec_head(&r->h, bpf_ktime_get_ns(), m->tid, PYP_REC_STRING, 0, m->which);
	r->code = m->code;
	r->object = m->object;
	r->units = m->shape.units;
	r->bytes = bytes;
	r->kind = m->shape.kind;
	r->flags = m->flags;
	if (m->flags & PYP_STRING_UNREADABLE)
		count(PYP_LOSS_fault_string);
	if (m->flags & PYP_STRING_TRUNCATED)
		count(PYP_LOSS_name_truncated);
}

#define STRING_SEND(m, size)                                                                       \
	({                                                                                         \
		struct pyp_rec_string *r_ = ring_reserve((size));                                  \
		if (r_) {                                                                          \
			string_fill(r_, (m), (size) - sizeof(*r_));                                \
			ring_submit(r_);                                                           \
		}                                                                                  \
		!r_ ? -1 : (m)->flags &PYP_STRING_UNREADABLE ? CORE_CODE_UNNAMED : 0;              \
	})

/*
 * Send the str object at code + field as PYP_STR_* `which`. Returns 0, CORE_CODE_UNNAMED if it cannot
 * be read and was sent as unreadable, or -1 if the ring is full.
 */
__noinline int string_send(__u64 code, __u32 field, __u32 which, __u32 tid)
{
	struct string_msg m = {.code = code, .which = which, .tid = tid};
	int r;

	if (!user_read(&m.object, sizeof(m.object), code + field))
		m.shape = string_shape(user_read, m.object);
	switch (core_string_class(m.shape.bytes)) {
	case PYP_STRING_SMALL:
		return STRING_SEND(&m, PYP_STRING_SMALL);
	case PYP_STRING_MEDIUM:
		return STRING_SEND(&m, PYP_STRING_MEDIUM);
	case PYP_STRING_HUGE:
		r = STRING_SEND(&m, PYP_STRING_HUGE);
		if (r >= 0)
			return r;
	}
	return STRING_SEND(&m, PYP_STRING_LARGE);
}

/* *ts receives the record's time. */
static __always_inline int code_send(__u64 code, __u32 flags, __u32 arg, __u32 tid, __u64 *ts)
{
	struct pyp_rec_code *r;
	__s32 line = 0;

	user_read(&line, sizeof(line), code + layout.code_firstlineno);
	r = ring_reserve_cold(sizeof(*r));
	if (!r)
		return -1;
	*ts = bpf_ktime_get_ns();
	rec_head(&r->h, *ts, tid, PYP_REC_CODE, 0, arg);
	r->code = code;
	r->flags = flags;
	r->firstlineno = line;
	ring_submit(r);
	return 0;
}

/* Returns 0, CORE_CODE_UNNAMED if a name cannot be read, or -1 if the ring is full. */
static __always_inline int code_send_names(__u64 code, __u32 tid)
{
	int r = string_send(code, layout.code_filename, PYP_STR_FILENAME, tid);

	if (r >= 0)
		r |= string_send(code, layout.code_name, PYP_STR_NAME, tid);
	if (r >= 0 && layout.code_qualname != 0xffff)
		r |= string_send(code, layout.code_qualname, PYP_STR_QUALNAME, tid);
	return r;
}

/* Returns what code_send_names returns. */
static __always_inline int code_send_all(__u64 code, __u32 flags, __u32 arg, __u32 tid, __u64 *ts)
{
	int r = code_send_names(code, tid);

	return r < 0 || code_send(code, flags, arg, tid, ts) ? -1 : r;
}

__noinline int code_announce(__u64 code, __u32 tid)
{
	__u64 cached = 0, value, ts = 0;
	__u32 flags = 0;
	int r = 0;

	if (user_read(&flags, sizeof(flags), code + layout.code_flags))
		r = code_send(code, 0, PYP_CODE_UNREADABLE, tid, &ts) ? -1 : CORE_CODE_UNNAMED;
	else if (flags & layout.code_skip_flags)
		cached = CORE_CODE_SKIP;
	else
		r = code_send_all(code, flags, 0, tid, &ts);
	if (flags & layout.code_creation_flags)
		cached |= CORE_CODE_CREATES;
	if (flags & PYP_CO_SUSPENDS)
		cached |= CORE_CODE_SUSPENDS;
	if (r < 0) {
		count(PYP_LOSS_lost_codes);
		return -1;
	}
	/*
	 * A full map is not a loss: the cache below holds the code object, or the names are sent
	 * again.
	 */
	value = PYP_CODE_STAMP(ts) << PYP_CODE_STAMP_SHIFT | cached | r;
	if (bpf_map_update_elem(&codes, &code, &value, BPF_ANY))
		count(PYP_LOSS_map_full);
	code_cache[core_code_slot(code)] = core_code_entry(code, cached);
	return cached;
}

/* Of a name that spans more than two pages, those in the middle are not waited for. */
static __always_inline void string_wait(__u64 code, __u32 field)
{
	struct core_string shape;
	__u64 object = 0;
	__u8 last;

	if (user_read_wait(&object, sizeof(object), code + field))
		return;
	shape = string_shape(user_read_wait, object);
	if (shape.kind && shape.bytes)
		user_read_wait(&last, sizeof(last), object + shape.offset + shape.bytes - 1);
}

__noinline int code_wait(__u64 code)
{
	__u32 flags;

	if (user_read_wait(&flags, sizeof(flags), code + layout.code_flags))
		return 0;
	string_wait(code, layout.code_filename);
	string_wait(code, layout.code_name);
	if (layout.code_qualname != 0xffff)
		string_wait(code, layout.code_qualname);
	return 0;
}

__noinline int code_send_late(__u64 code, __u32 tid)
{
	__u32 flags = 0;
	__u64 ts;

	code_wait(code);
	user_read(&flags, sizeof(flags), code + layout.code_flags);
	return code_send_all(code, flags, PYP_CODE_LATE, tid, &ts);
}

__noinline int code_lookup(__u64 code, __u32 tid)
{
	__u64 entry = code_cache[core_code_slot(code)];
	__u64 *cached;

	if (core_code_hit(entry, code))
		return entry & CORE_CODE_FLAGS;
	cached = bpf_map_lookup_elem(&codes, &code);
	if (!cached) {
		code_wait(code);
		return code_announce(code, tid);
	}
	code_cache[core_code_slot(code)] = core_code_entry(code, *cached);
	return *cached & CORE_CODE_FLAGS;
}
