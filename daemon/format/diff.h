/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two snapshots compared by function: what takes longer now, and how much. Pure.
 *
 * A function is the same where file, line and names are. What then is left over on both sides is
 * matched by file and name alone if that names just one on either side: code above it was edited and
 * it moved.
 *
 * Optional columns are compared where both sides have measured them. Coroutines are not: what was open when
 * a snapshot was taken says little of the program. What is not compared, reports say.
 */
#ifndef PYPROF_FORMAT_DIFF_H
#define PYPROF_FORMAT_DIFF_H

#include "format/format.h"

enum { DIFF_BEFORE, DIFF_AFTER, DIFF_SIDES };

struct diff_side {
	const struct snapshot *snapshot; /* borrowed, as is the name */
	const char *name;
	uint64_t ncalls, total; /* total: of own time, on the clock at hand */
};

struct diff_row {
	/* NULL: not called there. Points into the snapshots. */
	const struct snapshot_func *func[DIFF_SIDES];
	uint64_t ncalls[DIFF_SIDES], tot[DIFF_SIDES], cum[DIFF_SIDES];
	uint32_t figures[DIFF_SIDES]; /* where its figures are: see diff_figure() */
};

struct diff {
	struct diff_side side[DIFF_SIDES];
	enum snapshot_clock clock;
	uint64_t columns; /* those that both have measured: bits */
	/* By diff_row.figures: a function's own and with its callees. Those of 0 are 0. NULL: not compared. */
	uint64_t *self[COLUMNS], *cum[COLUMNS];
	struct diff_row *rows; /* what its own time grew most in comes first */
	size_t nrows;
};

/*
 * May they be compared? Not if their clocks differ, unless one is chosen; nor if their figures came
 * about in different ways, unless that is forced. Mismatch: -EINVAL, exit code 2.
 */
struct diff_check {
	bool clock_given, force;
};

int diff_check(const struct diff_side side[DIFF_SIDES], const struct diff_check *check,
	       struct diag *diag);

/* 0 or -ENOMEM. */
int diff_build(const struct diff_side side[DIFF_SIDES], enum snapshot_clock clock,
	       struct diff **ret);
void diff_free(struct diff *d);
DEFINE_FREEP(struct diff, diff_free)

/* A table of what changed, at most `limit` rows (0: all), and one for each resource; everything as
 * JSON. 0 or -ENOMEM. */
int diff_write_text(const struct diff *d, size_t limit, FILE *out);
int diff_write_json(const struct diff *d, size_t limit, FILE *out);

#endif
