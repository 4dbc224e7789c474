/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pstats' sort keys: the same words, the same abbreviations, the same order among equals.
 */
#ifndef PYPROF_FORMAT_SORT_H
#define PYPROF_FORMAT_SORT_H

#include "format/table.h"

#define SORT_MAX_KEYS 32

struct sort {
	uint8_t keys[SORT_MAX_KEYS]; /* indices into the table of keys */
	size_t nkeys;
};

/*
 * Read keys separated by commas; NULL is what cProfile's print_stats() sorts by when it is not
 * told, the standard name. Unknown or ambiguous: -EINVAL, exit code 2.
 */
int sort_parse(const char *keys, struct sort *ret, struct diag *diag);

/* "internal time, function name": what pstats says the table is ordered by. */
void sort_print_title(const struct sort *sort, FILE *out);

/* The listed rows in order: their indices, for the caller to free. */
int sort_rows(const struct sort *sort, bool reverse, const struct table *t, uint32_t **ret,
	      size_t *ret_n);

#endif
