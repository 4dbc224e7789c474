/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The decisions of the BPF programs that need neither the kernel nor a map: cookies, string
 * layouts, cache slots. Pure static inline functions, compiled for BPF and, by
 * tests/unit/bpf/test_core.c, for the host.
 */
#ifndef PYPROF_CORE_BPF_H
#define PYPROF_CORE_BPF_H

#include "arch.bpf.h"
#include "pyprof/bpf_abi.h"

/* Returns 1 if the cookie's predicate holds for the flags, so that the hit counts. */
static inline int core_counts(__u64 cookie, __u64 flags)
{
	if (!PYP_COOKIE_HAS_CC(cookie))
		return 1;
	return arch_condition(flags, PYP_COOKIE_CC(cookie)) == PYP_COOKIE_TAKEN(cookie);
}

/* Numbers of slots of the direct-mapped caches. */
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

/*
 * Code objects are at least 8-byte aligned, so the low bits of a cache entry are free for flags:
 * never counted; its frames execute the entry once more when their generator is created; its frames
 * can be suspended.
 */
#define CORE_CODE_SKIP	   1u
#define CORE_CODE_CREATES  2u
#define CORE_CODE_SUSPENDS 4u
#define CORE_CODE_FLAGS	   (CORE_CODE_SKIP | CORE_CODE_CREATES | CORE_CODE_SUSPENDS)

/*
 * Returns 1 if a generator's frame is about to run for the first time. bytes: the offset of the
 * frame's current instruction from the code's start; first: the offset of the code's own RESUME. A
 * new frame is at that RESUME, or before it if the interpreter has not stored the position yet. All
 * resumption points are later, after a YIELD_VALUE.
 */
static inline int core_is_start(__u64 bytes, __s32 first)
{
	return bytes / 2 <= (__u64)first + 1;
}

/* In the map `codes` only: some of the names could not be read when it was announced. */
#define CORE_CODE_UNNAMED 8u

static inline __u64 core_code_entry(__u64 code, __u64 flags)
{
	return code | (flags & CORE_CODE_FLAGS);
}

static inline int core_code_hit(__u64 entry, __u64 code)
{
	return (entry & ~(__u64)CORE_CODE_FLAGS) == code;
}

static inline __u64 core_thread_entry(__u32 tid, __u32 epoch)
{
	return (__u64)tid << 32 | epoch;
}

/*
 * Frames are at least 8-byte aligned and in the lower half of the address space, which leaves 19
 * bits for a hash of thread and epoch.
 */
static inline __u64 core_frame_entry(__u64 frame, __u32 tid, __u32 epoch)
{
	return frame << 16 ^ ((tid ^ epoch << 9) & 0x7ffff);
}

static inline __u32 core_frame_slot(__u64 frame)
{
	return (frame >> 3) & (CORE_FRAME_SLOTS - 1);
}

/* An entry of the PyMethodDef cache combines the address with a fingerprint of its contents. */
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

/*
 * The second word beside a PyMethodDef: the calling frame mixed with the address, so that halves
 * written by two threads do not match. 0 stands for no method.
 */
static inline __u64 core_called_entry(__u64 frame, __u64 method)
{
	return frame ^ method * 0x9e3779b97f4a7c15ull;
}

/*
 * One word that holds a lower-half address and the epoch in which it was learnt. An exec starts a
 * new epoch, which invalidates the entry.
 */
static inline __u64 core_same_entry(__u64 method, __u32 epoch)
{
	return method << 16 | (epoch & 0xffff);
}

/* Returns the address, or 0 if the entry is empty or from another epoch. */
static inline __u64 core_same_method(__u64 entry, __u32 epoch)
{
	return (entry & 0xffff) == (epoch & 0xffff) ? entry >> 16 : 0;
}

/* Not a frame address: several frames share the slot. */
#define CORE_NATIVE_MANY 1ull

/*
 * A hash of a thread's resource counters. A change of any counter changes it, except for
 * collisions.
 */
static inline __u64 core_counters_mark(const __u64 *value, __u32 tid, __u32 epoch)
{
	__u64 mark = core_thread_entry(tid, epoch);

	for (int i = 0; i < PYP_COUNTERS; i++)
		mark = (mark ^ value[i]) * 0x9e3779b97f4a7c15ull;
	return mark;
}

/*
 * A cache entry of mode count is one word that holds an address (lower half, 8-byte aligned: 44
 * bits) and its number. Readers therefore never see one without the other.
 */
#define CORE_COUNT_FRAMES  65536
#define CORE_COUNT_BITS	   20
#define CORE_COUNT_CREATES (1u << 19) /* flag of a number; means the same as CORE_CODE_CREATES */

_Static_assert(PYP_COUNT_IDS <= CORE_COUNT_CREATES, "numbers and their mark fit");

static inline __u64 core_count_entry(__u64 addr, __u32 id)
{
	return addr >> 3 << CORE_COUNT_BITS | id;
}

/* Returns 1 if the entry is for addr. Numbers are never 0, so an entry is never 0 either. */
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

/*
 * An interpreter's entry frame is in the evaluator's C frame, at most this many bytes above its sp.
 */
#define CORE_ENTRY_WINDOW 8192

static inline int core_near_stack(__u64 addr, __u64 sp)
{
	return addr - sp < CORE_ENTRY_WINDOW;
}

/*
 * The next entry frame is farther up the C stack, beyond the C code between two evaluators; at most
 * this many bytes.
 */
#define CORE_STACK_WINDOW (8u << 20)

static inline int core_on_stack(__u64 addr, __u64 sp)
{
	return addr - sp < CORE_STACK_WINDOW;
}

/*
 * Returns 1 if the frame below may be the interpreter's own (the __init__ shim of 3.13+). The shim
 * has two slots, so it is at most a few words below the frame. The exception is a frame that begins
 * a data stack chunk, which starts on a page with a header of three words.
 */
#define CORE_SHIM_REACH	  112
#define CORE_CHUNK_HEADER 24

static inline int core_may_be_shim(__u64 frame, __u64 below)
{
	return frame - below <= CORE_SHIM_REACH || (frame & 0xfff) == CORE_CHUNK_HEADER;
}

/* Where the characters of a str object are. */
struct core_string {
	__u64 units;
	__u64 bytes;
	__u32 offset; /* bytes from the object's address */
	__u32 kind;   /* bytes per character; 0: not compact, the characters are in another block */
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

/* Returns the smallest STRING record size with room for that many bytes, or the largest size. */
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
