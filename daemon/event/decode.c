// SPDX-License-Identifier: BSD-2-Clause
/* Ring bytes to events: see decode.h. */
#include "event/decode.h"

#include <string.h>

/*
 * Each decoder gets a whole record of at least the type's minimum size, and fills its union member.
 * It copies fields before checking them, so that checked and used values are the same.
 */
typedef enum decode_error (*decode_fn)(const void *data, size_t size, struct event *ev);

/* Frame addresses come from the target's memory. Addresses above user memory are invalid; stacks
 * use them for entries that are not frames. */
static bool is_frame(uint64_t addr)
{
	return addr && event_is_user_address(addr);
}

static enum decode_error decode_enter(const void *data, size_t size, struct event *ev)
{
	struct pyp_rec_enter r;

	(void)size;
	memcpy(&r, data, sizeof(r));
	if (!is_frame(r.frame) || !r.code || !event_is_user_address(r.caller) ||
	    r.h.arg & ~(PYP_ENTER_GENERATOR | PYP_ENTER_START))
		return DECODE_FIELD;
	ev->u.call.frame = r.frame;
	ev->u.call.code = r.code;
	ev->u.call.caller = r.caller;
	return DECODE_OK;
}

static enum decode_error decode_leave(const void *data, size_t size, struct event *ev)
{
	struct pyp_rec_leave r;

	(void)size;
	memcpy(&r, data, sizeof(r));
	if (!is_frame(r.frame) || r.h.arg & ~(r.h.type == PYP_REC_LEAVE ? PYP_LEAVE_RAISED : 0))
		return DECODE_FIELD;
	ev->u.call.frame = r.frame;
	return DECODE_OK;
}

static enum decode_error decode_switch(const void *data, size_t size, struct event *ev)
{
	struct pyp_rec_switch r;

	(void)size;
	memcpy(&r, data, sizeof(r));
	if (r.h.arg & ~PYP_SWITCH_LOST)
		return DECODE_FIELD;
	ev->u.sw.runtime = r.runtime;
	ev->u.sw.syscall = -1;
	return DECODE_OK;
}

/* A SWITCH_OUT in a system call has a number; otherwise it has neither number nor arguments. */
static bool wait_is_possible(const struct pyp_rec_switch_out *r)
{
	bool in_call = r->wait == PYP_WAIT_SYSCALL || r->wait == PYP_WAIT_GIL;

	if (r->wait >= PYP_WAIT_MAX || r->fd >= PYP_FD_MAX || r->gil >= PYP_GIL_RANGES ||
	    (r->h.arg & PYP_SWITCH_RUNNABLE) != (r->wait == PYP_WAIT_CPU ? PYP_SWITCH_RUNNABLE : 0))
		return false;
	return in_call ? r->syscall >= 0 : r->syscall == -1 && !r->arg[0] && !r->arg[1] && !r->fd;
}

static enum decode_error decode_switch_out(const void *data, size_t size, struct event *ev)
{
	struct pyp_rec_switch_out r;

	(void)size;
	memcpy(&r, data, sizeof(r));
	if (r.h.arg & ~(PYP_SWITCH_LOST | PYP_SWITCH_RUNNABLE) || !wait_is_possible(&r))
		return DECODE_FIELD;
	ev->u.sw = (struct event_switch){
		.runtime = r.runtime,
		.delay = r.delay,
		.arg = {r.arg[0], r.arg[1]},
		.syscall = r.syscall,
		.wait = r.wait,
		.fd = r.fd,
		.gil = r.gil,
	};
	return DECODE_OK;
}

static enum decode_error decode_code(const void *data, size_t size, struct event *ev)
{
	struct pyp_rec_code r;

	(void)size;
	memcpy(&r, data, sizeof(r));
	if (!r.code || r.h.arg & ~(PYP_CODE_UNREADABLE | PYP_CODE_LATE))
		return DECODE_FIELD;
	ev->u.code.code = r.code;
	ev->u.code.flags = r.flags;
	ev->u.code.firstlineno = r.firstlineno;
	return DECODE_OK;
}

static enum decode_error decode_code_free(const void *data, size_t size, struct event *ev)
{
	struct pyp_rec_code_free r;

	(void)size;
	memcpy(&r, data, sizeof(r));
	if (!r.code || r.h.arg)
		return DECODE_FIELD;
	ev->u.code.code = r.code;
	return DECODE_OK;
}

static enum decode_error decode_code_id(const void *data, size_t size, struct event *ev)
{
	struct pyp_rec_code_id r;

	(void)size;
	memcpy(&r, data, sizeof(r));
	if (!r.code || r.h.arg || r.id < PYP_COUNT_FIRST || r.id >= PYP_COUNT_IDS)
		return DECODE_FIELD;
	ev->u.code.code = r.code;
	ev->u.code.id = r.id;
	return DECODE_OK;
}

