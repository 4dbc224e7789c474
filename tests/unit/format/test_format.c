// SPDX-License-Identifier: BSD-2-Clause
/* The table of formats, and the checks before anything is written. */
#include "format/format.h"

#include <errno.h>

#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"
#include "snapshot/lines.h"

Test(format, the_table_is_complete)
{
	for (const struct format *f = formats; f->name; f++) {
		cr_assert(f->extension[0] == '.' && strchr(f->mime, '/') && f->help[0] && f->write);
		cr_assert_eq(format_find(f->name), f);
	}
	cr_assert_null(format_find("bogus"));
	cr_assert_null(format_find(""));
}

static void assert_of_file(const char *filename, const char *expected)
{
	const struct format *f = format_of_file(filename);

	if (!expected)
		cr_assert_null(f, "%s", filename);
	else
		cr_assert(f && strcmp(f->name, expected) == 0, "%s", filename);
}

static void assert_chosen(const char *name, const char *filename, const char *expected)
{
	const struct format *f = NULL;
	struct diag diag = {0};

	assert_diag_ok(format_choose(name, filename, &f, &diag), &diag);
	cr_assert_str_eq(f->name, expected, "%s", filename);
}

static void assert_refused(const char *name, const char *filename, const char *what)
{
	const struct format *f = NULL;
	struct diag diag = {0};

	assert_err(format_choose(name, filename, &f, &diag), -EINVAL);
	cr_assert(diag.exit == PYP_EXIT_USAGE && !f);
	cr_assert(strstr(diag.msg, what), "%s", diag.msg);
	cr_assert(strlen(diag.hint) < sizeof(diag.hint) - 1, "cut: %s", diag.hint);
}

/* What no format is for is refused, instead of becoming text under that name. */
Test(format, choose)
{
	struct diag diag = {0};
	const struct format *f;

	assert_chosen(NULL, NULL, "text");
	assert_chosen(NULL, "x.trace.json", "chrome");
	assert_chosen(NULL, "x.pb.gz", "pprof");
	assert_chosen("json", "x.svg", "json");
	assert_chosen(NULL, "profile", "text");
	assert_chosen(NULL, "/srv/v1.2/profile", "text");
	assert_chosen(NULL, ".hidden", "text");
	assert_chosen(NULL, "profile.", "text");
	assert_chosen(NULL, "-", "text");
	assert_chosen(NULL, "/dev/fd/3.x", "text");
	assert_refused(NULL, "x.svg", "'.svg' of 'x.svg'");
	assert_refused(NULL, "a/x.json.gz", "'.gz'");
	assert_refused(NULL, "x.perfetto", "'.perfetto'");
	assert_refused(NULL, "x.pb", "'.pb'");
	assert_refused("svg", NULL, "unknown format 'svg'");
	assert_refused("svg", "x.json", "unknown format 'svg'");
	assert_err(format_choose("svg", NULL, &f, &diag), -EINVAL);
	for (f = formats; f->name; f++)
		cr_assert(strstr(diag.hint, f->name), "%s: %s", f->name, diag.hint);
	diag_clear(&diag);
	assert_err(format_choose(NULL, "x.svg", &f, &diag), -EINVAL);
	for (f = formats; f->name; f++)
		cr_assert(strstr(diag.hint, f->extension), "%s: %s", f->extension, diag.hint);
}

Test(format, of_file)
{
	assert_of_file("out.txt", "text");
	assert_of_file("/tmp/a.b/out.pstats", "pstats");
	assert_of_file("out.prof", "pstats");
	assert_of_file("out.json", "json");
	assert_of_file("out.callgrind", "callgrind");
	assert_of_file("dir/callgrind.out.42", "callgrind");
	assert_of_file("callgrind.out", "callgrind");
	assert_of_file("out.collapsed", "collapsed");
	assert_of_file("out.folded", "collapsed");
	assert_of_file("out.speedscope.json", "speedscope");
	assert_of_file("out.pb.gz", "pprof");
	assert_of_file("out.trace.json", "chrome");
	assert_of_file("out.csv", "csv");
	assert_of_file("out.coroutines.csv", "coroutines-csv");
	assert_of_file("out.rows.json", "rows");
	assert_of_file("callgrind.out.d/x", NULL);
	assert_of_file("out.html", "html");
	assert_of_file("out.htm", "html");
	assert_of_file("out", NULL);
	assert_of_file("", NULL);
	assert_of_file(".json", NULL);
	assert_of_file("out.json.gz", NULL);
}

Test(format, terminals)
{
	cr_assert_eq(format_terminal_rows("text"), FORMAT_TERMINAL_ROWS);
	cr_assert_eq(format_terminal_rows("memory"), FORMAT_TERMINAL_ROWS);
	cr_assert_eq(format_terminal_rows("tree"), 0);
	cr_assert_eq(format_terminal_rows("json"), 0);
	cr_assert_eq(format_terminal_rows("bogus"), 0);
	cr_assert(format_is_report("waits") && format_is_report("tree"));
	cr_assert(!format_is_report("json") && !format_is_report("bogus"));
}

