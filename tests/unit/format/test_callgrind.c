// SPDX-License-Identifier: BSD-2-Clause
/* The callgrind format, read by callgrind_annotate. */
#include <inttypes.h>
#include <string.h>

#include "format/names.h"
#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/tool.h"
#include "snapshot/lines.h"

#define MAX_LINES 4096

struct figures {
	char *name;
	uint64_t ns[SNAPSHOT_CLOCKS];
};

struct table {
	struct figures rows[MAX_LINES];
	size_t n;
};

static struct figures *find(struct table *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->rows[i].name, name) == 0)
			return &t->rows[i];
	return NULL;
}

static struct figures *get(struct table *t, const char *name)
{
	struct figures *row = find(t, name);

	if (row)
		return row;
	cr_assert(t->n < MAX_LINES);
	t->rows[t->n].name = strdup(name);
	return &t->rows[t->n++];
}

static void table_free(struct table *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->rows[i].name);
	free(t);
}

/* Parses "1,234" with leading blanks, and moves *p behind it. */
static uint64_t figure(const char **p)
{
	uint64_t ret = 0;

	for (*p += strspn(*p, " "); **p == ',' || (**p >= '0' && **p <= '9'); ++*p)
		if (**p != ',')
			ret = ret * 10 + (uint64_t)(**p - '0');
	return ret;
}

/*
 * Returns the rows of "file:function" in callgrind_annotate's output, without the time outside of
 * functions.
 */
static struct table *annotated(const char *dir, bool inclusive, const char **ret_sorted)
{
	char path[256];
	const char *argv[] = {"callgrind_annotate",
			      "--threshold=100",
			      "--show-percs=no",
			      "--auto=no",
			      inclusive ? "--inclusive=yes" : "--inclusive=no",
			      path,
			      NULL};
	struct table *t = calloc(1, sizeof(*t));
	char *out, *line, *rest;

	snprintf(path, sizeof(path), "%s/callgrind.out", dir);
	out = tool_run(argv);
	cr_assert(t && !strstr(out, "WARNING"), "%s", out);
	if (ret_sorted)
		*ret_sorted = strstr(out, "Event sort order: wall cpu") ? "wall" : "cpu";
	rest = strstr(out, "file:function\n");
	cr_assert_not_null(rest, "%s", out);
	strsep(&rest, "\n");
	strsep(&rest, "\n");
	while ((line = strsep(&rest, "\n")) && *line) {
		const char *p = line;
		uint64_t first = figure(&p), second = figure(&p);
		struct figures *row;

		p += strspn(p, " ");
		if (strcmp(p, "~:(outside Python)") == 0)
			continue;
		row = get(t, p);
		row->ns[0] += first;
		row->ns[1] += second;
	}
	free(out);
	return t;
}

/*
 * Returns the same rows from the snapshot, where functions with equal file, line and displayed name
 * are one.
 */
static struct table *expected(const struct snapshot *s, const struct format_opts *o, bool inclusive)
{
	_cleanup_(view_freep) struct view *v = NULL;
	struct table *t = calloc(1, sizeof(*t));

	assert_ok(view_build(s, &o->filter, &v));
	for (size_t i = 0; i < v->nrows; i++) {
		const struct view_row *r = &v->rows[i];
		const struct snapshot_func *f = &s->funcs[r->func];
		const uint64_t *ns = inclusive ? r->cum : r->tot;
		char name[1024];
		struct figures *row;

		snprintf(name, sizeof(name), "%s:%s:%" PRId32, f->filename, name_of_func(f),
			 f->firstlineno);
		row = get(t, name);
		row->ns[0] += ns[o->clock];
		row->ns[1] += ns[!o->clock];
	}
	return t;
}

static void assert_tables_equal(struct table *want, struct table *have)
{
	for (size_t i = 0; i < want->n; i++) {
		const struct figures *w = &want->rows[i], *h = find(have, w->name);

		cr_assert(h, "%s is missing", w->name);
		cr_assert(memcmp(w->ns, h->ns, sizeof(w->ns)) == 0,
			  "%s: %" PRIu64 " %" PRIu64 ", not %" PRIu64 " %" PRIu64, w->name,
			  h->ns[0], h->ns[1], w->ns[0], w->ns[1]);
	}
	/* Functions without figures are only present if they call others. */
	for (size_t i = 0; i < have->n; i++)
		cr_assert(find(want, have->rows[i].name) ||
				  !(have->rows[i].ns[0] | have->rows[i].ns[1]),
			  "%s is not in the snapshot", have->rows[i].name);
	table_free(want);
	table_free(have);
}

static void check(const struct snapshot *s, const struct format_opts *o)
{
	char *dir = temp_dir_new();
	const char *sorted;

	report_save("callgrind", s, o, dir, "callgrind.out");
	assert_tables_equal(expected(s, o, false), annotated(dir, false, &sorted));
	assert_tables_equal(expected(s, o, true), annotated(dir, true, NULL));
	cr_assert_str_eq(sorted, o->clock == SNAPSHOT_WALL ? "wall" : "cpu");
	temp_dir_remove(dir);
}