/* Returns whether length, kind and flags of the string are consistent. */
static int string_is_sane(const struct pyp_rec_string *r)
{
	uint64_t whole = (uint64_t)r->units * r->kind;

	if (r->h.arg > PYP_STR_QUALNAME ||
	    r->flags & ~(PYP_STRING_UNREADABLE | PYP_STRING_TRUNCATED))
		return 0;
	if (r->flags & PYP_STRING_UNREADABLE)
		return r->bytes == 0 && (r->kind <= 2 || r->kind == 4);
	if (r->kind != 1 && r->kind != 2 && r->kind != 4)
		return 0;
	if (r->flags & PYP_STRING_TRUNCATED)
		return r->bytes < whole && r->bytes % r->kind == 0;
	return r->bytes == whole;
}

static enum decode_error decode_string(const void *data, size_t size, struct event *ev)
{
	struct pyp_rec_string r;
	struct event_string *s = &ev->u.string;

	memcpy(&r, data, sizeof(r));
	if (!r.code || !string_is_sane(&r))
		return DECODE_FIELD;
	if (r.bytes > size - sizeof(r))
		return DECODE_SHORT;
	s->code = r.code;
	s->object = r.object;
	s->which = r.h.arg;
	s->units = r.units;
	s->bytes = r.bytes;
	s->kind = r.kind;
	s->flags = r.flags;
	s->data = (const uint8_t *)data + sizeof(r);
	return DECODE_OK;
}

#define CHAIN_FLAGS (PYP_CHAIN_LAST | PYP_CHAIN_TRUNCATED | PYP_CHAIN_RESYNC)
#define CHAIN_HEAD  offsetof(struct pyp_rec_chain, frames)

static enum decode_error decode_chain(const void *data, size_t size, struct event *ev)
{
	struct pyp_rec_chain r;
	struct event_chain *c = &ev->u.chain;

	memcpy(&r, data, CHAIN_HEAD);
	if (r.count > PYP_CHAIN_FRAMES || r.first > PYP_CHAIN_MAX_DEPTH - r.count ||
	    r.h.arg & ~CHAIN_FLAGS)
		return DECODE_FIELD;
	if (r.count * sizeof(r.frames[0]) > size - CHAIN_HEAD)
		return DECODE_SHORT;
	c->first = r.first;
	c->count = r.count;
	c->flags = r.h.arg;
	c->frames = (const void *)((const uint8_t *)data + CHAIN_HEAD);
	for (uint32_t i = 0; i < c->count; i++)
		if (!event_is_user_address(c->frames[i].frame))
			return DECODE_FIELD;
	return DECODE_OK;
}

#define SAMPLE_HEAD offsetof(struct pyp_rec_sample, codes)

/* A C function can only be in the first part, on top of a code object. It can be alone only if the
 * rest of the stack could not be read. */
static bool sample_flags_are_possible(const struct pyp_rec_sample *r)
{
	const uint32_t native = r->h.arg & (PYP_SAMPLE_METHOD | PYP_SAMPLE_NATIVE);
	const uint32_t wait = r->h.arg & (PYP_SAMPLE_WAIT | PYP_SAMPLE_AHEAD);

	if (r->h.arg &
	    ~(PYP_SAMPLE_LAST | PYP_SAMPLE_TRUNCATED | PYP_SAMPLE_MEMORY | native | wait))
		return false;
	if (r->h.arg & PYP_SAMPLE_MEMORY && (native || wait || r->period))
		return false;
	if (wait == PYP_SAMPLE_WAIT && r->period > PYP_WALK_LENGTH_MAX)
		return false;
	if (wait & PYP_SAMPLE_AHEAD &&
	    (!(wait & PYP_SAMPLE_WAIT) || !r->period || r->period > PYP_WALK_FACTOR_MAX))
		return false;
	if (!native)
		return true;
	return native != (PYP_SAMPLE_METHOD | PYP_SAMPLE_NATIVE) && !r->first &&
	       (r->count > 1 || (r->count == 1 && r->h.arg & PYP_SAMPLE_TRUNCATED));
}

static enum decode_error decode_sample(const void *data, size_t size, struct event *ev)
{
	struct event_sample *s = &ev->u.sample;
	struct pyp_rec_sample r;

	memcpy(&r, data, SAMPLE_HEAD);
	if (r.count > PYP_SAMPLE_CODES || r.first > PYP_SAMPLE_MAX_DEPTH - r.count ||
	    !sample_flags_are_possible(&r))
		return DECODE_FIELD;
	if (r.count * sizeof(r.codes[0]) > size - SAMPLE_HEAD)
		return DECODE_SHORT;
	s->period = r.period;
	s->first = r.first;
	s->count = r.count;
	s->flags = r.h.arg;
	s->offset = r.offset;
	s->codes = (const void *)((const uint8_t *)data + SAMPLE_HEAD);
	return DECODE_OK;
}

