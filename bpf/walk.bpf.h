/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The walk down a thread's frames. A stack is sent in as many records as it needs, each with room
 * for a fixed number of frames.
 */
#ifndef PYPROF_WALK_BPF_H
#define PYPROF_WALK_BPF_H

#include "frame.bpf.h"

/* The position of a walk; walk_next sets frame and code. */
struct walk {
	__u64 next;
	__u64 frame;
	__u64 code;
	__u32 tid;
};

enum walk_result { WALK_FRAME, WALK_END, WALK_CUT, WALK_FULL };

#define WALK_HOPS 8

/* frame_load or frame_load_wait */
typedef int (*walk_load_fn)(__u64 frame, struct frame_head *h);

/* Returns CORE_CODE_* bits of a code object; negative if it could not be announced. */
typedef int (*walk_look_fn)(__u64 code, __u32 tid);

/*
 * Advance to the next frame of Python code, skipping entry frames and code that is never counted.
 * Returns WALK_CUT if the stack cannot be read further, and `unknown` if `look` could not announce
 * the code object.
 */
static __always_inline int walk_step(struct walk *w, walk_load_fn load, walk_look_fn look,
				     int unknown)
{
	struct frame_head h = {};
	__u64 frame;
	int flags;

	if (!w)
		return WALK_CUT;
	for (int i = 0; i < WALK_HOPS; i++) {
		frame = w->next;
		if (!frame)
			return WALK_END;
		if (load(frame, &h))
			return WALK_CUT;
		w->next = h.previous;
		if (h.entry)
			continue;
		flags = look(h.code, w->tid);
		if (flags < 0)
			return unknown;
		if (flags & CORE_CODE_SKIP)
			continue;
		w->frame = frame;
		w->code = h.code;
		return WALK_FRAME;
	}
	return WALK_CUT;
}

_Static_assert(PYP_CHAIN_LAST == PYP_SAMPLE_LAST && PYP_CHAIN_TRUNCATED == PYP_SAMPLE_TRUNCATED,
	       "walk_flags serves both");

/*
 * The flags of a record after which the walk is at `end`; full: 1 if no further record may follow.
 */
static __always_inline __u32 walk_flags(enum walk_result end, int full)
{
	if (end == WALK_CUT || (end == WALK_FRAME && full))
		return PYP_CHAIN_LAST | PYP_CHAIN_TRUNCATED;
	return end == WALK_FRAME ? 0 : PYP_CHAIN_LAST;
}

#endif
