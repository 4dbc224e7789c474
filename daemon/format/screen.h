/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text for people at a terminal: names fitted into columns, emphasis where it was asked for, and
 * where the figures come from at the end.
 */
#ifndef PYPROF_FORMAT_SCREEN_H
#define PYPROF_FORMAT_SCREEN_H

#include "format/format.h"

/* How wide the layouts are that are ours. */
#define SCREEN_COLUMNS 79

/* Escape sequences, or nothing where the options ask for no colour. */
const char *screen_bold(const struct format_opts *o);
const char *screen_dim(const struct format_opts *o);
const char *screen_plain(const struct format_opts *o);

/* How many columns name_print(out, s, 0) takes: escapes and wide characters counted. */
size_t screen_width(const char *s);

/*
 * Print a name as name_print does, in at most `columns` columns: the middle of longer ones is left
 * out. Returns the columns used.
 */
size_t screen_fit(FILE *out, const char *s, size_t columns);

/* The provenance, a line each. */
int screen_provenance(const struct snapshot *s, const struct format_opts *o, FILE *out);

#endif
