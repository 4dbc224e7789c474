/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text for terminals: names fitted into columns, optional emphasis, and the provenance at the end.
 */
#ifndef PYPROF_FORMAT_SCREEN_H
#define PYPROF_FORMAT_SCREEN_H

#include "format/format.h"

/* The least width of layouts that do not come from pstats. */
#define SCREEN_COLUMNS 79

/* Return escape sequences, or "" if the options disable colour. */
const char *screen_bold(const struct format_opts *o);
const char *screen_dim(const struct format_opts *o);
const char *screen_plain(const struct format_opts *o);

/*
 * Returns the number of columns that name_print(out, s, 0) uses, including escapes and wide
 * characters.
 */
size_t screen_width(const char *s);

/*
 * Prints a name like name_print, in at most `columns` columns; the middle of longer names is left
 * out. Returns the number of columns used.
 */
size_t screen_fit(FILE *out, const char *s, size_t columns);

/*
 * Prints a name in the last column of a line, after `used` columns: cut to the terminal's width, or
 * whole if o->width is 0.
 */
void screen_last(FILE *out, const char *s, const struct format_opts *o, size_t used);

/* The columns for a line: the terminal's, at least SCREEN_COLUMNS; 0: a file, no limit. */
size_t screen_columns(const struct format_opts *o);

/*
 * Writes the provenance: a few lines (see brief.h) or, with o->verbose, one line per fact. Returns 0
 * or a negative errno.
 */
int screen_provenance(const struct snapshot *s, const struct format_opts *o, FILE *out);

#endif
