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

/*
 * Returns the part of a time of the function, at most `left`, that belongs to a line: in proportion
 * to the sum of all lines. line->line 0: none, because it is unknown.
 */
uint64_t snapshot_line_part(const struct snapshot_line *line, const struct snapshot_line *sum,
			    uint64_t ns, uint64_t left);

/* Returns whether any function has lines. */
bool snapshot_has_lines(const struct snapshot *s);

/* Returns the sum over the function's lines. Its line is 0. */
struct snapshot_line snapshot_lines_sum(const struct snapshot_func *f);

#endif
