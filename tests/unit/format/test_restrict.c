// SPDX-License-Identifier: BSD-2-Clause
/* pstats' restrictions: their kinds, their results, and hostile patterns. */
#include "format/restrict.h"

#include <errno.h>

#include "harness/snapshot_builder.h"
#include "harness/test.h"

#define ROWS_MAX 300

/* Rows 0 to n - 1: functions f0, f1, … */
static struct table *rows_of(const char *file, int n)
{
	struct snapshot_builder *b = snapshot_builder_new();
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	_cleanup_(view_freep) struct view *v = NULL;
	struct view_filter filter = {0};
	struct table *ret = NULL;
	char name[16];
	uint32_t root;

	snapshot_builder_target(b, 42);
	root = snapshot_builder_thread(b, 42, 42, "MainThread");
	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		snapshot_builder_node(b, root, snapshot_builder_func(b, file, i, name, NULL), 1, 1,
				      1, 0);
	}
	s = snapshot_builder_finish(b);
	assert_ok(view_build(s, &filter, &v));
	assert_ok(table_build(v, SNAPSHOT_CPU, &ret));
	return ret;
}

static struct table *ten_rows(const char *file)
{
	return rows_of(file, 10);
}

static int apply(const struct table *t, const char *const *list, size_t n, size_t *left,
		 char **notes, struct diag *diag)
{
	_cleanup_(restrictions_freep) struct restrictions *r = NULL;
	uint32_t order[ROWS_MAX];
	size_t size;
	FILE *out;
	int err = restrictions_parse(list, n, &r, diag);

	if (err < 0)
		return err;
	out = open_memstream(notes, &size);
	cr_assert(out);
	for (uint32_t i = 0; i < t->nrows; i++)
		order[i] = i;
	*left = t->nrows;
	err = restrictions_apply(r, t, order, left, out, diag);
	fclose(out);
	return err;
}

static void assert_leaves(const char *restriction, size_t expected, const char *note)
{
	_cleanup_(table_freep) struct table *t = ten_rows("app.py");
	_cleanup_free_ char *notes = NULL;
	char line[256] = "";
	struct diag diag = {0};
	size_t left = 0;

	assert_diag_ok(apply(t, &restriction, 1, &left, &notes, &diag), &diag);
	cr_assert_eq(left, expected, "'%s' leaves %zu", restriction, left);
	if (note)
		snprintf(line, sizeof(line),
			 "   List reduced from 10 to %zu due to restriction <%s>\n", expected,
			 note);
	cr_assert_str_eq(notes, line);
}

Test(restrict, integers_are_rows)
{
	assert_leaves("3", 3, "3");
	assert_leaves("0", 0, "0");
	assert_leaves("+4", 4, "4");
	assert_leaves("007", 7, "7");
	assert_leaves("1_0", 10, NULL);
	assert_leaves("10", 10, NULL);
	assert_leaves("1000000", 10, NULL);
	assert_leaves("-1", 10, NULL);
	check_no_leaks();
}

Test(restrict, fractions_are_shares_rounded_half_up)
{
	assert_leaves("0.5", 5, "0.5");
	assert_leaves(".25", 3, "0.25");
	assert_leaves("0.24", 2, "0.24");
	assert_leaves("0.04", 0, "0.04");
	assert_leaves("0.0", 0, "0.0");
	assert_leaves("0.95", 10, NULL);
	assert_leaves("1.0", 10, NULL);
	assert_leaves("1e-5", 0, "1e-05");
	assert_leaves("0.1000", 1, "0.1");
	assert_leaves("0.30000000000000004", 3, "0.30000000000000004");
	check_no_leaks();
}

Test(restrict, all_else_is_a_pattern)
{
	assert_leaves("f[0-2]", 3, "'f[0-2]'");
	assert_leaves("app", 10, NULL);
	assert_leaves("", 10, NULL);
	assert_leaves("^app\\.py:7\\(f7\\)$", 1, "'^app\\\\.py:7\\\\(f7\\\\)$'");
	assert_leaves("F1", 0, "'F1'");
	assert_leaves("(?i)F1", 1, "'(?i)F1'");
	assert_leaves("5(?=\\))", 1, "'5(?=\\\\))'");
	assert_leaves("it's", 0, "\"it's\"");
	assert_leaves("it's \"", 0, "'it\\'s \"'");
	assert_leaves("\x1b[32]\n", 0, "'\\x1b[32]\\n'");
	assert_leaves("\xc3\xa9\xe2\x80\xae\xc2\xa0\xf0\x9d\x94\x98", 0,
		      "'\xc3\xa9\\u202e\\xa0\xf0\x9d\x94\x98'");
	/* float() accepts them as numbers, but they can also be names. */
	assert_leaves("inf", 0, "'inf'");
	assert_leaves("nan", 0, "'nan'");
	check_no_leaks();
}

