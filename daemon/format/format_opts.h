/* SPDX-License-Identifier: BSD-2-Clause */
/* What a user may ask of an output format. */
#ifndef PYPROF_FORMAT_FORMAT_OPTS_H
#define PYPROF_FORMAT_FORMAT_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot/snapshot.h"
#include "stats/view.h"

/*
 * The clock is for formats that hold one clock's figures. Sorting and restrictions are for those
 * that hold a table; others check that they are valid and ignore them. The filter, and what leaves
 * out directories and libraries, is for all.
 */
struct format_opts {
	enum snapshot_clock clock;
	struct view_filter filter;
	const char *sort; /* pstats keys, comma-separated; NULL: pstats' default for print */
	const char *const *restrict_; /* pstats restrictions, left to right */
	size_t nrestrict;
	bool reverse;
	bool strip_dirs;   /* file names without their directories */
	bool only_my_code; /* standard library and installed packages folded into their callers */
	const char *builtins_of; /* C functions that do not match are, too; NULL: they are not */
	const char *columns;	 /* text: more of them, see extras.h; NULL: none */
	bool colour;		 /* for a terminal, in what is for people; never for files */
	uint32_t depth;		 /* tree: levels shown; 0: the default */
	double min_share; /* tree: percent of the whole; 0: the default, negative: no limit */
};

#endif
