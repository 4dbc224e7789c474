// SPDX-License-Identifier: BSD-2-Clause
/* CPython 3.10 on x86-64: frames are objects, one C call of the evaluator each. The thread state's
 * cframe is only for tracing; the current frame is in the thread state. */
#include "python/layout_base.h"

const struct layout layout_3_10 = {
	LAYOUT_FRAME_OBJECTS,
	.minor = 10,
	.tag = "v3.10.13",
	.arg_frame = 1,
	.arg_throwflag = 2,
	.bpf.frame_instr = 96,
	.frame_localsplus = 352,
	.interp_eval_frame = 1368,
	.waiting_style = PYP_WAITING_INDEX,
	.lasti_unit = 2,
	.code_bytes = 48,
	.gc_state = 616,
};
