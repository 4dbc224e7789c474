/* SPDX-License-Identifier: BSD-2-Clause */
/* The profile written at exit, to the file of -o or to stdout. */
#ifndef PYPROF_RUN_RESULTS_H
#define PYPROF_RUN_RESULTS_H

#include <stdbool.h>

#include "base/diag.h"
#include "run/options.h"
#include "session/session.h"

/* Check before tracing that the output can be written. Exit codes 1, 2. */
int results_check(const struct options *o, struct diag *diag);

/* Will results_write() write anything? */
bool results_wanted(const struct sessions *ss, const struct options *o);
/*
 * Write the output that o requests, if any. If the file cannot be written, the profile goes to a
 * file in $TMPDIR or /tmp, which diag names, and the call fails.
 */
int results_write(struct sessions *ss, const struct options *o, struct diag *diag);

#endif
