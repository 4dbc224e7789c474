/* SPDX-License-Identifier: BSD-2-Clause */
/* The local variables of frames (private to python/). */
#ifndef PYPROF_PYTHON_FRAME_LOCALS_H
#define PYPROF_PYTHON_FRAME_LOCALS_H

#include "python/values.h"

/*
 * Calls fn for each local variable of a frame, the contents of cells included, with the address of
 * its name and its value; 0: it has none.
 */
typedef bool (*frame_local_fn)(void *ctx, uint64_t name, uint64_t value);
bool frame_locals_each(struct values *v, uint64_t frame, frame_local_fn fn, void *ctx);

/* The value of the variable with this name. 0: none. */
uint64_t frame_locals_get(struct values *v, uint64_t frame, const char *name);

/* The code object that the frame runs. 0: cannot be read. */
uint64_t frame_code(struct values *v, uint64_t frame);

#endif
