// SPDX-License-Identifier: BSD-2-Clause
/* Callers and callees: pstats' layout, compared with pstats if there is an interpreter. */
#include <jansson.h>

#include "harness/interpreters.h"
#include "harness/python.h"
#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/wholes.h"

static const char *const example = "main app.py:1 1 1000000\n"
				   "  f app.py:10 3 2000000\n"
				   "    f app.py:10 2 500000\n"
				   "  g b.py:3 1 7000000\n"
				   "    f app.py:10 1 1000000\n";

static void assert_starts(const char *text, const char *start)
{
	cr_assert(strncmp(text, start, strlen(start)) == 0, "got:\n%s\nexpected at its start:\n%s",
		  text, start);
}

Test(edges, callers)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example);
	struct format_opts o = {.sort = "stdname"};
	_cleanup_free_ char *text = report_new("callers", s, &o, NULL);

	assert_starts(text, "   Ordered by: standard name\n"
			    "\n"
			    "Function        was called by...\n"
			    "                    ncalls  tottime  cumtime\n"
			    "app.py:1(main)  <- \n"
			    "app.py:10(f)    <-       3    0.002    0.003  app.py:1(main)\n"
			    "                         2    0.001    0.001  app.py:10(f)\n"
			    "                         1    0.001    0.001  b.py:3(g)\n"
			    "b.py:3(g)       <-       1    0.007    0.008  app.py:1(main)\n"
			    "\n"
			    "\n"
			    "   process    42 python app.py (Python 3.13.0, testhost)\n");
}

Test(edges, callees_of_what_is_asked_for)
{
	const char *pattern = "main|g";
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example);
	struct format_opts o = {.restrict_ = &pattern, .nrestrict = 1, .sort = "time"};
	_cleanup_free_ char *text = report_new("callees", s, &o, NULL);

	assert_starts(text, "   Ordered by: internal time\n"
			    "   List reduced from 3 to 2 due to restriction <'main|g'>\n"
			    "\n"
			    "Function        called...\n"
			    "                    ncalls  tottime  cumtime\n"
			    "b.py:3(g)       ->       1    0.001    0.001  app.py:10(f)\n"
			    "app.py:1(main)  ->       3    0.002    0.003  app.py:10(f)\n"
			    "                         1    0.007    0.008  b.py:3(g)\n"
			    "\n");
}

Test(edges, colour_only_on_request)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example);
	struct format_opts o = {0}, colour = {.colour = true};
	_cleanup_free_ char *plain = report_new("callers", s, &o, NULL);
	_cleanup_free_ char *coloured = report_new("callers", s, &colour, NULL);

	cr_assert_null(strchr(plain, '\033'));
	cr_assert(strstr(coloured, "\n\033[1mFunction        was called by...\033[0m\n"));
}

/* On a terminal, and if windows estimate calls; scripts that read pstats' layout see no other column. */
Test(edges, calls_per_call_of_the_caller)
{
	const char *pattern = "main|g";
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example);
	struct format_opts o = {
		.restrict_ = &pattern, .nrestrict = 1, .sort = "time", .width = 100};
	_cleanup_free_ char *exact = report_new("callees", s, &o, NULL), *windows = NULL,
			    *callers = NULL, *samples = NULL;

	assert_starts(exact, "   Ordered by: internal time\n"
			     "   List reduced from 3 to 2 due to restriction <'main|g'>\n"
			     "\n"
			     "Function        called...\n"
			     "                    ncalls  tottime  cumtime  per call of caller\n"
			     "b.py:3(g)       ->       1    0.001    0.001                   1  "
			     "app.py:10(f)\n"
			     "app.py:1(main)  ->       3    0.002    0.003                   3  "
			     "app.py:10(f)\n"
			     "                         1    0.007    0.008                   1  "
			     "b.py:3(g)\n"
			     "\n");
	o.width = 0;
	WHOLES_ADD_WINDOW(s, 0, {1, 0, 1}, {2, 30, 0}, {4, 1, 1});
	WHOLES_ADD_WINDOW(s, 0, {1, 0, 1}, {2, 40, 0}, {4, 1, 1});
	windows = report_new("callees", s, &o, NULL);
	cr_assert(strstr(windows,
			 "                    ncalls  tottime  cumtime  per call of caller\n"
			 "b.py:3(g)       ->       1    0.001    0.001                      "
			 "app.py:10(f)\n"
			 "app.py:1(main)  ->       3    0.002    0.003             35 +-18  "
			 "app.py:10(f)\n"
			 "                         1    0.007    0.008                   1  "
			 "b.py:3(g)\n"),
		  "%s", windows);
	callers = report_new("callers", s, &o, NULL);
	cr_assert(strstr(callers,
			 "g)       <-       1    0.007    0.008                   1  app.py"),
		  "%s", callers);
	s->targets[0].windows.sampled = false;
	s->targets[0].mode = MODE_SAMPLE;
	o.width = 100;
	samples = report_new("callees", s, &o, NULL);
	cr_assert(!strstr(samples, "per call"));
}

