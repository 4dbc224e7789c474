// SPDX-License-Identifier: BSD-2-Clause
/*
 * record and run: a single command attaches and writes a profile, with and without a running
 * daemon.
 */
#include <jansson.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/background.h"
#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/sites.h"
#include "harness/test.h"
#include "harness/tool.h"
#include "harness/traced.h"

static struct pyprofd d;
static struct traced t;
static char pid[16];

/* The tests let it work when it is probed, as attaching takes its time. */
static void setup(void)
{
	struct interpreter it = traced_newest();

	traced_ready(&t, pid, it.exe, "run.py", "busy_empty", "0", "2000", NULL);
	pyprofd_init(&d);
}

static void teardown(void)
{
	traced_stop(&t);
	pyprofd_deinit(&d);
}

TestSuite(record, .init = setup, .fini = teardown);

/* Checks that this is a profile of the target, as JSON. Returns the number of calls. */
static json_int_t check_profile(const char *text)
{
	json_t *root = json_loads(text, 0, NULL), *targets = json_object_get(root, "targets");
	json_int_t calls =
		json_integer_value(json_object_get(json_object_get(root, "totals"), "ncalls"));

	cr_assert(root, "%s", text);
	cr_assert_eq(json_array_size(targets), 1);
	cr_assert_eq(json_integer_value(json_object_get(json_array_get(targets, 0), "pid")), t.pid);
	json_decref(root);
	return calls;
}

/* Runs `record ARG... -o FILE` without a daemon while the target works and ends; returns what is in the file. */
static char *recorded_alone(const char *const *args)
{
	const char *argv[16] = {"record"};
	char file[128], *text;
	pid_t child;
	size_t n = 1;

	while (*args)
		argv[n++] = *args++;
	argv[n++] = "-o";
	argv[n] = pyprofd_file(&d, "out", file, sizeof(file));
	child = background_start(&d, NULL, NULL, argv);
	background_until_traced(child, 1);
	traced_go(&t);
	traced_close(&t);
	cr_assert_eq(background_end(child, 0), 0);
	text = file_text(file, NULL);
	unlink(file);
	return text;
}

Test(record, without_a_daemon_until_the_target_ends)
{
	char *text =
		recorded_alone((const char *const[]){"--pid", pid, "-d", "1h", "-f", "json", NULL});

	cr_assert_gt(check_profile(text), 2000);
	free(text);
	cr_assert(access(d.sock, F_OK) < 0);
}

/* It ends after the given time, however little the target has done meanwhile. */
Test(record, with_the_daemon_that_runs)
{
	json_t *status;
	struct ran r;
	char *text;

	pyprofd_launch(&d, NULL);
	pyprofd_ready(&d);
	text = ctl_ok(&d, "record", "--pid", pid, "-d", "100ms", "-f", "json", NULL);
	check_profile(text);
	free(text);
	status = ctl_status(&d);
	cr_assert_eq(json_array_size(json_object_get(status, "targets")), 0);
	json_decref(status);
	/* a target that another client attached is not affected */
	free(ctl_ok(&d, "attach", pid, NULL));
	ctl_fails(&d, PYP_EXIT_BUSY, pid, "record", "--pid", pid, "-d", "1", NULL);
	status = ctl_status(&d);
	cr_assert_eq(json_array_size(json_object_get(status, "targets")), 1);
	json_decref(status);
	free(ctl_ok(&d, "shutdown", NULL));
	r = pyprofd_wait(&d);
	ran_free(&r);
}

/* Returns the number of events of one of the profile's processes; -1: it is not in the profile. */
static json_int_t events_of(const json_t *root, pid_t of)
{
	json_t *target;
	size_t i;

	json_array_foreach(json_object_get(root, "targets"), i, target)
	{
		if (json_integer_value(json_object_get(target, "pid")) == of)
			return json_integer_value(json_object_get(target, "events"));
	}
	return -1;
}

/*
 * Recording continues until the last target has ended, here not the one named first; one profile
 * has both.
 */