/* Adds resource counters and lines, which some of the formats require. */
static struct snapshot *with_counters(struct snapshot *s)
{
	static const struct snapshot_line line = {.line = 2, .samples = 1, .self_ns = 5};

	s->measured = COLUMN_BIT(COLUMN_vcsw) | COLUMN_WAITS | COLUMN_BIT(COLUMN_gil_held_ns) |
		      column_group("memory");
	assert_ok(snapshot_reserve_columns(s, s->measured, s->nnodes));
	for (uint32_t i = 0; i < s->nnodes; i++)
		s->columns[COLUMN_vcsw][i] = i;
	for (uint32_t i = 0; i < s->nfuncs; i++)
		assert_ok(snapshot_add_lines(s, &s->funcs[i], &line, 1));
	return s;
}

static int try_write(const struct snapshot *s, const struct format_opts *o, const char *path,
		     struct diag *diag)
{
	int worst = 0;

	for (const struct format *f = formats; f->name; f++) {
		_cleanup_fclose_ FILE *out = fopen(path, "w");
		int err;

		cr_assert(out);
		diag_clear(diag);
		err = format_write(f, s, o, out, diag);
		cr_assert(f == formats || err == worst, "%s: %d", f->name, err);
		worst = err;
	}
	return worst;
}

Test(format, options_are_checked_for_all_formats)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		with_counters(snapshot_build("main a.py:1 1 5\n"));
	const char *pattern = "(";
	struct format_opts good = {.sort = "time"}, sort = {.sort = "bogus"};
	struct format_opts restriction = {.restrict_ = &pattern, .nrestrict = 1};
	struct format_opts builtins = {.builtins_of = pattern};
	struct diag diag = {0};

	assert_ok(format_opts_check(&good, &diag));
	assert_err(format_opts_check(&sort, &diag), -EINVAL);
	diag_clear(&diag);
	assert_err(format_opts_check(&restriction, &diag), -EINVAL);
	cr_assert_eq(diag.exit, PYP_EXIT_USAGE);
	assert_err(format_opts_check(&builtins, &diag), -EINVAL);
	assert_ok(try_write(s, &good, "/dev/null", &diag));
	assert_err(try_write(s, &sort, "/dev/null", &diag), -EINVAL);
	assert_err(try_write(s, &restriction, "/dev/null", &diag), -EINVAL);
	cr_assert_eq(diag.exit, PYP_EXIT_USAGE);
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

Test(format, a_filter_that_selects_nothing_is_refused)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		with_counters(snapshot_build("thread 42 43 worker\nmain a.py:1 1 5\n"
					     "thread 77 78 worker\nmain a.py:1 1 5\n"));
	struct format_opts pid = {.filter = {.pid = 43}}, tid = {.filter = {.tid = 42}};
	struct format_opts both = {.filter = {.pid = 42, .tid = 78}};
	struct format_opts good = {.filter = {.pid = 77, .tid = 78}};
	struct diag diag = {0};

	assert_err(try_write(s, &pid, "/dev/null", &diag), -ESRCH);
	cr_assert_eq(diag.exit, PYP_EXIT_NO_PROCESS);
	assert_err(try_write(s, &tid, "/dev/null", &diag), -ESRCH);
	assert_err(try_write(s, &both, "/dev/null", &diag), -ESRCH);
	cr_assert_str_eq(diag.msg, "thread 78 has not been seen");
	assert_ok(try_write(s, &good, "/dev/null", &diag));
}

