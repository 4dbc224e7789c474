/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The provenance in at most five lines of text, for the end of a report: the targets, the time, how
 * exact the figures are, the overhead, and warnings. provenance_lines() has everything.
 */
#ifndef PYPROF_FORMAT_BRIEF_H
#define PYPROF_FORMAT_BRIEF_H

#include "format/provenance.h"

#define BRIEF_LINES 5

/*
 * Calls the function at most BRIEF_LINES times, for all selected targets together. The values are
 * not escaped yet. Returns 0 or -ENOMEM.
 */
int brief_lines(const struct snapshot *s, const struct format_opts *o, provenance_line_fn line,
		void *ctx);

#endif
