// SPDX-License-Identifier: BSD-2-Clause
/*
 * Modes on the command line: selected at attach, shown in every report, and not mixed in one
 * profile.
 */
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "harness/daemon.h"
#include "harness/test.h"
#include "harness/traced.h"

static struct pyprofd d;
static struct traced t;
static char pid[16];

static void setup(void)
{
	struct interpreter it = traced_newest();

	traced_ready(&t, pid, it.exe, "shares.py", "plain", NULL);
	pyprofd_start(&d, NULL);
}

static void teardown(void)
{
	pyprofd_shutdown(&d);
	traced_stop(&t);
}

TestSuite(modes, .init = setup, .fini = teardown);

static void attach(const char *mode)
{
	free(ctl_ok(&d, "attach", "--mode", mode, pid, NULL));
}

static void wait_for_events(void)
{
	ctl_until(&d, 0, "events", 21);
}

static void detach(void)
{
	free(ctl_ok(&d, "detach", pid, NULL));
}

static void says(const char *what, const char *format, const char *more)
{
	char *text = ctl_ok(&d, "snapshot", "-f", format, more, NULL);

	cr_assert(strstr(text, what), "%s: %s\n%s", format, what, text);
	free(text);
}

static void count(void)
{
	json_t *target;

	attach("count");
	wait_for_events();
	target = ctl_target(&d, 0);
	cr_assert_str_eq(json_string_value(json_object_get(target, "mode")), "count");
	json_decref(target);
	says("count: no CPU times; recursive calls", "text", "--verbose");
	says("exact counts: ", "text", NULL);
	says("\"mode\":\"count\"", "json", NULL);
	says("three", "callers", NULL);
	says("\"mode\":\"count\"", "html", NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "mode count has none", "snapshot", "-f", "collapsed", NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "mode count has none", "tree", NULL);
	ctl_fails(&d, PYP_EXIT_BUSY, "already", "attach", "--mode", "trace", pid, NULL);
}

static void assert_counted_page(const char *path)
{
	char *text = file_text(path, NULL);

	cr_assert(strncmp(text, "<!DOCTYPE html>", 15) == 0);
	cr_assert(strstr(text, "\"three\"") && strstr(text, ",\"count\"]"), "%s", text);
	free(text);
	unlink(path);
}

/* Counts can be written as an HTML page, by the daemon and from a saved file. */
static void count_as_a_page(const char *saved)
{
	char page[128], again[128];

	pyprofd_file(&d, "count.html", page, sizeof(page));
	pyprofd_file(&d, "again.html", again, sizeof(again));
	free(ctl_ok(&d, "snapshot", "-o", page, NULL));
	free(ctl_ok(&d, "snapshot", "-o", saved, NULL));
	free(ctl_ok(&d, "report", saved, "-o", again, NULL));
	assert_counted_page(page);
	assert_counted_page(again);
}

static void sample(void)
{
	char *status;

	attach("sample");
	wait_for_events();
	status = ctl_ok(&d, "status", NULL);
	cr_assert(strstr(status, "sampling"), "%s", status);
	free(status);
	says("seconds, estimated\n", "text", NULL);
	says("ESTIMATE   mode sample at 99 Hz: ", "text", NULL);
	says("ESTIMATE   sampled at 99 Hz, ", "text", "--verbose");
	says("standard error of sqrt", "text", "--verbose");
	says("\"errors\":{", "html", NULL);
	says("\"period_ns\":10101010", "json", NULL);
	says("\"estimated\":true", "json", NULL);
	says(":35);three (", "collapsed", NULL);
	says("wall time, waiting included", "text", "--clock=wall");
	says("waits      by reason exact for each thread; distribution over functions estimated "
	     "from ",
	     "text", "--verbose");
	says("   Waiting: ", "waits", NULL);
}

static void errors_are_reported(void)
{
	ctl_fails(&d, PYP_EXIT_USAGE, "--mode", "attach", "--mode", "guess", pid, NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "--rate", "attach", "--rate", "10000", pid, NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "--rate", "attach", "--mode", "sample", "--rate", "0", pid,
		  NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "--rate", "record", "--mode", "count", "--rate", "-9",
		  "--pid", pid, NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "requires mode trace", "attach", "--mode", "count",
		  "--max-overhead", "5", pid, NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "without --counters", "attach", "--counters", "all",
		  "--max-overhead", "5", pid, NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "--max-overhead", "attach", "--max-overhead", "51", pid,
		  NULL);
}

/* The overhead limit belongs to one target. */
static void bounded(void)
{
	json_t *target, *windows;

	free(ctl_ok(&d, "attach", "--max-overhead", "5", pid, NULL));
	wait_for_events();
	target = ctl_target(&d, 0);
	windows = json_object_get(target, "windows");
	cr_assert_eq(json_integer_value(json_object_get(windows, "max_overhead_percent")), 5);
	cr_assert_str_eq(json_string_value(json_object_get(target, "mode")), "trace");
	json_decref(target);
	says("\"max_overhead_percent\":5", "json", NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "in windows", "timeline", "--pid", pid, "-d", "100ms", "-o",
		  "/dev/null", NULL);
}

static void save(const char *path)
{
	free(ctl_ok(&d, "snapshot", "-o", path, NULL));
}

static void are_not_mixed(const char *traced, const char *counted, const char *again,
			  const char *sampled)
{
	ctl_fails(&d, PYP_EXIT_USAGE, "was traced and", "diff", traced, counted, NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "counted and", "diff", counted, sampled, NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "have different modes", "report", traced, sampled, NULL);
	free(ctl_ok(&d, "diff", counted, again, NULL));
	free(ctl_ok(&d, "report", counted, again, NULL));
	unlink(traced);
	unlink(counted);
	unlink(again);
	unlink(sampled);
}

/* Mode count has no events per call, so there is no timeline. */
static void no_timeline(void)
{
	ctl_fails(&d, PYP_EXIT_USAGE, "no timeline", "timeline", "--pid", pid, "-d", "100ms", "-o",
		  "/dev/null", NULL);
}

/* One target, in one mode after the other */
Test(modes, of_one_target)
{
	char traced[128], counted[128], again[128], sampled[128];

	pyprofd_file(&d, "traced.json", traced, sizeof(traced));
	pyprofd_file(&d, "counted.json", counted, sizeof(counted));
	pyprofd_file(&d, "again.json", again, sizeof(again));
	pyprofd_file(&d, "sampled.json", sampled, sizeof(sampled));
	errors_are_reported();
	count();
	no_timeline();
	count_as_a_page(counted);
	detach();
	free(ctl_ok(&d, "record", "--mode", "count", "--pid", pid, "-d", "100ms", "-o", again,
		    NULL));
	sample();
	save(sampled);
	detach();
	bounded();
	save(traced);
	are_not_mixed(traced, counted, again, sampled);
}
