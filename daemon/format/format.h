/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Output formats. One file per format, one row per format in format.c's table. A writer gets the
 * snapshot and its view and writes bytes to a stream; pure but for that stream.
 */
#ifndef PYPROF_FORMAT_FORMAT_H
#define PYPROF_FORMAT_FORMAT_H

#include <stdio.h>

#include "base/diag.h"
#include "format/format_opts.h"
#include "snapshot/snapshot.h"
#include "stats/view.h"

/* Which figures a format shows. Formats of counters and waits fail (exit code 1) where these were not
 * measured. */
enum {
	FORMAT_OF_TIMES = 1 << 0,    /* nothing but times */
	FORMAT_ONE_CLOCK = 1 << 1,   /* the figures of one clock: see format_opts.clock */
	FORMAT_OF_COUNTERS = 1 << 2, /* nothing but resource counters, which --counters enables */
	FORMAT_OF_WAITS = 1 << 3,    /* nothing but reasons of waiting, which mode trace measures */
};

struct format {
	const char *name;      /* "text" */
	const char *extension; /* ".txt"; how -o FILE chooses */
	const char *mime;
	const char *help;
	int (*write)(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		     FILE *out, struct diag *diag);
	unsigned int flags; /* FORMAT_* */
};

extern const struct format formats[];			   /* ends with name == NULL */
const struct format *format_find(const char *name);	   /* NULL: unknown */
const struct format *format_of_file(const char *filename); /* by extension; NULL: unknown */

/* Check a sort string, restrictions without writing. Exit code 2 with the list of valid keys. */
int format_opts_check(const struct format_opts *o, struct diag *diag);

/*
 * Has the format anything to say of targets of these modes (see snapshot_modes), on this clock? Exit
 * code 2 if not: nothing but zeros would say that something was measured, and was nothing.
 */
int format_check_modes(const struct format *f, unsigned int modes, enum snapshot_clock clock,
		       struct diag *diag);

/* Build the view for opts and write. */
int format_write(const struct format *f, const struct snapshot *s, const struct format_opts *o,
		 FILE *out, struct diag *diag);

#endif
