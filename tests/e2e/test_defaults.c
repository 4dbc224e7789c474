// SPDX-License-Identifier: BSD-2-Clause
/*
 * Without options, a process is observed within a limit: samples show the time of each function, however dense its
 * calls are, and probes add counts, exact ones if that is cheap. --exact lifts the limit.
 */
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/test.h"
#include "harness/traced.h"

#define LIMIT	  0.1
#define LARGE	  0.05 /* a share of the CPU time */
#define ENOUGH_NS 200000000
#define SAVED	  "saved.json"

static struct pyprofd d;
static struct traced t;
static char pid[16];

static void setup(void)
{
	pyprofd_init(&d);
	d.defaults = true;
}

static void teardown(void)
{
	traced_stop(&t);
	pyprofd_end(&d);
}

TestSuite(defaults, .init = setup, .fini = teardown);

static const json_t *in(const json_t *o, const char *key)
{
	return json_object_get(o, key);
}

static const json_t *target_of(const json_t *profile)
{
	return json_array_get(in(profile, "targets"), 0);
}

static double cpu_ns(const json_t *o)
{
	return json_number_value(in(in(o, "tottime"), "cpu"));
}

/* What a file contains. */
static json_t *profile_in(const char *path)
{
	char *text = file_text(path, NULL);
	json_t *ret = json_loads(text, 0, NULL);

	cr_assert(ret, "%s", text);
	free(text);
	return ret;
}

/* Records the process for a second, in which a busy machine may leave it too little CPU time, or none to the daemon. */
static json_t *record(const char *mode, bool windows)
{
	const char *option = mode ? "--mode" : NULL;
	char path[128];
	json_t *ret = NULL;

	pyprofd_file(&d, SAVED, path, sizeof(path));
	do {
		struct ran r = ctl(&d, "record", "-p", pid, "-d", "1s", "-f", "json", "-o", path,
				   option, mode, option ? "--rate" : NULL, "999", NULL);

		cr_assert(!patience_over());
		cr_assert_eq(r.status, 0, "%s", r.err);
		ran_free(&r);
		json_decref(ret);
		ret = profile_in(path);
	} while (cpu_ns(in(ret, "totals")) < ENOUGH_NS ||
		 (windows && !json_integer_value(in(in(target_of(ret), "windows"), "count"))));
	return ret;
}

static const json_t *function_of(const json_t *profile, const char *name)
{
	const json_t *f;
	size_t i;

	json_array_foreach(in(profile, "functions"), i,
			   f) if (strcmp(json_string_value(in(f, "name")), name) == 0) return f;
	return NULL;
}

struct share {
	double of, error;
};

/* A function's share of the CPU time, and the error of that; 0 if every call was traced */
static struct share share_of(const json_t *profile, const json_t *f)
{
	const bool estimated = json_is_true(in(profile, "estimated"));
	const json_t *error = in(in(in(f, "error"), "tottime"), "cpu");
	const double all = cpu_ns(in(profile, "totals"));

	cr_assert(!estimated || json_number_value(error) > 0, "%s: a time without an error",
		  json_string_value(in(f, "name")));
	return (struct share){cpu_ns(f) / all, json_number_value(error) / all};
}

/* Each function that `samples` show to be large is in the other profile, too, and as large. */
static void check_shares(const json_t *samples, const json_t *profile)
{
	size_t i, n = 0;
	json_t *f;

	json_array_foreach(in(samples, "functions"), i, f)
	{
		const char *name = json_string_value(in(f, "name"));
		const struct share seen = cpu_ns(f) > 0 ? share_of(samples, f) : (struct share){0};
		const json_t *same = function_of(profile, name);
		struct share is;

		if (seen.of < LARGE)
			continue;
		n++;
		cr_assert(same && cpu_ns(same) > 0, "%s is missing", name);
		is = share_of(profile, same);
		/* Five standard errors are exceeded by chance once in 1.7 million; a machine may change by more. */
		cr_assert(fabs(is.of - seen.of) < 5 * hypot(is.error, seen.error) + LARGE,
			  "%s: %g +- %g, by samples %g +- %g", name, is.of, is.error, seen.of,
			  seen.error);
	}
	cr_assert(n > 0);
}

Test(defaults, a_second_shows_each_large_function)
{
	const char *const programs[] = {"plain", "halves"};

	for (size_t i = 0; i < 2; i++) {
		json_t *samples, *profile;

		traced_ready(&t, pid, traced_newest().exe, "shares.py", programs[i], NULL);
		samples = record("sample", false);
		profile = record(NULL, false);
		check_shares(samples, profile);
		json_decref(samples);
		json_decref(profile);
		traced_stop(&t);
	}
}

/* The report of the saved profile in this format */
static char *report(const char *format, const char *option)
{
	char path[128];

	return ctl_ok(&d, "report", pyprofd_file(&d, SAVED, path, sizeof(path)), "-f", format,
		      option, NULL);
}

/* Each of these words is in the report, in this order. Frees it. */
static void assert_says(char *text, const char *const *words)
{
	const char *at = text;

	for (; *words; words++) {
		at = strstr(at, *words);
		cr_assert(at, "%s: %.4000s", *words, text);
	}
	free(text);
}

