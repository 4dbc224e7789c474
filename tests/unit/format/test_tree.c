// SPDX-License-Identifier: BSD-2-Clause
/* The tree format, line by line. */
#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"

static const char *const example = "target 42\n"
				   "thread 42 42 MainThread\n"
				   "main app.py:1 1 1000000\n"
				   "  small app.py:9 3 2000\n"
				   "  g b.py:3 1 7000000\n"
				   "    f app.py:10 1 9000000\n"
				   "      h app.py:20 5 1000000\n"
				   "thread 42 43 worker\n"
				   "f app.py:10 2 1998000\n";

/* Returns the lines between the heading and the blank lines. */
static char *tree(const struct format_opts *o)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example);
	_cleanup_free_ char *text = report_new("tree", s, o, NULL);
	char *start = strstr(text, "function\n");

	cr_assert(start, "%s", text);
	*strstr(start, "\n\n\n") = '\0';
	return strdup(start + strlen("function\n"));
}

#define MAIN_THREAD " 90.0%     0.018                    thread 42 MainThread\n"
#define MAIN	    " 90.0%     0.018     0.001        1  main  app.py:1\n"
#define G	    " 85.0%     0.017     0.007        1   g  b.py:3\n"
#define F	    " 50.0%     0.010     0.009        1    f  app.py:10\n"
#define H	    "  5.0%     0.001     0.001        5     h  app.py:20\n"
#define WORKER	    " 10.0%     0.002                    thread 43 worker\n"
#define WORKER_F    " 10.0%     0.002     0.002        2  f  app.py:10"

Test(tree, largest_first_without_small_ones)
{
	struct format_opts o = {.by_thread = true};
	_cleanup_free_ char *text = tree(&o);

	cr_assert_str_eq(text, MAIN_THREAD MAIN G F H WORKER WORKER_F);
}

Test(tree, everything)
{
	struct format_opts o = {.min_share = -1, .reverse = true, .by_thread = true};
	_cleanup_free_ char *text = tree(&o);

	cr_assert_str_eq(
		text, MAIN_THREAD MAIN
		"  0.0%     0.000     0.000        3   small  app.py:9\n" G F H WORKER WORKER_F);
}

Test(tree, depth)
{
	struct format_opts o = {.depth = 2, .min_share = -1, .filter = {.tid = 42}};
	_cleanup_free_ char *text = tree(&o);

	cr_assert_str_eq(text, "100.0%     0.018                    thread 42 MainThread\n"
			       "100.0%     0.018     0.001        1  main  app.py:1\n"
			       " 94.4%     0.017     0.007        1   g  b.py:3\n"
			       " 55.5%     0.010                       (1 more)\n"
			       "  0.0%     0.000     0.000        3   small  app.py:9");
}

Test(tree, patterns_show_what_leads_there_and_what_is_below)
{
	const char *pattern = "\\(f\\)";
	struct format_opts o = {.restrict_ = &pattern, .nrestrict = 1, .by_thread = true};
	_cleanup_free_ char *text = tree(&o);

	cr_assert_str_eq(text, MAIN_THREAD MAIN G F H WORKER WORKER_F);
}

/* A number selects functions, not the contexts below them. */
Test(tree, numbers_select_functions)
{
	const char *number = "2";
	struct format_opts o = {
		.restrict_ = &number, .nrestrict = 1, .sort = "cumulative", .by_thread = true};
	_cleanup_free_ char *text = tree(&o);

	cr_assert_str_eq(text, MAIN_THREAD MAIN " 85.0%     0.017     0.007        1   g  b.py:3");
}

