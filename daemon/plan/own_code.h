/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The code in an interpreter's file that runs Python itself: all parts of the evaluator, and the
 * functions that create and leave a Python function's frame. Any other code above a frame that is
 * calling belongs to the callee. Pure.
 */
#ifndef PYPROF_PLAN_OWN_CODE_H
#define PYPROF_PLAN_OWN_CODE_H

#include <stdint.h>

#include "pyprof/bpf_abi.h"
#include "pyprof/bpf_params.h"

struct image;
struct layout;
struct plan;

/*
 * Returns the number of address ranges in out (in the file, without load bias); 0: evaluator not
 * found. plan: for the same file; without sites and dispatch table, parts of the evaluator may be
 * missing.
 */
unsigned int own_code_find(const struct image *img, const struct layout *l, const struct plan *plan,
			   struct pyp_code_range out[PYP_OWN_CODE]);

#endif
