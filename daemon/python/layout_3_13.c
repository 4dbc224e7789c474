// SPDX-License-Identifier: BSD-2-Clause
/* CPython 3.13 on x86-64: the current frame is in the thread state. _PyRuntime starts with
 * _Py_DebugOffsets, which this is checked against. */
#include "python/layout_base.h"

const struct layout layout_3_13 = {
	LAYOUT_ENTRY_FRAMES,
	.minor = 13,
	.tag = "v3.13.0",
	.bpf.frame_owner = 70,
	.bpf.code_start = 200, /* co_code_adaptive */
	.bpf.code_first = 184, /* _co_firsttraceable */
	.op.resume = 149,
	.op.resume_check = 207,
	.op.instrumented_resume = 236,
	.op.return_value = 36,
	.op.return_const = 103,
	.op.instrumented_return_value = 239,
	.op.instrumented_return_const = 240,
	.op.yield_value = 118,
	.op.instrumented_yield_value = 241,
	.op.return_generator = 35,
	/* CALL, CALL_FUNCTION_EX, CALL_KW, CALL_NON_PY_GENERAL, the first three instrumented */
	.calls.generic = {53, 54, 57, 176, 244, 246, 245},
	.calls.function = {166, 167, 168},
	.calls.descriptor = {172, 173, 174, 175},
	.calls.cached = {170, 169},
	.calls.append = 171,
	.calls.related = {162, 163, 164, 165, 177, 178, 179, 180, 181},
	.frame_localsplus = 72,
	.ts_recursion = 44,
	.ts_thread_id = 152,
	.ts_native_thread_id = 160,
	.interp_next = 7264,
	.interp_threads_head = 7344,
	.interp_eval_frame = 8472,
	.runtime_interpreters_head = 632,
	.ts_profilefunc = 80,
	.ts_tracefunc = 88,
	.interp_tool_names = 194264,
};