Test(tree, lines_are_narrow)
{
	struct snapshot_builder *b = snapshot_builder_new();
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	_cleanup_free_ char *text = NULL;
	struct format_opts o = {.depth = 1000, .width = 79, .min_share = -1, .by_thread = true};
	_cleanup_free_ char *whole = NULL;
	uint32_t parent;

	snapshot_builder_target(b, 42);
	parent = snapshot_builder_thread(b, 42, 42, "a thread with quite a long name");
	for (int i = 0; i < 200; i++)
		parent = snapshot_builder_node(
			b, parent,
			snapshot_builder_func(b,
					      "/a/very/long/path/of/directories/to/some/module.py",
					      i, "name", "Class.method.<locals>.some_long_name"),
			1, i == 199 ? 1000000 : 0, 0, 0);
	s = snapshot_builder_finish(b);
	text = report_new("tree", s, &o, NULL);
	*strstr(text, "\n\n\n") = '\0';
	for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
		cr_assert(end - line < 80, "%s", line);
	cr_assert(strstr(text, "..."));
	o.width = 0;
	whole = report_new("tree", s, &o, NULL);
	cr_assert(!strstr(whole, "..."));
	cr_assert(strstr(whole, "some_long_name  /a/very/long/path/of/directories/to/some/module"));
	cr_assert(strstr(whole, " a thread with quite a long name\n"));
}

#define TOGETHER "   Calling contexts of 3 threads together (--by-thread), at most 24 deep, with"

/* The same path in several threads and processes is one. */
Test(tree, threads_are_merged)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("target 42\n"
								      "thread 42 42 MainThread\n"
								      "f app.py:1 2 1000000\n"
								      "  g b.py:3 3 6000000\n"
								      "thread 42 43 worker\n"
								      "f app.py:1 1 1000000\n"
								      "  g b.py:3 1 1000000\n"
								      "target 44\n"
								      "thread 44 44 MainThread\n"
								      "h c.py:1 1 1000000\n");
	struct format_opts o = {0};
	_cleanup_free_ char *text = report_new("tree", s, &o, NULL), *one = NULL;

	cr_assert(strncmp(text, TOGETHER, strlen(TOGETHER)) == 0, "%s", text);
	cr_assert(strstr(text, "function\n"
			       " 90.0%     0.009     0.002        3  f  app.py:1\n"
			       " 70.0%     0.007     0.007        4   g  b.py:3\n"
			       " 10.0%     0.001     0.001        1  h  c.py:1\n"
			       "\n"),
		  "%s", text);
	o.filter.pid = 42;
	one = report_new("tree", s, &o, NULL);
	cr_assert(!strstr(one, "h  c.py") && strstr(one, "2 threads together"), "%s", one);
}

/* Callers that only call the next function are in one line. */
Test(tree, starts_where_it_branches)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("target 42\n"
			       "thread 42 42 MainThread\n"
			       "boot a.py:1 0 0\n"
			       "  run a.py:2 0 1000\n"
			       "    loop a.py:3 0 0\n"
			       "      f app.py:1 1 5000000\n"
			       "        inner app.py:3 1 5000000\n"
			       "      g app.py:2 1 1000000\n");
	struct format_opts o = {0};
	_cleanup_free_ char *text = report_new("tree", s, &o, NULL), *whole = NULL;

	cr_assert(strstr(text, "function\n"
			       "                                    below boot > run\n"
			       "100.0%     0.011     0.000        0  loop  a.py:3\n"
			       " 90.9%     0.010     0.005        1   f  app.py:1\n"
			       " 45.5%     0.005     0.005        1    inner  app.py:3\n"
			       "  9.1%     0.001     0.001        1   g  app.py:2\n"),
		  "%s", text);
	o.min_share = -1;
	whole = report_new("tree", s, &o, NULL);
	cr_assert(!strstr(whole, "below") && strstr(whole, "  boot  a.py:1\n"), "%s", whole);
}

Test(tree, an_empty_snapshot)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("target 42\n");
	struct format_opts o = {0};
	_cleanup_free_ char *text = report_new("tree", s, &o, NULL);

	cr_assert(strstr(text, "   process    42 "));
	check_no_leaks();
}