static enum decode_error decode_thread(const void *data, size_t size, struct event *ev)
{
	struct pyp_rec_thread r;

	(void)size;
	memcpy(&r, data, sizeof(r));
	if (r.h.arg & ~(PYP_EXIT_GROUP | PYP_EXIT_LOST))
		return DECODE_FIELD;
	ev->u.thread.runtime = r.runtime;
	memcpy(ev->u.thread.comm, r.comm, sizeof(ev->u.thread.comm));
	ev->u.thread.comm[sizeof(ev->u.thread.comm) - 1] = 0;
	return DECODE_OK;
}

static enum decode_error decode_process(const void *data, size_t size, struct event *ev)
{
	struct pyp_rec_process r;

	(void)size;
	memcpy(&r, data, sizeof(r));
	if (r.h.type == PYP_REC_FORK ? r.h.arg & ~PYP_FORK_SHARED || !r.child || !r.parent
				     : r.h.arg & ~PYP_EXEC_OTHER_THREAD || r.parent)
		return DECODE_FIELD;
	ev->u.process.child = r.child;
	ev->u.process.parent = r.parent;
	return DECODE_OK;
}

static enum decode_error decode_counters(const void *data, size_t size, struct event *ev)
{
	const struct pyp_rec_counters *r = data;

	(void)size;
	if (r->h.arg)
		return DECODE_FIELD;
	ev->u.counters.value = (const uint64_t *)r->value;
	return DECODE_OK;
}

#define MEMORY_PAGE 4096
#define MEMORY_MAX  (INT64_C(1) << 56)

static bool is_memory(int64_t bytes)
{
	return bytes > -MEMORY_MAX && bytes < MEMORY_MAX && bytes % MEMORY_PAGE == 0;
}

static enum decode_error decode_memory(const void *data, size_t size, struct event *ev)
{
	struct pyp_rec_memory r;

	(void)size;
	memcpy(&r, data, sizeof(r));
	if (r.h.arg & ~(PYP_MEMORY_LOST | PYP_MEMORY_STACK) || !is_memory(r.resident) ||
	    !is_memory(r.mapped) || (!r.resident && !r.mapped && !r.pools))
		return DECODE_FIELD;
	ev->u.memory.resident = r.resident;
	ev->u.memory.mapped = r.mapped;
	ev->u.memory.pools = r.pools;
	ev->u.memory.total = (uint64_t)r.pages * MEMORY_PAGE;
	return DECODE_OK;
}

static enum decode_error decode_block(const void *data, size_t size, struct event *ev)
{
	struct pyp_rec_block r;

	(void)size;
	memcpy(&r, data, sizeof(r));
	if (r.h.arg & ~(PYP_MEMORY_LOST | PYP_MEMORY_STACK | PYP_BLOCK_UNMAP) || !r.size ||
	    r.address >= (uint64_t)MEMORY_MAX || r.size >= (uint64_t)MEMORY_MAX ||
	    r.size % MEMORY_PAGE)
		return DECODE_FIELD;
	ev->u.block.address = r.address;
	ev->u.block.size = r.size;
	return DECODE_OK;
}

static enum decode_error decode_c_call(const void *data, size_t size, struct event *ev)
{
	struct pyp_rec_c_call r;

	(void)size;
	memcpy(&r, data, sizeof(r));
	/* Only C_LEAVE has no method. */
	if (!is_frame(r.frame) || r.h.arg || !r.method != (r.h.type == PYP_REC_C_LEAVE))
		return DECODE_FIELD;
	ev->u.c_call.frame = r.frame;
	ev->u.c_call.method = r.method;
	return DECODE_OK;
}

static enum decode_error decode_gc(const void *data, size_t size, struct event *ev)
{
	struct pyp_rec_gc r;

	(void)size;
	memcpy(&r, data, sizeof(r));
	if (r.h.arg > PYP_GC_UNKNOWN || (r.frame && !is_frame(r.frame)) ||
	    (r.frame && r.h.type == PYP_REC_GC_STOP))
		return DECODE_FIELD;
	ev->u.gc.frame = r.frame;
	return DECODE_OK;
}

static bool text_ends(const char *text, size_t size)
{
	return memchr(text, 0, size) != NULL;
}

static enum decode_error decode_method(const void *data, size_t size, struct event *ev)
{
	const struct pyp_rec_method *r = data;
	struct event_method *m = &ev->u.method;
	uint32_t kind = r->h.arg & ~PYP_METHOD_UNREADABLE;

