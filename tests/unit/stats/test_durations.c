// SPDX-License-Identifier: BSD-2-Clause
/* Durations by function: histograms that both clocks share, and the limit of their memory. */
#include "stats/durations.h"

#include "harness/test.h"

/* The number of durations in the bucket of this one. */
static uint64_t count(const struct histogram *h, uint64_t ns)
{
	uint32_t bucket = histogram_bucket(ns);

	return histogram_has(h, bucket) ? h->n[bucket - h->first] : 0;
}

Test(durations, taken)
{
	struct snapshot *s = snapshot_new();
	struct snapshot_func f = {0}, none = {0}, beyond = {0};
	struct durations d = {0};

	durations_add(&d, 3, 1000, 1000);
	durations_add(&d, 3, 1000, 1001); /* of the same bucket */
	durations_add(&d, 3, 900, 1 << 20);
	cr_assert_eq(d.n, 64);
	assert_ok(durations_take(&d, 3, s, &f));
	cr_assert_eq(f.durations[SNAPSHOT_CPU].max, 1000);
	cr_assert_eq(f.durations[SNAPSHOT_WALL].max, 1 << 20);
	cr_assert_eq(count(&f.durations[SNAPSHOT_CPU].histogram, 1000), 2);
	cr_assert_eq(count(&f.durations[SNAPSHOT_CPU].histogram, 900), 1);
	cr_assert_eq(count(&f.durations[SNAPSHOT_WALL].histogram, 1000), 2);
	cr_assert_eq(count(&f.durations[SNAPSHOT_WALL].histogram, 1 << 20), 1);
	assert_ok(durations_take(&d, 63, s, &none));
	assert_ok(durations_take(&d, 64, s, &beyond));
	cr_assert(!none.durations && !beyond.durations);
	durations_deinit(&d);
	snapshot_free(s);
	check_no_leaks();
}

/* The size doubles until there is room, and nothing is lost. */
Test(durations, grow)
{
	const size_t size = sizeof(struct durations_func);
	struct durations d = {0};

	cr_assert(durations_reserve(&d, 0));
	cr_assert(d.n == 64 && d.bytes == 64 * size);
	durations_add(&d, 63, 5, 5);
	cr_assert_eq(d.n, 64);
	cr_assert_eq(d.bytes, 64 * size + d.v[63].both.len * sizeof(uint64_t));
	cr_assert(durations_reserve(&d, 64));
	cr_assert_eq(d.n, 128);
	cr_assert(durations_reserve(&d, 1023));
	cr_assert_eq(d.n, 1024);
	cr_assert_eq(d.bytes, 1024 * size + d.v[63].both.len * sizeof(uint64_t));
	cr_assert(count(&d.v[63].both, 5) == 1 && d.v[63].max[SNAPSHOT_WALL] == 5);
	cr_assert(!d.v[64].both.len && !d.v[1023].max[SNAPSHOT_CPU]);
	cr_assert_eq(d.dropped, 0);
	durations_clear(&d);
	cr_assert(!d.v && !d.n && !d.bytes);
	durations_add(&d, 3, 5, 6);
	cr_assert(d.n == 64 && !d.v[3].both.len && count(&d.v[3].only[SNAPSHOT_WALL], 6) == 1);
	durations_deinit(&d);
	check_no_leaks();
}

/* Exactly the limit is used; durations beyond it are counted only. */
Test(durations, limit)
{
	const uint32_t n = DURATIONS_MAX_BYTES / sizeof(struct durations_func);
	struct durations d = {0};

	cr_assert(!durations_reserve(&d, n));
	cr_assert_eq(d.dropped, 1);
	cr_assert(durations_reserve(&d, n - 1));
	cr_assert(d.n == n && d.bytes == DURATIONS_MAX_BYTES);
	durations_add(&d, 3, 5, 5);
	durations_add(&d, n, 5, 5);
	cr_assert(d.dropped == 3 && !d.v[3].both.len && d.bytes == DURATIONS_MAX_BYTES);
	durations_clear(&d);
	cr_assert_eq(d.dropped, 0);
	check_no_leaks();
}
