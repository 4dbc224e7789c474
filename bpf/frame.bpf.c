// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "frame.bpf.h"

const volatile __u32 frame_span = FRAME_BLOCK;

__noinline __u64 caller_resolve(__u64 below, __u32 tid, __u64 sp)
{
	struct frame_head h;

	for (int i = 0; i < 4 && below; i++) {
		if (frame_load(below, &h)) {
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
