// SPDX-License-Identifier: BSD-2-Clause
/* Names fitted into columns. */
#include "format/screen.h"

#include "harness/test.h"

static char *fit(const char *s, size_t columns, size_t *used)
{
	char *ret = NULL;
	size_t n;
	FILE *out = open_memstream(&ret, &n);

	*used = screen_fit(out, s, columns);
	fclose(out);
	return ret;
}

Test(screen, fit)
{
	static const struct {
		const char *s;
		size_t columns;
		const char *want;
		size_t used;
	} cases[] = {
		{"abc", 3, "abc", 3},
		{"abcdefghij", 10, "abcdefghij", 10},
		{"abcdefghij", 9, "abc...hij", 9},
		{"abcdefghij", 8, "ab...hij", 8},
		{"abcdefghij", 3, "...", 3},
		{"abcdefghij", 2, "", 0},
		{"", 5, "", 0},
		{"\xe6\x97\xa5\xe6\x9c\xac", 4, "\xe6\x97\xa5\xe6\x9c\xac", 4},
		{"e\xcc\x81x", 2, "e\xcc\x81x", 2},
		{"\n", 4, "\\x0a", 4},
		{"\n\n\n", 11, "\\x0a...\\x0a", 11},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t used;
		_cleanup_free_ char *got = fit(cases[i].s, cases[i].columns, &used);

		cr_assert_str_eq(got, cases[i].want);
		cr_assert_eq(used, cases[i].used, "%s: %zu", got, used);
	}
}

/* The result fits for any string and any width. */
Test(screen, fit_always_fits)
{
	static const char s[] = "a\xe6\x97\xa5\n\xe2\x80\xae\xcc\x81\xffz\033[2J\xf0\x9f\x98\x80";

	for (size_t columns = 0; columns < 60; columns++) {
		size_t used;
		_cleanup_free_ char *got = fit(s, columns, &used);

		cr_assert(used <= columns && screen_width(got) == used, "%zu: %s", columns, got);
	}
}
