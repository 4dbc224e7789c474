// SPDX-License-Identifier: BSD-2-Clause
/*
 * CPython 3.13 on x86-64: the current frame is in the thread state. _PyRuntime starts with
 * _Py_DebugOffsets, against which this table is checked.
 *
 * In free-threaded builds (3.13t) objects have a header of 32 bytes instead of 16, with the type in
 * its last word, so all fields of objects move; frames and thread states are the same. Opcodes are
 * not specialized, so all calls are generic. Code objects have deferred reference counts: the
 * garbage collector frees them some time after their last use. (3.13.15 Include/object.h,
 * Objects/codeobject.c, confirmed on that build.)
 */
#include "python/layout_base.h"

/* Common to both builds. */
/* clang-format off */
#define VERSION_3_13									\
	LAYOUT_ENTRY_FRAMES,									\
	.minor = 13,										\
	.bpf.frame_owner = 70,									\
	.op.resume = 149,									\
	.op.resume_check = 207,									\
	.op.instrumented_resume = 236,								\
	.op.return_value = 36,									\
	.op.return_const = 103,									\
	.op.instrumented_return_value = 239,							\
	.op.instrumented_return_const = 240,							\
	.op.yield_value = 118,									\
	.op.instrumented_yield_value = 241,							\
	.op.return_generator = 35,								\
	/* CALL, CALL_FUNCTION_EX, CALL_KW, CALL_NON_PY_GENERAL, the first three instrumented */\
	.calls.generic = {53, 54, 57, 176, 244, 246, 245},					\
	.calls.function = {166, 167, 168},							\
	.calls.descriptor = {172, 173, 174, 175},						\
	.calls.cached = {170, 169},								\
	.calls.append = 171,									\
	.calls.related = {162, 163, 164, 165, 177, 178, 179, 180, 181},				\
	.frame_localsplus = 72,									\
	.ts_recursion = 44,									\
	.ts_thread_id = 152,									\
	.ts_native_thread_id = 160,								\
	.ts_profilefunc = 80,									\
	.ts_tracefunc = 88
/* clang-format on */

const struct layout layout_3_13 = {
	VERSION_3_13,
	.tag = "v3.13.0",
	.bpf.code_start = 200, /* co_code_adaptive */
	.bpf.code_first = 184, /* _co_firsttraceable */
	.interp_next = 7264,
	.interp_threads_head = 7344,
	.interp_modules = 7656,
	.interp_eval_frame = 8472,
	.runtime_interpreters_head = 632,
	.interp_tool_names = 194264,
	.gc_state = 7400,
};

const struct layout layout_3_13t = {
	VERSION_3_13,
	.abi = LAYOUT_ABI_FREE_THREADED,
	.gc_state = 7400,
	.gc_size = 0, /* objects are not in lists */
	.tag = "v3.13.15",
	.frees_code_late = true,
	.unspecialized = true,
	.bpf.object_type = 24,
	.bpf.code_flags = 64,
	.bpf.code_firstlineno = 84,
	.bpf.code_filename = 128,
	.bpf.code_name = 136,
	.bpf.code_qualname = 144,
	.bpf.code_start = 216,
	.bpf.code_first = 200,
	.bpf.str_length = 32,
	.bpf.str_state = 48,
	.bpf.str_ascii_data = 56,
	.bpf.str_compact_data = 72,
	.code_version = 184,
	.bytes_data = 48,
	.type_dealloc = 64,
	.type_vectorcall = 72,
	.type_call = 144,
	.type_descr_get = 288,
	.interp_next = 7264,
	.interp_threads_head = 7344,
	.interp_modules = 7656,
	.type_cached_keys = 896,
	.gen_frame = 88,
	.interp_eval_frame = 8488,
	.runtime_interpreters_head = 632,
	.interp_tool_names = 197352,
};
