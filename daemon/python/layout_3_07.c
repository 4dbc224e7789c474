// SPDX-License-Identifier: BSD-2-Clause
/* CPython 3.7 on x86-64: frames are objects, one C call of the evaluator each. */
#include "python/layout_base.h"

const struct layout layout_3_07 = {
	LAYOUT_FRAME_OBJECTS,
	.minor = 7,
	.tag = "v3.7.16",
	.bpf.code_flags = 32,
	.bpf.code_firstlineno = 36,
	.bpf.code_filename = 96,
	.bpf.code_name = 104,
	.type_vectorcall = 0,
	.interp_modules = 40,
	.type_cached_keys = 856,
	.interp_eval_frame = 464,
	.runtime_interpreters_head = 24,
	.lasti_unit = 1,
	.code_bytes = 40,
	.gc_place = LAYOUT_GC_RUNTIME,
	.gc_head = 32,
	.gc_state = 320,
	.gc_size = 352,
};
