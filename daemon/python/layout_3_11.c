// SPDX-License-Identifier: BSD-2-Clause
/* CPython 3.11 on x86-64: frames are not objects, and calls between Python functions stay in one C
 * call of the evaluator. is_entry marks frames that a C call entered with. Confirmed on 3.11.2,
 * too. */
#include "python/layout_base.h"

const struct layout layout_3_11 = {
	LAYOUT_INTERPRETER_FRAMES,
	.minor = 11,
	.tag = "v3.11.7",
	.model = LAYOUT_CFRAME_ENTRY,
	.bpf.frame_block = 32,
	.bpf.frame_code = 32,
	.bpf.frame_previous = 48,
	.bpf.frame_owner = 69,
	.bpf.owner_entry = 0xff,
	.bpf.code_firstlineno = 72,
	.bpf.str_ascii_data = 48,
	.bpf.str_compact_data = 72,
	.bpf.code_start = 184, /* co_code_adaptive */
	.bpf.code_first = 168, /* _co_firsttraceable */
	.bpf.frame_is_entry = 68,
	.op.resume = 151,
	.op.resume_quick = 150,
	.op.return_value = 83,
	.op.yield_value = 86,
	.op.return_generator = 75,
	.op.do_tracing = 255,
	.calls.generic = {22, 171, 142}, /* CALL_ADAPTIVE, CALL, CALL_FUNCTION_EX */
	.calls.function = {67, 73, 76},	 /* PRECALL_ ..., NO_KW_BUILTIN_FAST, _O */
	.calls.descriptor = {72, 80, 81, 113},
	.calls.cached = {78, 77},
	.calls.append = 79,
	.calls.related = {23, 24, 64, 65, 66, 121, 127, 141, 143, 166},
	.frame_localsplus = 72,
	.ts_cframe = 56,
	.cframe_current = 8,
	.ts_recursion = 32,
	.ts_thread_id = 152,
	.ts_native_thread_id = 160,
	.interp_threads_head = 16,
	.interp_modules = 888,
	.type_cached_keys = 872,
	.gen_frame = 80,
	.interp_eval_frame = 1424,
	.runtime_interpreters_head = 40,
	.ts_profilefunc = 64,
	.ts_tracefunc = 72,
	.waiting_style = PYP_WAITING_PREV,
	.gc_state = 648,
};
