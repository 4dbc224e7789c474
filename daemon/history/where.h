/* SPDX-License-Identifier: BSD-2-Clause */
/* Selecting intervals by label: "service=^web", several of which must all match. Pure. */
#ifndef PYPROF_HISTORY_WHERE_H
#define PYPROF_HISTORY_WHERE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "interval/interval.h"

#define WHERE_MAX 8

struct where;

/*
 * text: n conditions LABEL=REGEX. *ret belongs to the caller. Returns 0, -EINVAL with exit code 2, or
 * -ENOMEM.
 */
int where_new(const char *const *text, size_t n, struct where **ret, struct diag *diag);
void where_free(struct where *w);
DEFINE_FREEP(struct where, where_free)

/* A label that is missing has the value "". w NULL: everything matches. */
bool where_matches(const struct where *w, const struct interval_label *labels, uint32_t n);

#endif
