// SPDX-License-Identifier: BSD-2-Clause
/* event/decode: every type, every length that is too short, every range, and any bit flipped. */
#include "event/decode.h"

#include "harness/test.h"

union record {
	struct pyp_rec h;
	struct pyp_rec_enter enter;
	struct pyp_rec_leave leave;
	struct pyp_rec_switch sw;
	struct pyp_rec_switch_out out;
	struct pyp_rec_string string;
	struct pyp_rec_code code;
	struct pyp_rec_code_free code_free;
	struct pyp_rec_code_id code_id;
	struct pyp_rec_sample sample;
	struct pyp_rec_block block;
	struct pyp_rec_chain chain;
	struct pyp_rec_thread thread;
	struct pyp_rec_process process;
	struct pyp_rec_counters counters;
	struct pyp_rec_memory memory;
	struct pyp_rec_c_call c_call;
	struct pyp_rec_method method;
	struct pyp_rec_gc gc;
	uint8_t bytes[1024]; /* more than the largest record */
};

struct sample {
	union record r;
	size_t size; /* as in the ring */
	size_t min;  /* any shorter record must be refused */
};

static struct sample sample_new(uint8_t type, size_t size)
{
	struct sample s = {.size = size, .min = size};

	s.r.h = (struct pyp_rec){.ts = 123456789, .tid = 42, .type = type, .site = 7};
	return s;
}

static struct sample sample_enter(uint8_t type)
{
	struct sample s = sample_new(type, sizeof(s.r.enter));

	s.r.enter.frame = 0x1000;
	s.r.enter.code = 0x2000;
	s.r.enter.caller = 0x3000;
	return s;
}

static struct sample sample_string(void)
{
	struct sample s = sample_new(PYP_REC_STRING, PYP_STRING_SMALL);

	s.r.h.arg = PYP_STR_QUALNAME;
	s.r.string.code = 0x2000;
	s.r.string.object = 0x4000;
	s.r.string.units = 3;
	s.r.string.kind = 2;
	s.r.string.bytes = 6;
	memcpy(s.r.bytes + sizeof(s.r.string), "a\0b\0c", 6);
	s.min = sizeof(s.r.string) + 6;
	return s;
}

static struct sample sample_chain(void)
{
	struct sample s = sample_new(PYP_REC_CHAIN, sizeof(s.r.chain));

	s.r.h.arg = PYP_CHAIN_LAST | PYP_CHAIN_RESYNC;
	s.r.chain.first = 32;
	s.r.chain.count = 2;
	s.r.chain.frames[0] = (struct pyp_chain_frame){0x1000, 0x2000};
	s.r.chain.frames[1] = (struct pyp_chain_frame){0x1100, 0x2100};
	s.min = offsetof(struct pyp_rec_chain, frames) + 2 * sizeof(s.r.chain.frames[0]);
	return s;
}

/* A valid record of each type. */
static struct sample sample_of(uint8_t type)
{
	struct sample s;

