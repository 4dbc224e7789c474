/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compares two snapshots by function: which functions take longer now, and by how much. Pure.
 *
 * Functions match if file, line and names are equal. The remaining functions match by file and name
 * if exactly one function on each side has them: an edit above the function changed its line.
 *
 * Optional columns are compared if both snapshots have measured them. Coroutine lifetimes are not
 * compared, because the instances open at the time of a snapshot say little about the program.
 * Reports list what was not compared.
 *
 * The figures are also compared per call and per second (diff_rates.h).
 */
#ifndef PYPROF_FORMAT_DIFF_H
#define PYPROF_FORMAT_DIFF_H

#include "format/format.h"

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

/*
 * Checks whether the snapshots can be compared. They cannot if their clocks differ and none is
 * chosen, or if their figures were produced in different ways and `force` is not set. Returns 0, or
 * -EINVAL with exit code 2.
 */
struct diff_check {
	bool clock_given, force;
};

int diff_check(const struct diff_side side[DIFF_SIDES], const struct diff_check *check,
	       struct diag *diag);

/* Compares the two sides. *ret belongs to the caller. Returns 0 or -ENOMEM. */
int diff_build(const struct diff_side side[DIFF_SIDES], enum snapshot_clock clock,
	       struct diff **ret);
void diff_free(struct diff *d);
DEFINE_FREEP(struct diff, diff_free)

/*
 * Write the differences: as text, a table with at most `limit` rows (0: all), one per call, one per
 * second and one per resource;
 * as JSON, all of them. Return 0 or -ENOMEM.
 */
int diff_write_text(const struct diff *d, size_t limit, FILE *out);
int diff_write_json(const struct diff *d, size_t limit, FILE *out);

#endif
