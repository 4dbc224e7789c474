/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The decisions of the BPF programs that need neither kernel nor map: cookies, string shapes, cache
 * slots. Pure static inline functions; compiled for BPF and, for
 * tests/unit/bpf/test_core.c, for the host.
 */
#ifndef PYPROF_CORE_BPF_H
#define PYPROF_CORE_BPF_H

#include "arch.bpf.h"
#include "pyprof/bpf_abi.h"

/* Does a hit count under the cookie's predicate? */
static inline int core_counts(__u64 cookie, __u64 flags)
{
	if (!PYP_COOKIE_HAS_CC(cookie))
		return 1;
	return arch_condition(flags, PYP_COOKIE_CC(cookie)) == PYP_COOKIE_TAKEN(cookie);
}

/* Slots of the direct-mapped caches. */
#define CORE_CODE_SLOTS	  65536
#define CORE_THREAD_SLOTS 8192
#define CORE_FRAME_SLOTS  8192

static inline __u32 core_code_slot(__u64 code)
{
	return (__u32)((code * 0x9e3779b97f4a7c15ull) >> 48);
}

static inline __u32 core_thread_slot(__u32 tid)
{
	return tid & (CORE_THREAD_SLOTS - 1);
}

/* Code objects are at least 8-byte aligned: the low bits of a cache entry say "never counted",
 * "entered once more when its generator is created" and "its frames can be suspended". */
#define CORE_CODE_SKIP	   1u
#define CORE_CODE_CREATES  2u
#define CORE_CODE_SUSPENDS 4u
#define CORE_CODE_MARKS	   (CORE_CODE_SKIP | CORE_CODE_CREATES | CORE_CODE_SUSPENDS)

/*
 * Is a generator's frame about to run for the first time? Then its current instruction, so many
 * bytes from the code's start, is not beyond the RESUME that is its first one of its own (or one
 * before it, where the interpreter has not noted that yet). The first at which it can be resumed is
 * further on: after a YIELD_VALUE and what it yields.
 */
static inline int core_is_start(__u64 bytes, __s32 first)
{
	return bytes / 2 <= (__u64)first + 1;
}

static inline __u64 core_code_entry(__u64 code, __u64 flags)
{
	return code | (flags & CORE_CODE_MARKS);
}

static inline int core_code_hit(__u64 entry, __u64 code)
{
	return (entry & ~(__u64)CORE_CODE_MARKS) == code;
}

static inline __u64 core_thread_entry(__u32 tid, __u32 epoch)
{
	return (__u64)tid << 32 | epoch;
}

/* Frames are at least 8-byte aligned and in the lower half: 19 bits are left for the thread's. */
static inline __u64 core_frame_entry(__u64 frame, __u32 tid, __u32 epoch)
{
	return frame << 16 ^ ((tid ^ epoch << 9) & 0x7ffff);
}

static inline __u32 core_frame_slot(__u64 frame)
{
	return (frame >> 3) & (CORE_FRAME_SLOTS - 1);
}

/* PyMethodDefs: a word of their cache is made of the address and of a fingerprint of what is there. */
#define CORE_METHOD_SLOTS 4096

static inline __u32 core_method_slot(__u64 method)
{
	return (__u32)(((method >> 3) * 0x9e3779b97f4a7c15ull) >> 52);
}

static inline __u64 core_method_print(__u64 name, __u64 function)
{
	return name * 0x9e3779b97f4a7c15ull ^ function;
}

static inline __u64 core_method_entry(__u64 method, __u64 print)
{
	return method ^ print * 0xc2b2ae3d27d4eb4full;
}

/* Beside a PyMethodDef: the frame that has called it, 0 mixed with none. */
static inline __u64 core_called_entry(__u64 frame, __u64 method)
{
	return frame ^ method * 0x9e3779b97f4a7c15ull;
}

/* One word for an address of the lower half and the epoch in which it was learnt: an exec ends it. */
static inline __u64 core_same_entry(__u64 method, __u32 epoch)
{
	return method << 16 | (epoch & 0xffff);
}

/* The address; 0: it was learnt in another epoch, or not at all. */
static inline __u64 core_same_method(__u64 entry, __u32 epoch)
{
	return (entry & 0xffff) == (epoch & 0xffff) ? entry >> 16 : 0;
}

/* No frame's address: several frames have met in a slot. */
#define CORE_NATIVE_MANY 1ull

