/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Output formats: one file per format and one row per format in format.c's table. A writer receives
 * the snapshot and its view and writes bytes to a stream; it has no other side effects.
 */
#ifndef PYPROF_FORMAT_FORMAT_H
#define PYPROF_FORMAT_FORMAT_H

#include <stdio.h>

#include "base/diag.h"
#include "format/format_opts.h"
#include "snapshot/snapshot.h"
#include "stats/view.h"

/*
 * Which figures a format shows. Formats of counters, waits and lines fail (exit code 1) if these were
 * not measured.
 */
enum {
	FORMAT_OF_TIMES = 1 << 0,    /* nothing but times */
	FORMAT_ONE_CLOCK = 1 << 1,   /* the figures of one clock: see format_opts.clock */
	FORMAT_OF_COUNTERS = 1 << 2, /* nothing but resource counters, which --counters enables */
	FORMAT_OF_WAITS =
		1 << 3, /* nothing but reasons of waiting, which are not always measured */
	FORMAT_OF_LINES = 1 << 4, /* nothing but times of lines, which samples measure */
	FORMAT_TABLE = 1 << 5,	  /* a table for people */
	FORMAT_OF_ALL = 1 << 6,	  /* all data, also waits for work */
};

struct format {
	const char *name;      /* "text" */
	const char *extension; /* ".txt"; selects the format for -o FILE */
	const char *mime;
	const char *help;
	int (*write)(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		     FILE *out, struct diag *diag);
	unsigned int flags; /* FORMAT_* */
};

extern const struct format formats[];			   /* terminated by name == NULL */
const struct format *format_find(const char *name);	   /* NULL if unknown */
const struct format *format_of_file(const char *filename); /* by extension; NULL if unknown */

/* The last extension of a file's name (".svg"), borrowed; NULL: it has none, or is in /dev. */
const char *format_extension(const char *filename);

/*
 * Choose the format by name or, if name is NULL, by the extension of filename; without both, or if
 * the file has no extension, it is text. Exit code 2: an unknown format or extension; the hint
 * lists the known ones.
 */
int format_choose(const char *name, const char *filename, const struct format **ret,
		  struct diag *diag);

/*
 * The rows of a format on a terminal if none are requested: FORMAT_TERMINAL_ROWS of a table, 0 (no
 * limit) of others. Files and pipes have no limit.
 */
#define FORMAT_TERMINAL_ROWS 30
uint64_t format_terminal_rows(const char *name);

/* Returns whether the format ends with the facts about the profile, in four lines. */
bool format_is_report(const char *name);

/*
 * Checks the sort keys and restrictions without writing. Returns 0, or an error with exit code 2
 * and the list of valid keys.
 */
int format_opts_check(const struct format_opts *o, struct diag *diag);

/*
 * Checks that targets of these modes (see snapshot_modes) have data for the format on this clock.
 * waits: they have reasons of waiting, and therefore wall times in every mode.
 * Returns 0, or an error with exit code 2, because a report of zeros would look like a measurement.
 */
int format_check_modes(const struct format *f, unsigned int modes, enum snapshot_clock clock,
		       bool waits, struct diag *diag);

/*
 * Builds the view for the options and writes it to the stream. Returns 0 or a negative errno, with
 * *diag set.
 */
int format_write(const struct format *f, const struct snapshot *s, const struct format_opts *o,
		 FILE *out, struct diag *diag);

#endif
