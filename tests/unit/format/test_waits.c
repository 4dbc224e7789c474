// SPDX-License-Identifier: BSD-2-Clause
/* The formats waits, by function and by thread, and gil; threads' waits in JSON. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>

#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"

#define MS UINT64_C(1000000)

static void set(struct snapshot *s, int column, uint32_t node, uint64_t ns)
{
	if (!s->columns[column])
		s->columns[column] = snapshot_alloc(s, s->nnodes, sizeof(uint64_t));
	cr_assert(s->columns[column] && node < s->nnodes);
	s->columns[column][node] = ns;
}

/* Each thread's root precedes its functions. */
static struct snapshot *build(void)
{
	struct snapshot *s = snapshot_build("target 42\n"
					    "thread 42 42 MainThread\n"
					    "main app.py:1 1 1000000\n"
					    "  g b.py:3 4 7000000\n"
					    "thread 42 43 worker\n"
					    "f app.py:10 2 2000000 5000000\n");
	uint32_t root = s->threads[1].root;

	s->measured |= COLUMN_WAITS;
	set(s, COLUMN_gil, s->threads[0].root + 1, 250 * MS);
	set(s, COLUMN_io, s->threads[0].root + 2, 500 * MS);
	set(s, COLUMN_io_disk, s->threads[0].root + 2, 500 * MS);
	set(s, COLUMN_gil, root, 1000 * MS);
	set(s, COLUMN_gil, root + 1, 125 * MS);
	s->threads[0].total[SNAPSHOT_CPU] = 1000 * MS;
	s->threads[0].total[SNAPSHOT_WALL] = 1750 * MS;
	s->threads[1].total[SNAPSHOT_CPU] = 3000 * MS;
	s->threads[1].total[SNAPSHOT_WALL] = 4125 * MS;
	s->threads[1].alive = false;
	return s;
}

static void expect_start(const struct snapshot *s, const char *format, const struct format_opts *o,
			 const char *want)
{
	_cleanup_free_ char *text = report_new(format, s, o, NULL);

	cr_assert(strncmp(text, want, strlen(want)) == 0, "%s\nnot\n%s", text, want);
}

#define BY_FUNCTION                                                                                \
	"   Waiting: 0.875 s in all threads\n\n"                                                   \
	"   wall      cpu      gil       io  filename:lineno(function)\n"
#define WAITS_OF_G    "  0.007    0.007             0.500  b.py:3(g)\n"
#define WAITS_OF_MAIN "  0.001    0.001    0.250           app.py:1(main)\n"
#define WAITS_OF_F    "  0.005    0.002    0.125           app.py:10(f)\n"

/* The own waiting decides, or the one with callees'. Threads' waiting outside Python has no row. */
Test(waits, by_function)
{
	const char *const none = "nothing";
	_cleanup_(snapshot_freep) struct snapshot *s = build();

	expect_start(s, "waits", &(struct format_opts){0},
		     BY_FUNCTION WAITS_OF_G WAITS_OF_MAIN WAITS_OF_F "\n\n   process");
	expect_start(s, "waits", &(struct format_opts){.sort = "cumulative"},
		     BY_FUNCTION WAITS_OF_MAIN WAITS_OF_G WAITS_OF_F "\n\n   process");
	expect_start(
		s, "waits", &(struct format_opts){.restrict_ = &none, .nrestrict = 1},
		"   Waiting: 0.875 s in all threads\n"
		"   List reduced from 3 to 0 due to restriction <'nothing'>\n\n\n\n   process");
	s->columns[COLUMN_gil][4] = 0;
	expect_start(s, "waits", &(struct format_opts){0},
		     "   Waiting: 0.750 s in all threads\n\n"
		     "   wall      cpu      gil       io  filename:lineno(function)\n" WAITS_OF_G
			     WAITS_OF_MAIN "\n\n");
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* Figures of functions that differ in their qualified name only are one row's. */
Test(waits, of_one_row)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build();

	s->funcs[2] = s->funcs[0];
	s->funcs[2].qualname = "A.main";
	expect_start(s, "waits", &(struct format_opts){0},
		     BY_FUNCTION WAITS_OF_G
		     "  0.006    0.003    0.375           app.py:1(main)\n\n\n");
}