	switch (type) {
	case PYP_REC_ENTER:
	case PYP_REC_THROW:
		return sample_enter(type);
	case PYP_REC_LEAVE:
	case PYP_REC_YIELD:
		s = sample_new(type, sizeof(s.r.leave));
		s.r.leave.frame = 0x1000;
		return s;
	case PYP_REC_SWITCH_OUT:
		s = sample_new(type, sizeof(s.r.out));
		s.r.out.runtime = 555;
		s.r.out.delay = 66;
		s.r.out.wait = PYP_WAIT_SYSCALL;
		s.r.out.syscall = 7;
		s.r.out.arg[0] = 8;
		s.r.out.arg[1] = 9;
		s.r.out.fd = PYP_FD_PIPE;
		return s;
	case PYP_REC_SWITCH_IN:
		s = sample_new(type, sizeof(s.r.sw));
		s.r.sw.runtime = 555;
		return s;
	case PYP_REC_CODE:
		s = sample_new(type, sizeof(s.r.code));
		s.r.code.code = 0x2000;
		s.r.code.flags = 0x23;
		s.r.code.firstlineno = -5;
		return s;
	case PYP_REC_STRING:
		return sample_string();
	case PYP_REC_CODE_FREE:
		s = sample_new(type, sizeof(s.r.code_free));
		s.r.code_free.code = 0x2000;
		return s;
	case PYP_REC_SAMPLE:
		s = sample_new(type, sizeof(s.r.sample));
		s.r.h.arg = PYP_SAMPLE_LAST;
		s.r.sample.period = 10101010;
		s.r.sample.first = 64;
		s.r.sample.count = 2;
		s.r.sample.offset = -6;
		s.r.sample.codes[0] = 0x1000;
		s.r.sample.codes[1] = 0x2000;
		s.min = offsetof(struct pyp_rec_sample, codes) + 2 * sizeof(s.r.sample.codes[0]);
		return s;
	case PYP_REC_CODE_ID:
		s = sample_new(type, sizeof(s.r.code_id));
		s.r.code_id.code = 0x2000;
		s.r.code_id.id = PYP_COUNT_FIRST;
		return s;
	case PYP_REC_CHAIN:
		return sample_chain();
	case PYP_REC_THREAD_EXIT:
		s = sample_new(type, sizeof(s.r.thread));
		s.r.thread.runtime = 777;
		memset(s.r.thread.comm, 'x', sizeof(s.r.thread.comm));
		return s;
	case PYP_REC_C_ENTER:
	case PYP_REC_C_LEAVE:
	case PYP_REC_C_INSTANT:
		s = sample_new(type, sizeof(s.r.c_call));
		s.r.c_call.frame = 0x1000;
		s.r.c_call.method = type == PYP_REC_C_LEAVE ? 0 : 0x5000;
		return s;
	case PYP_REC_METHOD:
		s = sample_new(type, sizeof(s.r.method));
		s.r.h.arg = PYP_METHOD_DESCRIPTOR | PYP_METHOD_UNREADABLE;
		s.r.method.method = 0x5000;
		s.r.method.self_type = 0x6000;
		memset(s.r.method.name, 'n', sizeof(s.r.method.name) - 1);
		s.r.method.type[0] = 't';
		return s;
	case PYP_REC_GC_START:
	case PYP_REC_GC_STOP:
		s = sample_new(type, sizeof(s.r.gc));
		s.r.h.arg = type == PYP_REC_GC_START ? 2 : PYP_GC_UNKNOWN;
		s.r.gc.frame = type == PYP_REC_GC_START ? 0x1000 : 0;
		return s;
	case PYP_REC_DELAY:
	case PYP_REC_MARK:
		return sample_new(type, sizeof(s.r.h));
	case PYP_REC_MEMORY:
		s = sample_new(type, sizeof(s.r.memory));
		s.r.memory.resident = -65536;
		s.r.memory.mapped = 1 << 20;
		s.r.memory.pools = 3;
		s.r.memory.pages = 5;
		return s;
	case PYP_REC_BLOCK:
		s = sample_new(type, sizeof(s.r.block));
		s.r.h.arg = PYP_BLOCK_UNMAP | PYP_MEMORY_STACK;
		s.r.block.address = 0x7f0000000000;
		s.r.block.size = 1 << 20;
		return s;
	case PYP_REC_COUNTERS:
		s = sample_new(type, sizeof(s.r.counters));
		s.r.counters.value[PYP_COUNTER_rbytes] = 888;
		return s;
	default:
		s = sample_new(type, sizeof(s.r.process));
		s.r.process.child = type == PYP_REC_FORK ? 4711 : 0;
		s.r.process.parent = type == PYP_REC_FORK ? 4242 : 0;
		return s;
	}
}

static enum decode_error decode(const struct sample *s, struct event *ev)
{
	return decode_event(&s->r, s->size, ev);
}

static struct event decoded(uint8_t type)
{
	static struct sample s; /* the event points into it */
	struct event ev = {0};

	s = sample_of(type);
	cr_assert_eq(decode(&s, &ev), DECODE_OK, "type %u", type);
	cr_assert(ev.ts == 123456789 && ev.tid == 42 && ev.type == type && ev.site == 7);
	cr_assert_eq(ev.arg, s.r.h.arg);
	return ev;
}

Test(decode, calls)
{
	for (uint8_t type = PYP_REC_ENTER; type <= PYP_REC_YIELD; type++) {
		struct event ev = decoded(type);
		int enters = type == PYP_REC_ENTER || type == PYP_REC_THROW;

		cr_assert_eq(ev.u.call.frame, 0x1000);
		cr_assert_eq(ev.u.call.code, enters ? 0x2000 : 0);
		cr_assert_eq(ev.u.call.caller, enters ? 0x3000 : 0);
	}
}

Test(decode, calls_of_c_functions)
{
	struct event ev = decoded(PYP_REC_C_ENTER);

	cr_assert(ev.u.c_call.frame == 0x1000 && ev.u.c_call.method == 0x5000);
	ev = decoded(PYP_REC_C_INSTANT);
	cr_assert(ev.u.c_call.frame == 0x1000 && ev.u.c_call.method == 0x5000);
	ev = decoded(PYP_REC_C_LEAVE);
	cr_assert(ev.u.c_call.frame == 0x1000 && ev.u.c_call.method == 0);
}

Test(decode, collections)
{
	struct event ev = decoded(PYP_REC_GC_START);

	cr_assert(ev.u.gc.frame == 0x1000 && ev.arg == 2);
	ev = decoded(PYP_REC_GC_STOP);
	cr_assert(ev.u.gc.frame == 0 && ev.arg == PYP_GC_UNKNOWN);
}

