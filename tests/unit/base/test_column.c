// SPDX-License-Identifier: BSD-2-Clause
/* The table of optional columns: the properties that formats depend on. */
#include "base/column.h"

#include <string.h>

#include "harness/test.h"

/*
 * Names are the keys of JSON, CSV and HTML, so each occurs once, and the members of a group are
 * adjacent.
 */
Test(column, keys_are_distinct_and_groups_are_whole)
{
	int groups = 0, of_group = 0;

	for (int c = 0, end; (c = column_group_next(UINT64_MAX, c, &end)) < COLUMNS; c = end) {
		uint64_t whole = column_group(column_table[c].group);

		of_group += end - c;
		groups++;
		cr_assert_eq(__builtin_popcountll(whole), end - c, "%s is torn",
			     column_table[c].group);
	}
	cr_assert(groups && of_group == COLUMNS);
	for (int c = 0; c < COLUMNS; c++) {
		char a[COLUMN_KEY_MAX], b[COLUMN_KEY_MAX];

		cr_assert_eq(column_find(column_table[c].group, column_table[c].name), c);
		cr_assert(*column_table[c].text);
		for (int k = 0; k < c; k++)
			cr_assert_str_neq(column_key(c, a), column_key(k, b));
	}
}

Test(column, names)
{
	char key[COLUMN_KEY_MAX];

	cr_assert_str_eq(column_key(COLUMN_vcsw, key), "counters_vcsw");
	cr_assert_eq(column_find("counters", "bogus"), COLUMNS);
	cr_assert_eq(column_find("bogus", "vcsw"), COLUMNS);
	cr_assert_eq(column_group("bogus"), 0);
	cr_assert_eq(COLUMN_COUNTERS(UINT32_MAX), column_group("counters"));
}

Test(column, next_group_of_a_set)
{
	int end;

	cr_assert_eq(column_group_next(0, 0, &end), COLUMNS);
	cr_assert_eq(end, COLUMNS);
	cr_assert_eq(column_group_next(COLUMN_BIT(COLUMN_majflt), 0, &end), COLUMN_majflt);
	cr_assert_eq(end, COLUMN_wbytes + 1);
	cr_assert_eq(column_group_next(COLUMN_BIT(COLUMN_majflt), end, &end), COLUMNS);
}

Test(column, sums_add_up)
{
	uint64_t n = 3;

	column_merge(COLUMN_rbytes, &n, 4);
	cr_assert_eq(n, 7);
}
