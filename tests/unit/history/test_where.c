// SPDX-License-Identifier: BSD-2-Clause
/* history/where: conditions on labels. */
#include "history/where.h"

#include <errno.h>

#include "harness/test.h"

static const struct interval_label labels[] = {{"host", "a"}, {"service", "web-1"}};

static bool matches(const char *first, const char *second)
{
	const char *const text[] = {first, second};
	struct diag diag = {0};
	struct where *w = NULL;
	bool hit;

	assert_diag_ok(where_new(text, second ? 2 : 1, &w, &diag), &diag);
	hit = where_matches(w, labels, 2);
	where_free(w);
	return hit;
}

Test(where, conditions)
{
	cr_assert(where_matches(NULL, labels, 2));
	cr_assert(matches("service=^web", NULL));
	cr_assert(matches("service=b-1$", "host=a"));
	cr_assert_not(matches("service=^eb", NULL));
	cr_assert_not(matches("service=web", "host=b"));
	cr_assert(matches("zone=^$", NULL), "a label that is missing is empty");
	cr_assert_not(matches("zone=.", NULL));
	cr_assert(matches("service=", NULL));
	check_no_leaks();
}

Test(where, invalid_ones)
{
	static const char *const bad[] = {"", "service", "=x", "service=(", "service=[a"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct diag diag = {0};
		struct where *w = NULL;

		assert_err(where_new(&bad[i], 1, &w, &diag), -EINVAL);
		cr_assert_eq(diag.exit, PYP_EXIT_USAGE);
		cr_assert_null(w);
	}
	check_no_leaks();
}

/* A pattern that backtracks without end is stopped by its limit. */
Test(where, hostile_patterns_end)
{
	char value[201] = "";
	const struct interval_label label = {"service", value};
	const char *text = "service=^(a+)+$";
	struct diag diag = {0};
	struct where *w = NULL;

	memset(value, 'a', 199);
	value[199] = '!';
	assert_ok(where_new(&text, 1, &w, &diag));
	cr_assert_not(where_matches(w, &label, 1));
	where_free(w);
	check_no_leaks();
}
