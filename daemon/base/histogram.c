// SPDX-License-Identifier: BSD-2-Clause
/* Exponential histograms: see histogram.h. */
#include "base/histogram.h"

#include <stdlib.h>
#include <string.h>

#define ROOM 4u /* additional buckets on each side when growing */

/* All but the first of these powers are not integers; the values are rounded down. */
const uint64_t histogram_bounds[HISTOGRAM_SCALE + 1] = {
	UINT64_C(0x8000000000000000), UINT64_C(0x8b95c1e3ea8bd6e6), UINT64_C(0x9837f0518db8a96f),
	UINT64_C(0xa5fed6a9b15138ea), UINT64_C(0xb504f333f9de6484), UINT64_C(0xc5672a115506dadd),
	UINT64_C(0xd744fccad69d6af4), UINT64_C(0xeac0c6e7dd24392e), UINT64_MAX,
};

const uint8_t histogram_below[64] = {
	0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 4, 4, 4,
	4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 6, 6,
	7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8,
};

uint64_t histogram_upper(uint32_t bucket)
{
	uint32_t octave = bucket / HISTOGRAM_SCALE;

	if (octave > 63)
		return UINT64_MAX;
	return histogram_bounds[bucket % HISTOGRAM_SCALE] >> (63u - octave);
}

uint64_t histogram_middle(uint32_t bucket)
{
	uint64_t low = bucket ? histogram_upper(bucket - 1) : 0, high = histogram_upper(bucket);

	return bucket ? low + (high - low + 1) / 2 : 0;
}

size_t histogram_grow(struct histogram *h, uint32_t bucket)
{
	uint32_t first = bucket > ROOM ? bucket - ROOM : 0, end = bucket + ROOM + 1;
	uint64_t *n;

	if (h->len) {
		first = h->first < bucket ? h->first : first;
		end = h->first + h->len > end ? h->first + h->len : end;
	}
	if (end > HISTOGRAM_BUCKETS)
		end = HISTOGRAM_BUCKETS;
	n = calloc(end - first, sizeof(*n));
	if (!n)
		return 0;
	if (h->len)
		memcpy(n + (h->first - first), h->n, h->len * sizeof(*n));
	bucket = end - first - h->len;
	free(h->n);
	*h = (struct histogram){n, (uint16_t)first, (uint16_t)(end - first)};
	return bucket * sizeof(*n);
}

void histogram_add(struct histogram_sum *sum, const struct histogram *h)
{
	for (uint32_t i = 0; i < h->len; i++) {
		sum->n[h->first + i] += h->n[i];
		sum->count += h->n[i];
	}
}

uint32_t histogram_range(const struct histogram_sum *sum, uint32_t *first)
{
	uint32_t end = HISTOGRAM_BUCKETS;

	*first = 0;
	while (*first < end && !sum->n[*first])
		++*first;
	while (end > *first && !sum->n[end - 1])
		end--;
	return end - *first;
}

uint64_t histogram_quantile(const struct histogram_sum *sum, double share)
{
	double wanted = share * (double)sum->count;
	uint64_t seen = 0;

	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += sum->n[i];
		if (sum->n[i] && (double)seen >= wanted)
			return histogram_middle(i);
	}
	return 0;
}
