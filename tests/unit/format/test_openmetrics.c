// SPDX-License-Identifier: BSD-2-Clause
/* The format openmetrics: families, labels, and histograms whose buckets are exact. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"

/* 1,500 calls of 35 us, 400 of 35 ms and 100 of 100 s. */
static void add_durations(struct snapshot *s, const char *name, int clock)
{
	static const struct {
		uint64_t ns, n;
	} calls[] = {{35000, 1500}, {35000000, 400}, {UINT64_C(100000000000), 100}};

	for (uint32_t i = 0; i < s->nfuncs; i++) {
		struct histogram_sum sum = {.count = 0};

		if (strcmp(s->funcs[i].name, name) != 0)
			continue;
		for (size_t k = 0; k < 3; k++) {
			sum.n[histogram_bucket(calls[k].ns)] = calls[k].n;
			sum.count += calls[k].n;
		}
		assert_ok(snapshot_add_durations(s, &s->funcs[i], clock, &sum, calls[2].ns));
	}
}

static struct snapshot *build(void)
{
	struct snapshot *s =
		snapshot_build("main a.py:1 1 5 5\n  say\"\\ a.py:2 2000 70000 90000\n");

	add_durations(s, "say\"\\", SNAPSHOT_WALL);
	return s;
}

/* The value of the sample that begins so; -1: there is none. */
static double value(const char *text, const char *sample)
{
	const char *at = strstr(text, sample);

	return at ? strtod(at + strlen(sample), NULL) : -1;
}

#define SAY	   "function=\"a.py:2(say\\\"\\\\)\""
#define BUCKET(le) "pyprofd_call_duration_seconds_bucket{" SAY ",clock=\"wall\",le=\"" le "\"} "

Test(openmetrics, histograms)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build();
	struct format_opts o = {0};
	_cleanup_free_ char *text = report_new("openmetrics", s, &o, NULL);
	double sum = value(text, "pyprofd_call_duration_seconds_sum{" SAY ",clock=\"wall\"} ");

	cr_assert_eq(value(text, "\npyprofd_function_calls_total{" SAY "} "), 2000, "%s", text);
	cr_assert_eq(value(text, BUCKET("0.000000512")), -1);
	cr_assert_eq(value(text, BUCKET("0.000001024")), 0);
	cr_assert_eq(value(text, BUCKET("137.438953472")), -1);
	cr_assert_eq(value(text, BUCKET("0.000032768")), 0);
	cr_assert_eq(value(text, BUCKET("0.000065536")), 1500);
	cr_assert_eq(value(text, BUCKET("0.033554432")), 1500);
	cr_assert_eq(value(text, BUCKET("0.067108864")), 1900);
	cr_assert_eq(value(text, BUCKET("68.719476736")), 1900);
	cr_assert_eq(value(text, BUCKET("+Inf")), 2000);
	cr_assert_eq(value(text, "seconds_count{" SAY ",clock=\"wall\"} "), 2000);
	cr_assert(sum > 10014 * 0.956 && sum < 10014 * 1.044, "%f", sum);
	cr_assert_null(strstr(text, "seconds_count{" SAY ",clock=\"cpu\"}"));
	cr_assert_null(strstr(text, "seconds_count{function=\"a.py:1"));
	check_no_leaks();
}

/* Seconds to the nanosecond, of clocks that were measured */
Test(openmetrics, times)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("f a.py:1 1 12345678901 5\n  f a.py:1 1 1 0\ng a.py:2 1 0 0\n");
	struct format_opts o = {0};
	_cleanup_free_ char *text = report_new("openmetrics", s, &o, NULL);

	cr_assert(strstr(text, "# TYPE pyprofd_function_self_seconds counter\n"
			       "# UNIT pyprofd_function_self_seconds seconds\n"
			       "# HELP pyprofd_function_self_seconds Time in a function itself.\n"
			       "pyprofd_function_self_seconds_total{function=\"a.py:1(f)\","
			       "clock=\"cpu\"} 12.345678902\n"
			       "pyprofd_function_self_seconds_total{function=\"a.py:1(f)\","
			       "clock=\"wall\"} 0.000000005\n"
			       "pyprofd_function_self_seconds_total{function=\"a.py:2(g)\","
			       "clock=\"cpu\"} 0.000000000\n"),
		  "%s", text);
	cr_assert(strstr(text, "# TYPE pyprofd_function_calls counter\n"
			       "# HELP pyprofd_function_calls Calls of a function.\n"),
		  "%s", text);
	free(text);
	for (uint32_t i = 0; i < s->nnodes; i++)
		s->nodes[i].self[SNAPSHOT_WALL] = s->nodes[i].calls = 0;
	text = report_new("openmetrics", s, &o, NULL);
	cr_assert(strstr(text, "clock=\"cpu\"} 12.") && !strstr(text, "clock=\"wall\""), "%s",
		  text);
	cr_assert(!strstr(text, "function_calls") && !strstr(text, "call_duration"), "%s", text);
}

/* Of the selected processes */
Test(openmetrics, exact_if_the_selected_ones_are)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("thread 42 42 a\nf a.py:1 1 5\nthread 7 7 b\nf a.py:1 1 5\n");
	struct format_opts o = {0}, good = {.filter.pid = 42};
	_cleanup_free_ char *all = NULL, *one = NULL;

	s->targets[1].truncated = 1;
	all = report_new("openmetrics", s, &o, NULL);
	one = report_new("openmetrics", s, &good, NULL);
	cr_assert_eq(value(all, "\npyprofd_profile_exact "), 0);
	cr_assert_eq(value(one, "\npyprofd_profile_exact "), 1);
}