/* Of a program whose calls cost more than the limit */
Test(defaults, reports_say_how_it_was_observed)
{
	char shown[64], overhead[64], path[128];
	const json_t *target, *windows;
	json_t *profile;

	traced_ready(&t, pid, traced_newest().exe, "shares.py", "halves", NULL);
	profile = record(NULL, true);
	target = target_of(profile);
	windows = in(target, "windows");
	cr_assert_str_eq(json_string_value(in(target, "mode")), "trace");
	cr_assert(json_is_true(in(windows, "sampled")) && json_is_false(in(profile, "exact")));
	cr_assert_eq(json_integer_value(in(windows, "max_overhead_percent")), 10);
	/* As long as samples show it, not only what windows were open. */
	cr_assert(json_integer_value(in(windows, "span_ns")) >
		  json_integer_value(in(target, "traced_ns")));
	snprintf(shown, sizeof(shown), "from %lld windows",
		 (long long)json_integer_value(in(windows, "count")));
	snprintf(overhead, sizeof(overhead), "%.1f %% of the process's own CPU time (",
		 100 * json_number_value(in(in(target, "overhead"), "ratio")));
	assert_says(report("text", NULL),
		    (const char *[]){
			    " function calls in ", ", estimated\n", "ESTIMATE   mode trace, ",
			    "at most about 10 % overhead: counts estimated ", shown,
			    "CPU times from ", " samples, error ", "overhead   ", overhead, NULL});
	assert_says(report("text", "--verbose"),
		    (const char *[]){"observed for ",
				     "mode       trace: at most about 10 % overhead", "samples  ",
				     "overhead   ", overhead, "ESTIMATE   counts are ", shown,
				     NULL});
	assert_says(report("html", NULL),
		    (const char *[]){"at most about 10 % overhead", "counts are ", shown, NULL});
	json_decref(profile);
	unlink(pyprofd_file(&d, SAVED, path, sizeof(path)));
}

static json_int_t calls_of(const json_t *profile, const char *name)
{
	return json_integer_value(in(function_of(profile, name), "ncalls"));
}

static json_int_t calls_done(void)
{
	json_t *result = json_loads(t.result, 0, NULL);
	json_int_t ret = json_integer_value(in(result, "calls"));

	json_decref(result);
	return ret;
}

static json_t *snapshot(void)
{
	char path[128];
	json_t *ret;

	pyprofd_file(&d, SAVED, path, sizeof(path));
	free(ctl_ok(&d, "snapshot", "-f", "json", "-o", path, NULL));
	ret = profile_in(path);
	unlink(path);
	return ret;
}

static void launch(void)
{
	pyprofd_launch(&d, NULL);
	pyprofd_ready(&d);
}

/* Calls that cost less than the limit are all counted. */
Test(defaults, count_each_call_of_a_process_that_waits)
{
	json_t *profile;

	traced_ready(&t, pid, traced_newest().exe, "run.py", "paced", "10", "3", "0.05", NULL);
	launch();
	free(ctl_ok(&d, "attach", pid, NULL));
	traced_go(&t);
	traced_expect(&t, "done");
	profile = snapshot();
	cr_assert(json_is_true(in(profile, "exact")));
	cr_assert(json_is_false(in(in(target_of(profile), "windows"), "sampled")));
	cr_assert_eq(calls_of(profile, "empty"), 30);
	json_decref(profile);
	pyprofd_shutdown(&d);
}

/* It needs no forecast to be safe: the limit holds from the first call on. */
Test(defaults, limit_a_process_that_wakes_up)
{
	json_t *target, *profile;
	double overhead;

	traced_ready(&t, pid, traced_newest().exe, "run.py", "busy_empty", "told", NULL);
	launch();
	free(ctl_ok(&d, "attach", pid, NULL));
	patience_pass(200);
	traced_go(&t);
	ctl_until(&d, 0, "own_cpu_ns", 1000000000);
	target = ctl_target(&d, 0);
	overhead = json_number_value(in(target, "overhead_in_all"));
	/* Tracing all calls takes several times the CPU time. A busy machine may close a window late. */
	cr_assert(overhead > 0 && overhead < 3 * LIMIT, "%g", overhead);
	json_decref(target);
	traced_go(&t);
	traced_expect(&t, "done");
	profile = snapshot();
	cr_assert(json_is_true(in(in(target_of(profile), "windows"), "sampled")));
	cr_assert(cpu_ns(function_of(profile, "empty")) > 0);
	json_decref(profile);
	pyprofd_shutdown(&d);
}

/* Nothing is known of its calls when it is attached, so nobody is asked. */
Test(defaults, exact_counts_of_a_process_that_wakes_up)
{
	json_t *profile;
	struct ran r;

	traced_ready(&t, pid, traced_newest().exe, "run.py", "busy_empty", "0", "100000", NULL);
	launch();
	r = ctl(&d, "attach", "--exact", pid, NULL);
	cr_assert_eq(r.status, 0, "%s", r.err);
	cr_assert(strstr(r.forecast, ": no forecast: "), "%s", r.forecast);
	ran_free(&r);
	traced_go(&t);
	traced_expect(&t, "done");
	profile = snapshot();
	cr_assert(json_is_true(in(profile, "exact")) && !in(target_of(profile), "windows"));
	cr_assert_eq(calls_of(profile, "empty"), calls_done());
	cr_assert(cpu_ns(function_of(profile, "empty")) > 0);
	json_decref(profile);
	pyprofd_shutdown(&d);
}
