/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which code of an interpreter's file runs Python itself: the evaluator, in all its parts, and the
 * functions that make and leave the frame of a Python function. Whatever else runs above a frame that
 * calls something is what it has called. Pure.
 */
#ifndef PYPROF_PLAN_OWN_CODE_H
#define PYPROF_PLAN_OWN_CODE_H

#include <stdint.h>

#include "pyprof/bpf_abi.h"

struct image;
struct layout;
struct plan;

/*
 * Addresses in the file, without load bias. plan: of the same file; without sites and the dispatch
 * table the evaluator may lack parts. Returns how many; 0: the evaluator was not found.
 */
unsigned int own_code_find(const struct image *img, const struct layout *l, const struct plan *plan,
			   struct pyp_code_range out[PYP_OWN_CODE]);

#endif
