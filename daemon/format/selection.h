/* SPDX-License-Identifier: BSD-2-Clause */
/* What a user picked of a table: its rows sorted, reversed and restricted, in this order. */
#ifndef PYPROF_FORMAT_SELECTION_H
#define PYPROF_FORMAT_SELECTION_H

#include "format/format.h"
#include "format/sort.h"

struct selection {
	struct sort sort;
	uint32_t *order; /* rows of the table */
	size_t n;
	char *notes; /* what pstats says about the restrictions; lines, may be none */
};

int selection_init(struct selection *s, const struct table *t, const struct format_opts *o,
		   struct diag *diag);
void selection_deinit(struct selection *s);

#endif
