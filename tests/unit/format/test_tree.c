// SPDX-License-Identifier: BSD-2-Clause
/* The tree format, line by line. */
#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"
#include "harness/wholes.h"

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
#define H	    "  5.0%     0.001     0.001        5     h  x 5 per call  app.py:20\n"
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

	cr_assert_str_eq(text, MAIN_THREAD MAIN
			 "  0.0%     0.000     0.000        3   small  x 3 per call  app.py:9\n" G F
				 H WORKER WORKER_F);
}

Test(tree, depth)
{
	struct format_opts o = {.depth = 2, .min_share = -1, .filter = {.tid = 42}};
	_cleanup_free_ char *text = tree(&o);

	cr_assert_str_eq(text,
			 "100.0%     0.018                    thread 42 MainThread\n"
			 "100.0%     0.018     0.001        1  main  app.py:1\n"
			 " 94.4%     0.017     0.007        1   g  b.py:3\n"
			 " 55.5%     0.010                       (1 more)\n"
			 "  0.0%     0.000     0.000        3   small  x 3 per call  app.py:9");
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
			       " 70.0%     0.007     0.007        4   g  x 1.33 per call  b.py:3\n"
			       " 10.0%     0.001     0.001        1  h  c.py:1\n"
			       "\n"),
		  "%s", text);
	o.filter.pid = 42;
	one = report_new("tree", s, &o, NULL);
	cr_assert(!strstr(one, "h  c.py") && strstr(one, "2 threads together"), "%s", one);
}

#define POOL(tid)                                                                                  \
	"thread 42 " tid " worker\nload_all app.py:1 1 1000000\n  load_item b.py:3 3 6000000\n"    \
	"  check b.py:9 1 1000000\n"

/* Calls of all threads per calls of all threads: contexts 1 and 5, with their callees, are one. */
Test(tree, calls_per_call)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("target 42\n" POOL("42") POOL("43"));
	struct format_opts o = {0};
	_cleanup_free_ char *text = NULL, *one = NULL;

	WHOLES_ADD_WINDOW(s, 0, {1, 0, 1}, {2, 30, 30}, {3, 1, 1}, {5, 0, 1}, {6, 42, 42},
			  {7, 1, 1});
	WHOLES_ADD_WINDOW(s, 0, {1, 0, 2}, {2, 70, 70}, {3, 2, 2}, {5, 0, 2}, {6, 70, 70},
			  {7, 2, 2});
	text = report_new("tree", s, &o, NULL);
	cr_assert(strstr(text, "function\n"
			       "100.0%     0.016     0.002        2  load_all  app.py:1\n"
			       " 75.0%     0.012     0.012        6   load_item  x 35.3 +-7.4 per "
			       "call  b.py:3\n"
			       " 12.5%     0.002     0.002        2   check  b.py:9\n"),
		  "%s", text);
	o.filter.tid = 43;
	one = report_new("tree", s, &o, NULL);
	cr_assert(strstr(one, "load_item  x 37.3 +-"), "%s", one);
	snapshot_free(TAKE_PTR(s));
}

/* A context is as certain as all of its function. Marks of what is not shown are not explained. */
Test(tree, numbers_of_calls_that_are_not_certain)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("target 42\n"
								      "thread 42 42 MainThread\n"
								      "main app.py:1 1 1000000\n"
								      "  f app.py:2 6 1000000\n"
								      "    g app.py:3 8 1000000\n"
								      "  g app.py:3 8 1\n"
								      "thread 42 43 worker\n"
								      "f app.py:2 2 1000000\n");
	const struct format_opts o = {0};
	_cleanup_free_ char *text = NULL, *exact = NULL;

	s->funcs[1].variance[SNAPSHOT_CALLS] = 3 * 3;
	s->funcs[2].variance[SNAPSHOT_CALLS] = -1;
	exact = report_new("tree", s, &o, NULL);
	cr_assert(!strpbrk(exact, "~?"), "%s", exact);
	s->targets[0].windows.sampled = true;
	text = report_new("tree", s, &o, NULL);
	cr_assert(strstr(text, "1  main  app.py:1\n"), "%s", text);
	cr_assert(strstr(text, "   ~6   f  app.py:2\n") && strstr(text, "   ~2  f  app.py:2"), "%s",
		  text);
	cr_assert(strstr(text, "    ?    g  app.py:3\n"), "%s", text);
	cr_assert(strstr(text, "\n   ~ marks ") && strstr(text, "\n   ? stands for "), "%s", text);
	s->funcs[2].variance[SNAPSHOT_CALLS] = 0;
	free(text);
	text = report_new("tree", s, &o, NULL);
	cr_assert(!strchr(text, '?'), "%s", text);
}

