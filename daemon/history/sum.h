/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adds up intervals to one snapshot. Intervals of one process are one target in it, and those of one
 * of its threads one thread. Pure.
 */
#ifndef PYPROF_HISTORY_SUM_H
#define PYPROF_HISTORY_SUM_H

#include <stddef.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "interval/interval.h"

struct sum;

struct sum *sum_new(void); /* NULL: out of memory */
void sum_free(struct sum *s);
DEFINE_FREEP(struct sum, sum_free)

/*
 * Takes iv, also on failure. An interval with an id that was added already is left out. Returns 0,
 * -EINVAL (it was measured differently from those before: exit code 2), or another negative errno.
 */
int sum_add(struct sum *s, struct interval *iv, struct diag *diag);

/* The number of intervals that were added. */
size_t sum_count(const struct sum *s);

/* *ret belongs to the caller. Once, with at least one interval. Returns 0 or a negative errno. */
int sum_take(struct sum *s, struct snapshot **ret, struct diag *diag);

#endif
