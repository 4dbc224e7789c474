// SPDX-License-Identifier: BSD-2-Clause
/* CPython 3.6 on x86-64: frames are objects, one C call of the evaluator each. The list of
 * interpreters is a separate static variable; python->runtime is its address. */
#include "python/layout_base.h"

const struct layout layout_3_06 = {
	LAYOUT_FRAME_OBJECTS,
	.minor = 6,
	.tag = "v3.6.15",
	.bpf.code_flags = 32,
	.bpf.code_firstlineno = 36,
	.bpf.code_filename = 96,
	.bpf.code_name = 104,
	.bpf.frame_instr = 120,
	.frame_localsplus = 376,
	.ts_thread_id = 152,
	.lasti_unit = 1,
	.code_bytes = 40,
	.interp_modules = 16,
	.type_cached_keys = 856,
	.interp_eval_frame = 112,
	.runtime_interpreters_head = 0,
	.calls.generic = {131, 141, 142},
	.type_vectorcall = 0,
	.ts_profilefunc = 48,
	.ts_tracefunc = 56,
	.gc_place = LAYOUT_GC_POINTER,
	.gc_head = 32,
	.gc_size = 144,
};
