// SPDX-License-Identifier: BSD-2-Clause
/*
 * Durations of calls: they are recorded without the cost of probes, and preserved by saving and
 * merging.
 */
#include <errno.h>
#include <string.h>

#include "format/format.h"
#include "format/quantiles.h"
#include "harness/event_script.h"
#include "harness/reports.h"
#include "harness/test.h"
#include "snapshot/load.h"
#include "snapshot/merge.h"
#include "stats/durations.h"
#include "stats/view.h"

static const struct snapshot_func *func_of(const struct snapshot *s, const char *name)
{
	for (uint32_t i = 0; i < s->nfuncs; i++)
		if (strcmp(s->funcs[i].name, name) == 0)
			return &s->funcs[i];
	cr_assert(false, "no %s", name);
	return NULL;
}

/* Checks that the function has n durations on the clock, all in the bucket of ns. */
static void assert_all(const struct snapshot *s, const char *name, int clock, uint64_t n,
		       uint64_t ns)
{
	const struct snapshot_func *f = func_of(s, name);
	const struct histogram *h = f->durations ? &f->durations[clock].histogram : NULL;

	cr_assert(h, "%s has none", name);
	cr_assert_eq(h->len, 1, "%s has %u buckets", name, h->len);
	cr_assert_eq(h->first, histogram_bucket(ns), "%s is in %lu", name,
		     histogram_upper(h->first));
	cr_assert_eq(h->n[0], n);
	cr_assert_eq(f->durations[clock].max, ns);
}

static struct snapshot *run(const struct cost *cost, const char *text)
{
	struct event_script *es = event_script_new(NULL);
	struct snapshot *s;

	if (cost)
		profile_set_cost(event_script_profile(es), cost);
	event_script_run(es, text);
	s = event_script_snapshot(es);
	event_script_free(es);
	return s;
}

/* f calls g twice: each activation has one duration, callees included; a running one has none. */
static const char calls[] =
	"T1 enter 1 main; T1 +10 enter 2 f 1; T1 +100 enter 3 g 2; T1 +50 leave 3;"
	"T1 +100 enter 3 g 2; T1 +50 leave 3; T1 +700 leave 2";

Test(durations, of_complete_activations)
{
	struct snapshot *s = run(NULL, calls);

	for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
		assert_all(s, "g", c, 2, 50);
		assert_all(s, "f", c, 1, 1000);
	}
	cr_assert_null(func_of(s, "main")->durations);
	snapshot_free(s);
	check_no_leaks();
}

Test(durations, recursion_counts_each)
{
	struct snapshot *s =
		run(NULL, "T1 enter 1 f; T1 +10 enter 2 f 1; T1 +10 leave 2; T1 +10 leave 1");
	const struct histogram *h = &func_of(s, "f")->durations[SNAPSHOT_CPU].histogram;

	cr_assert_eq(h->first, histogram_bucket(10));
	cr_assert_eq(h->first + h->len - 1, histogram_bucket(30));
	cr_assert(h->n[0] == 1 && h->n[h->len - 1] == 1);
	snapshot_free(s);
	check_no_leaks();
}

/*
 * From each activation, the part of its own two hits that falls into it and all hits below it are
 * subtracted.
 */
Test(durations, without_the_probes)
{
	const struct cost cost = {.known = true, .before = {3, 5, 7}, .after = {2, 4, 6}};
	struct snapshot *s = run(&cost, calls);

	assert_all(s, "g", SNAPSHOT_CPU, 2, 50 - 2 - 5);
	assert_all(s, "f", SNAPSHOT_WALL, 1, 1000 - 2 - 2 * (3 + 2 + 5 + 4) - 5);
	snapshot_free(s);
	s = run(&cost, "T1 enter 1 main; T1 +9 enter 2 f 1; T1 +5 leave 2; T1 +9 enter 3 y 1;"
		       "T1 +50 yield 3");
	assert_all(s, "f", SNAPSHOT_CPU, 1, 0);
	assert_all(s, "y", SNAPSHOT_CPU, 1, 50 - 2 - 7);
	snapshot_free(s);
	check_no_leaks();
}

/* Hits on another stack in the meantime are not subtracted from this one's durations. */
Test(durations, of_stacks_that_are_switched)
{
	const struct cost cost = {.known = true, .before = {3, 5, 7}, .after = {2, 4, 6}};
	struct snapshot *s = run(&cost, "T1 enter 1 f; T1 +20 enter 7 other; T1 +20 enter 8 h 7;"
					"T1 +30 leave 8; T1 +20 enter 2 g 1; T1 +40 leave 2;"
					"T1 +60 leave 1");

	assert_all(s, "g", SNAPSHOT_CPU, 1, 40 - 2 - 5);
	assert_all(s, "h", SNAPSHOT_CPU, 1, 30 - 2 - 5);
	/*
	 * f's clock ran for 20 before the first switch, and continued when its stack was resumed.
	 */
	cr_assert_eq(func_of(s, "f")->durations[SNAPSHOT_CPU].histogram.len, 1);
	snapshot_free(s);
	check_no_leaks();
}

Test(durations, clocks_differ_where_it_waits)
{
	struct snapshot *s =
		run(NULL, "T1 enter 1 main; T1 +5 in; T1 enter 2 f 1; T1 +100 out;"
			  "T1 +9000 in; T1 +100 leave 2; T1 +1 enter 2 f 1; T1 +200 leave 2");
	const struct snapshot_durations *d = func_of(s, "f")->durations;

	assert_all(s, "f", SNAPSHOT_CPU, 2, 200);
	cr_assert_eq(d[SNAPSHOT_WALL].max, 9200);
	cr_assert_eq(d[SNAPSHOT_WALL].histogram.n[0], 1);
	snapshot_free(s);
	check_no_leaks();
}

