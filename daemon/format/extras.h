/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Columns that a text table has on request (--columns): quantiles of durations (p50, p90, p99, max, on the
 * report's clock), and optional columns by their keys, with _cum for what a function called as well.
 */
#ifndef PYPROF_FORMAT_EXTRAS_H
#define PYPROF_FORMAT_EXTRAS_H

#include <stdio.h>

#include "base/diag.h"
#include "format/format_opts.h"
#include "format/table.h"

#define EXTRAS_MAX 16

/* Is the list valid? NULL: it is. Exit code 2. */
int extras_check(const char *list, struct diag *diag);

struct extras;
/* For the rows of t, which v was made into. list NULL: none. 0, -ENOMEM or as extras_check(). */
int extras_new(const struct view *v, const struct table *t, const struct format_opts *o,
	       struct extras **ret, struct diag *diag);
void extras_free(struct extras *e);
DEFINE_FREEP(struct extras, extras_free)

/* Right-aligned, each with a blank behind it. Seconds, numbers or bytes; "-": not known. */
void extras_print_titles(const struct extras *e, FILE *out);
void extras_print_row(const struct extras *e, uint32_t row, FILE *out);

#endif
