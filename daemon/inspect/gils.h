/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the GILs of a process from its memory. Pure, except for reading memory. */
#ifndef PYPROF_INSPECT_GILS_H
#define PYPROF_INSPECT_GILS_H

#include <stddef.h>

#include "python/python.h"

/* Fills out, zeroing the rest, and returns the number of ranges; 0: unknown. */
size_t gils_read(const struct python *py, const struct memory *mem,
		 struct pyp_gil_range out[PYP_GIL_RANGES]);

#endif
