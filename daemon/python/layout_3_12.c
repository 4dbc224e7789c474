// SPDX-License-Identifier: BSD-2-Clause
/* CPython 3.12 on x86-64: each C call of the evaluator pushes an entry frame (owner
 * FRAME_OWNED_BY_CSTACK, 3). */
#include "python/layout_base.h"

const struct layout layout_3_12 = {
	LAYOUT_ENTRY_FRAMES,
	.minor = 12,
	.tag = "v3.12.1",
	.bpf.frame_owner = 70,
	.bpf.code_skip_flags = 0,
	.bpf.code_start = 192, /* co_code_adaptive */
	.bpf.code_first = 176, /* _co_firsttraceable */
	.op.resume = 151,
	.op.instrumented_resume = 240,
	.op.return_value = 83,
	.op.return_const = 121,
	.op.instrumented_return_value = 242,
	.op.instrumented_return_const = 247,
	.op.yield_value = 150,
	.op.instrumented_yield_value = 243,
	.op.return_generator = 75,
	.calls.generic = {171, 142, 241, 244}, /* CALL, CALL_FUNCTION_EX, instrumented */
	.calls.function = {34, 39, 40},
	.calls.descriptor = {38, 44, 45, 46},
	.calls.cached = {42, 41},
	.calls.append = 43,
	.calls.related = {23, 24, 28, 29, 47, 48, 56},
	.code_version = 160,
	.frame_localsplus = 72,
	.ts_frame = LAYOUT_NONE,
	.ts_cframe = 56,
	.cframe_current = 0,
	.ts_recursion = 28,
	.ts_thread_id = 136,
	.ts_native_thread_id = 144,
	.interp_threads_head = 72,
	.interp_modules = 944,
	.interp_eval_frame = 1744,
	.interp_version = 48,
	.runtime_interpreters_head = 40,
	.ts_profilefunc = 64,
	.ts_tracefunc = 72,
	.interp_tool_names = 382872,
	.waiting_style = PYP_WAITING_PREV,
	.gc_state = 112,
};
