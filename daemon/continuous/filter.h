/* SPDX-License-Identifier: BSD-2-Clause */
/* Which Python processes continuous mode samples: by command line and unit. Pure. */
#ifndef PYPROF_CONTINUOUS_FILTER_H
#define PYPROF_CONTINUOUS_FILTER_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/diag.h"

struct filter;

/* match: a regular expression; unit: with or without ".service"; NULL: any. Exit code 2. */
int filter_new(const char *match, const char *unit, struct filter **ret, struct diag *diag);
void filter_free(struct filter *f);
DEFINE_FREEP(struct filter, filter_free)

/* command: arguments joined by blanks; unit: "" if there is none. */
bool filter_admits(const struct filter *f, const char *command, const char *unit);

#endif