/* Figures that a mode does not measure are refused instead of shown as 0. */
Test(format, what_a_mode_does_not_measure_is_refused)
{
	static const struct {
		const char *format;
		bool count, sample_wall; /* refused? */
	} cases[] = {
		{"text", false, true},	     {"pstats", false, true}, {"json", false, false},
		{"callgrind", false, false}, {"tree", true, true},    {"collapsed", true, true},
		{"speedscope", true, false}, {"chrome", true, false}, {"csv", false, false},
		{"callers", false, true},    {"pprof", false, false}, {"threads", false, false},
		{"html", false, true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct format *f = format_find(cases[i].format);
		int count = format_check_modes(f, 1u << MODE_COUNT, SNAPSHOT_CPU, false, NULL);
		int cpu = format_check_modes(f, 1u << MODE_SAMPLE, SNAPSHOT_CPU, false, NULL);
		int wall = format_check_modes(f, 1u << MODE_SAMPLE, SNAPSHOT_WALL, false, NULL);

		assert_ok(format_check_modes(f, 1u << MODE_TRACE, SNAPSHOT_WALL, false, NULL));
		assert_ok(format_check_modes(f, 1u << MODE_SAMPLE, SNAPSHOT_WALL, true, NULL));
		assert_ok(format_check_modes(f, 1u << MODE_COUNT, SNAPSHOT_WALL, true, NULL));
		cr_assert_eq(count, cases[i].count ? -EINVAL : 0, "%s", f->name);
		cr_assert_eq(cpu, 0, "%s", f->name);
		cr_assert_eq(wall, cases[i].sample_wall ? -EINVAL : 0, "%s", f->name);
	}
}

/* Of the selected targets; each pair of modes is checked by what its formats need. */
Test(format, modes_of_the_selected_targets_count)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("thread 42 42 a\nf a.py:1 1 5\nthread 77 77 b\nf a.py:1 1 5\n");
	struct format_opts o = {.clock = SNAPSHOT_WALL};
	_cleanup_fclose_ FILE *out = fopen("/dev/null", "w");
	struct diag diag = {0};

	s->targets[1].mode = MODE_SAMPLE;
	assert_err(format_write(format_find("text"), s, &o, out, &diag), -EINVAL);
	cr_assert_eq(diag.exit, PYP_EXIT_USAGE);
	cr_assert_str_eq(diag.msg, "these samples have CPU times only, no wall times");
	o.filter.pid = 42;
	assert_ok(format_write(format_find("text"), s, &o, out, &diag));
	o.filter.pid = 77;
	diag_clear(&diag);
	assert_err(format_write(format_find("text"), s, &o, out, &diag), -EINVAL);
	s->measured = COLUMN_WAITS;
	assert_ok(format_write(format_find("text"), s, &o, out, &diag));
	assert_ok(format_check_modes(format_find("tree"), 1u << MODE_COUNT | 1u << MODE_SAMPLE,
				     SNAPSHOT_CPU, false, NULL));
	assert_err(format_check_modes(format_find("tree"), 1u << MODE_COUNT, SNAPSHOT_CPU, true,
				      NULL),
		   -EINVAL);
	assert_err(format_check_modes(format_find("tree"), 1u << MODE_COUNT, SNAPSHOT_WALL, false,
				      NULL),
		   -EINVAL);
}

/* Each of the options that leave out data does so alone. */
Test(format, data_that_is_left_out)
{
	static const struct {
		const char *what;
		struct format_opts o;
	} cases[] = {
		{"decoder.py:1(decode)", {.strip_dirs = true}},
		{"; libraries are folded into their callers\n", {.only_my_code = true}},
		{"; waits for work are left out\n", {.busy = true}},
		{"; C functions other than 'x' are folded into their callers\n",
		 {.builtins_of = "x"}},
	};
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("decode /usr/lib/python3.11/json/decoder.py:1 1 5\n");
	_cleanup_free_ char *all = report_new("text", s, &(struct format_opts){0}, NULL);
	struct diag diag = {0};

	cr_assert(strstr(all, "/usr/lib/python3.11/json/decoder.py:1(decode)"), "%s", all);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_free_ char *text = report_new("text", s, &cases[i].o, NULL);

		cr_assert(strstr(text, cases[i].what), "%s", text);
		cr_assert(!strstr(all, cases[i].what) || i == 0, "%s", all);
		cr_assert_eq(strstr(text, "/usr/lib") != NULL, i >= 2, "%s", text);
	}
	/* not from a file of everything */
	assert_err(format_write(format_find("json"), s, &cases[2].o, stdout, &diag), -EINVAL);
	cr_assert_str_eq(diag.msg, "the json format has all data, also waits for work");
	cr_assert_eq(diag.exit, PYP_EXIT_USAGE);
	assert_err(format_write(format_find("rows"), s, &cases[2].o, stdout, &diag), -EINVAL);
	snapshot_free(TAKE_PTR(s));
	free(TAKE_PTR(all));
	check_no_leaks();
}

Test(format, a_full_disk_is_an_error)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		with_counters(snapshot_build("main a.py:1 1 5\n"));
	struct format_opts o = {0};
	struct diag diag = {0};

	assert_err(try_write(s, &o, "/dev/full", &diag), -ENOSPC);
	cr_assert_eq(diag.exit, PYP_EXIT_FAILURE);
	/* each write fails, not only the last one */
	for (const struct format *f = formats; f->name; f++) {
		_cleanup_fclose_ FILE *out = fopen("/dev/full", "w");

		cr_assert(out);
		setvbuf(out, NULL, _IONBF, 0);
		assert_err(format_write(f, s, &o, out, NULL), -ENOSPC);
	}
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* Formats for people and for text tools. The others have their own rules and their own tests. */
Test(format, hostile_names_do_no_harm_in_any)
{
	static const char *const own[] = {"pstats", "pprof", "csv", "coroutines-csv", "html"};
	_cleanup_(snapshot_freep) struct snapshot *s = with_counters(snapshot_hostile());
	struct format_opts o = {.min_share = -1};

	for (const struct format *f = formats; f->name; f++) {
		_cleanup_free_ char *report = NULL;
		bool skip = false;
		size_t size;

		for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
			skip = skip || strcmp(f->name, own[i]) == 0;
		if (skip)
			continue;
		report = report_new(f->name, s, &o, &size);
		cr_assert(report_harmless(report, size), "%s:\n%s", f->name, report);
	}
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}