/* The note is shortened, then left out, before the name has less than 12 columns. */
Test(tree, calls_per_call_in_narrow_lines)
{
	static const struct {
		uint32_t depth;
		uint64_t calls;
		const char *want, *no;
	} cases[] = {
		{16, 10, "  x 10 per call", "x 10\n"},	/* 43 - 16 = 12 + 15 */
		{17, 10, "  x 10", "per call"},		/* one less */
		{21, 123456, "  x 123456", "per call"}, /* 43 - 21 = 12 + 10 */
		{22, 123456, "123456 ", "x 123456"},	/* one less */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct snapshot_builder *b = snapshot_builder_new();
		struct format_opts o = {.width = 79, .min_share = -1, .by_thread = true};
		_cleanup_(snapshot_freep) struct snapshot *s = NULL;
		_cleanup_free_ char *text = NULL;
		uint32_t parent;

		snapshot_builder_target(b, 42);
		parent = snapshot_builder_thread(b, 42, 42, "Main");
		for (uint32_t k = 1; k <= cases[i].depth; k++)
			parent = snapshot_builder_node(
				b, parent,
				snapshot_builder_func(b, "a.py", 1, "load_everything", NULL),
				k < cases[i].depth ? 1 : cases[i].calls, 1000, 0, 0);
		s = snapshot_builder_finish(b);
		text = report_new("tree", s, &o, NULL);
		*strstr(text, "\n\n\n") = '\0';
		cr_assert(strstr(text, cases[i].want) && !strstr(text, cases[i].no), "%s: %s",
			  cases[i].want, text);
		for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
			cr_assert(end - line < 80, "%s", line);
	}
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

/* a is shown, as is b with exactly the share; c, d and e are as many as b's twice together. */
static struct snapshot *with_small_ones(void)
{
	struct snapshot *s = snapshot_build("target 42\n"
					    "thread 42 42 MainThread\n"
					    "main a.py:1 1 70000000\n"
					    "  a a.py:2 1 900000000\n"
					    "  b a.py:3 1 10000000\n"
					    "  c a.py:4 1 9000000\n"
					    "  d a.py:5 2 9000000\n"
					    "  e a.py:6 1 2000000\n"
					    "  (lost) a.py:7 0 0\n");

	/* outside Python */
	s->nodes[s->threads[0].root].self[SNAPSHOT_CPU] = 5000000000;
	return s;
}

#define TITLE	 "\n share   cumtime   tottime   ncalls function\n"
#define OF_MAIN	 "100.0%     1.000     0.070        1  main  a.py:1\n"
#define OF_A	 " 90.0%     0.900     0.900        1   a  a.py:2\n"
#define NO_COUNT "                      "

static void expect(const struct snapshot *s, const struct format_opts *o, const char *want)
{
	_cleanup_free_ char *text = report_new("tree", s, o, NULL);

	cr_assert(strncmp(text, want, strlen(want)) == 0, "%s\nnot\n%s", text, want);
}

Test(tree, small_ones_are_counted)
{
	_cleanup_(snapshot_freep) struct snapshot *s = with_small_ones();

	expect(s, &(struct format_opts){0},
	       "   Calling contexts, at most 24 deep, with at least 1 % of 1.000 seconds\n" TITLE
		       OF_MAIN OF_A "  1.0%     0.010     0.010        1   b  a.py:3\n"
	       "  2.0%     0.020" NO_COUNT "(3 more)\n\n\n   process");
	expect(s, &(struct format_opts){.min_share = 3, .depth = 2},
	       "   Calling contexts, at most 2 deep, with at least 3 % of 1.000 seconds\n" TITLE
		       OF_MAIN OF_A "  3.0%     0.030" NO_COUNT "(4 more)\n\n\n   process");
	expect(s, &(struct format_opts){.min_share = 3.5},
	       "   Calling contexts, at most 24 deep, with at least 3.5 % of 1.000 seconds\n" TITLE
		       OF_MAIN OF_A "\n\n   process");
	/* main is left out if what it does besides calling a is not more than the share */
	expect(s, &(struct format_opts){.min_share = 9.5},
	       "   Calling contexts, at most 24 deep, with at least 9.5 % of 1.000 seconds\n" TITLE
		       OF_MAIN OF_A "\n\n   process");
	expect(s, &(struct format_opts){.min_share = 10},
	       "   Calling contexts, at most 24 deep, with at least 10 % of 1.000 seconds\n" TITLE
	       "                                    below main\n"
	       " 90.0%     0.900     0.900        1  a  a.py:2\n\n\n   process");
	expect(s, &(struct format_opts){.min_share = -1, .depth = 1},
	       "   Calling contexts, at most 1 deep\n" TITLE OF_MAIN
	       " 93.0%     0.930                      (5 more)\n\n\n   process");
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* What takes a tenth is bold. */
Test(tree, on_a_terminal)
{
	_cleanup_(snapshot_freep) struct snapshot *s = with_small_ones();
	struct format_opts o = {.colour = true, .by_thread = true};
	_cleanup_free_ char *text = NULL, *cut = NULL;

	s->nodes[2].self[SNAPSHOT_CPU] = 810000000;
	s->nodes[3].self[SNAPSHOT_CPU] = 100000000;
	text = report_new("tree", s, &o, NULL);
	cr_assert(strstr(text, "\n\033[1m100.0%     1.000                    thread 42 MainThread"
			       "\033[0m\n"),
		  "%s", text);
	cr_assert(strstr(text, "\n\033[1m 10.0%\033[0m     0.100     0.100        1   b  "
			       "\033[2ma.py:3\033[0m\n"),
		  "%s", text);
	cr_assert(strstr(text, "\n\033[2m  2.0%     0.020" NO_COUNT "(3 more)\033[0m\n"), "%s",
		  text);
	s->nodes[3].self[SNAPSHOT_CPU] = 99000000;
	s->nodes[2].self[SNAPSHOT_CPU] = 811000000;
	free(text);
	text = report_new("tree", s, &o, NULL);
	cr_assert(strstr(text, "\n  9.9%\033[0m     0.099"), "%s", text);
	o = (struct format_opts){.width = 100, .min_share = 20};
	s->funcs[0].name = "a_name_that_is_much_too_long_for_a_line_that_has_only_one_hundred";
	cut = report_new("tree", s, &o, NULL);
	cr_assert(strstr(cut,
			 "\n                                    below a_name_that_is_much_too_lo"
			 "n...ne_that_has_only_one_hundred\n"),
		  "%s", cut);
}

/* Ended threads that are one row count as many, and have no id. */
Test(tree, folded_threads)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example);

	s->threads[1].tid = 0;
	s->threads[1].folded = 12;
	expect(s, &(struct format_opts){0},
	       "   Calling contexts of 13 threads together (--by-thread), at most 24 deep, with at "
	       "least 1 % of 0.020 seconds\n");
	expect(s, &(struct format_opts){.by_thread = true, .depth = 1},
	       "   Calling contexts, at most 1 deep, with at least 1 % of 0.020 seconds\n" TITLE
		       MAIN_THREAD MAIN " 85.0%     0.017                      (2 more)\n"
	       " 10.0%     0.002                    thread 0 worker\n" WORKER_F "\n\n\n");
}