/* Lines of a family are together, each has a value, and the text ends with # EOF. */
Test(openmetrics, is_well_formed)
{
	_cleanup_(snapshot_freep) struct snapshot *random = snapshot_random(1);
	_cleanup_(snapshot_freep) struct snapshot *hostile = snapshot_hostile();
	const struct snapshot *const all[] = {random, hostile};

	for (size_t i = 0; i < 2; i++) {
		struct format_opts o = {0};
		size_t size;
		_cleanup_free_ char *text = report_new("openmetrics", all[i], &o, &size);
		char family[64] = "", *save = NULL, *last = NULL;

		cr_assert(report_harmless(text, size));
		for (char *line = strtok_r(text, "\n", &save); line;
		     line = strtok_r(NULL, "\n", &save)) {
			last = line;
			if (strncmp(line, "# TYPE ", 7) == 0)
				snprintf(family, sizeof(family), "%.*s",
					 (int)strcspn(line + 7, " "), line + 7);
			else if (line[0] != '#' && strcmp(family, "pyprofd_profile_exact") != 0)
				cr_assert(strncmp(line, family, strlen(family)) == 0 &&
						  strstr(line, "{function=\"") &&
						  strchr("0123456789", strrchr(line, ' ')[1]),
					  "%s", line);
		}
		cr_assert_str_eq(last, "# EOF");
	}
}

/* What limits the profile is in the help, so that it makes no series of its own. */
Test(openmetrics, says_how_exact_it_is)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build();
	struct format_opts o = {0};
	_cleanup_free_ char *text = report_new("openmetrics", s, &o, NULL);

	cr_assert_eq(value(text, "\npyprofd_profile_exact "), 1, "%s", text);
	free(text);
	s->targets[0].warnings = "a tool\n# EOF";
	s->targets[0].losses[PYP_LOSS_lost_events] = 1;
	text = report_new("openmetrics", s, &o, NULL);
	cr_assert_eq(value(text, "\npyprofd_profile_exact "), 0, "%s", text);
	cr_assert(strstr(text, " WARNING: a tool") && strstr(text, " LOST: mode trace: 1 of "),
		  "%s", text);
	cr_assert_eq(strstr(text, "\n# EOF"), strrchr(text, '#') - 1, "%s", text);
	check_no_leaks();
}

static size_t count_of(const char *text, const char *what)
{
	size_t n = 0;

	for (const char *p = text; (p = strstr(p, what)); p++)
		n++;
	return n;
}

Test(openmetrics, is_bounded)
{
	static const char *const two[] = {"2"}, *const say[] = {"say"};
	_cleanup_(snapshot_freep) struct snapshot *many = snapshot_random(3);
	_cleanup_(snapshot_freep) struct snapshot *s = build();
	struct format_opts o = {0};
	_cleanup_free_ char *text = report_new("openmetrics", many, &o, NULL);

	cr_assert(count_of(text, "\npyprofd_function_calls_total{") <= 30);
	free(text);
	o.restrict_ = two;
	o.nrestrict = 1;
	text = report_new("openmetrics", many, &o, NULL);
	cr_assert_eq(count_of(text, "\npyprofd_function_calls_total{"), 2);
	free(text);
	o.restrict_ = say;
	text = report_new("openmetrics", s, &o, NULL);
	cr_assert_eq(count_of(text, "\npyprofd_function_calls_total{"), 1);
}

/* The bound of a bucket belongs to it. */
Test(openmetrics, bounds)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("say\"\\ a.py:2 2000 70000 90000\n");
	struct histogram_sum sum = {.count = 3};
	struct format_opts o = {0};
	_cleanup_free_ char *text = NULL;

	sum.n[histogram_bucket(1 << 20)] = 1;
	sum.n[histogram_bucket((1 << 20) + 1)] = 2;
	assert_ok(snapshot_add_durations(s, &s->funcs[0], SNAPSHOT_WALL, &sum, 1 << 21));
	text = report_new("openmetrics", s, &o, NULL);
	cr_assert_eq(value(text, BUCKET("0.000524288")), 0);
	cr_assert_eq(value(text, BUCKET("0.001048576")), 1);
	cr_assert_eq(value(text, BUCKET("0.002097152")), 3);
	/* the middles: 1005062 and twice 1096028 */
	cr_assert(strstr(text, "seconds_sum{" SAY ",clock=\"wall\"} 0.003197118\n"), "%s", text);
}

/* Histograms of merged functions and of both clocks add up. */
Test(openmetrics, merged)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build();
	struct format_opts o = {0};
	_cleanup_free_ char *text = NULL;

	add_durations(s, "say\"\\", SNAPSHOT_WALL);
	add_durations(s, "say\"\\", SNAPSHOT_CPU);
	text = report_new("openmetrics", s, &o, NULL);
	cr_assert_eq(value(text, BUCKET("+Inf")), 4000);
	cr_assert_eq(value(text, "seconds_count{" SAY ",clock=\"cpu\"} "), 2000);
}