/* One word for a thread's resource counters: another one, but for an accident, when any changes. */
static inline __u64 core_counters_mark(const __u64 *value, __u32 tid, __u32 epoch)
{
	__u64 mark = core_thread_entry(tid, epoch);

	for (int i = 0; i < PYP_COUNTERS; i++)
		mark = (mark ^ value[i]) * 0x9e3779b97f4a7c15ull;
	return mark;
}

/*
 * Counting's caches hold one word for an address (of the lower half, 8-byte aligned: 44 bits) and
 * the number that goes with it, so that neither is ever seen with the other's predecessor.
 */
#define CORE_COUNT_FRAMES  65536
#define CORE_COUNT_BITS	   20
#define CORE_COUNT_CREATES (1u << 19) /* with a number: as CORE_CODE_CREATES */

_Static_assert(PYP_COUNT_IDS <= CORE_COUNT_CREATES, "numbers and their mark fit");

static inline __u64 core_count_entry(__u64 addr, __u32 id)
{
	return addr >> 3 << CORE_COUNT_BITS | id;
}

/* An entry is never 0: no number is. */
static inline int core_count_hit(__u64 entry, __u64 addr)
{
	return entry && entry >> CORE_COUNT_BITS == (addr >> 3 & ((1ull << 44) - 1));
}

static inline __u32 core_count_id(__u64 entry)
{
	return (__u32)entry & ((1u << CORE_COUNT_BITS) - 1);
}

static inline __u32 core_count_frame_slot(__u64 frame)
{
	return (__u32)(((frame >> 3) * 0x9e3779b97f4a7c15ull) >> 48);
}

/* An interpreter's entry frame lives in the evaluator's C frame, a little above its sp. */
#define CORE_ENTRY_WINDOW 8192

static inline int core_near_stack(__u64 addr, __u64 sp)
{
	return addr - sp < CORE_ENTRY_WINDOW;
}

/* The one below it is further up: behind the C code between two evaluators. */
#define CORE_STACK_WINDOW (8u << 20)

static inline int core_on_stack(__u64 addr, __u64 sp)
{
	return addr - sp < CORE_STACK_WINDOW;
}

/*
 * May the frame below be the interpreter's own (the __init__ shim of 3.13+)? That one has two
 * slots, so it lies within a few words below the frame, unless the frame is the first of a data
 * stack chunk, which starts on a page, behind a header of three words.
 */
#define CORE_SHIM_REACH	  112
#define CORE_CHUNK_HEADER 24

static inline int core_may_be_shim(__u64 frame, __u64 below)
{
	return frame - below <= CORE_SHIM_REACH || (frame & 0xfff) == CORE_CHUNK_HEADER;
}

/* Where a str object's characters are. */
struct core_string {
	__u64 units;
	__u64 bytes;
	__u32 offset; /* from the object */
	__u32 kind;   /* 0: not compact, characters are elsewhere */
};

#define CORE_STR_COMPACT(kind_shift) ((kind_shift) + 3)
#define CORE_STR_ASCII(kind_shift)   ((kind_shift) + 4)

static inline struct core_string core_string_shape(__u64 length, __u32 state, __u32 kind_shift,
						   __u32 ascii_data, __u32 compact_data)
{
	struct core_string s = {.units = length};
	__u32 kind = (state >> kind_shift) & 7;

	if (!(state >> CORE_STR_COMPACT(kind_shift) & 1))
		return s;
	if (kind != 1 && kind != 2 && kind != 4)
		return s;
	s.kind = kind;
	s.bytes = length * kind;
	s.offset = state >> CORE_STR_ASCII(kind_shift) & 1 ? ascii_data : compact_data;
	return s;
}

/* The smallest of the STRING record sizes that holds that many bytes (the largest if none). */
static inline __u32 core_string_class(__u64 bytes)
{
	if (bytes <= PYP_STRING_SMALL - sizeof(struct pyp_rec_string))
		return PYP_STRING_SMALL;
	if (bytes <= PYP_STRING_MEDIUM - sizeof(struct pyp_rec_string))
		return PYP_STRING_MEDIUM;
	if (bytes <= PYP_STRING_LARGE - sizeof(struct pyp_rec_string))
		return PYP_STRING_LARGE;
	return PYP_STRING_HUGE;
}

#endif
