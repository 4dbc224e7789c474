// SPDX-License-Identifier: BSD-2-Clause
/* Sums of hours: which ones are due, which ones a question may use; names of tables. */
#include "clickhouse/rollup.h"

#include <errno.h>

#include "clickhouse/rows.h"
#include "harness/test.h"

#define HOUR   UINT32_C(490000)
#define START  (HOUR * UINT64_C(3600))
#define HOURS8 (8 * UINT64_C(3600))

/* State of an hour: its last block and rows when it was filled, and now */
static void put(struct rows *r, uint32_t hour, uint64_t filled, const uint64_t state[4])
{
	rows_put_u32(r, hour);
	rows_put_u64(r, filled);
	for (int i = 0; i < 4; i++)
		rows_put_u64(r, state[i]);
}

static struct hours_list list_of(const struct rows *r)
{
	struct hours_list l;
	struct diag diag = {0};

	assert_diag_ok(rollup_read_list(r->data, r->n, &l, &diag), &diag);
	return l;
}

static struct rows build(bool local)
{
	static const uint64_t none[4], current[] = {7, 9, 7, 9}, late[] = {7, 9, 8, 10},
				       merged[] = {7, 9, 7, 8}, removed[] = {7, 9, 0, 0},
				       empty[] = {0, 0, 7, 9};
	struct rows r = {0};

	put(&r, 0, 0, (const uint64_t[]){0, 0, 0, local});
	put(&r, HOUR, 3, current);
	put(&r, HOUR + 1, 5, removed);
	put(&r, HOUR + 2, 7, late);
	put(&r, HOUR + 3, 9, current);
	put(&r, HOUR + 4, 0, empty);
	put(&r, HOUR + 5, 0, none);
	put(&r, HOUR + 6, 11, merged);
	put(&r, HOUR + 7, 13, current);
	return r;
}

Test(rollup, hours_are_due_if_complete_and_not_current)
{
	static const bool due[] = {false, false, true, false, true, false, true, false};
	struct rows r = build(true);
	struct hours_list l = list_of(&r);

	cr_assert(l.local && l.n == 8);
	for (size_t i = 0; i < l.n; i++) {
		uint64_t end = (l.list[i].hour + UINT64_C(1)) * 3600;

		cr_assert_eq(rollup_is_due(&l.list[i], end + 600, 600), due[i], "%zu", i);
		cr_assert(!rollup_is_due(&l.list[i], end + 599, 600));
	}
	hours_list_deinit(&l);
	rows_deinit(&r);
	check_no_leaks();
}

static void expect_ranges(const struct hours_list *l, uint64_t from, uint64_t until, unsigned int n,
			  const uint32_t of[][2])
{
	struct question q = {.from_s = from, .until_s = until};
	struct question_hours *ranges = NULL;
	unsigned int have = 0;
	uint64_t used;

	assert_ok(rollup_ranges(l, &q, &ranges, &have, &used));
	cr_assert_eq(have, n, "%u", have);
	for (unsigned int i = 0; i < n; i++)
		cr_assert(ranges[i].first == HOUR + of[i][0] && ranges[i].end == HOUR + of[i][1],
			  "%u", i);
	cr_assert_eq(used != 0, n != 0);
	free(ranges);
}

Test(rollup, current_hours_within_the_span_are_used)
{
	struct rows r = build(true), other = build(false);
	struct hours_list l = list_of(&r), distributed = list_of(&other);
	struct question q = {.from_s = START, .until_s = START + HOURS8};
	struct question_hours *ranges;
	uint64_t used, again;
	unsigned int n;

	expect_ranges(&l, START, START + HOURS8, 3, (const uint32_t[][2]){{0, 2}, {3, 4}, {7, 8}});
	expect_ranges(&l, START + 1, START + HOURS8 - 1, 2, (const uint32_t[][2]){{1, 2}, {3, 4}});
	expect_ranges(&l, START + 1800, START + 5400, 0, NULL);
	expect_ranges(&distributed, START, START + HOURS8, 0, NULL);
	assert_ok(rollup_ranges(&l, &q, &ranges, &n, &used));
	free(ranges);
	l.list[0].filled++;
	assert_ok(rollup_ranges(&l, &q, &ranges, &n, &again));
	free(ranges);
	cr_assert_neq(used, again, "it was filled again");
	hours_list_deinit(&l);
	hours_list_deinit(&distributed);
	rows_deinit(&r);
	rows_deinit(&other);
	check_no_leaks();
}

Test(rollup, damaged_lists_are_refused)
{
	struct rows r = build(true);
	struct hours_list l;

	for (size_t n = 1; n < r.n; n++) {
		if (n % 44 == 0)
			continue;
		assert_err(rollup_read_list(r.data, n, &l, NULL), -EBADMSG);
		hours_list_deinit(&l);
	}
	rows_deinit(&r);
	check_no_leaks();
}

Test(rollup, names_of_old_tables)
{
	static const char *const others[] = {"hours",	    "hours_of_",
					     "hours_of_x",  "hours_of_1;DROP",
					     "profiles",    "",
					     "hours_of_1 ", "hours_of_99999999999999999999999"};
	char name[ROLLUP_NAME_MAX];

	rollup_name(1000, 7, name);
	cr_assert_str_eq(name, "hours_of_1000_00000007");
	cr_assert(rollup_name_is_old(name, strlen(name), 1000 + 86401));
	cr_assert(!rollup_name_is_old(name, strlen(name), 1000 + 86400));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		cr_assert(!rollup_name_is_old(others[i], strlen(others[i]), UINT32_MAX), "%s",
			  others[i]);
}
