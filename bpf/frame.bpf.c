// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "frame.bpf.h"

const volatile __u32 frame_span = FRAME_BLOCK;

/* The same test as _PyFrame_IsIncomplete (CPython v3.11.7, Include/internal/pycore_frame.h). */
static __always_inline int frame_is_early(void *block, __u64 code, __u8 owner)
{
	__u64 begin = code + layout.code_start, at = FRAME_FIELD(block, instr);
	__s32 first = 0;

	if (owner == OWNER_GENERATOR || user_read(&first, sizeof(first), code + layout.code_first))
		return 0;
	return first > 0 && (at < begin || (at - begin) / 2 < (__u64)first);
}

__noinline int frame_load(__u64 frame, struct frame_head *h)
{
	__u64 block[FRAME_SPAN / 8], at = frame + layout.frame_block;
	__u32 owner = layout.frame_owner - layout.frame_block;

	if (!h)
		return -1;
	if (user_read(block, frame_span, at))
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

__noinline int frame_load_wait(__u64 frame, struct frame_head *h)
{
	if (!frame_load(frame, h))
		return 0;
	return user_wait(frame + layout.frame_block, frame_span) ? -1 : frame_load(frame, h);
}

__noinline __u64 caller_resolve(__u64 below, __u32 tid, __u64 sp)
{
	struct frame_head h = {};

	for (int i = 0; i < 4 && below; i++) {
		if (frame_load_wait(below, &h)) {
			count(PYP_LOSS_fault_frame);
			return 0;
		}
		if (!h.entry) {
			int flags = layout.code_skip_flags ? code_lookup(h.code, tid) : 0;

			if (flags < 0 || !(flags & CORE_CODE_SKIP))
				break;
		}
		below = h.previous;
		if (h.entry && !layout.code_skip_flags && !core_on_stack(below, sp))
			break;
	}
	return below;
}
