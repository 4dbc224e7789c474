/* SPDX-License-Identifier: BSD-2-Clause */
/* The data of a comparison, which diff.h builds. */
#ifndef PYPROF_FORMAT_DIFF_ROWS_H
#define PYPROF_FORMAT_DIFF_ROWS_H

#include "snapshot/snapshot.h"

enum { DIFF_BEFORE, DIFF_AFTER, DIFF_SIDES };

struct diff_side {
	const struct snapshot *snapshot; /* borrowed, like the name */
	const char *name;
	uint64_t ncalls, total; /* total: sum of own time on the selected clock, in ns */
};

struct diff_row {
	/* Points into the snapshots. NULL: not called in that one. */
	const struct snapshot_func *func[DIFF_SIDES];
	uint64_t ncalls[DIFF_SIDES], tot[DIFF_SIDES], cum[DIFF_SIDES];
	uint32_t figures[DIFF_SIDES]; /* index of its figures in struct diff's columns */
};

struct diff {
	struct diff_side side[DIFF_SIDES];
	enum snapshot_clock clock;
	uint64_t columns; /* bit mask of the columns that both snapshots have */
	/*
	 * Indexed by diff_row.figures: a function's own figure, and that including its callees.
	 * Index 0 holds zeros. NULL: not compared.
	 */
	uint64_t *self[COLUMNS], *cum[COLUMNS];
	struct diff_row *rows; /* sorted by growth of own time, largest first */
	size_t nrows;
};

#endif