Test(waits, other_calls_and_an_unknown_gil)
{
	struct snapshot_call other[] = {{"futex", 1500 * MS, 3}, {"wait4", 250 * MS, 1}};
	_cleanup_(snapshot_freep) struct snapshot *s = build();
	_cleanup_free_ char *unknown = NULL, *known = NULL;
	struct format_opts o = {0};

	s->targets[0].waits =
		(struct snapshot_waits){.measured = true, .other = other, .nother = 2};
	unknown = report_new("waits", s, &o, NULL);
	cr_assert(strstr(unknown,
			 "\n\n\n"
			 "   other: 1.500 s in 3 waits for futex\n"
			 "   other: 0.250 s in 1 waits for wait4\n"
			 "   process 42: the GIL was not found; waiting for it is in lock\n"
			 "   process "),
		  "%s", unknown);
	s->targets[0].waits = (struct snapshot_waits){.measured = true, .gil_known = true};
	known = report_new("waits", s, &o, NULL);
	cr_assert(!strstr(known, "other:") && !strstr(known, "not found"), "%s", known);
}

#define PAIRS_HEADER "  waited  while held by                      waiter\n"

Test(gil, functions_and_pairs)
{
	struct snapshot_gil_pair pairs[22] = {
		{7, 2, 0, 9000 * MS}, {42, 0, 2, 1500 * MS}, {42, 2, SNAPSHOT_NONE, 250 * MS}};
	_cleanup_(snapshot_freep) struct snapshot *s = build();
	_cleanup_free_ char *text = NULL;
	size_t n = 0;

	s->measured |= COLUMN_BIT(COLUMN_gil_held_ns);
	set(s, COLUMN_gil_held_ns, 0, 9000 * MS);
	set(s, COLUMN_gil_held_ns, 1, 2000 * MS);
	set(s, COLUMN_gil_held_ns, 2, 125 * MS);
	set(s, COLUMN_gil_held_ns, 4, 500 * MS);
	s->gil_pairs = pairs;
	s->ngil_pairs = 3;
	expect_start(s, "gil", &(struct format_opts){.filter = {.pid = 42}},
		     "   The GIL was held for 2.625 s while others waited for it\n\n"
		     "    self      cum  filename:lineno(function)\n"
		     "   2.000    2.125  app.py:1(main)\n"
		     "   0.500    0.500  app.py:10(f)\n"
		     "   0.125    0.125  b.py:3(g)\n"
		     "\n" PAIRS_HEADER "   1.500  app.py:1(main)                     app.py:10(f)\n"
		     "   0.250  app.py:10(f)                       (outside Python)\n"
		     "\n   process");
	expect_start(s, "gil", &(struct format_opts){.filter = {.tid = 43}},
		     "   The GIL was held for 0.500 s while others waited for it\n\n"
		     "    self      cum  filename:lineno(function)\n"
		     "   0.500    0.500  app.py:10(f)\n"
		     "\n\n   process");
	for (size_t i = 3; i < 22; i++)
		pairs[i] = pairs[0];
	s->ngil_pairs = 22;
	text = report_new("gil", s, &(struct format_opts){0}, NULL);
	for (const char *p = text; (p = strstr(p, "\n   9.000  app.py:10(f) ")); p++)
		n++;
	cr_assert_eq(n, 18, "20 pairs, the longest: %s", text);
	free(TAKE_PTR(text));
	s->gil_pairs = NULL;
	s->ngil_pairs = 0;
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* A row is as wide as the terminal if its name does not fit. */
Test(waits, names_use_the_width)
{
	struct snapshot_gil_pair pair = {42, 0, 1, 9000 * MS};
	_cleanup_(snapshot_freep) struct snapshot *s = build();
	char longest[200];

	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	s->funcs[1].filename = s->threads[0].name = s->threads[1].name = longest;
	s->measured |= COLUMN_BIT(COLUMN_gil_held_ns);
	set(s, COLUMN_gil_held_ns, 2, MS);
	s->gil_pairs = &pair;
	s->ngil_pairs = 1;
	for (int i = 0; i < 3; i++) {
		struct format_opts o = {.width = 140, .by_thread = i == 2};
		_cleanup_free_ char *text = report_new(i == 1 ? "gil" : "waits", s, &o, NULL);
		size_t n = 0;

		for (const char *p = text, *end; (end = strchr(p, '\n')); p = end + 1) {
			if (!memmem(p, (size_t)(end - p), "xxx", 3))
				continue;
			cr_assert_eq(end - p, 140, "%s", text);
			n++;
		}
		cr_assert_eq(n, i ? 2 : 1, "%s", text);
	}
	s->gil_pairs = NULL;
	s->ngil_pairs = 0;
}

#define HEADER "    pid     tid     wall      cpu      gil       io  thread (-: ended)\n"
#define MAIN   "     42      42    1.750    1.000    0.250    0.500  MainThread\n"
#define WORKER "     42      43    4.125    3.000    1.125           worker -\n"

static void expect(const struct format_opts *o, const char *want)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build();

	expect_start(s, "waits", o, want);
}

