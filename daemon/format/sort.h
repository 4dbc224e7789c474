/* SPDX-License-Identifier: BSD-2-Clause */
/* pstats' sort keys, with the same names, abbreviations and order of equal rows. */
#ifndef PYPROF_FORMAT_SORT_H
#define PYPROF_FORMAT_SORT_H

#include "format/table.h"

#define SORT_MAX_KEYS 32

struct sort {
	uint8_t keys[SORT_MAX_KEYS]; /* indices into the table of keys */
	size_t nkeys;
};

/*
 * Parses comma-separated keys. NULL selects cProfile's default for print_stats(), the standard
 * name. Returns 0, or -EINVAL with exit code 2 if a key is unknown or ambiguous.
 */
int sort_parse(const char *keys, struct sort *ret, struct diag *diag);

/* The name of key i; NULL beyond the last one. */
const char *sort_key_name(size_t i);

/* Prints pstats' description of the order, such as "internal time, function name". */
void sort_print_title(const struct sort *sort, FILE *out);

/* Compares two rows: negative if l comes first, 0 if the keys do not tell them apart. */
int sort_compare(const struct sort *sort, const struct table_row *l, const struct table_row *r);

/* Sorts the listed rows. *ret receives their indices; the caller frees it. */
int sort_rows(const struct sort *sort, bool reverse, const struct table *t, uint32_t **ret,
	      size_t *ret_n);

#endif
