// SPDX-License-Identifier: BSD-2-Clause
/* The overhead is one figure, whoever says it. */
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "harness/daemon.h"
#include "harness/test.h"
#include "harness/traced.h"

#define LABEL "overhead   "

static struct pyprofd d;
static struct traced t;
static char pid[16];

static void setup(void)
{
	traced_ready(&t, pid, traced_newest().exe, "shares.py", "plain", NULL);
}

static void teardown(void)
{
	traced_stop(&t);
}

TestSuite(overhead, .init = setup, .fini = teardown);

/* The rest of the first line after these words, to be freed; NULL: there are none. */
static char *after(const char *text, const char *words)
{
	const char *at = text ? strstr(text, words) : NULL;

	at = at ? at + strlen(words) : NULL;
	return at ? strndup(at, strcspn(at, "\n")) : NULL;
}

static double number_of(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

/* The figures of the only process of a profile. */
static void check_saved(const char *path, const json_t *target)
{
	char *text = file_text(path, NULL);
	json_t *root = json_loads(text, 0, NULL), *overhead;

	overhead = json_object_get(json_array_get(json_object_get(root, "targets"), 0), "overhead");
	cr_assert(number_of(overhead, "overhead_ns") == number_of(target, "overhead_ns") &&
			  number_of(overhead, "own_cpu_ns") == number_of(target, "own_cpu_ns") &&
			  number_of(overhead, "ratio") == number_of(target, "overhead_in_all"),
		  "%s", text);
	json_decref(root);
	free(text);
}

/* Of a target that was observed in this way and is stopped */
static void everybody_says_the_same(const char *const *how)
{
	char path[128], said[64], *text, *line, *other;
	json_t *target, *status;

	pyprofd_file(&d, "out.json", path, sizeof(path));
	free(ctl_ok(&d, "attach", pid, how[0], how[1], how[2], how[3], NULL));
	ctl_until(&d, 0, "own_cpu_ns", 100000000);
	free(ctl_ok(&d, "stop", NULL));
	free(ctl_ok(&d, "snapshot", "-o", path, NULL));
	target = ctl_target_at_rest(&d, 0);
	cr_assert(number_of(target, "overhead_ns") > 0, "%s", how[1]);
	check_saved(path, target);
	status = ctl_status(&d);
	cr_assert(number_of(status, "overhead_ns") == number_of(target, "overhead_ns"));
	text = ctl_ok(&d, "snapshot", "-f", "text", NULL);
	line = after(text, LABEL);
	cr_assert(line, "%s", text);
	snprintf(said, sizeof(said), "%.1f %% of the process's own CPU time (",
		 100 * number_of(target, "overhead_in_all"));
	cr_assert(strncmp(line, said, strlen(said)) == 0, "%s, not %s", line, said);
	free(text);
	text = ctl_ok(&d, "report", path, "-f", "text", "--verbose", NULL);
	other = after(text, LABEL);
	cr_assert_str_eq(other, line);
	free(other);
	free(text);
	text = ctl_ok(&d, "status", NULL);
	snprintf(said, sizeof(said), "overhead %.1f%% in all",
		 100 * number_of(target, "overhead_in_all"));
	cr_assert(strstr(text, said), "%s: %s", said, text);
	free(text);
	free(line);
	json_decref(target);
	json_decref(status);
	free(ctl_ok(&d, "detach", pid, NULL));
	unlink(path);
}

Test(overhead, is_the_same_everywhere)
{
	const char *const ways[][4] = {
		{"--mode", "trace"},
		{"--mode", "count"},
		{"--mode", "count", "--rate", "0"},
		{"--mode", "sample", "--rate", "999"},
		{"--max-overhead", "10"},
	};

	pyprofd_start(&d, NULL);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		everybody_says_the_same(ways[i]);
	pyprofd_shutdown(&d);
}

/* A clear begins anew; what it cost before is not in it. */
Test(overhead, since_the_last_clear)
{
	json_t *before, *cleared;

	pyprofd_start(&d, NULL);
	free(ctl_ok(&d, "attach", "--mode", "count", "--rate", "0", pid, NULL));
	ctl_until(&d, 0, "own_cpu_ns", 100000000);
	free(ctl_ok(&d, "stop", NULL));
	before = ctl_target_at_rest(&d, 0);
	free(ctl_ok(&d, "clear", NULL));
	cleared = ctl_target_at_rest(&d, 0);
	cr_assert(number_of(before, "overhead_ns") > 0);
	cr_assert(number_of(cleared, "overhead_ns") == 0 && number_of(cleared, "own_cpu_ns") == 0);
	cr_assert(json_is_null(json_object_get(cleared, "overhead_in_all")));
	json_decref(before);
	json_decref(cleared);
	pyprofd_shutdown(&d);
}

static void check_command(struct ran *r, const char *path)
{
	char *report = file_text(path, NULL), *line = after(report, LABEL),
	     *said = after(r->forecast, "overhead: ");

	cr_assert_eq(r->status, 0, "%s", r->err);
	cr_assert(line && said, "%s%s", r->forecast, report);
	cr_assert_str_eq(said, line);
	free(report);
	free(line);
	free(said);
	ran_free(r);
	unlink(path);
}

Test(overhead, at_the_end_of_record_and_run)
{
	const char *program = "def f(): pass\nfor i in range(20000): f()\n";
	char path[128];
	struct ran r;

	pyprofd_init(&d);
	pyprofd_file(&d, "out.txt", path, sizeof(path));
	for (int i = 0; i < 2; i++) {
		r = ctl(&d, "record", "--mode", i ? "sample" : "trace", "-p", pid, "-d", "1s", "-f",
			"text", "-o", path, NULL);
		check_command(&r, path);
	}
	r = ctl(&d, "run", "-f", "text", "-o", path, "--", traced_newest().exe, "-c", program,
		NULL);
	check_command(&r, path);
	pyprofd_deinit(&d);
}