Test(waits, by_thread)
{
	const char *pattern = "Main";

	expect(&(struct format_opts){.by_thread = true},
	       "   Waiting: 1.875 s in all threads\n\n" HEADER WORKER MAIN "\n\n");
	expect(&(struct format_opts){.by_thread = true, .reverse = true},
	       "   Waiting: 1.875 s in all threads\n\n" HEADER MAIN WORKER "\n\n");
	expect(&(struct format_opts){.by_thread = true, .restrict_ = &pattern, .nrestrict = 1},
	       "   Waiting: 1.875 s in all threads\n   List reduced from 2 to 1");
	check_no_leaks();
}

/* Of the selected threads only, so a reason of other threads has no column. */
Test(waits, of_one_thread)
{
	expect(&(struct format_opts){.by_thread = true, .filter = {.tid = 43}},
	       "   Waiting: 1.125 s in all threads\n\n"
	       "    pid     tid     wall      cpu      gil  thread (-: ended)\n"
	       "     42      43    4.125    3.000    1.125  worker -\n\n\n");
}

Test(waits, not_measured)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build();
	struct format_opts o = {.by_thread = true};
	struct diag diag = {0};

	s->measured = COLUMN_WAITS;
	cr_assert_eq(format_write(format_find("gil"), s, &o, stdout, &diag), -ENODATA);
	s->measured = 0;
	cr_assert_eq(format_write(format_find("waits"), s, &o, stdout, &diag), -ENODATA);
	cr_assert(strstr(diag.msg, "not measured"), "%s", diag.msg);
}

Test(waits, threads_in_json)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build();
	struct format_opts o = {0};
	_cleanup_free_ char *text = report_new("json", s, &o, NULL);
	_cleanup_(json_decrefp) json_t *root = json_loads(text, 0, NULL);
	json_t *threads = json_object_get(root, "threads");
	json_int_t gil, io, disk, lock;

	cr_assert(root, "%s", text);
	assert_ok(json_unpack(json_array_get(threads, 0), "{s:{s:I, s:I, s:I, s:I}}", "waits",
			      "gil", &gil, "io", &io, "io_disk", &disk, "lock", &lock));
	cr_assert(gil == 250 * (json_int_t)MS && io == 500 * (json_int_t)MS && disk == io &&
		  lock == 0);
	assert_ok(json_unpack(json_array_get(threads, 1), "{s:{s:I, s:I}}", "waits", "gil", &gil,
			      "io", &io));
	cr_assert(gil == 1125 * (json_int_t)MS && io == 0);
	check_no_leaks();
}
