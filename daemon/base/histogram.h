/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Base-2 exponential histograms of scale 3: eight buckets per octave, so that a value is known to 4.4 %.
 * Bucket i holds the whole numbers above 2^((i - 1) / 8), up to and with 2^(i / 8); bucket 0 those up to
 * 1. These are the buckets of OpenTelemetry's exponential histograms and of Prometheus's native ones
 * (schema 3). Pure.
 */
#ifndef PYPROF_BASE_HISTOGRAM_H
#define PYPROF_BASE_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_SCALE	  8u
#define HISTOGRAM_BUCKETS (64u * HISTOGRAM_SCALE + 1)

/* How many values fell into each of len buckets, the first of which is bucket `first`; the others have
 * none. An all-zero one is empty. */
struct histogram {
	uint64_t *n;
	uint16_t first, len;
};

/* 2^63 * 2^(i / 8); and, by the six bits behind a number's first one, how many of these are below all
 * numbers that begin so. For histogram_bucket(). */
extern const uint64_t histogram_bounds[HISTOGRAM_SCALE + 1];
extern const uint8_t histogram_below[64];

/* The bucket of a value. A few instructions: each end of a call comes here. */
static inline uint32_t histogram_bucket(uint64_t value)
{
	uint32_t octave, below;
	uint64_t m;

	if (value <= 1)
		return 0;
	octave = 63u - (uint32_t)__builtin_clzll(value);
	m = value << (63u - octave);
	below = histogram_below[m >> 57 & 63];
	return HISTOGRAM_SCALE * octave + below + (m > histogram_bounds[below]);
}

/* The largest number in a bucket, and what stands for all numbers in it: its middle; of bucket 0, 0. */
uint64_t histogram_upper(uint32_t bucket);
uint64_t histogram_middle(uint32_t bucket);

/* A bucket outside of those there are: make room for it, and some beside it. Returns how many bytes more
 * that takes, or 0: out of memory, unchanged. For histograms on the heap only. */
size_t histogram_grow(struct histogram *h, uint32_t bucket);

static inline bool histogram_has(const struct histogram *h, uint32_t bucket)
{
	return bucket - h->first < h->len;
}

/* Several histograms added up; on the stack. */
struct histogram_sum {
	uint64_t n[HISTOGRAM_BUCKETS];
	uint64_t count;
};

void histogram_add(struct histogram_sum *sum, const struct histogram *h);
/* The buckets of a sum that are not empty: the first one, and how many up to the last. */
uint32_t histogram_range(const struct histogram_sum *sum, uint32_t *first);
/* The value that a share (0 to 1) of the values is not above: the middle of its bucket; 0: there are no
 * values, or it is in bucket 0. */
uint64_t histogram_quantile(const struct histogram_sum *sum, double share);

#endif
