// SPDX-License-Identifier: BSD-2-Clause
/* CPython 3.14 on x86-64: f_executable is a tagged reference; RETURN_CONST is removed. Owners 3
 * (INTERPRETER) and 4 (CSTACK) are entry frames. */
#include "python/layout_base.h"

const struct layout layout_3_14 = {
	LAYOUT_ENTRY_FRAMES,
	.minor = 14,
	.tag = "v3.14.10",
	.bpf.frame_owner = 74,
	.bpf.code_tag_mask = 3,
	.bpf.code_start = 208, /* co_code_adaptive */
	.bpf.code_first = 192, /* _co_firsttraceable */
	.op.resume = 128,
	.op.resume_check = 196,
	.op.instrumented_resume = 245,
	.op.return_value = 35,
	.op.instrumented_return_value = 246,
	.op.yield_value = 120,
	.op.instrumented_yield_value = 247,
	.op.return_generator = 34,
	/* CALL, _FUNCTION_EX, _KW, _NON_PY_GENERAL, _KW_NON_PY, and the first three instrumented */
	.calls.generic = {52, 4, 55, 160, 152, 250, 252, 251},
	.calls.keywords = {55, 152, 251},
	.calls.unpacked = {4, 252},
	.calls.function = {147, 148, 149},
	.calls.descriptor = {156, 157, 158, 159},
	.calls.cached = {154, 150},
	.calls.tagged = true,
	.calls.append = 155,
	.calls.related = {143, 144, 145, 146, 151, 153, 161, 162, 163, 164, 165},
	.frame_localsplus = 80,
	.frame_stack = 64,
	.ts_recursion = 48,
	.ts_thread_id = 152,
	.ts_native_thread_id = 160,
	.interp_next = 7272,
	.interp_threads_head = 7344,
	.interp_modules = 7688,
	.interp_eval_frame = 8520,
	.runtime_interpreters_head = 808,
	.ts_profilefunc = 80,
	.ts_tracefunc = 88,
	.interp_tool_names = 224496,
	.gc_state = 7408,
	.gc_size = 264,
};