/* A call by one caller is as certain as those by all. */
Test(edges, numbers_of_calls_that_are_not_certain)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("target 42\n"
								      "thread 42 42 MainThread\n"
								      "main app.py:1 1 1000000\n"
								      "  f app.py:2 8 1000000\n"
								      "  g app.py:3 8 1000000\n"
								      "thread 42 43 worker\n");
	const struct format_opts o = {0}, one = {.filter = {.tid = 42}};
	_cleanup_free_ char *text = NULL, *exact = NULL, *other = NULL;

	s->funcs[1].variance[SNAPSHOT_CALLS] = 3 * 3;
	s->funcs[2].variance[SNAPSHOT_CALLS] = -1;
	exact = report_new("callees", s, &o, NULL);
	cr_assert(!strpbrk(exact, "~?"), "%s", exact);
	s->targets[0].windows.sampled = true;
	text = report_new("callees", s, &o, NULL);
	cr_assert(strstr(text, "app.py:1(main)  ->      ~8    0.001    0.001  app.py:2(f)\n"
			       "                         ?    0.001    0.001  app.py:3(g)\n"),
		  "%s", text);
	cr_assert(strstr(text, "   ~ marks ") && strstr(text, "   ? stands for "), "%s", text);
	other = report_new("callees", s, &one, NULL);
	cr_assert(!strpbrk(other, "~?"), "errors are of all threads: %s", other);
}

Test(edges, hostile_names_do_no_harm)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_hostile();
	static const char *const all[] = {"callers", "callees", "threads", "tree", "rows"};
	struct format_opts o = {.min_share = -1, .depth = 100};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		size_t size;
		_cleanup_free_ char *text = report_new(all[i], s, &o, &size);

		cr_assert(report_harmless(text, size), "%s", text);
	}
	check_no_leaks();
}

/* ---- against pstats ---- */

static const char *const compare_script =
	"import io, json, pstats, sys\n"
	"for case in json.load(io.open(sys.argv[1] + '/cases', encoding='utf-8')):\n"
	"    out = io.StringIO()\n"
	"    st = pstats.Stats(sys.argv[1] + '/' + case['name'] + '.pstats', stream=out)\n"
	"    st.files = []\n"
	"    if case['report'] == 'text': st.strip_dirs()\n"
	"    st.sort_stats(case['sort'])\n"
	"    if case['reverse']: st.reverse_order()\n"
	"    show = {'text': st.print_stats, 'callers': st.print_callers,\n"
	"            'callees': st.print_callees}[case['report']]\n"
	"    show(*case['restrict'])\n"
	"    want = out.getvalue() + '   process '\n"
	"    path = sys.argv[1] + '/' + case['name'] + '.txt'\n"
	"    got = io.open(path, encoding='utf-8', newline='').read()\n"
	"    if not got.startswith(want):\n"
	"        for w, g in zip(want.split('\\n'), got.split('\\n')):\n"
	"            if w != g: break\n"
	"        sys.exit('%r\\npstats: %a\\nours:   %a' % (case, w, g))\n"
	"print('same')\n";

static json_t *save_case(const char *dir, unsigned int number)
{
	static const char *const reports[] = {"callers", "callees", "text"};
	static const char *const sorts[] = {"stdname", "cumulative", "tottime", "ncalls", "nfl"};
	static const char *const patterns[] = {"app", "f|g", "main", "\\d"};
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_random(number);
	const char *report = reports[number % 3], *pattern = patterns[number % 4];
	struct format_opts o = {.sort = sorts[number % 5], .reverse = number % 7 == 0};
	json_t *list = json_array();
	char name[32], file[64];

	snprintf(name, sizeof(name), "%u", number);
	snprintf(file, sizeof(file), "%s.pstats", name);
	report_save("pstats", s, &o, dir, file);
	if (number % 2) {
		o.restrict_ = &pattern;
		o.nrestrict = 1;
		json_array_append_new(list, json_string(pattern));
	}
	/* pstats' strip_dirs() loses callers that become equal, so it cannot be compared */
	o.strip_dirs = strcmp(report, "text") == 0;
	snprintf(file, sizeof(file), "%s.txt", name);
	report_save(report, s, &o, dir, file);
	return json_pack("{s:s, s:s, s:s, s:b, s:o}", "name", name, "report", report, "sort",
			 o.sort, "reverse", o.reverse, "restrict", list);
}

Test(edges, equal_pstats_letter_for_letter)
{
	struct interpreter found[INTERPRETERS_MAX];
	size_t n = interpreters_find(found);
	char *dir = temp_dir_new(), path[64];
	json_t *cases = json_array();

	for (unsigned int i = 1; i <= 120; i++)
		json_array_append_new(cases, save_case(dir, i));
	snprintf(path, sizeof(path), "%s/cases", dir);
	assert_ok(json_dump_file(cases, path, 0));
	json_decref(cases);
	for (size_t i = 0; i<n; i += n> 1 ? n - 1 : 1) {
		_cleanup_free_ char *out = python_run(found[i].exe, compare_script, dir);

		cr_assert_str_eq(out, "same\n");
	}
	temp_dir_remove(dir);
	check_no_leaks();
}
