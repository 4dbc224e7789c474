/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to the files of python/ */
#ifndef PYPROF_PYTHON_INSIDE_H
#define PYPROF_PYTHON_INSIDE_H

#include "python/python.h"

/* The evaluator's symbol since CPython 3.6, and before */
#define PYTHON_EVALUATOR     "_PyEval_EvalFrameDefault"
#define PYTHON_EVALUATOR_OLD "PyEval_EvalFrameEx"

/* py's version like PY_VERSION_HEX, without release level and serial */
static inline uint32_t python_hex(const struct python *py)
{
	return (uint32_t)py->major << 16 | (uint32_t)py->minor << 8 | py->micro;
}

/*
 * Compares py->layout with the interpreter's own data: _Py_DebugOffsets at runtime_vaddr (3.13+)
 * and the code that reads interp->eval_frame. Adopts the offsets found there; returns an error
 * (exit code 5) for impossible ones, or for a version that differs from py's. Sets
 * py->debug_offsets. Pure.
 */
int python_confirm_layout(const struct image *img, uint64_t runtime_vaddr, struct python *py,
			  struct diag *diag);

/*
 * Returns whether _Py_DebugOffsets identifies a free-threaded build; false if it cannot be read.
 * Pure.
 */
bool python_is_free_threaded(const struct image *img, uint64_t runtime_vaddr);

#endif
