/* SPDX-License-Identifier: BSD-2-Clause */
/* A cache of the line tables of a target's code objects, so that each is read once per dump. */
#ifndef PYPROF_PYTHON_LINE_TABLES_H
#define PYPROF_PYTHON_LINE_TABLES_H

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "python/lines.h"

/* All zero: an empty cache. */
struct line_tables {
	struct map at;	 /* code object → index */
	struct lines *v; /* tables that cannot be read have table NULL */
	uint32_t n, room;
	size_t bytes;
};

/*
 * Returns the line table of the code object at this address, valid until the next call. NULL: it
 * cannot be read (see lines_read), which is not retried, or out of memory.
 */
const struct lines *line_tables_get(struct line_tables *t, const struct layout *l,
				    const struct memory *mem, uint64_t code);
void line_tables_deinit(struct line_tables *t);

#endif
