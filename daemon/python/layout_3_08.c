// SPDX-License-Identifier: BSD-2-Clause
/* CPython 3.8 on x86-64: frames are objects, one C call of the evaluator each. */
#include "python/layout_base.h"

const struct layout layout_3_08 = {
	LAYOUT_FRAME_OBJECTS,
	.minor = 8,
	.tag = "v3.8.18",
	.lasti_unit = 1,
	.code_bytes = 48,
	.interp_eval_frame = 568,
	.gc_place = LAYOUT_GC_RUNTIME,
	.gc_state = 344,
	/* sys.modules */
	.interp_modules = 56,
};
