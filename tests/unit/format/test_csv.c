// SPDX-License-Identifier: BSD-2-Clause
/* CSV, read by Python's csv module. */
#include <inttypes.h>
#include <string.h>

#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"

static const char *const script =
	"import csv, sys\n"
	"with open(sys.argv[1] + '/p.csv', newline='', encoding='utf-8') as f:\n"
	"    for r in csv.DictReader(f, strict=True):\n"
	"        assert None not in r and None not in r.values()\n"
	"        print('|'.join(r[k] for k in sys.argv[2].split()))\n";

static char *columns(const struct snapshot *s, const struct format_opts *o, const char *names)
{
	return report_read("csv", s, o, "p.csv", script, names);
}

static char *expected(const struct snapshot *s, const struct format_opts *o)
{
	_cleanup_(view_freep) struct view *v = NULL;
	char *ret = NULL;
	size_t size;
	FILE *out = open_memstream(&ret, &size);

	assert_ok(view_build(s, &o->filter, &v));
	cr_assert(out);
	for (size_t i = 0; i < v->nrows; i++) {
		const struct view_row *r = &v->rows[i];
		const struct snapshot_func *f = &s->funcs[r->func];

		fprintf(out, "%s|%" PRId32 "|%s|%s|0|", f->filename, f->firstlineno, f->name,
			f->qualname ? f->qualname : "");
		fprintf(out, "%" PRIu64 "|%" PRIu64 "|%" PRIu32 "|", r->ncalls, r->pcalls,
			r->inflight);
		fprintf(out, "%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|42|3.13.0\n",
			r->tot[SNAPSHOT_CPU], r->cum[SNAPSHOT_CPU], r->tot[SNAPSHOT_WALL],
			r->cum[SNAPSHOT_WALL]);
	}
	fclose(out);
	return ret;
}

#define ALL                                                                                        \
	"file line name qualname variant ncalls pcalls inflight tottime_cpu_ns cumtime_cpu_ns "    \
	"tottime_wall_ns cumtime_wall_ns pid python_version"

Test(csv, rows_are_the_snapshots)
{
	for (unsigned int seed = 1; seed <= 5; seed++) {
		_cleanup_(snapshot_freep) struct snapshot *s = snapshot_random(seed);
		struct format_opts o = {.filter.tid = seed == 3 ? 42 : 0};
		char *have = columns(s, &o, ALL), *want = expected(s, &o);

		cr_assert_str_eq(have, want);
		free(have);
		free(want);
	}
	check_no_leaks();
}

