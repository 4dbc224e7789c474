// SPDX-License-Identifier: BSD-2-Clause
/* Quantiles of durations: see quantiles.h. */
#include "format/quantiles.h"

const char *const quantile_names[QUANTILES] = {"p50", "p90", "p99", "max"};

static const double shares[] = {0.5, 0.9, 0.99};

void quantiles_add(struct quantiles *q, const struct snapshot_durations *durations,
		   enum snapshot_clock clock)
{
	if (!durations)
		return;
	histogram_add(&q->sum, &durations[clock].histogram);
	if (durations[clock].max > q->max)
		q->max = durations[clock].max;
}

/* The midpoint of a bucket may exceed the maximum. */
uint64_t quantiles_get(const struct quantiles *q, enum quantile which)
{
	uint64_t ns = which == QUANTILE_MAX ? q->max : histogram_quantile(&q->sum, shares[which]);

	return ns < q->max ? ns : q->max;
}
