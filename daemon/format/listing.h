/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables on the screen of what is no function, a row for each: threads, coroutines. They are sorted
 * and restricted as functions are, and the largest come first unless told otherwise.
 */
#ifndef PYPROF_FORMAT_LISTING_H
#define PYPROF_FORMAT_LISTING_H

#include "format/format.h"
#include "format/selection.h"

struct listing_row {
	const struct table_row *row;
	size_t i;	/* which one of those listed */
	uint64_t total; /* cumulative time of all that could be selected */
};

struct listing {
	size_t n;
	/* Fill number i; what it allocates is freed with the row, also on failure. */
	int (*fill)(const struct snapshot *s, size_t i, const struct format_opts *o,
		    struct table_row *ret);
	/* What is known of all rows together; may be NULL. */
	void (*complete)(const struct snapshot *s, struct table_row *rows);
	const char *header;
	void (*print)(const struct snapshot *s, const struct listing_row *r,
		      const struct format_opts *o, FILE *out);
	/* Behind the last row; may be NULL. */
	void (*notes)(const struct snapshot *s, const struct selection *rows, FILE *out);
	const char *none; /* instead of a table without rows */
};

/* The table, and the provenance below it. */
int listing_write(const struct listing *l, const struct snapshot *s, const struct format_opts *o,
		  FILE *out, struct diag *diag);

#endif