/* Errors belong to functions, and only to those that were called. */
Test(csv, standard_errors)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_random(1);
	const struct format_opts o = {0};
	char *text;

	s->targets[0].windows = (struct snapshot_windows){.sampled = true, .n = 9};
	for (uint32_t i = 0; i < s->nfuncs; i++)
		for (int k = 0; k < SNAPSHOT_FIGURES; k++)
			s->funcs[i].variance[k] = k == SNAPSHOT_CUM_CPU ? -1 : 100.0 * k * k;
	text = columns(s, &o, "tottime_wall_error_ns cumtime_cpu_error_ns");
	cr_assert_eq(strncmp(text, "20||", 3), 0, "%s", text);
	free(text);
	s->folded = true;
	text = report_new("csv", s, &o, &(size_t){0});
	cr_assert_null(strstr(text, "error"));
	free(text);
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* Where the figures come from, and which are missing. */
Test(csv, provenance)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("thread 42 42 a\n"
								      "f a.py:1 1 1000\n"
								      "g a.py:9 1 1000\n");
	const struct format_opts o = {0};
	char *text, *wanted;

	text = columns(s, &o, "exact lost");
	cr_assert_str_eq(text, "1|0\n1|0\n");
	free(text);
	s->targets[0].losses[PYP_LOSS_lost_events] = 17;
	s->host = "h,\"1\"";
	s->targets[0].cmdline = "python3 =x\n";
	text = columns(s, &o,
		       "exact lost host kernel command executable build_id start_unix_ns "
		       "end_unix_ns");
	cr_assert(asprintf(&wanted,
			   "0|17|h,\"1\"|%s|python3 =x\\x0a|%s|%s|%" PRIu64 "|%" PRIu64 "\n",
			   s->kernel, s->targets[0].exe, s->targets[0].build_id,
			   s->targets[0].start_unix_ns, s->targets[0].end_unix_ns) > 0);
	cr_assert(strncmp(text, wanted, strlen(wanted)) == 0, "%s instead of %s", text, wanted);
	free(wanted);
	free(text);
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* Measured columns, each as the function's own and with callees', then quantiles, then errors */
Test(csv, optional_columns)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("thread 42 42 a\n"
								      "f a.py:1 1 10\n"
								      "  g a.py:9 1 10\n"
								      "thread 42 43 b\n");
	struct format_opts o = {0};
	struct histogram_sum sum = {.count = 3};
	char *text;

	s->measured = COLUMN_BIT(COLUMN_vcsw) | COLUMN_BIT(COLUMN_rbytes) | COLUMN_BIT(COLUMN_gil);
	assert_ok(snapshot_reserve_columns(s, s->measured & ~COLUMN_BIT(COLUMN_rbytes), s->nnodes));
	for (uint32_t i = 0; i < s->nnodes; i++) {
		s->columns[COLUMN_vcsw][i] = 10 + i;
		s->columns[COLUMN_gil][i] = 100 + i;
	}
	sum.n[histogram_bucket(1 << 10)] = 2;
	sum.n[histogram_bucket(1 << 20)] = 1;
	assert_ok(snapshot_add_durations(s, &s->funcs[0], SNAPSHOT_WALL, &sum, 1 << 20));
	s->targets[0].windows.sampled = true;
	s->funcs[0].variance[SNAPSHOT_CALLS] = 3;
	s->funcs[0].variance[SNAPSHOT_CUM_CPU] = -1;
	text = report_new("csv", s, &o, NULL);
	cr_assert(strstr(text, "build_id,start_unix_ns,end_unix_ns,counters_vcsw_self,"
			       "counters_vcsw_cum,counters_rbytes_self,counters_rbytes_cum,"
			       "waits_gil_self_ns,waits_gil_cum_ns,"
			       "duration_cpu_p50_ns,duration_cpu_p90_ns,duration_cpu_p99_ns,"
			       "duration_cpu_max_ns,duration_wall_p50_ns,duration_wall_p90_ns,"
			       "duration_wall_p99_ns,duration_wall_max_ns,ncalls_error,"),
		  "%s", text);
	cr_assert(strstr(text,
			 "0000,11,23,0,0,101,203,,,,,982,1005062,1005062,1048576,2,0,0,,0\r\n"),
		  "%s", text);
	cr_assert(strstr(text, "0000,12,12,0,0,102,102,,,,,,,,,0,0,0,0,0\r\n"), "%s", text);
	free(text);
	o.filter.tid = 42;
	text = report_new("csv", s, &o, NULL);
	cr_assert(strstr(text, "0000,12,12,0,0,102,102\r\n"), "%s", text);
	free(text);
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* Up to 32 are listed; versions only once in a row. */
Test(csv, many_processes)
{
	struct snapshot_target targets[33];
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("thread 1 1 a\n"
								      "f a.py:1 1 10\n");
	struct format_opts o = {0};
	char *text;

	for (uint32_t i = 0; i < 33; i++)
		targets[i] = (struct snapshot_target){.pid = i + 1,
						      .python_version = i < 30	  ? "3.12.1"
									: i == 30 ? NULL
										  : "3.13.0",
						      .start_unix_ns = 1000 - i,
						      .end_unix_ns = 2000 + i % 20,
						      .losses[PYP_LOSS_lost_events] = i};
	s->targets = targets;
	s->ntargets = 32;
	text = columns(s, &o, "pid python_version exact lost start_unix_ns end_unix_ns command");
	cr_assert_str_eq(text, "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 "
			       "26 27 28 29 30 31 32|3.12.1 3.13.0|0|496|969|2019|\n");
	free(text);
	s->ntargets = 33;
	text = columns(s, &o, "pid python_version");
	cr_assert_str_eq(text, "33 processes|3.12.1 3.13.0\n");
	free(text);
}

Test(csv, several_processes)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("thread 42 42 a\n"
								      "f a.py:1 1 1000\n"
								      "thread 43 43 b\n"
								      "f a.py:1 1 2000\n");
	struct format_opts all = {0}, one = {.filter.pid = 43};
	char *both = columns(s, &all, "name tottime_cpu_ns pid python_version");
	char *second = columns(s, &one, "name tottime_cpu_ns pid python_version");

	cr_assert_str_eq(both, "f|3000|42 43|3.13.0\n");
	cr_assert_str_eq(second, "f|2000|43|3.13.0\n");
	free(both);
	free(second);
}

Test(csv, hostile_names_do_no_harm)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_hostile();
	struct format_opts o = {0};
	size_t size;
	_cleanup_free_ char *report = NULL;
	char *names, *cr;

	s->funcs[0].name = "=HYPERLINK(\"http://x\",\"y\")";
	s->funcs[1].qualname = "@SUM(1)";
	report = report_new("csv", s, &o, &size);
	names = columns(s, &o, "name qualname");
	cr_assert_not_null(strstr(names, "'=HYPERLINK(\"http://x\",\"y\")|two\\x0alines\n"));
	cr_assert_not_null(strstr(names, "|'@SUM(1)\n"));
	cr_assert_not_null(strstr(names, "quotes \" ' ` and \\|quotes \" ' ` and \\\n"));
	/* Lines end with CRLF, as in the RFC. */
	while ((cr = strstr(report, "\r\n")))
		*cr = ' ';
	cr_assert(report_harmless(report, size));
	free(names);
	free(TAKE_PTR(report));
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}
