// SPDX-License-Identifier: BSD-2-Clause
/* The report of lines: figures, source text around them, and its text without either. */
#include "snapshot/lines.h"

#include <errno.h>

#include "format/names.h"
#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"

#define MS 1000000u
#define LINE(l, n)                                                                                 \
	{                                                                                          \
		.line = (l), .samples = (n), .self_ns = (uint64_t)MS * (n), .variance = 1e12 * (n) \
	}

static struct snapshot *build(void)
{
	static const struct snapshot_line f[] = {LINE(0, 1), LINE(4, 25), LINE(14, 74)},
					  g[] = {LINE(20, 3)};
	struct snapshot *s = snapshot_build("target 42\nthread 42 42 MainThread\n"
					    "f /srv/app.py:3 1 100000000\n"
					    "  g /srv/app.py:19 1 3000000\n"
					    "  h /srv/app.py:30 1 1000\n");

	s->targets[0].mode = MODE_SAMPLE;
	assert_ok(snapshot_add_lines(s, &s->funcs[0], f, 3));
	assert_ok(snapshot_add_lines(s, &s->funcs[1], g, 1));
	return s;
}

static void assert_has(const char *text, const char *what)
{
	cr_assert(strstr(text, what), "no\n%s\nin\n%s", what, text);
}

Test(lines, figures)
{
	struct snapshot *s = build();
	char *text = report_new("lines", s, &(struct format_opts){0}, NULL);

	assert_has(text, "/srv/app.py:3(f)\n   0.100 s +- 0.010 of its own, 100 samples\n"
			 "    line    share  +- %   seconds\n"
			 "       4   25.0 %   4.3     0.025\n"
			 "      14   74.0 %   4.4     0.074\n"
			 "       ?    1.0 %   1.0     0.001\n\n"
			 "/srv/app.py:19(g)\n   0.003 s +- 0.002 of its own, 3 samples\n"
			 "    line    share  +- %   seconds\n"
			 "      20  100.0 %   0.0     0.003\n\n");
	cr_assert(!strstr(text, "(h)"), "a function without samples has no lines");
	free(text);
	snapshot_free(s);
	check_no_leaks();
}

/* The file's text, up to the NUL. */
static const char *source(void *ctx, const char *filename, size_t *ret_size, const char **ret_note)
{
	cr_assert_str_eq(filename, "/srv/app.py");
	*ret_note = ctx ? NULL : "no source: \033[31m";
	*ret_size = ctx ? strlen(ctx) : 0;
	return ctx;
}

Test(lines, source_text)
{
	static char text_of[] = "1\n2\ndef f():\n\tx = 'a\033\303\244'\n5\n6\n7\n8\n9\n10\n11\n12"
				"\n13\n14\r\n15";
	struct format_source from = {source, text_of};
	const struct format_opts o = {.source = &from};
	struct snapshot *s = build();
	char *text = report_new("lines", s, &o, NULL);

	assert_has(text, "    line    share  +- %   seconds  source\n"
			 "       3                           def f():\n"
			 "       4   25.0 %   4.3     0.025          x = 'a\\x1b\303\244'\n"
			 "       5                           5\n"
			 "       6                           6\n"
			 "     ...\n"
			 "      12                           12\n"
			 "      13                           13\n"
			 "      14   74.0 %   4.4     0.074  14\n"
			 "      15                           15\n"
			 "       ?    1.0 %   1.0     0.001\n");
	assert_has(text, "      20  100.0 %   0.0     0.003\n"); /* beyond the end of the file */
	free(text);
	from.ctx = NULL;
	text = report_new("lines", s, &o, NULL);
	assert_has(text,
		   "of its own, 100 samples\n   no source: \\x1b[31m\n    line    share  +- %   "
		   "seconds\n       4   25.0");
	free(text);
	snapshot_free(s);
	check_no_leaks();
}

/* The first words of the lines of a function's table */
static void expect_numbers(const struct snapshot *s, const struct format_opts *o, const char *want)
{
	_cleanup_free_ char *text = report_new("lines", s, o, NULL);
	char got[256] = "";
	const char *p = strstr(text, "seconds  source\n");

	cr_assert(p, "%s", text);
	for (p = strchr(p, '\n') + 1; *p != '\n'; p = strchr(p, '\n') + 1) {
		p += strspn(p, " ");
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%.*s ",
			 (int)strcspn(p, " \n"), p);
	}
	cr_assert_str_eq(got, want);
}

/* Long lines are cut, tabs go to the next of the columns that they stop at. */
Test(lines, long_lines_and_tabs)
{
	static const struct snapshot_line v[] = {LINE(1, 1), LINE(2, 1)};
	char text_of[NAME_REPEATED + 100] = "\ta\tbc\t12345678\td\n";
	struct format_source from = {source, text_of};
	struct snapshot *s = snapshot_build("f /srv/app.py:1 1 5\n");
	char *text;

	memset(text_of + strlen(text_of), 'x', NAME_REPEATED + 2);
	text_of[strlen("\ta\tbc\t12345678\td\n") + NAME_REPEATED + 2] = '\0';
	assert_ok(snapshot_add_lines(s, &s->funcs[0], v, 2));
	text = report_new("lines", s, &(struct format_opts){.source = &from}, NULL);
	assert_has(text, "     0.001          a       bc      12345678        d\n");
	assert_has(text, "     0.001  xxx");
	cr_assert_eq(strspn(strstr(text, "xxx"), "x"), NAME_REPEATED + 1);
	free(text);
	snapshot_free(s);
	check_no_leaks();
}

