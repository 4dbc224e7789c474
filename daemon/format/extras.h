/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Additional columns of a text table (--columns): quantiles of durations on the report's clock
 * (p50, p90, p99, max), optional columns by key (the suffix _cum includes callees), and `percent`:
 * the share of the total time that the cumulative time is, or the own time if sorted by that; and for
 * generators and coroutines, of which ncalls counts both, `calls` and `resumed`. On a
 * terminal (o->width), `percent` is added to the list.
 */
#ifndef PYPROF_FORMAT_EXTRAS_H
#define PYPROF_FORMAT_EXTRAS_H

#include <stdio.h>

#include "base/diag.h"
#include "format/format_opts.h"
#include "format/table.h"

#define EXTRAS_MAX 16

/* Checks a list; NULL is valid. Returns 0, or -EINVAL with exit code 2. */
int extras_check(const char *list, struct diag *diag);

struct extras;
/*
 * Computes the columns for the rows of t, which was built from v and must outlive them. list NULL:
 * no columns. Returns 0, -ENOMEM or an error of extras_check().
 */
int extras_new(const struct view *v, const struct table *t, const struct format_opts *o,
	       struct extras **ret, struct diag *diag);
void extras_free(struct extras *e);
DEFINE_FREEP(struct extras, extras_free)

/*
 * Print right-aligned columns, each followed by a space. Units: seconds, counts or bytes; "-" if
 * unknown.
 */
void extras_print_titles(const struct extras *e, FILE *out);
/* Returns how many of a row's calls are resumptions; RESUMED_NONE: see resumptions_new(). */
uint64_t extras_resumed(const struct extras *e, uint32_t row);

size_t extras_columns(const struct extras *e); /* the width of all */
void extras_print_row(const struct extras *e, uint32_t row, FILE *out);

#endif
