/* SPDX-License-Identifier: BSD-2-Clause */
/* The line tables of a target's code objects, each read once while stacks are read. */
#ifndef PYPROF_PYTHON_LINE_TABLES_H
#define PYPROF_PYTHON_LINE_TABLES_H

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "python/lines.h"

/* All zero: none has been read. */
struct line_tables {
	struct map at;	 /* code object → index */
	struct lines *v; /* one that cannot be read has no table */
	uint32_t n, room;
	size_t bytes;
};

/*
 * The table of the code object at this address. NULL: it cannot be read (see lines_read), which is
 * not tried again, or there is no memory. Valid until the next call.
 */
const struct lines *line_tables_get(struct line_tables *t, const struct layout *l,
				    const struct memory *mem, uint64_t code);
void line_tables_deinit(struct line_tables *t);

#endif