	(void)size;
	if (!r->method || kind < PYP_METHOD_FUNCTION || kind > PYP_METHOD_DESCRIPTOR ||
	    !text_ends(r->name, sizeof(r->name)) || !text_ends(r->type, sizeof(r->type)) ||
	    !text_ends(r->module, sizeof(r->module)))
		return DECODE_FIELD;
	m->method = r->method;
	m->self_type = r->self_type;
	m->kind = kind;
	m->unreadable = r->h.arg & PYP_METHOD_UNREADABLE;
	m->name = r->name;
	m->type = r->type;
	m->module = r->module;
	return DECODE_OK;
}

/* A header only. */
static enum decode_error decode_plain(const void *data, size_t size, struct event *ev)
{
	(void)data;
	(void)size;
	return ev->arg ? DECODE_FIELD : DECODE_OK;
}

static const struct {
	decode_fn fn;
	size_t min;
} decoders[PYP_REC_MAX] = {
	[PYP_REC_ENTER] = {decode_enter, sizeof(struct pyp_rec_enter)},
	[PYP_REC_THROW] = {decode_enter, sizeof(struct pyp_rec_enter)},
	[PYP_REC_LEAVE] = {decode_leave, sizeof(struct pyp_rec_leave)},
	[PYP_REC_YIELD] = {decode_leave, sizeof(struct pyp_rec_leave)},
	[PYP_REC_SWITCH_OUT] = {decode_switch_out, sizeof(struct pyp_rec_switch_out)},
	[PYP_REC_SWITCH_IN] = {decode_switch, sizeof(struct pyp_rec_switch)},
	[PYP_REC_CODE] = {decode_code, sizeof(struct pyp_rec_code)},
	[PYP_REC_STRING] = {decode_string, sizeof(struct pyp_rec_string)},
	[PYP_REC_CODE_FREE] = {decode_code_free, sizeof(struct pyp_rec_code_free)},
	[PYP_REC_CHAIN] = {decode_chain, CHAIN_HEAD},
	[PYP_REC_THREAD_EXIT] = {decode_thread, sizeof(struct pyp_rec_thread)},
	[PYP_REC_FORK] = {decode_process, sizeof(struct pyp_rec_process)},
	[PYP_REC_EXEC] = {decode_process, sizeof(struct pyp_rec_process)},
	[PYP_REC_COUNTERS] = {decode_counters, sizeof(struct pyp_rec_counters)},
	[PYP_REC_MEMORY] = {decode_memory, sizeof(struct pyp_rec_memory)},
	[PYP_REC_BLOCK] = {decode_block, sizeof(struct pyp_rec_block)},
	[PYP_REC_SAMPLE] = {decode_sample, SAMPLE_HEAD},
	[PYP_REC_C_ENTER] = {decode_c_call, sizeof(struct pyp_rec_c_call)},
	[PYP_REC_C_LEAVE] = {decode_c_call, sizeof(struct pyp_rec_c_call)},
	[PYP_REC_C_INSTANT] = {decode_c_call, sizeof(struct pyp_rec_c_call)},
	[PYP_REC_METHOD] = {decode_method, sizeof(struct pyp_rec_method)},
	[PYP_REC_GC_START] = {decode_gc, sizeof(struct pyp_rec_gc)},
	[PYP_REC_GC_STOP] = {decode_gc, sizeof(struct pyp_rec_gc)},
	[PYP_REC_DELAY] = {decode_plain, sizeof(struct pyp_rec)},
	[PYP_REC_MARK] = {decode_plain, sizeof(struct pyp_rec)},
	[PYP_REC_CODE_ID] = {decode_code_id, sizeof(struct pyp_rec_code_id)},
};

enum decode_error decode_event(const void *data, size_t size, struct event *ret)
{
	struct event ev = {0};
	struct pyp_rec h;
	enum decode_error err;

	if (size < sizeof(h))
		return DECODE_SHORT;
	memcpy(&h, data, sizeof(h));
	if (h.type >= PYP_REC_MAX || !decoders[h.type].fn)
		return DECODE_TYPE;
	if (size < decoders[h.type].min)
		return DECODE_SHORT;
	if (h.site >= PYP_ALL_SITES)
		return DECODE_FIELD;
	ev.ts = h.ts;
	ev.tid = h.tid;
	ev.type = h.type;
	ev.site = h.site;
	ev.arg = h.arg;
	err = decoders[h.type].fn(data, size, &ev);
	if (!err)
		*ret = ev;
	return err;
}

const char *decode_error_name(enum decode_error e)
{
	switch (e) {
	case DECODE_OK:
		return "ok";
	case DECODE_SHORT:
		return "short";
	case DECODE_TYPE:
		return "type";
	case DECODE_FIELD:
		return "field";
	case DECODE_ERROR_MAX:
		break;
	}
	return "unknown";
}
