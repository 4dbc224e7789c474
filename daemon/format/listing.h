/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text tables of objects other than functions (threads, coroutines), one row per object. They are
 * sorted and restricted like functions; the default order is largest first.
 */
#ifndef PYPROF_FORMAT_LISTING_H
#define PYPROF_FORMAT_LISTING_H

#include "format/format.h"
#include "format/selection.h"

struct listing_row {
	const struct table_row *row;
	size_t i;	/* index of the object */
	uint64_t total; /* cumulative time of all selectable objects, in ns */
};

struct listing {
	size_t n;
	/* Fills the row of object i. The row owns the callback's allocations, also on failure. */
	int (*fill)(const struct snapshot *s, size_t i, const struct format_opts *o,
		    struct table_row *ret);
	/* Adds data that depends on all rows; may be NULL. */
	void (*complete)(const struct snapshot *s, struct table_row *rows);
	const char *header;
	void (*print)(const struct snapshot *s, const struct listing_row *r,
		      const struct format_opts *o, FILE *out);
	/* Writes lines after the last row; may be NULL. */
	void (*notes)(const struct snapshot *s, const struct selection *rows, FILE *out);
	const char *none; /* printed in place of an empty table */
};

/* Writes the table followed by the provenance. Returns 0 or a negative errno. */
int listing_write(const struct listing *l, const struct snapshot *s, const struct format_opts *o,
		  FILE *out, struct diag *diag);

#endif
