// SPDX-License-Identifier: BSD-2-Clause
/* Exponential histograms: buckets compared with logarithms, growth, quantiles. */
#include "base/histogram.h"

#include <math.h>
#include <stdlib.h>

#include "harness/test.h"

/*
 * For values that a double represents exactly; the only boundaries that are integers are powers of
 * two.
 */
static uint32_t by_logarithm(uint64_t value)
{
	return (uint32_t)ceil(log2((double)value) * HISTOGRAM_SCALE - 1e-12);
}

Test(histogram, buckets_are_the_logarithms)
{
	for (uint64_t v = 1; v < 100000; v++)
		cr_assert_eq(histogram_bucket(v), by_logarithm(v), "%lu", v);
	for (uint64_t v = 100003; v < UINT64_C(1) << 52; v += v / 7)
		cr_assert_eq(histogram_bucket(v), by_logarithm(v), "%lu", v);
	cr_assert_eq(histogram_bucket(0), 0);
	cr_assert_eq(histogram_bucket(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
}

Test(histogram, upper_bounds_are_the_last_of_their_buckets)
{
	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		uint64_t upper = histogram_upper(i);

		cr_assert(histogram_bucket(upper) <= i, "%u", i);
		if (upper < UINT64_MAX)
			cr_assert(histogram_bucket(upper + 1) > i, "%u", i);
	}
}

Test(histogram, grows_both_ways_and_keeps_what_it_has)
{
	static const uint32_t buckets[] = {100, 100, 90, 130, 0, HISTOGRAM_BUCKETS - 1, 100};
	struct histogram h = {0};
	struct histogram_sum sum = {.count = 0};
	uint32_t first;
	size_t bytes = 0;

	for (size_t i = 0; i < sizeof(buckets) / sizeof(*buckets); i++) {
		if (!histogram_has(&h, buckets[i]))
			bytes += histogram_grow(&h, buckets[i]);
		cr_assert(histogram_has(&h, buckets[i]));
		h.n[buckets[i] - h.first]++;
	}
	cr_assert_eq(bytes, h.len * sizeof(*h.n));
	histogram_add(&sum, &h);
	cr_assert_eq(sum.count, 7);
	cr_assert(sum.n[100] == 3 && sum.n[90] == 1 && sum.n[130] == 1 && sum.n[0] == 1);
	cr_assert_eq(histogram_range(&sum, &first), HISTOGRAM_BUCKETS);
	cr_assert_eq(first, 0);
	free(h.n);
	check_no_leaks();
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Each quantile is within one bucket of the value found by sorting. */
Test(histogram, quantiles)
{
	static const double shares[] = {0.01, 0.5, 0.9, 0.99, 1};
	static uint64_t values[10000];
	const size_t n = sizeof(values) / sizeof(*values);
	struct histogram_sum sum = {.count = 0};

	srand(7);
	for (size_t i = 0; i < n; i++) {
		values[i] = (uint64_t)exp(3 + 12 * drand48());
		sum.n[histogram_bucket(values[i])]++;
		sum.count++;
	}
	qsort(values, n, sizeof(*values), ascending);
	for (size_t i = 0; i < sizeof(shares) / sizeof(*shares); i++) {
		uint64_t exact = values[(size_t)ceil(shares[i] * (double)n) - 1];
		uint64_t said = histogram_quantile(&sum, shares[i]);

		cr_assert_eq(histogram_bucket(said), histogram_bucket(exact), "%g: %lu, %lu",
			     shares[i], said, exact);
	}
}

Test(histogram, quantiles_that_are_not_known)
{
	struct histogram_sum sum = {.count = 0};

	cr_assert_eq(histogram_quantile(&sum, 0.5), 0);
	sum.n[0] = 3;
	sum.n[80] = 2;
	sum.count = 5;
	cr_assert_eq(histogram_quantile(&sum, 0.5), 0);
	cr_assert_eq(histogram_bucket(histogram_quantile(&sum, 0.9)), 80);
}