Test(record, several)
{
	struct interpreter it = traced_newest();
	char other_pid[16], file[128], *text;
	struct traced other;
	pid_t child, first;
	json_t *root;

	traced_ready(&other, NULL, it.exe, "run.py", "busy_empty", "0", "1000", NULL);
	first = other.pid; /* saved, as waiting clears it */
	pid_text(other_pid, first);
	pyprofd_file(&d, "out.json", file, sizeof(file));
	child = background_start(&d, NULL, NULL,
				 (const char *const[]){"record", "-p", other_pid, "--pid", pid,
						       "-o", file, NULL});
	background_until_traced(child, 2);
	traced_go(&other);
	traced_close(&other);
	cr_assert_eq(traced_wait(&other), 0);
	cr_assert_eq(waitpid(child, NULL, WNOHANG), 0, "it goes on with the other");
	traced_go(&t);
	traced_close(&t);
	cr_assert_eq(background_end(child, 0), 0);
	text = file_text(file, NULL);
	root = json_loads(text, 0, NULL);
	cr_assert(root, "%s", text);
	cr_assert_eq(json_array_size(json_object_get(root, "targets")), 2);
	cr_assert_gt(events_of(root, t.pid), 0);
	cr_assert_gt(events_of(root, first), 0);
	json_decref(root);
	free(text);
	unlink(file);
	traced_stop(&other);
}

static bool probed(void)
{
	struct sites sites;

	sites_find(&sites, t.pid);
	return sites_changed(&sites, t.pid) != 0;
}

/* If one process cannot be traced, the others are recorded; the exit status shows it. */
Test(record, one_of_several_is_wrong)
{
	struct ran r;
	json_t *root;

	ctl_fails(&d, PYP_EXIT_USAGE, "given twice", "record", "-p", pid, "-p", pid, NULL);
	ctl_fails(&d, PYP_EXIT_NO_PROCESS, "no process", "record", "-p", "4194303", NULL);
	cr_assert(!probed());
	r = ctl(&d, "record", "-p", "4194303", "-p", pid, "-d", "100ms", "-f", "json", NULL);
	cr_assert_eq(r.status, PYP_EXIT_NO_PROCESS);
	cr_assert(strstr(r.err, "no process 4194303"), "%s", r.err);
	root = json_loads(r.out, 0, NULL);
	cr_assert_eq(json_array_size(json_object_get(root, "targets")), 1, "%s", r.out);
	cr_assert(events_of(root, t.pid) >= 0, "%s", r.out);
	json_decref(root);
	ran_free(&r);
}

/* Options as for snapshot: filters and sorting. */
Test(record, patterns_and_order)
{
	char *text;

	ctl_fails(&d, PYP_EXIT_USAGE, "(", "record", "-p", pid, "(", NULL);
	text = recorded_alone((const char *const[]){"-p", pid, "-s", "calls", "--strip-dirs",
						    "--raw-times", "busy_empty", "2", "-f", "text",
						    NULL});
	cr_assert(strstr(text, " busy_empty.py:") && strstr(text, "(empty)") &&
			  !strstr(text, "proto.py:"),
		  "%s", text);
	cr_assert(strstr(text, "times include the probes' own"), "%s", text);
	free(text);
}

/* Interrupted after the daemon has seen the first calls, however long that takes */
static bool has_calls(void)
{
	static bool begun;
	json_t *all = ctl_status(&d), *target;
	bool ret;

	target = json_array_get(json_object_get(all, "targets"), 0);
	if (target && !begun && json_integer_value(json_object_get(target, "threads"))) {
		traced_go(&t);
		begun = true;
	}
	ret = json_integer_value(json_object_get(target, "events")) > 2000;
	json_decref(all);
	return ret;
}

