/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Base-2 exponential histograms of scale 3: eight buckets per octave, so values are accurate to 4.4
 * %. Bucket i holds the integers above 2^((i - 1) / 8) and up to 2^(i / 8), inclusive; bucket 0
 * those up to 1. The buckets are those of OpenTelemetry's exponential histograms and of
 * Prometheus's native histograms (schema 3). Pure.
 */
#ifndef PYPROF_BASE_HISTOGRAM_H
#define PYPROF_BASE_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_SCALE	  8u
#define HISTOGRAM_BUCKETS (64u * HISTOGRAM_SCALE + 1)

/*
 * Counts of values in `len` buckets, starting with bucket `first`; all other buckets are empty. All
 * zero: an empty histogram.
 */
struct histogram {
	uint64_t *n;
	uint16_t first, len;
};

/*
 * For histogram_bucket(). histogram_bounds: 2^63 * 2^(i / 8). histogram_below: indexed by the six
 * bits after a number's leading one, the number of these bounds that are below all such numbers.
 */
extern const uint64_t histogram_bounds[HISTOGRAM_SCALE + 1];
extern const uint8_t histogram_below[64];

/* Returns the bucket of a value. Inline and short, because each end of a call needs it. */
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

/*
 * Return the largest number in a bucket, and the middle of the bucket, which represents its numbers
 * (bucket 0: 0).
 */
uint64_t histogram_upper(uint32_t bucket);
uint64_t histogram_middle(uint32_t bucket);

/*
 * Adds a bucket outside of the present range, and some adjacent ones. Returns the number of bytes
 * added, or 0 if out of memory, with *h unchanged. Only for histograms whose buckets are on the
 * heap.
 */
size_t histogram_grow(struct histogram *h, uint32_t bucket);

static inline bool histogram_has(const struct histogram *h, uint32_t bucket)
{
	return bucket - h->first < h->len;
}

/* The sum of several histograms, for use on the stack. */
struct histogram_sum {
	uint64_t n[HISTOGRAM_BUCKETS];
	uint64_t count;
};

void histogram_add(struct histogram_sum *sum, const struct histogram *h);
/*
 * Returns the number of buckets from the first non-empty one (*first) to the last; 0: all are
 * empty.
 */
uint32_t histogram_range(const struct histogram_sum *sum, uint32_t *first);
/*
 * Returns the quantile: the middle of the bucket up to which the given share (0 to 1) of the values
 * lies; 0 if there are no values, or for bucket 0.
 */
uint64_t histogram_quantile(const struct histogram_sum *sum, double share);

#endif
