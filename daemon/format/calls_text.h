/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls per call of the caller (stats/per_call.h) as text. */
#ifndef PYPROF_FORMAT_CALLS_TEXT_H
#define PYPROF_FORMAT_CALLS_TEXT_H

#include "stats/per_call.h"

#define CALLS_TEXT_MAX 48

/*
 * Writes the figure in three digits with its error in two ("36.7 +-0.52"); "" if it is unknown. ASCII. Returns
 * text.
 */
const char *calls_text(const struct per_call *p, char text[CALLS_TEXT_MAX]);

#endif
