/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Frames of the target: their code objects, their callers, and which frames belong to Python code.
 */
#ifndef PYPROF_FRAME_BPF_H
#define PYPROF_FRAME_BPF_H

#include "code.bpf.h"
#include "user.bpf.h"

#define FRAME_BLOCK 32 /* bytes from frame + layout.frame_block; contain code and previous */
#define ENTRY_BLOCK 40 /* FRAME_BLOCK plus is_entry of 3.11 */
#define FRAME_SPAN  96 /* upper bound of frame_span */

/* Bytes from frame_block to the end of owner; FRAME_BLOCK if frames have no owner field. */
extern const volatile __u32 frame_span;

struct frame_head {
	__u64 code;
	__u64 previous;
	__u32 entry; /* 1: an entry frame of the interpreter, or not entered yet */
};

#define FRAME_FIELD(block, field)                                                                  \
	(*(__u64 *)((__u8 *)(block) + (layout.frame_##field - layout.frame_block)))

static __always_inline __u64 frame_code(void *block)
{
	return FRAME_FIELD(block, code) & ~(__u64)layout.code_tag_mask;
}

/*
 * CPython 3.11 creates generators and cells before RESUME, in a frame that runs but has not been
 * entered. Both can start the garbage collector, which can call Python code. Later versions do not
 * collect there; earlier ones have no such frames.
 */
#define FRAMES_CALL_EARLY (layout.frame_is_entry != 0xffff)
#define OWNER_GENERATOR	  1

/*
 * Read a frame's head. Returns 0, or -1 if it cannot be read. Not inlined, because the stacks of all
 * programs must fit in 512 bytes with those of the functions that they call, each rounded up to 32
 * (before Linux 6.13).
 */
int frame_load(__u64 frame, struct frame_head *h);

/* Like frame_load, but waits for pages that are absent for a moment; for programs of probes. */
int frame_load_wait(__u64 frame, struct frame_head *h);

/*
 * Find the caller of a frame. below: the frame's `previous` field; tid: the current thread; sp: its
 * stack pointer. Returns the nearest Python frame at or below `below`, 0 if there is none. The
 * function costs as much as the rest of the event, so it runs only if `below` may not be a Python
 * frame. Two entry frames can be adjacent: while the interpreter clears a frame that C code called,
 * a destructor can call Python code.
 */
__u64 caller_resolve(__u64 below, __u32 tid, __u64 sp);

/*
 * True for versions in which `previous` may not be a Python frame, or a frame that was not entered.
 */
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

/*
 * Read the fields of an entered frame: code, previous and, in 3.11, is_entry. Returns 0 or a
 * negative errno.
 */
static __always_inline long frame_block_read(__u64 block[ENTRY_BLOCK / 8], __u64 frame)
{
	return user_read_wait(block, FRAMES_CALL_EARLY ? ENTRY_BLOCK : FRAME_BLOCK,
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
