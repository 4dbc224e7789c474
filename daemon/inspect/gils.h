/* SPDX-License-Identifier: BSD-2-Clause */
/* The GILs of a process, read from its memory. Pure but for the reads. */
#ifndef PYPROF_INSPECT_GILS_H
#define PYPROF_INSPECT_GILS_H

#include <stddef.h>

#include "python/python.h"

/* Fills out (the rest is zeroed) and returns how many ranges; 0: not known. */
size_t gils_read(const struct python *py, const struct memory *mem,
		 struct pyp_gil_range out[PYP_GIL_RANGES]);

#endif
