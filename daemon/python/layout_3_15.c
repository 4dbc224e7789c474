// SPDX-License-Identifier: BSD-2-Clause
/* CPython 3.15 on x86-64: like 3.14, but only owner 3 (INTERPRETER) is an entry frame, and
 * generator expressions execute RESUME before they create their generator. */
#include "python/layout_base.h"

const struct layout layout_3_15 = {
	LAYOUT_ENTRY_FRAMES,
	.minor = 15,
	.tag = "v3.15.2",
	.bpf.frame_owner = 74,
	.bpf.code_tag_mask = 3,
	.bpf.code_creation_flags = 0x20 | 0x80 | 0x200, /* CO_GENERATOR, _COROUTINE, _ASYNC_ */
	.bpf.code_start = 208,				/* co_code_adaptive */
	.bpf.code_first = 192,				/* _co_firsttraceable */
	.op.resume = 128,
	.op.resume_check = 200,
	.op.resume_check_jit = 201,
	.op.instrumented_resume = 244,
	.op.return_value = 33,
	.op.instrumented_return_value = 245,
	.op.yield_value = 119,
	.op.instrumented_yield_value = 246,
	.op.return_generator = 32,
	/*
	 * CALL, _FUNCTION_EX, _KW, _NON_PY_GENERAL, _KW_NON_PY, _EX_NON_PY_GENERAL, and the first
	 * three instrumented
	 */
	.calls.generic = {50, 4, 53, 163, 155, 151, 249, 251, 250},
	.calls.keywords = {53, 155, 250},
	.calls.unpacked = {4, 151, 251},
	.calls.function = {148, 149, 150},
	.calls.descriptor = {159, 160, 161, 162},
	.calls.cached = {157, 153},
	.calls.tagged = true,
	.calls.append = 158,
	.calls.related = {144, 145, 146, 147, 152, 154, 156, 164, 165, 166, 167, 168},
	.frame_localsplus = 80,
	.frame_stack = 64,
	.ts_recursion = 52,
	.ts_thread_id = 176,
	.ts_native_thread_id = 184,
	.interp_next = 7264,
	.interp_threads_head = 7336,
	.interp_modules = 7592,
	.type_cached_keys = 888,
	.interp_eval_frame = 8472,
	.runtime_interpreters_head = 936,
	.ts_profilefunc = 104,
	.ts_tracefunc = 112,
	.interp_tool_names = 224768,
	.gc_state = 7400,
	.gc_size = 176,
};
