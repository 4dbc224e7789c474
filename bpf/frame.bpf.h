/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Frames of the target: their code, the frame below, and which of them are Python's.
 */
#ifndef PYPROF_FRAME_BPF_H
#define PYPROF_FRAME_BPF_H

#include "code.bpf.h"
#include "user.bpf.h"

#define FRAME_BLOCK 32 /* bytes at frame + layout.frame_block that hold code and previous */
#define ENTRY_BLOCK 40 /* and 3.11's is_entry */
#define FRAME_SPAN  96 /* at most this many up to and with owner */

/* Bytes from frame_block up to and with owner; FRAME_BLOCK where frames have no owner. */
extern const volatile __u32 frame_span;

struct frame_head {
	__u64 code;
	__u64 previous;
	__u32 entry; /* it is the interpreter's own entry frame, or has not been entered */
};

#define FRAME_FIELD(block, field)                                                                  \
	(*(__u64 *)((__u8 *)(block) + (layout.frame_##field - layout.frame_block)))

static __always_inline __u64 frame_code(void *block)
{
	return FRAME_FIELD(block, code) & ~(__u64)layout.code_tag_mask;
}

/*
 * 3.11 makes generators and cells at instructions that precede RESUME, in a frame that its thread runs
 * but that was not entered. Either may start the garbage collector, which calls Python. Later versions
 * do not collect there, earlier ones have no such frames.
 */
#define FRAMES_CALL_EARLY (layout.frame_is_entry != 0xffff)
#define OWNER_GENERATOR	  1

/* As _PyFrame_IsIncomplete (CPython v3.11.7, Include/internal/pycore_frame.h). */
static __always_inline int frame_is_early(void *block, __u64 code, __u8 owner)
{
	__u64 begin = code + layout.code_start, at = FRAME_FIELD(block, instr);
	__s32 first = 0;

	if (owner == OWNER_GENERATOR || user_read(&first, sizeof(first), code + layout.code_first))
		return 0;
	return first > 0 && (at < begin || (at - begin) / 2 < (__u64)first);
}

static __always_inline int frame_load(__u64 frame, struct frame_head *h)
{
	__u64 block[FRAME_SPAN / 8];
	__u32 owner = layout.frame_owner - layout.frame_block;

	if (user_read(block, frame_span, frame + layout.frame_block))
		return -1;
	h->code = frame_code(block);
	h->previous = FRAME_FIELD(block, previous);
	h->entry = 0;
	if (layout.frame_owner != 0xffff && owner < FRAME_SPAN)
		h->entry = ((__u8 *)block)[owner] >= layout.owner_entry;
	if (FRAMES_CALL_EARLY && owner < FRAME_SPAN)
		h->entry = frame_is_early(block, h->code, ((__u8 *)block)[owner]);
	return 0;
}

/*
 * The Python frame below a frame, 0 if there is none; `below` is what the frame calls previous.
 * Reading it costs as much as all else together, so only where it may not be the answer itself.
 * Below an entry frame may be another one: a frame that C code had called is being cleared, and
 * what that sets free calls Python.
 */
__u64 caller_resolve(__u64 below, __u32 tid, __u64 sp);

/* Versions in which what a frame calls previous may not be a Python frame, or not one that was entered. */
#define FRAMES_HAVE_OTHERS                                                                         \
	(layout.owner_entry != 0xff || layout.code_skip_flags || FRAMES_CALL_EARLY)

static __always_inline void frame_entered(__u64 frame, __u32 tid)
{
	if (FRAMES_HAVE_OTHERS)
		frame_cache[core_frame_slot(frame)] = core_frame_entry(frame, tid, epoch);
}

static __always_inline void frame_left(__u64 frame, __u32 tid)
{
	__u64 *entry = &frame_cache[core_frame_slot(frame)];

	if (FRAMES_HAVE_OTHERS && *entry == core_frame_entry(frame, tid, epoch))
		*entry = 0;
}

/* What is needed of a frame that is entered: code, previous, and whether C code has called it. */
static __always_inline long frame_block_read(__u64 block[ENTRY_BLOCK / 8], __u64 frame)
{
	return user_read(block, FRAMES_CALL_EARLY ? ENTRY_BLOCK : FRAME_BLOCK,
			 frame + layout.frame_block);
}

static __always_inline int is_called_from_c(void *block)
{
	__u32 at = layout.frame_is_entry - layout.frame_block;

	return FRAMES_CALL_EARLY && at < ENTRY_BLOCK && ((__u8 *)block)[at];
}

static __always_inline int caller_is_clear(__u64 frame, void *block, __u64 below, __u32 tid,
					   __u64 sp)
{
	if (FRAMES_HAVE_OTHERS &&
	    frame_cache[core_frame_slot(below)] == core_frame_entry(below, tid, epoch))
		return 1;
	if (layout.owner_entry != 0xff && core_near_stack(below, sp))
		return 0;
	if (layout.code_skip_flags && core_may_be_shim(frame, below))
		return 0;
	if (FRAMES_CALL_EARLY && is_called_from_c(block))
		return 0;
	return 1;
}

#endif
