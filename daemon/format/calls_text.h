/* SPDX-License-Identifier: BSD-2-Clause */
/* Estimated numbers of calls, and calls per call of the caller (stats/per_call.h), as text. */
#ifndef PYPROF_FORMAT_CALLS_TEXT_H
#define PYPROF_FORMAT_CALLS_TEXT_H

#include <stdint.h>
#include <stdio.h>

#include "stats/per_call.h"

#define CALLS_TEXT_MAX 48

/*
 * Writes the figure in three digits with its error in two ("36.7 +-0.52"); "" if it is unknown. ASCII. Returns
 * text.
 */
const char *calls_text(const struct per_call *p, char text[CALLS_TEXT_MAX]);

/* Rough: "~" precedes the number. Unknown: windows have shown too little for any number; "?" is in its place. */
#define ROUGH_ABOVE 0.25 /* relative standard error */
enum calls_certainty { CALLS_CERTAIN, CALLS_ROUGH, CALLS_UNKNOWN };
/* variance: of n; negative: unknown */
enum calls_certainty calls_certainty(uint64_t n, double variance);
/* Explains these marks, if any. */
void calls_print_legend(bool rough, bool unknown, FILE *out);

#endif
