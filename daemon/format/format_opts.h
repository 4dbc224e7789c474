/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of output formats. */
#ifndef PYPROF_FORMAT_FORMAT_OPTS_H
#define PYPROF_FORMAT_FORMAT_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot/snapshot.h"
#include "stats/view.h"

/*
 * Source text, for the format `lines`. Returns the text of a function's file, valid until the next
 * call; NULL: it has none. *ret_note: if set, a remark to be shown, such as the reason.
 */
struct format_source {
	const char *(*text)(void *ctx, const char *filename, size_t *ret_size,
			    const char **ret_note);
	void *ctx;
};

/*
 * Options of all formats. Formats that hold one clock's figures use `clock`. Formats that hold a
 * table use sorting and restrictions; the others validate and ignore them. The filter and the
 * options that leave out directories and libraries apply to all formats.
 */
struct format_opts {
	enum snapshot_clock clock;
	struct view_filter filter;
	const char *sort; /* pstats keys, comma-separated; NULL: print_stats()'s default */
	const char *const *restrict_; /* pstats restrictions, left to right */
	size_t nrestrict;
	bool reverse;
	bool strip_dirs;   /* file names without directories */
	bool only_my_code; /* fold the standard library and installed packages into their callers */
	const char *builtins_of; /* also fold C functions that do not match; NULL: none */
	const char *columns;	 /* text: additional columns, see extras.h; NULL: none */
	bool colour;		 /* emphasis in text formats, for terminals; never for files */
	bool verbose;		 /* text: the whole provenance instead of four lines */
	uint32_t width; /* text: columns of the terminal; 0: a file, in which nothing is cut */
	bool by_thread; /* tree: one per thread */
	bool busy;	/* reports: leave out waits for work, see stats/reduce.h */
	uint32_t depth; /* tree: number of levels; 0: the default */
	const struct format_source *source; /* lines: NULL: only line numbers */
	double min_share; /* tree: percent of the total; 0: the default, negative: no limit */
};

#endif
