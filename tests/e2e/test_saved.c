// SPDX-License-Identifier: BSD-2-Clause
/* Profiles of real programs, saved, then compared and merged without a daemon. */
#include <jansson.h>
#include <stdio.h>

#include "harness/daemon.h"
#include "harness/test.h"
#include "harness/traced.h"

static struct pyprofd d; /* never started: its directory only */
static char script[128];

static const char program[] = "import json, sys\n"
			      "def tokens(n):\n"
			      "    for _ in range(n): pass\n"
			      "def render(n):\n"
			      "    for _ in range(n): pass\n"
			      "def handle(slow):\n"
			      "    tokens(1000 * slow); render(1000)\n"
			      "    json.dumps([slow] * 20)\n"
			      "for _ in range(300): handle(int(sys.argv[1]))\n";

static void setup(void)
{
	FILE *f;

	pyprofd_init(&d);
	pyprofd_file(&d, "program.py", script, sizeof(script));
	f = fopen(script, "w");
	cr_assert(f && fputs(program, f) >= 0 && fclose(f) == 0);
}

static void teardown(void)
{
	pyprofd_deinit(&d);
}

TestSuite(saved, .init = setup, .fini = teardown);

static void run(const char *slowness, const char *file)
{
	struct interpreter it = traced_newest();

	free(ctl_ok(&d, "run", "-o", file, "--", it.exe, script, slowness, NULL));
}

/*
 * The planted slowdown is by a factor of 20: another function could only differ more if the second run of the
 * program had a CPU ten times as fast, or slow, as the first one.
 */
static void diff_names_the_planted_slowdown_first(const char *before, const char *after)
{
	char *text = ctl_ok(&d, "diff", before, after, "-f", "json", "-l", "1", NULL);
	json_t *root = json_loads(text, 0, NULL);
	json_t *row = json_array_get(json_object_get(root, "functions"), 0);

	cr_assert_str_eq(json_string_value(json_object_get(row, "name")), "tokens", "%s", text);
	json_decref(root);
	free(text);
	text = ctl_ok(&d, "diff", before, after, "-l", "1", NULL);
	cr_assert(strstr(text, "(tokens)") && !strstr(text, "(render)"), "%s", text);
	free(text);
}

static void two_runs_are_one_report(const char *one, const char *two)
{
	char less[128], *text;

	pyprofd_file(&d, "less.json", less, sizeof(less));
	text = ctl_ok(&d, "report", one, two, "-s", "calls", "handle", NULL);
	cr_assert(strstr(text, "      600   "), "%s", text);
	free(text);
	free(ctl_ok(&d, "report", one, "--only-my-code", "-o", less, NULL));
	ctl_fails(&d, PYP_EXIT_USAGE, "folded", "diff", less, two, NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "folded", "report", less, two, NULL);
}

Test(saved, two_runs)
{
	char one[128], two[128];

	pyprofd_file(&d, "one.json", one, sizeof(one));
	pyprofd_file(&d, "two.json", two, sizeof(two));
	run("1", one);
	run("20", two);
	diff_names_the_planted_slowdown_first(one, two);
	two_runs_are_one_report(one, two);
}

/* Two snapshots of one process: the later one contains the calls of the earlier one. */
Test(saved, overlapping_snapshots_are_refused)
{
	char one[128], two[128], pid[16];
	struct ran ended;
	struct traced t;

	traced_ready(&t, NULL, traced_newest().exe, "run.py", "paced", "1000000", "100", "0.01",
		     NULL);
	pyprofd_launch(&d, "--pid", pid_text(pid, t.pid), "--no-verify", NULL);
	pyprofd_ready(&d);
	traced_go(&t);
	pyprofd_file(&d, "one.json", one, sizeof(one));
	pyprofd_file(&d, "two.json", two, sizeof(two));
	ctl_until(&d, 0, "events", 100);
	free(ctl_ok(&d, "snapshot", "-o", one, NULL));
	free(ctl_ok(&d, "snapshot", "-o", two, NULL));
	ctl_fails(&d, PYP_EXIT_USAGE, "two.json' overlap", "report", one, two, NULL);
	free(ctl_ok(&d, "clear", NULL));
	free(ctl_ok(&d, "snapshot", "-o", two, NULL));
	free(ctl_ok(&d, "report", one, two, NULL));
	free(ctl_ok(&d, "shutdown", NULL));
	ended = pyprofd_wait(&d);
	ran_free(&ended);
	traced_stop(&t);
}

Test(saved, run_sorts_and_limits)
{
	char *text = ctl_ok(&d, "run", "-s", "name", "-l", "1", "--", traced_newest().exe, script,
			    "1", NULL);

	cr_assert(strstr(text, "Ordered by: function name"), "%s", text);
	cr_assert(strstr(text, "due to restriction <1>"), "%s", text);
	free(text);
	ctl_fails(&d, PYP_EXIT_USAGE, "bogus", "run", "-s", "bogus", "--", "true", NULL);
}