Test(restrict, are_applied_left_to_right)
{
	static const char *const list[] = {"f[0-5]", "0.5", "f[2-9]", "2", "0"};
	_cleanup_(table_freep) struct table *t = ten_rows("app.py");
	_cleanup_free_ char *notes = NULL;
	struct diag diag = {0};
	size_t left;

	assert_diag_ok(apply(t, list, 5, &left, &notes, &diag), &diag);
	cr_assert_str_eq(notes, "   List reduced from 10 to 6 due to restriction <'f[0-5]'>\n"
				"   List reduced from 6 to 3 due to restriction <0.5>\n"
				"   List reduced from 3 to 1 due to restriction <'f[2-9]'>\n"
				"   List reduced from 1 to 0 due to restriction <0>\n");
}

Test(restrict, bad_ones_are_refused)
{
	static const char *const bad[] = {"(",
					  "[a",
					  "*",
					  "a{2,1}",
					  "(?P<n",
					  "1.5",
					  "-0.5",
					  "1e3",
					  "\\C",
					  "\xff",
					  "99999999999999999999",
					  "(?<=a*)b",
					  "a\\"};
	const char *many[RESTRICT_MAX + 1];
	static char longest[RESTRICT_MAX_PATTERN + 2], digits[100];

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct restrictions *r = NULL;
		struct diag diag = {0};

		assert_err(restrictions_parse(&bad[i], 1, &r, &diag), -EINVAL);
		cr_assert_eq(diag.exit, PYP_EXIT_USAGE);
		cr_assert(diag.msg[0] && diag.hint[0]);
		cr_assert_null(r);
	}
	memset(longest, 'x', sizeof(longest) - 1);
	memset(digits, '0', sizeof(digits) - 1);
	for (size_t i = 0; i <= RESTRICT_MAX; i++)
		many[i] = i == 0 ? longest : "x";
	assert_err(restrictions_parse(many, 1, NULL, NULL), -EINVAL);
	many[0] = digits;
	assert_err(restrictions_parse(many, 1, NULL, NULL), -EINVAL);
	digits[1] = '.';
	assert_err(restrictions_parse(many, 1, NULL, NULL), -EINVAL);
	many[0] = "x";
	many[1] = "(";
	assert_err(restrictions_parse(many, 2, NULL, NULL), -EINVAL);
	many[1] = "x";
	assert_err(restrictions_parse(many, RESTRICT_MAX + 1, NULL, NULL), -EINVAL);
	check_no_leaks();
}

Test(restrict, the_largest_ones_are_accepted)
{
	static const char *const largest[] = {"9223372036854775807", "1", "1.0", "0.0", "-0.0"};
	const char *many[RESTRICT_MAX];
	static char longest[RESTRICT_MAX_PATTERN + 1], digits[64];
	struct restrictions *r = NULL;

	memset(longest, 'x', sizeof(longest) - 1);
	memset(digits, '0', sizeof(digits) - 1);
	for (size_t i = 0; i < RESTRICT_MAX; i++)
		many[i] = i < 5 ? largest[i] : i == 5 ? longest : digits;
	assert_ok(restrictions_parse(many, RESTRICT_MAX, &r, NULL));
	restrictions_free(r);
	digits[1] = '.';
	assert_ok(restrictions_parse(many, RESTRICT_MAX, &r, NULL));
	restrictions_free(r);
	check_no_leaks();
}

Test(restrict, numbers_and_patterns)
{
	static const char *const numbers[] = {"0",   "9",    "+1",    "-1",	 "1_0",
					      "1.",  ".5",   "5.5",   "-.5",	 "1e5",
					      "1E5", "1e+5", "1.e-5", "1_0.0_1", "09"};
	static const char *const patterns[] = {
		"",   "+",    "-",     ".", "e5", ".e5", "1e", "1e+", "1__0", "1_", "_1",
		"1x", "1.5x", "1.5.5", "/", ":",  "0/",	 "0:", "1_:", "1_/",  "1 ", "--1"};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		cr_assert(!restriction_is_pattern(numbers[i]), "%s", numbers[i]);
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		cr_assert(restriction_is_pattern(patterns[i]), "%s", patterns[i]);
}

