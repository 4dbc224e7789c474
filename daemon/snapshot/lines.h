/* SPDX-License-Identifier: BSD-2-Clause */
/* Self time of functions by source line, from samples. Pure. */
#ifndef PYPROF_SNAPSHOT_LINES_H
#define PYPROF_SNAPSHOT_LINES_H

#include "snapshot/snapshot.h"

/*
 * Adds lines, sorted by line without duplicates, to a function's; errors are independent. Returns 0
 * or -ENOMEM.
 */
int snapshot_add_lines(struct snapshot *s, struct snapshot_func *f, const struct snapshot_line *v,
		       uint32_t n);

/* Returns the standard error of a line's time, in ns. */
double snapshot_line_error(const struct snapshot_line *line);

/* Returns whether any function has lines. */
bool snapshot_has_lines(const struct snapshot *s);

/* Returns the sum over the function's lines. Its line is 0. */
struct snapshot_line snapshot_lines_sum(const struct snapshot_func *f);

#endif