Test(record, ctrl_c_keeps_what_there_is)
{
	char file[128], *text;
	struct ran r;
	pid_t child;

	pyprofd_file(&d, "out.json", file, sizeof(file));
	pyprofd_launch(&d, NULL);
	pyprofd_ready(&d);
	child = background_start(&d, NULL, has_calls,
				 (const char *const[]){"record", "--pid", pid, "-o", file, NULL});
	cr_assert_eq(background_end(child, SIGINT), 0);
	text = file_text(file, NULL);
	cr_assert_geq(check_profile(text), 1000);
	free(text);
	unlink(file);
	free(ctl_ok(&d, "shutdown", NULL));
	r = pyprofd_wait(&d);
	ran_free(&r);
}

Test(record, errors_are_reported_before)
{
	ctl_fails(&d, PYP_EXIT_USAGE, "no process is given", "record", NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "unknown format", "record", "-p", pid, "-f", "x", NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, ".speedscope.json", "record", "-p", pid, "-o", "x.svg", NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "no timeline has", "timeline", "-p", pid, "-o", "x.perfetto",
		  NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "sort key", "record", "-p", pid, "-s", "x", NULL);
	ctl_fails(&d, PYP_EXIT_FAILURE, "No such file", "record", "-p", pid, "-o", "/nosuch/x",
		  NULL);
	ctl_fails(&d, PYP_EXIT_NO_PROCESS, "no process", "record", "-p", "4194303", NULL);
}

/* pyprofctl may raise its own limit of open files, but not that of the command. */
Test(record, run_keeps_the_limit_of_open_files)
{
	struct interpreter it = traced_newest();
	const struct rlimit few = {256, 512};
	const char *program = "import resource\n"
			      "print(*resource.getrlimit(resource.RLIMIT_NOFILE))\n";
	char *text;

	cr_assert(setrlimit(RLIMIT_NOFILE, &few) == 0);
	text = ctl_ok(&d, "run", "--", it.exe, "-c", program, NULL);
	cr_assert(strncmp(text, "256 512\n", 8) == 0, "%s", text);
	free(text);
}

Test(record, run)
{
	const char *program = "import json\nfor i in range(100): json.dumps(i)\nprint('done')\n";
	struct interpreter it = traced_newest();
	char *text = ctl_ok(&d, "run", "--", it.exe, "-c", program, NULL);
	struct ran r;

	cr_assert(strncmp(text, "done\n", 5) == 0, "%s", text);
	cr_assert(strstr(text, "(dumps)"), "%s", text);
	free(text);
	/* the daemon reports the error, once */
	r = ctl(&d, "run", "--", "/bin/true", NULL);
	cr_assert_eq(r.status, PYP_EXIT_UNTRACEABLE);
	cr_assert(strstr(r.err, "pyprofd: cannot trace") && !strstr(r.err, "pyprofctl:"), "%s",
		  r.err);
	ran_free(&r);
	ctl_fails(&d, PYP_EXIT_USAGE, "argument is missing", "run", NULL);
}

static int run_status(const char *program)
{
	struct ran r =
		ctl(&d, "run", "-o", "/dev/null", "--", traced_newest().exe, "-c", program, NULL);
	int status = r.status;

	ran_free(&r);
	return status;
}

/* As a shell would report it */
Test(record, run_exits_with_the_status)
{
	cr_assert_eq(run_status("for i in range(1000): str(i)"), 0);
	cr_assert_eq(run_status("import sys, json\nsys.exit(3)"), 3);
	cr_assert_eq(run_status("import sys, json\nsys.exit(127)"), 127);
	cr_assert_eq(run_status("import os, json\nos.kill(os.getpid(), 15)"), 128 + 15);
}

/* A Chrome trace, as the extension requests */
Test(record, extension_of_traces)
{
	char file[128], *text;
	json_t *root;

	pyprofd_file(&d, "x.trace.json", file, sizeof(file));
	free(ctl_ok(&d, "record", "-p", pid, "-d", "100ms", "-o", file, NULL));
	text = file_text(file, NULL);
	root = json_loads(text, 0, NULL);
	cr_assert(json_array_size(json_object_get(root, "traceEvents")) > 0, "%s", text);
	json_decref(root);
	free(text);
	unlink(file);
}