/* More than are matched between looks at the time */
Test(restrict, of_many_rows)
{
	static const char *const list[] = {"7\\)$"};
	_cleanup_(table_freep) struct table *t = rows_of("app.py", ROWS_MAX);
	_cleanup_free_ char *notes = NULL;
	struct diag diag = {0};
	size_t left;

	assert_diag_ok(apply(t, list, 1, &left, &notes, &diag), &diag);
	cr_assert_eq(left, ROWS_MAX / 10);
}

/* Names that are NULL do not match. */
Test(restrict, of_names)
{
	static char text[ROWS_MAX][8], *names[ROWS_MAX];
	bool matches[ROWS_MAX];
	struct diag diag = {0};

	for (size_t i = 0; i < ROWS_MAX; i++) {
		snprintf(text[i], sizeof(text[i]), "f%zu", i);
		names[i] = i % 100 == 7 ? NULL : text[i];
	}
	assert_diag_ok(restrict_names("7$", names, ROWS_MAX, matches, &diag), &diag);
	for (size_t i = 0; i < ROWS_MAX; i++)
		cr_assert_eq(matches[i], i % 10 == 7 && i % 100 != 7, "%zu", i);
	assert_ok(restrict_names("7$", NULL, 0, NULL, &diag));
	assert_err(restrict_names("a(", names, ROWS_MAX, matches, &diag), -EINVAL);
	cr_assert_eq(diag.exit, PYP_EXIT_USAGE);
	cr_assert(strstr(diag.msg, "invalid pattern 'a(' at character 3: "), "%s", diag.msg);
	check_no_leaks();
}

/* Patterns whose nesting, repetition or backtracking would take minutes or all memory. */
Test(restrict, patterns_cannot_run_away)
{
	static const char *const evil[] = {"(x+x+)+y", "(x|xx)+$y", "^(([a-z])+.)+[A-Z]([a-z])+$",
					   "(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)[^x]Z"};
	static char file[10001], nested[4000];
	struct restrictions *r = NULL;
	const char *pattern;

	memset(file, 'x', sizeof(file) - 1);
	for (size_t i = 0; i < sizeof(evil) / sizeof(*evil); i++) {
		_cleanup_(table_freep) struct table *t = ten_rows(file);
		_cleanup_free_ char *notes = NULL;
		struct diag diag = {0};
		size_t left;
		int err = apply(t, &evil[i], 1, &left, &notes, &diag);

		cr_assert(err == 0 || err == -EINVAL, "%s: %d", evil[i], err);
		cr_assert(err == 0 || strstr(diag.msg, "too long"), "%s", diag.msg);
	}
	/* half a million steps, and 10,000 levels with 150 groups each */
	for (int i = 0; i < 2; i++) {
		_cleanup_(table_freep) struct table *t = ten_rows(i ? file : file + 9000);
		_cleanup_free_ char *notes = NULL;
		char groups[1000] = "^(?:x|";
		size_t n = strlen(groups);
		struct diag diag = {0};
		size_t left;

		for (int k = 0; k < 150; k++, n += 3)
			memcpy(groups + n, "(a)", 3);
		memcpy(groups + n, ")*", 3);
		pattern = i ? groups : "^x*x*x*f";
		assert_err(apply(t, &pattern, 1, &left, &notes, &diag), -EINVAL);
		cr_assert(strstr(diag.msg, "takes too long"), "%s", diag.msg);
	}
	memset(nested, '(', 1990);
	memset(nested + 1990, ')', 1990);
	pattern = nested;
	assert_err(restrictions_parse(&pattern, 1, &r, NULL), -EINVAL);
	pattern = "((((x{1000}){1000}){1000}){1000}){1000}";
	assert_err(restrictions_parse(&pattern, 1, &r, NULL), -EINVAL);
	check_no_leaks();
}

Test(restrict, names_that_are_no_utf8_can_be_searched)
{
	static const char *const list[] = {"f[0-4]\\)$"};
	_cleanup_(table_freep) struct table *t = ten_rows("\xff\xed\xb3\xbf\xc0\x80.py");
	_cleanup_free_ char *notes = NULL;
	struct diag diag = {0};
	size_t left;

	assert_diag_ok(apply(t, list, 1, &left, &notes, &diag), &diag);
	cr_assert_eq(left, 5);
}
