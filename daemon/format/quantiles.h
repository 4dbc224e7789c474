/* SPDX-License-Identifier: BSD-2-Clause */
/* What reports show of durations: p50, p90, p99 and the longest. Pure. */
#ifndef PYPROF_FORMAT_QUANTILES_H
#define PYPROF_FORMAT_QUANTILES_H

#include "snapshot/snapshot.h"

enum quantile { QUANTILE_P50, QUANTILE_P90, QUANTILE_P99, QUANTILE_MAX, QUANTILES };

/* "p50", …, "max". */
extern const char *const quantile_names[QUANTILES];

/* Several functions' durations on one clock, added up. */
struct quantiles {
	struct histogram_sum sum;
	uint64_t max;
};

/* durations: snapshot_func's, NULL: none. */
void quantiles_add(struct quantiles *q, const struct snapshot_durations *durations,
		   enum snapshot_clock clock);
/* ns; 0: there are none, or probes cost more than it took. */
uint64_t quantiles_get(const struct quantiles *q, enum quantile which);

#endif
