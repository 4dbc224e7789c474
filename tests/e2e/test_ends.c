// SPDX-License-Identifier: BSD-2-Clause
/*
 * The ways in which pyprofd ends: by a signal, by the duration, by the end of the target, by
 * `shutdown`. In each case it keeps the data, writes the output of -o, exits with 0, and leaves
 * nothing behind.
 */
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/test.h"
#include "harness/traced.h"

static struct pyprofd d;
static struct traced t;
static char pid[16], file[128];

static void setup(void)
{
	struct interpreter it = traced_newest();

	traced_ready(&t, pid, it.exe, "run.py", "busy_empty", "0", "1000", NULL);
	pyprofd_init(&d);
}

static void teardown(void)
{
	pyprofd_deinit(&d);
	traced_stop(&t);
}

TestSuite(ends, .init = setup, .fini = teardown);

static const char *in_dir(const char *name)
{
	return pyprofd_file(&d, name, file, sizeof(file));
}

/*
 * Trace the target's loop, and leave the target waiting at `done`. Returns the target's own number
 * of calls of empty().
 */
static json_int_t work(void)
{
	json_t *result;
	json_int_t calls;

	pyprofd_ready(&d);
	traced_go(&t);
	traced_expect(&t, "done");
	result = json_loads(t.result, 0, NULL);
	calls = json_integer_value(json_object_get(result, "calls"));
	json_decref(result);
	return calls;
}

static void check_report(const char *text, json_int_t calls)
{
	char row[64];

	snprintf(row, sizeof(row), "%9lld ", (long long)calls);
	cr_assert(text, "no report");
	cr_assert(strstr(text, row) && strstr(text, "(empty)"), "%s is not in %s", row, text);
	cr_assert(strstr(text, "exact counts: "), "%s", text);
}

/* Checks that the daemon exited with 0 and wrote the file. */
static void check_end(json_int_t calls)
{
	struct ran r = pyprofd_wait(&d);
	char *text = file_text(file, NULL);

	cr_assert(r.status == 0, "status %d: %s", r.status, r.err);
	cr_assert_str_eq(r.err, "");
	cr_assert_str_eq(r.out, "");
	check_report(text, calls);
	free(text);
	ran_free(&r);
}

Test(ends, by_sighup)
{
	json_int_t calls;

	pyprofd_launch(&d, "--pid", pid, "-o", in_dir("p.txt"), NULL);
	calls = work();
	cr_assert(access(file, F_OK) < 0, "written too early");
	kill(d.pid, SIGHUP);
	check_end(calls);
	traced_finish(&t);
}

/* Not before, and however little the target has done meanwhile */
Test(ends, by_the_duration)
{
	const double start = traced_seconds();
	struct ran r;
	double took;
	char *text;

	pyprofd_launch(&d, "--pid", pid, "-d", "1.5", "-o", in_dir("p.txt"), NULL);
	r = pyprofd_wait(&d);
	took = traced_seconds() - start;
	cr_assert(r.status == 0 && !*r.err, "status %d: %s", r.status, r.err);
	cr_assert_geq(took, 1.5, "it ended too early");
	ran_free(&r);
	text = file_text(file, NULL);
	cr_assert(text && strstr(text, " function calls in "), "%s", text);
	free(text);
	traced_go(&t);
	traced_expect(&t, "done");
	traced_finish(&t);
}

Test(ends, by_the_targets_exit)
{
	json_int_t calls;

	pyprofd_launch(&d, "--pid", pid, "-o", in_dir("p.txt"), NULL);
	calls = work();
	traced_close(&t);
	cr_assert_eq(traced_wait(&t), 0);
	check_end(calls);
}

Test(ends, by_the_targets_death)
{
	json_int_t calls;

	pyprofd_launch(&d, "--pid", pid, "-o", in_dir("p.txt"), NULL);
	calls = work();
	kill(t.pid, SIGKILL);
	cr_assert_eq(traced_wait(&t), SIGKILL);
	check_end(calls);
}

Test(ends, by_shutdown)
{
	json_int_t calls;

	pyprofd_launch(&d, "--pid", pid, "-o", in_dir("p.txt"), NULL);
	calls = work();
	free(ctl_ok(&d, "shutdown", NULL));
	cr_assert(access(file, R_OK) == 0, "shutdown returns when it is written");
	check_end(calls);
}

Test(ends, when_the_last_of_several_has_ended)
{
	struct traced u;
	char pid2[16];
	json_int_t calls;

	traced_ready(&u, pid2, traced_newest().exe, "run.py", "busy_empty", "0", "1000", NULL);
	pyprofd_launch(&d, "--pid", pid, "--pid", pid2, "-o", in_dir("p.txt"), NULL);
	calls = work();
	traced_finish(&t);
	free(ctl_ok(&d, "ping", NULL));
	traced_stop(&u);
	check_end(calls);
}

/* Without -o, the report goes to stdout if -f was given; by SIGINT. */
Test(ends, report_on_stdout)
{
	json_int_t calls;
	struct ran r;

	pyprofd_launch(&d, "-p", pid, "-f", "text", NULL);
	calls = work();
	kill(d.pid, SIGINT);
	r = pyprofd_wait(&d);
	cr_assert_eq(r.status, 0);
	check_report(r.out, calls);
	ran_free(&r);
}