Test(durations, are_cleared)
{
	struct event_script *es = event_script_new(NULL);
	struct snapshot *s;

	event_script_run(es, "T1 enter 1 main; T1 +5 enter 2 f 1; T1 +5 leave 2; +5 clear;"
			     "T1 +5 enter 3 g 1; T1 +8 leave 3");
	s = event_script_snapshot(es);
	assert_all(s, "g", SNAPSHOT_CPU, 1, 8);
	for (uint32_t i = 0; i < s->nfuncs; i++)
		cr_assert(strcmp(s->funcs[i].name, "f") != 0 || !s->funcs[i].durations);
	snapshot_free(s);
	event_script_free(es);
	check_no_leaks();
}

/* A window or, with length 0, a stretch: f is called once in it. */
static void call_f(struct event_script *es, uint64_t ts, uint64_t length_ns)
{
	const struct cost unknown = {0};
	struct profile *p = event_script_profile(es);

	profile_begin(p, ts);
	profile_limit(p, &(struct profile_limit){length_ns, &unknown, false});
	event_script_run(es, "T1 enter 1 main; T1 +5 enter 2 f 1; T1 +7 leave 2; T1 leave 1");
	profile_window_end(p, ts + 12, 1);
}

/* Calls that take longer than a window would be missing: there are durations of stretches only. */
Test(durations, are_of_stretches)
{
	struct event_script *es = event_script_new(NULL);
	struct profile *p = event_script_profile(es);
	struct snapshot *s;

	profile_in_windows(p, 1000);
	call_f(es, 1000, 0);
	profile_keep(p, true);
	s = event_script_snapshot(es);
	assert_all(s, "f", SNAPSHOT_WALL, 1, 7);
	snapshot_free(s);
	call_f(es, 1012, 1 << 20);
	s = event_script_snapshot(es);
	assert_all(s, "f", SNAPSHOT_WALL, 1, 7);
	snapshot_free(s);
	/* If some of the time was not traced, they are not of all calls. */
	profile_gap(p, 1);
	s = event_script_snapshot(es);
	cr_assert_not(snapshot_has_durations(s));
	snapshot_free(s);
	event_script_free(es);
	check_no_leaks();
}

Test(durations, saved_merged_and_reported)
{
	struct snapshot *s = run(NULL, calls), *loaded = NULL, *merged = NULL;
	const struct snapshot *two[2];
	struct format_opts o = {.columns = "p50,max"};
	struct diag diag = {0};
	size_t n;
	char *text = report_new("json", s, &o, &n);

	assert_diag_ok(snapshot_parse(text, n, "saved", &loaded, &diag), &diag);
	assert_all(loaded, "g", SNAPSHOT_WALL, 2, 50);
	two[0] = s;
	two[1] = loaded;
	assert_ok(snapshot_merge(two, 2, &merged));
	assert_all(merged, "g", SNAPSHOT_CPU, 4, 50);
	assert_all(merged, "f", SNAPSHOT_WALL, 2, 1000);
	free(text);
	text = report_new("csv", merged, &o, NULL);
	cr_assert(strstr(text, ",duration_cpu_p50_ns,duration_cpu_p90_ns,duration_cpu_p99_ns,"
			       "duration_cpu_max_ns,duration_wall_p50_ns"));
	cr_assert(strstr(text, ",50,50,50,50,50,50,50,50\r\n"), "%s", text);
	free(text);
	text = report_new("text", merged, &o, NULL);
	cr_assert(strstr(text, " percall        p50        max filename:lineno(function)\n"), "%s",
		  text);
	cr_assert(strstr(text, "   0.000   0.000001   0.000001 "), "%s", text);
	free(text);
	o.filter.tid = 1;
	o.columns = NULL;
	text = report_new("csv", merged, &o, NULL);
	cr_assert(strstr(text, "duration_cpu_p50_ns"), "the only thread is all of them");
	free(text);
	snapshot_free(merged);
	snapshot_free(loaded);
	snapshot_free(s);
	check_no_leaks();
}

Test(durations, columns_are_checked)
{
	static const char *const bad[] = {"", "p51", "p50,", "counters", "p50_cum", NULL};
	struct format_opts o = {.columns = "p50,p99,max,counters_vcsw,counters_vcsw_cum"};
	struct diag diag = {0};

	assert_ok(format_opts_check(&o, &diag));
	for (const char *const *p = bad; *p; p++) {
		diag_clear(&diag);
		o.columns = *p;
		assert_err(format_opts_check(&o, &diag), -EINVAL);
		cr_assert_eq(diag.exit, PYP_EXIT_USAGE, "%s", *p);
	}
}

/* Only a limited number of functions has histograms; the durations of others are counted. */
Test(durations, are_capped)
{
	struct durations d = {0};
	const uint32_t many = DURATIONS_MAX_BYTES / sizeof(struct durations_func);

	durations_add(&d, 0, 5, 5);
	durations_add(&d, many, 5, 5);
	cr_assert_eq(d.dropped, 1);
	durations_add(&d, 0, 5, 900000);
	cr_assert(d.dropped == 1 && d.bytes < DURATIONS_MAX_BYTES);
	durations_deinit(&d);
	check_no_leaks();
}
