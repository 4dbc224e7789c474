// SPDX-License-Identifier: BSD-2-Clause
/* history/keep: the last intervals, within limits of bytes and age. */
#include "history/keep.h"

#include "harness/snapshot_builder.h"
#include "harness/test.h"

static struct interval *interval_at(uint8_t id, uint64_t end)
{
	const uint8_t bytes[INTERVAL_ID_BYTES] = {id};
	struct interval *iv = interval_new(
		bytes, end - 10, end,
		snapshot_build("target 42\nthread 42 43 worker\nmain a.py:1 2 100000\n"));

	cr_assert(iv);
	iv->snapshot->targets[0].estimate.samples = 7;
	assert_ok(interval_set_label(iv, INTERVAL_SERVICE, "web"));
	assert_ok(interval_set_label(iv, INTERVAL_PID, "42"));
	return iv;
}

static struct kept *entry(uint8_t id, uint64_t end, size_t size)
{
	struct interval *iv = interval_at(id, end);
	struct kept *k = kept_new(iv, calloc(1, size), size);

	interval_free(iv);
	cr_assert(k);
	return k;
}

Test(keep, an_entry_has_what_lists_show)
{
	struct kept *k = entry(1, 1000, 50);

	cr_assert(k->start_unix_ns == 990 && k->end_unix_ns == 1000 && k->size == 50);
	cr_assert(k->samples == 7 && k->cpu_ns == 100000 && k->nlabels == 2);
	cr_assert_str_eq(k->labels[0].name, "pid");
	cr_assert_str_eq(k->labels[1].value, "web");
	cr_assert_gt(k->bytes, 50 + sizeof(struct kept));
	kept_free(k);
	check_no_leaks();
}

Test(keep, the_oldest_go_first)
{
	const size_t each = 1000;
	struct keep *k;
	struct keep_counts n;

	assert_ok(keep_new(10 * each, 1 << 20, &k));
	for (uint8_t i = 0; i < 100; i++) {
		assert_ok(keep_add(k, entry(i, 1000u + i, 500)));
		n = keep_counts(k);
		cr_assert_leq(n.bytes, n.max_bytes);
	}
	cr_assert_gt(n.n, 8);
	cr_assert_eq(n.n + n.dropped, 100);
	cr_assert_eq(keep_get(k, n.n - 1)->id[0], 99);
	cr_assert_eq(keep_get(k, 0)->id[0], 100 - n.n);
	cr_assert_null(keep_get(k, n.n));
	keep_free(k);
	check_no_leaks();
}

Test(keep, one_that_is_larger_than_all)
{
	struct keep *k;

	assert_ok(keep_new(5000, 1 << 20, &k));
	assert_ok(keep_add(k, entry(1, 1000, 100)));
	assert_ok(keep_add(k, entry(2, 1000, 6000)));
	cr_assert_eq(keep_counts(k).n, 1);
	cr_assert_eq(keep_counts(k).dropped, 1);
	keep_free(k);
	check_no_leaks();
}

Test(keep, old_ones_expire)
{
	struct keep *k;

	assert_ok(keep_new(1 << 20, 100, &k));
	for (uint8_t i = 0; i < 10; i++)
		assert_ok(keep_add(k, entry(i, 1000u + 10u * i, 10)));
	keep_expire(k, 50); /* a clock that was set back */
	cr_assert_eq(keep_counts(k).n, 10);
	keep_expire(k, 1150);
	cr_assert_eq(keep_counts(k).n, 5);
	cr_assert_eq(keep_counts(k).expired, 5);
	cr_assert_eq(keep_counts(k).oldest_unix_ns, 1040);
	keep_expire(k, 5000);
	cr_assert_eq(keep_counts(k).n, 0);
	cr_assert_eq(keep_counts(k).bytes, 0);
	keep_free(k);
	check_no_leaks();
}

Test(keep, the_middle_decides_to_which_span_one_belongs)
{
	cr_assert(kept_is_in(100, 110, 100, 110));
	cr_assert(kept_is_in(99, 109, 100, 110));
	cr_assert_not(kept_is_in(94, 104, 100, 110));
	cr_assert_not(kept_is_in(105, 115, 100, 110));
	cr_assert(kept_is_in(105, 115, 110, 120));
}