Test(ends, no_start)
{
	char *text;

	pyprofd_launch(&d, "--pid", pid, "--no-start", "-o", in_dir("p.txt"), NULL);
	work();
	kill(d.pid, SIGTERM);
	cr_assert_eq(pyprofd_wait(&d).status, 0);
	text = file_text(file, NULL);
	cr_assert(text && !strstr(text, "(empty)"), "%s", text);
	free(text);
}

Test(ends, clock_of_the_reports)
{
	char *text;

	pyprofd_launch(&d, "--pid", pid, "--clock", "wall", NULL);
	work();
	text = ctl_ok(&d, "snapshot", NULL);
	cr_assert(strstr(text, "wall"), "%s", text);
	free(text);
	text = ctl_ok(&d, "snapshot", "--clock", "cpu", NULL);
	cr_assert(strstr(text, "; CPU time\n"), "%s", text);
	free(text);
	kill(d.pid, SIGTERM);
	cr_assert_eq(pyprofd_wait(&d).status, 0);
}

Test(ends, a_command_that_ends)
{
	struct ran r;
	char *text;

	pyprofd_launch(&d, "-o", in_dir("p.txt"), "--", traced_newest().exe, "-c",
		       "def f(n): return n and f(n - 1)\n"
		       "for i in range(1000): f(9)\n"
		       "print('worked')",
		       NULL);
	r = pyprofd_wait(&d);
	cr_assert(r.status == 0, "%d: %s", r.status, r.err);
	cr_assert_str_eq(r.out, "worked\n");
	cr_assert_str_eq(r.err, "");
	text = file_text(file, NULL);
	cr_assert(strstr(text, "10000/1000 "), "%s", text);
	free(text);
	ran_free(&r);
}

/* The daemon reports the command's exit status and does not adopt it. */
Test(ends, a_command_that_fails)
{
	struct ran r;

	pyprofd_launch(&d, "--", traced_newest().exe, "-c", "import sys; sys.exit(9)", NULL);
	r = pyprofd_wait(&d);
	cr_assert(r.status == 0, "%d: %s", r.status, r.err);
	cr_assert(strstr(r.err, "status 9"), "%s", r.err);
	ran_free(&r);
}

/* The daemon passes the signal on to the command, which ends. */
Test(ends, a_command_by_sigterm)
{
	struct ran r;

	pyprofd_launch(&d, "--", traced_newest().exe, "-c", "import time; time.sleep(3600)", NULL);
	pyprofd_ready(&d);
	kill(d.pid, SIGTERM);
	r = pyprofd_wait(&d);
	cr_assert(r.status == 0, "%d: %s", r.status, r.err);
	ran_free(&r);
}

Test(ends, commands_that_cannot_be_traced)
{
	pyprofd_fails(&d, 1, "cannot run", "--", "/nonexistent/python", NULL);
	pyprofd_fails(&d, 5, "cannot trace", "--", "/bin/true", NULL);
	pyprofd_fails(&d, 5, "cannot trace", "--", "/bin/sleep", "30", NULL);
}

/* After kill -9 the socket stays, and the next daemon takes it over. It ends by SIGTERM. */
Test(ends, killed_and_replaced)
{
	json_int_t calls;
	struct ran r;

	pyprofd_launch(&d, "--pid", pid, NULL);
	pyprofd_ready(&d);
	kill(d.pid, SIGKILL);
	r = pyprofd_wait(&d);
	cr_assert_eq(r.status, 128 + SIGKILL);
	ran_free(&r);
	cr_assert(access(d.sock, F_OK) == 0, "the socket has stayed");
	ctl_fails(&d, 6, "no daemon", "ping", NULL);
	pyprofd_launch(&d, "--pid", pid, "-o", in_dir("p.txt"), NULL);
	calls = work();
	kill(d.pid, SIGTERM);
	check_end(calls);
	traced_finish(&t);
}

Test(ends, notifies_systemd)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const struct timeval deadline = patience_left();
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	char name[128], variable[160], said[256] = "";
	char *env[] = {variable, NULL};

	pyprofd_file(&d, "notify", name, sizeof(name));
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%.100s", name);
	snprintf(variable, sizeof(variable), "NOTIFY_SOCKET=%s", name);
	assert_ok(bind(fd, (struct sockaddr *)&addr, sizeof(addr)));
	assert_ok(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline)));
	d.env = env;
	pyprofd_launch(&d, "--pid", pid, NULL);
	cr_assert(recv(fd, said, sizeof(said) - 1, 0) > 0);
	cr_assert(strstr(said, "READY=1"), "%s", said);
	free(ctl_ok(&d, "ping", NULL));
	kill(d.pid, SIGTERM);
	memset(said, 0, sizeof(said));
	cr_assert(recv(fd, said, sizeof(said) - 1, 0) > 0);
	cr_assert(strstr(said, "STOPPING=1"), "%s", said);
	cr_assert_eq(pyprofd_wait(&d).status, 0);
	unlink(name);
}