Test(callgrind, own_and_inclusive_costs_are_the_snapshots)
{
	static const struct snapshot_line lines[] = {
		{0, 1, 10, 0}, {3, 3, 30, 0}, {INT32_MAX, 6, 60, 0}};

	tool_need("callgrind_annotate");
	for (unsigned int seed = 1; seed <= 8; seed++) {
		_cleanup_(snapshot_freep) struct snapshot *s = snapshot_random(seed);
		struct format_opts o = {.clock = seed % 2 ? SNAPSHOT_CPU : SNAPSHOT_WALL};

		for (uint32_t i = 0; i < s->nfuncs && seed > 4; i++)
			assert_ok(snapshot_add_lines(s, &s->funcs[i], lines, 1 + i % 3));
		check(s, &o);
		o.filter.tid = 42;
		check(s, &o);
	}
	check_no_leaks();
}

/*
 * f calls itself, and again through g; f's 90 contain each time once. `main` has been running since
 * before the attach: its call is not counted, but must not affect the others.
 */
static const char *const recursive = "main app.py:1 0 10 10 1\n"
				     "  f app.py:5 2 20\n"
				     "    f app.py:5 3 30\n"
				     "      g app.py:9 1 5\n"
				     "        f app.py:5 1 35\n"
				     "g app.py:9 1 7\n";

Test(callgrind, recursion_is_counted_once)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(recursive);
	struct format_opts o = {0};
	_cleanup_free_ char *report = report_new("callgrind", s, &o, NULL);

	tool_need("callgrind_annotate");
	check(s, &o);
	cr_assert_not_null(strstr(report, "cfn=(2) f:5\ncalls=2 5\n1 90 90\n"), "%s", report);
	cr_assert_not_null(strstr(report, "cfn=(2)\ncalls=3 5\n5 0 0\n"), "%s", report);
	free(TAKE_PTR(report));
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

Test(callgrind, own_costs_by_line)
{
	static const struct snapshot_line lines[] = {{0, 1, 10, 0}, {6, 3, 30, 0}, {7, 6, 60, 0}};
	struct snapshot *s =
		snapshot_build("target 42\nthread 42 43 worker\nf app.py:5 2 2000 5000\n"
			       "  g app.py:9 1 1 1\n");
	struct format_opts o = {0};
	char *report;

	assert_ok(snapshot_add_lines(s, &s->funcs[0], lines, 3));
	report = report_new("callgrind", s, &o, NULL);
	cr_assert(strstr(report, " f:5\n6 600 0\n7 1200 0\n5 200 5000\ncfl="), "%s", report);
	free(report);
	snapshot_free(s);
	check_no_leaks();
}

Test(callgrind, says_where_it_comes_from)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(recursive);
	struct format_opts o = {0};
	_cleanup_free_ char *report = report_new("callgrind", s, &o, NULL);

	cr_assert_not_null(strstr(report, "\npid: 42\ncmd: python app.py\n"));
	cr_assert_not_null(strstr(report, "\ncreator: pyprofd test\n"));
	cr_assert_not_null(strstr(report, "\ndesc: result: exact counts: 1234 calls and returns"));
	cr_assert_not_null(strstr(report, "\nevents: cpu wall\nsummary: 107 107\n"));
}

/* The first of the selected processes; a line is not below 0, which would mean a difference. */
Test(callgrind, of_one_process)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("target 42\nthread 42 42 a\nf a.py:1 1 5\n"
			       "target 7\nthread 7 7 b\nf a.py:1 1 10\n  (lost) a.py:9 2 20 30\n");
	struct format_opts o = {.filter.pid = 7, .clock = SNAPSHOT_WALL};
	_cleanup_free_ char *report = NULL;

	s->funcs[0].firstlineno = -5;
	s->funcs[1].pseudo = true;
	s->targets[1].cmdline = " app";
	report = report_new("callgrind", s, &o, NULL);
	cr_assert(strstr(report, "\npid: 7\ncmd: \\x20app\ndesc: "), "%s", report);
	cr_assert_null(strstr(report, "pid: 42"));
	cr_assert(strstr(report, "\npositions: line\n"
				 "event: wall : Wall time [ns]\n"
				 "event: cpu : CPU time [ns]\n"
				 "events: wall cpu\n"
				 "summary: 40 30\n"
				 "\nfl=(1) a.py\nfn=(1) f:-5\n0 10 10\n"
				 "cfl=(2) ~\ncfn=(2) (lost)\ncalls=2 9\n0 30 20\n"
				 "\nfl=(2)\nfn=(2)\n9 30 20\n"
				 "\nfl=(3) ~\nfn=(3) (outside Python)\n0 0 0\n"
				 "cfl=(1)\ncfn=(1)\ncalls=1 0\n0 40 30\n"),
		  "%s", report);
}

Test(callgrind, hostile_names_do_no_harm)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_hostile();
	struct format_opts o = {0};
	char *dir = temp_dir_new();
	struct table *t;
	size_t size;
	char *report;

	tool_need("callgrind_annotate");
	report = report_new("callgrind", s, &o, &size);
	cr_assert(report_harmless(report, size));
	report_save("callgrind", s, &o, dir, "callgrind.out");
	t = annotated(dir, false, NULL);
	cr_assert_eq(t->n, s->nfuncs);
	cr_assert_eq(find(t, "two\\x0alines:two\\x0alines:0")->ns[0], 1000);
	cr_assert_eq(find(t, "\\x20:\\x20:18")->ns[0], 19000);
	table_free(t);
	free(report);
	temp_dir_remove(dir);
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}