Test(decode, methods)
{
	struct event ev = decoded(PYP_REC_METHOD);
	const struct event_method *m = &ev.u.method;

	cr_assert(m->method == 0x5000 && m->self_type == 0x6000 && m->unreadable);
	cr_assert_eq(m->kind, PYP_METHOD_DESCRIPTOR);
	cr_assert_eq(strlen(m->name), sizeof(((struct pyp_rec_method *)NULL)->name) - 1);
	cr_assert_str_eq(m->type, "t");
	cr_assert_str_eq(m->module, "");
}

Test(decode, switches)
{
	cr_assert_eq(decoded(PYP_REC_SWITCH_OUT).u.sw.runtime, 555);
	cr_assert_eq(decoded(PYP_REC_SWITCH_OUT).u.sw.delay, 66);
	cr_assert_eq(decoded(PYP_REC_SWITCH_OUT).u.sw.syscall, 7);
	cr_assert_eq(decoded(PYP_REC_SWITCH_OUT).u.sw.arg[0], 8);
	cr_assert_eq(decoded(PYP_REC_SWITCH_OUT).u.sw.arg[1], 9);
	cr_assert_eq(decoded(PYP_REC_SWITCH_OUT).u.sw.fd, PYP_FD_PIPE);
	cr_assert_eq(decoded(PYP_REC_SWITCH_IN).u.sw.syscall, -1);
	cr_assert_eq(decoded(PYP_REC_SWITCH_IN).u.sw.runtime, 555);
}

Test(decode, code)
{
	struct event ev = decoded(PYP_REC_CODE);

	cr_assert(ev.u.code.code == 0x2000 && ev.u.code.flags == 0x23);
	cr_assert_eq(ev.u.code.firstlineno, -5);
	cr_assert_eq(decoded(PYP_REC_CODE_FREE).u.code.code, 0x2000);
}

Test(decode, string)
{
	struct event ev = decoded(PYP_REC_STRING);

	cr_assert(ev.u.string.code == 0x2000 && ev.u.string.object == 0x4000);
	cr_assert_eq(ev.u.string.which, PYP_STR_QUALNAME);
	cr_assert(ev.u.string.units == 3 && ev.u.string.bytes == 6 && ev.u.string.kind == 2);
	assert_bytes_eq(ev.u.string.data, "a\0b\0c", 6);
}

Test(decode, chain)
{
	struct event ev = decoded(PYP_REC_CHAIN);

	cr_assert(ev.u.chain.first == 32 && ev.u.chain.count == 2);
	cr_assert_eq(ev.u.chain.flags, PYP_CHAIN_LAST | PYP_CHAIN_RESYNC);
	cr_assert(ev.u.chain.frames[1].frame == 0x1100 && ev.u.chain.frames[1].code == 0x2100);
}

Test(decode, thread_exit_name_is_terminated)
{
	struct event ev = decoded(PYP_REC_THREAD_EXIT);

	cr_assert_eq(ev.u.thread.runtime, 777);
	cr_assert_str_eq(ev.u.thread.comm, "xxxxxxxxxxxxxxx");
}

Test(decode, memory)
{
	cr_assert_eq(decoded(PYP_REC_MEMORY).u.memory.resident, -65536);
	cr_assert_eq(decoded(PYP_REC_MEMORY).u.memory.mapped, 1 << 20);
	cr_assert_eq(decoded(PYP_REC_MEMORY).u.memory.pools, 3);
	cr_assert_eq(decoded(PYP_REC_MEMORY).u.memory.total, 5 * 4096);
	cr_assert_eq(decoded(PYP_REC_BLOCK).u.block.address, 0x7f0000000000);
	cr_assert_eq(decoded(PYP_REC_BLOCK).u.block.size, 1 << 20);
}

Test(decode, counters)
{
	cr_assert_eq(decoded(PYP_REC_COUNTERS).u.counters.value[PYP_COUNTER_rbytes], 888);
	cr_assert_eq(decoded(PYP_REC_COUNTERS).u.counters.value[PYP_COUNTER_vcsw], 0);
}

Test(decode, processes)
{
	cr_assert_eq(decoded(PYP_REC_FORK).u.process.child, 4711);
	cr_assert_eq(decoded(PYP_REC_FORK).u.process.parent, 4242);
	cr_assert_eq(decoded(PYP_REC_EXEC).u.process.child, 0);
}

/* The record ends at the end of the memory, so that a sanitizer detects any read beyond it. */
Test(decode, every_length)
{
	for (uint8_t type = 1; type < PYP_REC_MAX; type++) {
		struct sample s = sample_of(type);

		for (size_t n = 0; n <= s.size; n++) {
			uint8_t *copy = malloc(n ? n : 1);
			struct event ev = {.tid = 99};
			enum decode_error err;

			memcpy(copy, &s.r, n);
			err = decode_event(copy, n, &ev);
			cr_assert_eq(err, n < s.min ? DECODE_SHORT : DECODE_OK,
				     "type %u, %zu bytes", type, n);
			cr_assert_eq(ev.tid, err ? 99 : 42);
			free(copy);
		}
	}
	check_no_leaks();
}

