/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The figures of a comparison per call and per second, which differences in load and in the
 * recordings' length do not change. Pure.
 */
#ifndef PYPROF_FORMAT_DIFF_RATES_H
#define PYPROF_FORMAT_DIFF_RATES_H

#include <jansson.h>

#include "format/diff_rows.h"

/*
 * Returns the seconds that the figures of a snapshot cover: the longest time of a target with
 * attached probes, or, in windows, from start to stop. 0: unknown.
 */
double diff_seconds(const struct snapshot *s);

/*
 * Write tables of own and cumulative time per call in us, and of calls and times in ms per second,
 * with at most `limit` rows (0: all), largest increase first. Without calls on both sides there is
 * no table per call, without a known length none per second. Return 0 or -ENOMEM.
 */
int diff_rates_write(const struct diff *d, size_t limit, FILE *out);

/*
 * Add to a function's JSON: "per_call" ("tottime", "cumtime": ns) and "per_second" ("ncalls",
 * "tottime", "cumtime": ns), each with before, after and ratio; null where it is unknown. Returns
 * row. row NULL (out of memory): returns NULL.
 */
json_t *diff_rates_add(json_t *row, const struct diff *d, const struct diff_row *r);

#endif
