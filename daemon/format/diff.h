/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compares two snapshots by function: which functions take longer now, and by how much. Pure.
 *
 * Functions match if file, line and names are equal. The remaining functions match by file and name
 * if exactly one function on each side has them: an edit above the function changed its line.
 *
 * Optional columns are compared if both snapshots have measured them. Coroutine lifetimes are not
 * compared, because the instances open at the time of a snapshot characterise the program poorly.
 * Reports list what was not compared.
 *
 * The figures are also compared per call and per second (diff_rates.h).
 */
#ifndef PYPROF_FORMAT_DIFF_H
#define PYPROF_FORMAT_DIFF_H

#include "format/diff_rows.h"
#include "format/format.h"

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