Test(decode, longer_is_fine)
{
	for (uint8_t type = 1; type < PYP_REC_MAX; type++) {
		struct sample s = sample_of(type);
		struct event ev;

		s.size = sizeof(s.r);
		cr_assert_eq(decode(&s, &ev), DECODE_OK, "type %u", type);
	}
}

Test(decode, unknown_types)
{
	for (unsigned int type = 0; type < 256; type++) {
		struct sample s = sample_enter((uint8_t)type);
		struct event ev = {.tid = 99};

		if (type >= 1 && type < PYP_REC_MAX)
			continue;
		cr_assert_eq(decode(&s, &ev), DECODE_TYPE);
		cr_assert_eq(ev.tid, 99);
	}
}

/* Change one field of a valid record of `type`; it must be refused with `want`. */
#define REFUSES(type, want, change)                                                                \
	do {                                                                                       \
		struct sample s = sample_of(type);                                                 \
		struct event ev = {.tid = 99};                                                     \
                                                                                                   \
		s.r.change;                                                                        \
		cr_assert_eq(decode(&s, &ev), want, "%s: %s", #type, #change);                     \
		cr_assert_eq(ev.tid, 99);                                                          \
	} while (0)

#define ACCEPTS(type, change)                                                                      \
	do {                                                                                       \
		struct sample s = sample_of(type);                                                 \
		struct event ev;                                                                   \
                                                                                                   \
		s.r.change;                                                                        \
		cr_assert_eq(decode(&s, &ev), DECODE_OK, "%s: %s", #type, #change);                \
	} while (0)

Test(decode, ranges_of_calls)
{
	REFUSES(PYP_REC_C_ENTER, DECODE_FIELD, c_call.frame = 0);
	REFUSES(PYP_REC_C_ENTER, DECODE_FIELD, c_call.method = 0);
	REFUSES(PYP_REC_C_LEAVE, DECODE_FIELD, c_call.method = 1);
	REFUSES(PYP_REC_C_INSTANT, DECODE_FIELD, h.arg = 1);
	REFUSES(PYP_REC_GC_START, DECODE_FIELD, h.arg = PYP_GC_UNKNOWN + 1);
	ACCEPTS(PYP_REC_GC_START, gc.frame = 0);
	REFUSES(PYP_REC_GC_STOP, DECODE_FIELD, gc.frame = 0x1000);
	REFUSES(PYP_REC_METHOD, DECODE_FIELD, method.method = 0);
	REFUSES(PYP_REC_METHOD, DECODE_FIELD, h.arg = 0);
	REFUSES(PYP_REC_METHOD, DECODE_FIELD, h.arg = PYP_METHOD_DESCRIPTOR + 1);
	REFUSES(PYP_REC_METHOD, DECODE_FIELD, method.name[sizeof(s.r.method.name) - 1] = 'n');
	REFUSES(PYP_REC_ENTER, DECODE_FIELD, h.site = PYP_ALL_SITES);
	ACCEPTS(PYP_REC_ENTER, h.site = PYP_ALL_SITES - 1);
	REFUSES(PYP_REC_ENTER, DECODE_FIELD, h.arg = 4);
	ACCEPTS(PYP_REC_THROW, h.arg = PYP_ENTER_GENERATOR | PYP_ENTER_START);
	REFUSES(PYP_REC_ENTER, DECODE_FIELD, enter.frame = 0);
	REFUSES(PYP_REC_THROW, DECODE_FIELD, enter.code = 0);
	ACCEPTS(PYP_REC_ENTER, enter.caller = 0);
	REFUSES(PYP_REC_LEAVE, DECODE_FIELD, leave.frame = 0);
	ACCEPTS(PYP_REC_LEAVE, h.arg = PYP_LEAVE_RAISED);
	REFUSES(PYP_REC_LEAVE, DECODE_FIELD, h.arg = 2);
	REFUSES(PYP_REC_YIELD, DECODE_FIELD, h.arg = 1);
}

/* Values that a hostile process has in its memory, or that a wrong plan reads as frames. */
Test(decode, addresses_that_no_frame_has)
{
	const uint64_t native = UINT64_C(1) << 63 | 3, gc = UINT64_C(1) << 62;

	REFUSES(PYP_REC_ENTER, DECODE_FIELD, enter.frame = native);
	REFUSES(PYP_REC_ENTER, DECODE_FIELD, enter.caller = native);
	REFUSES(PYP_REC_THROW, DECODE_FIELD, enter.caller = native);
	REFUSES(PYP_REC_LEAVE, DECODE_FIELD, leave.frame = native);
	REFUSES(PYP_REC_C_ENTER, DECODE_FIELD, c_call.frame = native);
	REFUSES(PYP_REC_C_LEAVE, DECODE_FIELD, c_call.frame = native);
	REFUSES(PYP_REC_CHAIN, DECODE_FIELD, chain.frames[1].frame = native);
	REFUSES(PYP_REC_ENTER, DECODE_FIELD, enter.frame = gc);
	REFUSES(PYP_REC_GC_START, DECODE_FIELD, gc.frame = gc);
	ACCEPTS(PYP_REC_ENTER, enter.caller = gc - 4);
}

Test(decode, ranges_of_the_rest)
{
	REFUSES(PYP_REC_SWITCH_OUT, DECODE_FIELD, h.arg = 4);
	REFUSES(PYP_REC_SWITCH_OUT, DECODE_FIELD, h.arg = PYP_SWITCH_RUNNABLE);
	ACCEPTS(PYP_REC_SWITCH_OUT, h.arg = PYP_SWITCH_LOST);
	REFUSES(PYP_REC_SWITCH_OUT, DECODE_FIELD, out.wait = PYP_WAIT_MAX);
	REFUSES(PYP_REC_SWITCH_OUT, DECODE_FIELD, out.wait = PYP_WAIT_CPU);
	REFUSES(PYP_REC_SWITCH_OUT, DECODE_FIELD, out.wait = PYP_WAIT_FAULT);
	REFUSES(PYP_REC_SWITCH_OUT, DECODE_FIELD, out.syscall = -1);
	REFUSES(PYP_REC_SWITCH_OUT, DECODE_FIELD, out.fd = PYP_FD_MAX);
	REFUSES(PYP_REC_SWITCH_OUT, DECODE_FIELD, out.gil = PYP_GIL_RANGES);
	ACCEPTS(PYP_REC_SWITCH_OUT, out.wait = PYP_WAIT_GIL);
	REFUSES(PYP_REC_SWITCH_IN, DECODE_FIELD, h.arg = PYP_SWITCH_RUNNABLE);
	ACCEPTS(PYP_REC_SWITCH_IN, h.arg = PYP_SWITCH_LOST);
	REFUSES(PYP_REC_CODE, DECODE_FIELD, h.arg = 4);
	ACCEPTS(PYP_REC_CODE, h.arg = PYP_CODE_UNREADABLE);
	ACCEPTS(PYP_REC_CODE, h.arg = PYP_CODE_LATE);
	REFUSES(PYP_REC_CODE, DECODE_FIELD, code.code = 0);
	REFUSES(PYP_REC_CODE_FREE, DECODE_FIELD, code_free.code = 0);
	REFUSES(PYP_REC_THREAD_EXIT, DECODE_FIELD, h.arg = 4);
	ACCEPTS(PYP_REC_THREAD_EXIT, h.arg = PYP_EXIT_GROUP | PYP_EXIT_LOST);
	REFUSES(PYP_REC_FORK, DECODE_FIELD, process.child = 0);
	REFUSES(PYP_REC_FORK, DECODE_FIELD, process.parent = 0);
	REFUSES(PYP_REC_FORK, DECODE_FIELD, h.arg = 2);
	REFUSES(PYP_REC_EXEC, DECODE_FIELD, process.parent = 1);
	REFUSES(PYP_REC_EXEC, DECODE_FIELD, h.arg = 2);
	REFUSES(PYP_REC_COUNTERS, DECODE_FIELD, h.arg = 1);
	REFUSES(PYP_REC_MEMORY, DECODE_FIELD, h.arg = PYP_BLOCK_UNMAP);
	REFUSES(PYP_REC_BLOCK, DECODE_FIELD, h.arg = 8);
	REFUSES(PYP_REC_BLOCK, DECODE_FIELD, block.size = 0);
	REFUSES(PYP_REC_BLOCK, DECODE_FIELD, block.size = 100);
	REFUSES(PYP_REC_BLOCK, DECODE_FIELD, block.size = UINT64_C(1) << 56);
	REFUSES(PYP_REC_BLOCK, DECODE_FIELD, block.address = UINT64_MAX - 4095);
	ACCEPTS(PYP_REC_BLOCK, block.size = (UINT64_C(1) << 56) - 4096);
	REFUSES(PYP_REC_BLOCK, DECODE_FIELD, block.address = UINT64_C(1) << 56);
	ACCEPTS(PYP_REC_BLOCK, block.address = (UINT64_C(1) << 56) - 1);
	ACCEPTS(PYP_REC_MEMORY, memory.pools = 0);
	ACCEPTS(PYP_REC_MEMORY, h.arg = PYP_MEMORY_LOST | PYP_MEMORY_STACK);
	ACCEPTS(PYP_REC_BLOCK, h.arg = PYP_MEMORY_LOST | PYP_MEMORY_STACK | PYP_BLOCK_UNMAP);
	ACCEPTS(PYP_REC_FORK, h.arg = PYP_FORK_SHARED);
	ACCEPTS(PYP_REC_EXEC, h.arg = PYP_EXEC_OTHER_THREAD);
	ACCEPTS(PYP_REC_MEMORY, memory.resident = (INT64_C(1) << 56) - 4096);
	REFUSES(PYP_REC_MEMORY, DECODE_FIELD, memory.resident = INT64_C(1) << 56);
	ACCEPTS(PYP_REC_MEMORY, memory.mapped = 4096 - (INT64_C(1) << 56));
	REFUSES(PYP_REC_MEMORY, DECODE_FIELD, memory.mapped = -(INT64_C(1) << 56));
	REFUSES(PYP_REC_MEMORY, DECODE_FIELD, memory.resident = 100);
	REFUSES(PYP_REC_MEMORY, DECODE_FIELD, memory.mapped = INT64_MIN);
}

/* Any of the three numbers of a change of memory may be the only one. */
Test(decode, changes_of_nothing)
{
	for (int only = 0; only <= 3; only++) {
		struct sample s = sample_of(PYP_REC_MEMORY);
		struct event ev;

		s.r.memory.resident = only == 1 ? 4096 : 0;
		s.r.memory.mapped = only == 2 ? 4096 : 0;
		s.r.memory.pools = only == 3 ? 1 : 0;
		cr_assert_eq(decode(&s, &ev), only ? DECODE_OK : DECODE_FIELD, "%d", only);
	}
}

/* A thread that has lost its CPU is in no system call, and waits for nothing. */
Test(decode, switches_out_of_a_cpu)
{
	static const struct {
		uint64_t arg[2];
		int32_t syscall;
		uint8_t wait, fd;
		enum decode_error err;
	} cases[] = {
		{{0, 0}, -1, PYP_WAIT_CPU, 0, DECODE_OK},
		{{1, 0}, -1, PYP_WAIT_CPU, 0, DECODE_FIELD},
		{{0, 1}, -1, PYP_WAIT_CPU, 0, DECODE_FIELD},
		{{0, 0}, -1, PYP_WAIT_CPU, 1, DECODE_FIELD},
		{{0, 0}, 0, PYP_WAIT_CPU, 0, DECODE_FIELD},
		{{0, 0}, -1, PYP_WAIT_STOPPED, 0, DECODE_OK},
		{{0, 0}, 0, PYP_WAIT_SYSCALL, 0, DECODE_OK},
		{{0, 0}, -1, PYP_WAIT_SYSCALL, 0, DECODE_FIELD},
		{{9, 9}, 0, PYP_WAIT_GIL, 1, DECODE_OK},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct sample s = sample_of(PYP_REC_SWITCH_OUT);
		struct event ev;

		s.r.h.arg = cases[i].wait == PYP_WAIT_CPU ? PYP_SWITCH_RUNNABLE : 0;
		s.r.out.wait = cases[i].wait;
		s.r.out.fd = cases[i].fd;
		s.r.out.syscall = cases[i].syscall;
		s.r.out.arg[0] = cases[i].arg[0];
		s.r.out.arg[1] = cases[i].arg[1];
		cr_assert_eq(decode(&s, &ev), cases[i].err, "%zu", i);
	}
}

Test(decode, ranges_of_strings)
{
	REFUSES(PYP_REC_STRING, DECODE_FIELD, h.arg = 3);
	REFUSES(PYP_REC_STRING, DECODE_FIELD, string.code = 0);
	REFUSES(PYP_REC_STRING, DECODE_FIELD, string.flags = 4);
	REFUSES(PYP_REC_STRING, DECODE_FIELD, string.kind = 0);
	REFUSES(PYP_REC_STRING, DECODE_FIELD, string.kind = 3);
	REFUSES(PYP_REC_STRING, DECODE_FIELD, string.bytes = 5);
	REFUSES(PYP_REC_STRING, DECODE_FIELD, string.bytes = 8);
	REFUSES(PYP_REC_STRING, DECODE_FIELD, string.units = 0xffffffff);
	REFUSES(PYP_REC_STRING, DECODE_FIELD, string.flags = PYP_STRING_TRUNCATED);
	REFUSES(PYP_REC_STRING, DECODE_FIELD, string.flags = PYP_STRING_UNREADABLE);
}

Test(decode, strings_cut_short)
{
	struct sample s = sample_string();
	struct event ev;

	s.r.string.flags = PYP_STRING_TRUNCATED;
	s.r.string.units = 4;
	cr_assert_eq(decode(&s, &ev), DECODE_OK);
	cr_assert(ev.u.string.units == 4 && ev.u.string.bytes == 6);
	s.r.string.bytes = 5;
	cr_assert_eq(decode(&s, &ev), DECODE_FIELD);

	s = sample_string();
	s.r.string.flags = PYP_STRING_UNREADABLE;
	s.r.string.bytes = 0;
	s.r.string.kind = 0;
	cr_assert_eq(decode(&s, &ev), DECODE_OK);
	s.r.string.kind = 3;
	cr_assert_eq(decode(&s, &ev), DECODE_FIELD);
}

/* Lengths that are consistent with each other, but not with the size of the record. */
Test(decode, string_longer_than_its_record)
{
	struct sample s = sample_string();
	struct event ev;

	s.r.string.kind = 1;
	s.r.string.units = s.r.string.bytes = PYP_STRING_SMALL - sizeof(s.r.string);
	cr_assert_eq(decode(&s, &ev), DECODE_OK);
	s.r.string.units = s.r.string.bytes = PYP_STRING_SMALL - sizeof(s.r.string) + 1;
	cr_assert_eq(decode(&s, &ev), DECODE_SHORT);
	s.r.string.units = s.r.string.bytes = 0xffff;
	cr_assert_eq(decode(&s, &ev), DECODE_SHORT);
}

Test(decode, ranges_of_chains)
{
	REFUSES(PYP_REC_CHAIN, DECODE_FIELD, chain.count = PYP_CHAIN_FRAMES + 1);
	REFUSES(PYP_REC_CHAIN, DECODE_FIELD, chain.count = 0xffffffff);
	REFUSES(PYP_REC_CHAIN, DECODE_FIELD, chain.first = PYP_CHAIN_MAX_DEPTH - 1);
	REFUSES(PYP_REC_CHAIN, DECODE_FIELD, chain.first = 0xffffffff);
	REFUSES(PYP_REC_CHAIN, DECODE_FIELD, h.arg = 8);
	ACCEPTS(PYP_REC_CHAIN, chain.first = PYP_CHAIN_MAX_DEPTH - 2);
	ACCEPTS(PYP_REC_CHAIN, chain.count = PYP_CHAIN_FRAMES);
	ACCEPTS(PYP_REC_CHAIN, chain.count = 0);
}

/* Invariants of any accepted event, for any bytes. */
static void check_event(const struct sample *s, const struct event *ev)
{
	const uint8_t *end = (const uint8_t *)&s->r + s->size;

	cr_assert(ev->type >= 1 && ev->type < PYP_REC_MAX);
	cr_assert(ev->site < PYP_ALL_SITES);
	if (ev->type == PYP_REC_STRING)
		cr_assert(ev->u.string.data + ev->u.string.bytes <= end);
	if (ev->type == PYP_REC_CHAIN)
		cr_assert((const uint8_t *)(ev->u.chain.frames + ev->u.chain.count) <= end);
}

Test(decode, every_bit_flip)
{
	for (uint8_t type = 1; type < PYP_REC_MAX; type++) {
		struct sample s = sample_of(type);

		for (size_t bit = 0; bit < s.size * 8; bit++) {
			struct event ev = {.tid = 99};

			s.r.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			if (decode(&s, &ev) == DECODE_OK)
				check_event(&s, &ev);
			else
				cr_assert_eq(ev.tid, 99);
			s.r.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
}

Test(decode, reasons_have_names)
{
	cr_assert_str_eq(decode_error_name(DECODE_OK), "ok");
	cr_assert_str_eq(decode_error_name(DECODE_SHORT), "short");
	cr_assert_str_eq(decode_error_name(DECODE_TYPE), "type");
	cr_assert_str_eq(decode_error_name(DECODE_FIELD), "field");
	cr_assert_str_eq(decode_error_name(DECODE_ERROR_MAX), "unknown");
	cr_assert_str_eq(decode_error_name((enum decode_error) - 1), "unknown");
}

Test(decode, numbers_of_code)
{
	static const struct {
		uint32_t id;
		enum decode_error err;
	} cases[] = {
		{0, DECODE_FIELD},
		{PYP_COUNT_OUTSIDE, DECODE_FIELD},
		{PYP_COUNT_SKIP, DECODE_FIELD},
		{PYP_COUNT_FIRST, DECODE_OK},
		{PYP_COUNT_IDS - 1, DECODE_OK},
		{PYP_COUNT_IDS, DECODE_FIELD},
		{UINT32_MAX, DECODE_FIELD},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct sample s = sample_of(PYP_REC_CODE_ID);
		struct event ev = {0};

		s.r.code_id.id = cases[i].id;
		cr_assert_eq(decode(&s, &ev), cases[i].err, "%u", cases[i].id);
		cr_assert(cases[i].err || ev.u.code.id == cases[i].id);
	}
}

Test(decode, sample)
{
	struct event e = decoded(PYP_REC_SAMPLE);

	cr_assert(e.u.sample.period == 10101010 && e.u.sample.flags == PYP_SAMPLE_LAST);
	cr_assert(e.u.sample.first == 64 && e.u.sample.count == 2 && e.u.sample.offset == -6);
	cr_assert(e.u.sample.codes[0] == 0x1000 && e.u.sample.codes[1] == 0x2000);
}

Test(decode, sample_bounds)
{
	struct sample s = sample_of(PYP_REC_SAMPLE);
	struct event ev;

	s.r.sample.count = PYP_SAMPLE_CODES + 1;
	cr_assert_eq(decode(&s, &ev), DECODE_FIELD);
	s.r.sample.count = PYP_SAMPLE_CODES;
	s.r.sample.first = PYP_SAMPLE_MAX_DEPTH - PYP_SAMPLE_CODES;
	cr_assert_eq(decode(&s, &ev), DECODE_OK);
	s.r.sample.first++;
	cr_assert_eq(decode(&s, &ev), DECODE_FIELD);
	s = sample_of(PYP_REC_SAMPLE);
	s.r.h.arg = 64;
	cr_assert_eq(decode(&s, &ev), DECODE_FIELD);
}

/* All flags of a stack at once, or those of a change of memory, which is no period. */
Test(decode, sample_flags)
{
	const struct {
		uint16_t arg;
		uint64_t period;
		enum decode_error err;
	} cases[] = {
		{PYP_SAMPLE_LAST | PYP_SAMPLE_TRUNCATED, 9, DECODE_OK},
		{PYP_SAMPLE_LAST | PYP_SAMPLE_MEMORY, 0, DECODE_OK},
		{PYP_SAMPLE_LAST | PYP_SAMPLE_MEMORY, 1, DECODE_FIELD},
		{PYP_SAMPLE_MEMORY | PYP_SAMPLE_WAIT, 0, DECODE_FIELD},
		{PYP_SAMPLE_MEMORY | PYP_SAMPLE_METHOD, 0, DECODE_FIELD},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct sample s = sample_of(PYP_REC_SAMPLE);
		struct event ev;

		s.r.h.arg = cases[i].arg;
		s.r.sample.first = 0;
		s.r.sample.period = cases[i].period;
		cr_assert_eq(decode(&s, &ev), cases[i].err, "%zu", i);
	}
}

/* The period of a wait's stack says how likely it was; it must be possible. */
Test(decode, sample_of_a_wait)
{
	const struct {
		uint16_t arg;
		uint64_t period;
		enum decode_error err;
	} cases[] = {
		{PYP_SAMPLE_WAIT, 0, DECODE_OK},
		{PYP_SAMPLE_WAIT, PYP_WALK_LENGTH_MAX, DECODE_OK},
		{PYP_SAMPLE_WAIT, PYP_WALK_LENGTH_MAX + UINT64_C(1), DECODE_FIELD},
		{PYP_SAMPLE_WAIT | PYP_SAMPLE_AHEAD, 0, DECODE_FIELD},
		{PYP_SAMPLE_WAIT | PYP_SAMPLE_AHEAD, 1, DECODE_OK},
		{PYP_SAMPLE_WAIT | PYP_SAMPLE_AHEAD, PYP_WALK_FACTOR_MAX, DECODE_OK},
		{PYP_SAMPLE_WAIT | PYP_SAMPLE_AHEAD, PYP_WALK_FACTOR_MAX + 1, DECODE_FIELD},
		{PYP_SAMPLE_AHEAD, 1, DECODE_FIELD},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct sample s = sample_of(PYP_REC_SAMPLE);
		struct event ev;

		s.r.h.arg = cases[i].arg | PYP_SAMPLE_LAST;
		s.r.sample.period = cases[i].period;
		cr_assert_eq(decode(&s, &ev), cases[i].err, "%zu", i);
	}
}

/* A C function can only be on top of the innermost part of a stack, and needs a frame below it. */
Test(decode, sample_of_c_function)
{
	const struct {
		uint16_t arg, first, count;
		enum decode_error err;
	} cases[] = {
		{PYP_SAMPLE_METHOD | PYP_SAMPLE_LAST, 0, 2, DECODE_OK},
		{PYP_SAMPLE_NATIVE, 0, 2, DECODE_OK},
		{PYP_SAMPLE_NATIVE | PYP_SAMPLE_METHOD, 0, 2, DECODE_FIELD},
		{PYP_SAMPLE_NATIVE, 64, 2, DECODE_FIELD},
		{PYP_SAMPLE_NATIVE | PYP_SAMPLE_LAST, 0, 1, DECODE_FIELD},
		{PYP_SAMPLE_NATIVE | PYP_SAMPLE_LAST | PYP_SAMPLE_TRUNCATED, 0, 1, DECODE_OK},
		{PYP_SAMPLE_METHOD | PYP_SAMPLE_LAST, 0, 0, DECODE_FIELD},
		{PYP_SAMPLE_WAIT | PYP_SAMPLE_NATIVE, 0, 2, DECODE_OK},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct sample s = sample_of(PYP_REC_SAMPLE);
		struct event ev = {0};

		s.r.h.arg = cases[i].arg;
		s.r.sample.first = cases[i].first;
		s.r.sample.count = cases[i].count;
		cr_assert_eq(decode(&s, &ev), cases[i].err, "%zu", i);
		cr_assert(cases[i].err || event_sample_natives(&ev.u.sample) == 1);
	}
}
