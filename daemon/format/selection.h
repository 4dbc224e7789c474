/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of a table that the user selected: sorted, reversed and restricted, in that order. */
#ifndef PYPROF_FORMAT_SELECTION_H
#define PYPROF_FORMAT_SELECTION_H

#include "format/format.h"
#include "format/sort.h"

struct selection {
	struct sort sort;
	uint32_t *order; /* row indices of the table */
	size_t n;
	char *notes; /* pstats' remarks about the restrictions, as lines; may be empty */
};

int selection_init(struct selection *s, const struct table *t, const struct format_opts *o,
		   struct diag *diag);
void selection_deinit(struct selection *s);

/*
 * Returns the order of tables if none is requested: by cumulative time; by own time, which is the
 * share of samples, in mode sample; by calls if there are no times. Static.
 */
const char *selection_default_sort(const struct snapshot *s, const struct view_filter *filter);

#endif