/* The 63 columns for a name of n characters and a file, behind the figures */
static void expect_label(size_t n, const char *file, const char *want)
{
	char name[64] = "", *label;
	_cleanup_free_ char *text = NULL;
	struct format_opts o = {.width = 100, .min_share = -1};
	struct snapshot_builder *b = snapshot_builder_new();
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;

	memset(name, 'x', n);
	snapshot_builder_target(b, 42);
	snapshot_builder_node(b, snapshot_builder_thread(b, 42, 42, "Main"),
			      snapshot_builder_func(b, file, 1, name, NULL), 1, 1000000, 0, 0);
	s = snapshot_builder_finish(b);
	text = report_new("tree", s, &o, NULL);
	label = strstr(text, "\n100.0%");
	cr_assert(label, "%s", text);
	label += 1 + 36 + 1;
	label[strcspn(label, "\n")] = '\0';
	cr_assert(strspn(label, "x") == n || strstr(label, "xxx...xxx"), "%s", label);
	cr_assert_str_eq(label + strspn(label, "x."), want, "%zu %s", n, file);
}

#define D10 "/d23456789"

/* The name has priority, but a file gets a third. */
Test(tree, labels)
{
	expect_label(1, D10 D10 D10 D10 D10 "/m345.py", "  " D10 D10 D10 D10 D10 "/m345.py:1");
	expect_label(1, D10 D10 D10 D10 D10 "/m3456.py", "  m3456.py:1");
	expect_label(53, "a2345678.py", "  a2...y:1");
	expect_label(54, "a2345678.py", "  a2345678.py:1");
	expect_label(57, "a", "  a:1");
	expect_label(58, "a", "");
	expect_label(59, "a", "  a:1");
	expect_label(60, "a234567890123456.py", "  a2345678...456.py:1");
}

Test(tree, an_empty_snapshot)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("target 42\n");
	struct format_opts o = {0};
	_cleanup_free_ char *text = report_new("tree", s, &o, NULL);

	cr_assert(strstr(text, "   process    42 "));
	check_no_leaks();
}
