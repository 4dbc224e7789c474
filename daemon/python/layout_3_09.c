// SPDX-License-Identifier: BSD-2-Clause
/* CPython 3.9 on x86-64: frames are objects, one C call of the evaluator each. The evaluator's
 * first argument is the thread state. */
#include "python/layout_base.h"

const struct layout layout_3_09 = {
	LAYOUT_FRAME_OBJECTS,
	.minor = 9,
	.tag = "v3.9.18",
	.arg_frame = 1,
	.arg_throwflag = 2,
	.interp_eval_frame = 1400,
	.waiting_style = PYP_WAITING_INDEX,
	.lasti_unit = 1,
	.code_bytes = 48,
	.gc_state = 616,
	/* PyHeapTypeObject.ht_cached_keys */
	.type_cached_keys = 864,
};
