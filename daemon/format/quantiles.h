/* SPDX-License-Identifier: BSD-2-Clause */
/* Quantiles of durations as reports show them: p50, p90, p99 and the maximum. Pure. */
#ifndef PYPROF_FORMAT_QUANTILES_H
#define PYPROF_FORMAT_QUANTILES_H

#include "snapshot/snapshot.h"

enum quantile { QUANTILE_P50, QUANTILE_P90, QUANTILE_P99, QUANTILE_MAX, QUANTILES };

/* "p50", …, "max". */
extern const char *const quantile_names[QUANTILES];

/* The durations of several functions on one clock, merged. */
struct quantiles {
	struct histogram_sum sum;
	uint64_t max;
};

/* Adds a function's durations; NULL adds nothing. */
void quantiles_add(struct quantiles *q, const struct snapshot_durations *durations,
		   enum snapshot_clock clock);
/*
 * Returns the quantile in ns; 0 if there are no durations or the probe cost exceeds the duration.
 */
uint64_t quantiles_get(const struct quantiles *q, enum quantile which);

#endif
