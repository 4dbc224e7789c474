/* SPDX-License-Identifier: BSD-2-Clause */
/* The profile at the end of a run: to the file of -o, or to stdout; never lost. */
#ifndef PYPROF_RUN_RESULTS_H
#define PYPROF_RUN_RESULTS_H

#include "base/diag.h"
#include "run/options.h"
#include "session/session.h"

/* Before anything is traced: is what was asked for possible? Exit codes 1, 2. */
int results_check(const struct options *o, struct diag *diag);

/*
 * Write what o asks for, which may be nothing. If the file cannot be written the profile goes to
 * one in $TMPDIR or /tmp, the diagnosis says where, and this fails.
 */
int results_write(struct sessions *ss, const struct options *o, struct diag *diag);

#endif