/* Of up to five lines without samples, all are shown, of more the first and the last two. */
Test(lines, gaps)
{
	static const struct snapshot_line v[] = {LINE(5, 1), LINE(11, 1), LINE(18, 1), LINE(19, 1)};
	static char text_of[] = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n"
				"19\n20\n21\n22\n23\n";
	struct format_source from = {source, text_of};
	const struct format_opts o = {.source = &from};
	struct snapshot *s = snapshot_build("f /srv/app.py:4 1 5\n");

	assert_ok(snapshot_add_lines(s, &s->funcs[0], v, 4));
	expect_numbers(s, &o, "4 5 6 7 8 9 10 11 12 13 ... 16 17 18 19 20 21 ");
	s->funcs[0].firstlineno = 5;
	expect_numbers(s, &o, "5 6 7 8 9 10 11 12 13 ... 16 17 18 19 20 21 ");
	s->funcs[0].firstlineno = 0;
	expect_numbers(s, &o, "1 2 3 4 5 6 7 8 9 10 11 12 13 ... 16 17 18 19 20 21 ");
	s->funcs[0].firstlineno = -1;
	expect_numbers(s, &o, "1 2 3 4 5 6 7 8 9 10 11 12 13 ... 16 17 18 19 20 21 ");
	strstr(text_of, "20")[2] = '\0';
	expect_numbers(s, &o, "1 2 3 4 5 6 7 8 9 10 11 12 13 ... 16 17 18 19 20 ");
	snapshot_free(s);
	check_no_leaks();
}

/* Ten functions, if nothing else is asked for, those with the most samples first */
Test(lines, of_many_functions)
{
	struct snapshot_builder *b = snapshot_builder_new();
	uint32_t root = snapshot_builder_thread(b, 42, 42, "Main");
	struct snapshot *s;
	const char *p;
	size_t n = 0;
	char *text;

	snapshot_builder_target(b, 42);
	for (int i = 0; i < 12; i++)
		snapshot_builder_node(b, root, snapshot_builder_func(b, "a.py", i, "f", NULL), 1, 5,
				      5, 0);
	s = snapshot_builder_finish(b);
	for (uint32_t i = 0; i < 12; i++) {
		const struct snapshot_line line = LINE(1, i + 1);

		assert_ok(snapshot_add_lines(s, &s->funcs[i], &line, 1));
	}
	text = report_new("lines", s, &(struct format_opts){0}, NULL);
	for (p = text; (p = strstr(p, "of its own")); p++)
		n++;
	cr_assert_eq(n, 10);
	assert_has(text, "\n\na.py:11(f)\n   0.012 s");
	cr_assert(strstr(text, "a.py:2(f)") && !strstr(text, "a.py:1(f)"));
	free(text);
	snapshot_free(s);
	check_no_leaks();
}

Test(lines, selected)
{
	static const char *const pattern[] = {"g"};
	struct snapshot *s = build();
	const struct format_opts o = {.restrict_ = pattern, .nrestrict = 1};
	char *text = report_new("lines", s, &o, NULL);

	cr_assert(strstr(text, "19(g)") && !strstr(text, "3(f)"), "%s", text);
	free(text);
	snapshot_free(s);
	check_no_leaks();
}

/* A function without samples, and one that does not exist. */
Test(lines, selected_without_samples)
{
	static const char *const patterns[] = {"(h)", "nowhere"};
	struct snapshot *s = build();

	for (size_t i = 0; i < 2; i++) {
		const struct format_opts o = {.restrict_ = &patterns[i], .nrestrict = 1};
		char *text = report_new("lines", s, &o, NULL);

		assert_has(text, "   No function that matches has samples.");
		free(text);
	}
	snapshot_free(s);
	check_no_leaks();
}

Test(lines, extreme_numbers)
{
	static const struct snapshot_line v[] = {LINE(INT32_MAX, 1)};
	static char text_of[] = "1\n2\n";
	struct format_source from = {source, text_of};
	struct snapshot *s = snapshot_build("f /srv/app.py:1 1 5\n");
	char *text;

	s->funcs[0].firstlineno = INT32_MIN;
	assert_ok(snapshot_add_lines(s, &s->funcs[0], v, 1));
	text = report_new("lines", s, &(struct format_opts){.source = &from}, NULL);
	assert_has(text, "\n2147483647  100.0 %");
	free(text);
	snapshot_free(s);
	check_no_leaks();
}

static int refused(const struct snapshot *s, struct diag *diag)
{
	_cleanup_fclose_ FILE *out = fopen("/dev/null", "w");

	diag_clear(diag);
	return format_write(format_find("lines"), s, &(struct format_opts){0}, out, diag);
}

Test(lines, none)
{
	struct snapshot *s = snapshot_build("f /srv/app.py:1 1 5\n");
	struct diag diag = {0};

	assert_err(refused(s, &diag), -ENODATA);
	assert_has(diag.hint, "--mode sample");
	s->targets[0].misses_calls = true;
	assert_err(refused(s, &diag), -ENODATA);
	assert_has(diag.hint, "--mode sample");
	s->targets[0].misses_calls = false;
	s->targets[0].estimate.samples = 5;
	assert_err(refused(s, &diag), -ENODATA);
	assert_has(diag.hint, "--mode sample");
	s->targets[0].misses_calls = true;
	assert_err(refused(s, &diag), -ENODATA);
	assert_has(diag.msg, "compiled code");
	snapshot_free(s);
	check_no_leaks();
}
