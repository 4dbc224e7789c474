// SPDX-License-Identifier: BSD-2-Clause
/*
 * Processes that are held up in the middle of an exec: the kernel closes a file of a FUSE file
 * system there, whose server does not answer. On Linux 6.18 whoever reads their stat, exe, auxv,
 * map_files or fd waits as long. The daemon goes on serving its clients and its other targets.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "harness/daemon.h"
#include "harness/fuse.h"
#include "harness/test.h"
#include "harness/traced.h"

#define STATUS_S 1.0  /* in which status and stop are answered */
#define ATTACH_S 15.0 /* in which attach succeeds, or says why it fails */
#define WATCH_S	 3.0  /* what is done from time to time is done in that */
#define PYTHON	 "/usr/bin/python3"

static struct traced hostile, neighbour;
static struct fuse_fs fs;
static struct pyprofd d, second;
static char hostile_pid[16], neighbour_pid[16];

static void setup(void)
{
	if (geteuid() != 0)
		cr_skip_test("needs root");
}

/* What waits for the server can only end after it. */
static void teardown(void)
{
	fuse_end(&fs);
	traced_stop(&hostile);
	traced_stop(&neighbour);
	pyprofd_end(&second);
	pyprofd_end(&d);
}

TestSuite(exec, .init = setup, .fini = teardown, .timeout = 100);

/* A daemon that traces a program at work. */
static void start_daemon(void)
{
	traced_start(&neighbour, traced_newest().exe, "run.py", "busy_empty", "12", NULL);
	traced_expect(&neighbour, "ready");
	pid_text(neighbour_pid, neighbour.pid);
	pyprofd_start(&d, "--no-verify", "--pid", neighbour_pid, NULL);
	traced_go(&neighbour);
}

static void start_hostile(void)
{
	if (!fuse_start(&fs, NULL))
		cr_skip_test("needs FUSE");
	traced_start(&hostile, PYTHON, "fuse_exec.py", fs.file, NULL);
	traced_expect(&hostile, "ready");
	pid_text(hostile_pid, hostile.pid);
}

static void stop_in_exec(void)
{
	double end = traced_seconds() + 10;

	fuse_silence(&fs);
	traced_go(&hostile);
	while (!fuse_holds_a_close(&fs)) {
		cr_assert_lt(traced_seconds(), end, "the exec has not begun");
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
}

static void ask_status(const struct pyprofd *of)
{
	cr_assert(ctl_answers(of, STATUS_S), "status was held up");
}

static void watch(const struct pyprofd *of)
{
	double end = traced_seconds() + WATCH_S;

	while (traced_seconds() < end)
		ask_status(of);
}

/* Attach beside the test, and ask for the status meanwhile. Returns the exit code. */
static int attach_beside(const struct pyprofd *to, const char *pid, const char *why)
{
	double begin = traced_seconds();
	pid_t child = fork();
	int status;

	if (child == 0) {
		struct ran r = ctl(to, "attach", pid, NULL);

		_exit(why && !strstr(r.err, why) ? 100 : r.status);
	}
	while (waitpid(child, &status, WNOHANG) == 0) {
		ask_status(to);
		cr_assert_lt(traced_seconds() - begin, ATTACH_S, "no answer in time");
	}
	cr_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void check_lossless(const struct pyprofd *of)
{
	for (size_t i = 0; i < 2; i++) {
		json_t *t = ctl_target(of, i);

		if (t && json_integer_value(json_object_get(t, "pid")) == neighbour.pid) {
			cr_assert_eq(json_integer_value(json_object_get(t, "lost")), 0);
			cr_assert_gt(json_integer_value(json_object_get(t, "events")), 1000);
			json_decref(t);
			return;
		}
		json_decref(t);
	}
	cr_assert(false, "the neighbour is not there");
}

static void stop_neighbour(const struct pyprofd *of)
{
	double start = traced_seconds();

	free(ctl_ok(of, "stop", "--pid", neighbour_pid, NULL));
	cr_assert_lt(traced_seconds() - start, STATUS_S, "stop was held up");
	check_lossless(of);
}

static bool tells(const struct pyprofd *of, const char *what)
{
	_cleanup_free_ char *status = ctl_ok(of, "status", NULL);

	return strstr(status, what) != NULL;
}

Test(exec, of_a_process_to_be_attached)
{
	start_daemon();
	start_hostile();
	stop_in_exec();
	cr_assert_eq(attach_beside(&d, hostile_pid, "could not be read in time"), 1);
	/* Known by now: refused at once. */
	cr_assert_eq(attach_beside(&d, hostile_pid, "could not be read in time"), 1);
	watch(&d);
	stop_neighbour(&d);
}

/* It stays a target: what it has become is found out after the exec. */
Test(exec, of_a_target)
{
	double start;

	start_daemon();
	start_hostile();
	free(ctl_ok(&d, "attach", hostile_pid, NULL));
	stop_in_exec();
	watch(&d);
	stop_neighbour(&d);
	start = traced_seconds();
	free(ctl_ok(&d, "stop", "--pid", hostile_pid, NULL));
	cr_assert_lt(traced_seconds() - start, STATUS_S, "its stop was held up");
	ctl_fails(&d, 1, "could not be read in time", "start", "--pid", hostile_pid, NULL);
	watch(&d);
}

/* The other daemon is looked for among all processes. What cannot be read then is left out. */
Test(exec, of_a_stranger)
{
	char who[64];
	double start;

	start_hostile();
	stop_in_exec();
	start_daemon();
	pyprofd_start(&second, "--no-verify", NULL);
	cr_assert_eq(attach_beside(&second, neighbour_pid, NULL), 0);
	watch(&second);
	watch(&d);
	start = traced_seconds();
	stop_neighbour(&second);
	snprintf(who, sizeof(who), "another tracer (pid %d)", (int)d.pid);
	cr_assert(tells(&second, who), "the other daemon is not named");
	stop_neighbour(&d);
	cr_assert_lt(traced_seconds() - start, 3 * STATUS_S, "one of the stops was held up");
}
