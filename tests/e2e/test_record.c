// SPDX-License-Identifier: BSD-2-Clause
/*
 * record and run: a single command attaches and writes a profile, with and without a running
 * daemon.
 */
#include <jansson.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/daemon.h"
#include "harness/sites.h"
#include "harness/test.h"
#include "harness/tool.h"
#include "harness/traced.h"

static struct pyprofd d;
static struct traced t;
static char pid[16];

/* The tests that trace it end it, or let it end once it is probed: attaching takes its time. */
static void setup(void)
{
	struct interpreter it = traced_newest();

	traced_ready(&t, pid, it.exe, "run.py", "busy_empty", "1", NULL);
	pyprofd_init(&d);
}

static void teardown(void)
{
	traced_stop(&t);
	pyprofd_deinit(&d);
}

TestSuite(record, .init = setup, .fini = teardown);

/* Checks that this is a profile of the target, as JSON, with calls. */
static void check_profile(const char *text)
{
	json_t *root = json_loads(text, 0, NULL), *targets = json_object_get(root, "targets");
	json_t *calls = json_object_get(json_object_get(root, "totals"), "ncalls");

	cr_assert(root, "%s", text);
	cr_assert_eq(json_array_size(targets), 1);
	cr_assert_eq(json_integer_value(json_object_get(json_array_get(targets, 0), "pid")), t.pid);
	cr_assert(json_integer_value(calls) > 0);
	json_decref(root);
}

static bool probes_on(pid_t of)
{
	struct sites sites;

	sites_find(&sites, of);
	return sites_changed(&sites, of) == (int)sites.n;
}

/* Let the target run, and end, as soon as it is probed, while the test waits for a command. */
static void go_when_probed(void)
{
	double deadline = traced_seconds() + DAEMON_DEADLINE;
	struct sites sites;
	pid_t child;

	sites_find(&sites, t.pid);
	child = fork();
	cr_assert(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (sites_changed(&sites, t.pid) != (int)sites.n && traced_seconds() < deadline)
			usleep(10000);
		traced_go(&t);
		_exit(0);
	}
	traced_close(&t);
}

Test(record, without_a_daemon_until_the_target_ends)
{
	char *text;

	go_when_probed();
	text = ctl_ok(&d, "record", "--pid", pid, "-d", "100", "-f", "json", NULL);
	check_profile(text);
	free(text);
	cr_assert(access(d.sock, F_OK) < 0);
}

Test(record, with_the_daemon_that_runs)
{
	json_t *status;
	struct ran r;
	char *text;

	traced_stop(&t);
	traced_ready(&t, pid, traced_newest().exe, "run.py", "busy_empty", "120", NULL);
	pyprofd_launch(&d, NULL);
	pyprofd_ready(&d);
	traced_go(&t);
	text = ctl_ok(&d, "record", "--pid", pid, "-d", "500ms", "-f", "json", NULL);
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

/* Start `record` with these arguments, in the background. */
static pid_t record_start(const char *const *args)
{
	const char *argv[16] = {"pyprofctl", "--socket", d.sock, "record"};
	char program[4096];
	pid_t child;

	for (size_t i = 0; args[i]; i++)
		argv[4 + i] = args[i];
	snprintf(program, sizeof(program), "%s/pyprofctl", getenv("PYPROF_BUILD"));
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execv(program, (char *const *)argv);
		_exit(127);
	}
	cr_assert(child > 0);
	return child;
}

/*
 * Recording continues until the last target has ended, here not the one named first; one profile
 * has both.
 */
Test(record, several)
{
	double deadline = traced_seconds() + DAEMON_DEADLINE;
	struct interpreter it = traced_newest();
	char other_pid[16], file[128], *text;
	struct traced other;
	pid_t child, first;
	int status;
	json_t *root;

	traced_ready(&other, NULL, it.exe, "run.py", "busy_empty", "0.2", NULL);
	first = other.pid; /* saved, as waiting clears it */
	pid_text(other_pid, first);
	pyprofd_file(&d, "out.json", file, sizeof(file));
	child = record_start(
		(const char *const[]){"-p", other_pid, "--pid", pid, "-o", file, NULL});
	while (!probes_on(t.pid) || !probes_on(first))
		cr_assert(traced_seconds() < deadline, "nothing is being recorded");
	traced_go(&other);
	traced_close(&other);
	cr_assert_eq(traced_wait(&other), 0);
	cr_assert_eq(waitpid(child, &status, WNOHANG), 0, "it goes on with the other");
	traced_go(&t);
	traced_close(&t);
	cr_assert(waitpid(child, &status, 0) == child && status == 0, "status %x", status);
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

/* If one process cannot be traced, the others are recorded; the exit status shows it. */
Test(record, one_of_several_is_wrong)
{
	struct ran r;
	json_t *root;

	ctl_fails(&d, PYP_EXIT_USAGE, "given twice", "record", "-p", pid, "-p", pid, NULL);
	ctl_fails(&d, PYP_EXIT_NO_PROCESS, "no process", "record", "-p", "4194303", NULL);
	cr_assert(!probes_on(t.pid));
	r = ctl(&d, "record", "-p", "4194303", "-p", pid, "-d", "200ms", "-f", "json", NULL);
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
	go_when_probed();
	text = ctl_ok(&d, "record", "-p", pid, "-s", "calls", "--strip-dirs", "--raw-times",
		      "busy_empty", "2", NULL);
	cr_assert(strstr(text, " busy_empty.py:") && strstr(text, "(empty)") &&
			  !strstr(text, "proto.py:"),
		  "%s", text);
	cr_assert(strstr(text, "times include the probes' own"), "%s", text);
	free(text);
}

/* Interrupted after the daemon has seen the first calls, however long that takes. */
Test(record, ctrl_c_keeps_what_there_is)
{
	double deadline = traced_seconds() + DAEMON_DEADLINE;
	char file[128], *text;
	bool recording = false;
	struct ran r;
	pid_t child;
	int status;

	pyprofd_file(&d, "out.json", file, sizeof(file));
	pyprofd_launch(&d, NULL);
	pyprofd_ready(&d);
	child = record_start((const char *const[]){"--pid", pid, "-o", file, NULL});
	while (!recording) {
		json_t *all = ctl_status(&d), *target;

		target = json_array_get(json_object_get(all, "targets"), 0);
		if (target && t.in >= 0 && json_integer_value(json_object_get(target, "threads")))
			traced_close(&t);
		recording = json_integer_value(json_object_get(target, "events")) > 0;
		json_decref(all);
		cr_assert(recording || traced_seconds() < deadline, "nothing is being recorded");
	}
	kill(child, SIGINT);
	cr_assert(waitpid(child, &status, 0) == child && status == 0, "status %x", status);
	text = file_text(file, NULL);
	check_profile(text);
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
	free(ctl_ok(&d, "record", "-p", pid, "-d", "200ms", "-o", file, NULL));
	text = file_text(file, NULL);
	root = json_loads(text, 0, NULL);
	cr_assert(json_array_size(json_object_get(root, "traceEvents")) > 0, "%s", text);
	json_decref(root);
	free(text);
	unlink(file);
}
