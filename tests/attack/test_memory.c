// SPDX-License-Identifier: BSD-2-Clause
/*
 * Targets whose memory and files lie on a FUSE file system whose server does not answer. Whoever
 * reads them waits for ever and cannot be killed; the daemon goes on serving its clients and its
 * other targets, and says what is wrong.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "harness/daemon.h"
#include "harness/fuse.h"
#include "harness/test.h"
#include "harness/traced.h"

#define STATUS_S 1.0  /* in which status is answered */
#define ATTACH_S 15.0 /* in which attach says why it fails; client's limits are higher */
#define PYTHON	 "/usr/bin/python3"

static struct traced hostile, neighbour;
static struct fuse_fs fs;
static struct pyprofd d;
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
	pyprofd_end(&d);
}

TestSuite(memory, .init = setup, .fini = teardown, .timeout = 100);

/* A daemon that traces a program at work. */
static void start_daemon(void)
{
	traced_start(&neighbour, traced_newest().exe, "run.py", "busy_empty", "12", NULL);
	traced_expect(&neighbour, "ready");
	pid_text(neighbour_pid, neighbour.pid);
	pyprofd_start(&d, "--no-verify", "--pid", neighbour_pid, NULL);
	traced_go(&neighbour);
}

static void start_hostile(const char *exe)
{
	traced_start(&hostile, exe, "fuse_over.py", fs.file, NULL);
	traced_expect(&hostile, "ready");
	pid_text(hostile_pid, hostile.pid);
}

static void cover(void)
{
	traced_go(&hostile);
	traced_expect(&hostile, "covered");
}

/* `pyprofctl COMMAND --pid PID` or `COMMAND PID` beside the test; its status is the exit code. */
static pid_t ctl_beside(const char *command, const char *option, const char *pid)
{
	pid_t child = fork();

	if (child == 0) {
		struct ran r = option ? ctl(&d, command, option, pid, NULL)
				      : ctl(&d, command, pid, NULL);

		if (!strstr(r.err, "memory") && !strstr(r.err, "FUSE"))
			_exit(100); /* it must say why */
		_exit(r.status);
	}
	return child;
}

/* Ask for the status until the child has ended. Returns its exit code. */
static int serve_until(pid_t child, double seconds)
{
	double begin = traced_seconds();
	int status;

	while (waitpid(child, &status, WNOHANG) == 0) {
		cr_assert(ctl_answers(&d, STATUS_S), "status was held up");
		cr_assert_lt(traced_seconds() - begin, seconds, "no answer in time");
	}
	cr_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void neighbour_lost_nothing(void)
{
	for (size_t i = 0; i < 2; i++) {
		json_t *t = ctl_target(&d, i);

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

/* Arguments, and what tells one start of a program from another, cannot be read. */
Test(memory, of_a_process_to_be_attached)
{
	int status;

	if (!fuse_start(&fs, NULL))
		cr_skip_test("needs FUSE");
	start_daemon();
	start_hostile(PYTHON);
	cover();
	status = serve_until(ctl_beside("attach", NULL, hostile_pid), ATTACH_S);
	cr_assert_eq(status, 1, "status %d", status);
	neighbour_lost_nothing();
}

/* The same in one that is traced already. */
Test(memory, of_a_target)
{
	int status;

	if (!fuse_start(&fs, NULL))
		cr_skip_test("needs FUSE");
	start_daemon();
	start_hostile(PYTHON);
	free(ctl_ok(&d, "attach", hostile_pid, NULL));
	cover();
	free(ctl_ok(&d, "stop", "--pid", hostile_pid, NULL));
	status = serve_until(ctl_beside("start", "--pid", hostile_pid), ATTACH_S);
	cr_assert_eq(status, 1, "status %d", status);
	neighbour_lost_nothing();
}

/* The kernel would read it, holding a lock that every fork on the machine needs. */
Test(memory, of_an_executable)
{
	int status;

	if (!fuse_start(&fs, PYTHON))
		cr_skip_test("needs FUSE");
	setenv("PYTHONHOME", "/usr", 1);
	start_hostile(fs.file);
	unsetenv("PYTHONHOME");
	fuse_silence(&fs);
	start_daemon();
	status = serve_until(ctl_beside("attach", NULL, hostile_pid), ATTACH_S);
	cr_assert_eq(status, 5, "status %d", status);
	neighbour_lost_nothing();
}
