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

Test(screen, columns)
{
	static const uint32_t widths[][2] = {{0, 0},   {1, 79},	 {78, 79},
					     {79, 79}, {80, 80}, {200, 200}};

	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
		cr_assert_eq(screen_columns(&(struct format_opts){.width = widths[i][0]}),
			     widths[i][1]);
}

/* What is last in a line has the rest of it, but at least 32 columns; in a file, all that it needs. */
Test(screen, last)
{
	static const struct {
		uint32_t width;
		size_t used, want;
	} cases[] = {{0, 50, 60},   {100, 40, 60}, {100, 41, 59}, {100, 67, 33},
		     {100, 68, 32}, {100, 69, 32}, {100, 200, 32}};
	char s[61];

	memset(s, 'x', sizeof(s) - 1);
	s[sizeof(s) - 1] = '\0';
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_free_ char *got = NULL;
		size_t n;
		FILE *out = open_memstream(&got, &n);

		screen_last(out, s, &(struct format_opts){.width = cases[i].width}, cases[i].used);
		fclose(out);
		cr_assert_eq(n, cases[i].want, "%zu: %s", i, got);
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
