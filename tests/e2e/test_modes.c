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
	for (;;) {
		json_t *target = ctl_target(&d, 0);
		json_int_t n = json_integer_value(json_object_get(target, "events"));

		json_decref(target);
		if (n > 20)
			return;
		usleep(20000);
	}
}

static void says(const char *what, const char *format, const char *more)
{
	char *text = ctl_ok(&d, "snapshot", "-f", format, more, NULL);

	cr_assert(strstr(text, what), "%s: %s\n%s", format, what, text);
	free(text);
}

Test(modes, count)
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
Test(modes, count_as_a_page)
{
	char page[128], saved[128], again[128];

	pyprofd_file(&d, "count.html", page, sizeof(page));
	pyprofd_file(&d, "count.json", saved, sizeof(saved));
	pyprofd_file(&d, "again.html", again, sizeof(again));
	attach("count");
	wait_for_events();
	free(ctl_ok(&d, "snapshot", "-o", page, NULL));
	free(ctl_ok(&d, "snapshot", "-o", saved, NULL));
	free(ctl_ok(&d, "report", saved, "-o", again, NULL));
	assert_counted_page(page);
	assert_counted_page(again);
	unlink(saved);
}

Test(modes, sample)
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

Test(modes, errors_are_reported)
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
Test(modes, bounded)
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

static const char *recorded(const char *mode, const char *name, char *file, size_t size)
{
	pyprofd_file(&d, name, file, size);
	free(ctl_ok(&d, "record", "--mode", mode, "--pid", pid, "-d", "300ms", "-o", file, NULL));
	return file;
}

Test(modes, are_not_mixed)
{
	char traced[128], counted[128], again[128], sampled[128];

	recorded("trace", "trace.json", traced, sizeof(traced));
	recorded("count", "count.json", counted, sizeof(counted));
	recorded("count", "again.json", again, sizeof(again));
	recorded("sample", "sample.json", sampled, sizeof(sampled));
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
Test(modes, no_timeline)
{
	attach("count");
	ctl_fails(&d, PYP_EXIT_USAGE, "no timeline", "timeline", "--pid", pid, "-d", "100ms", "-o",
		  "/dev/null", NULL);
}
