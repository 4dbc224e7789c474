// SPDX-License-Identifier: BSD-2-Clause
/* Every command of pyprofctl, on daemons that trace real targets. */
#include <jansson.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "pyprof/version.h"

static struct pyprofd d;
static struct traced t, u;
static char pid[16], pid2[16];

/* Starts a target that waits at `ready`, and then calls empty(), for this time and so often. */
static void start_target(struct traced *target, char text[16], const char *seconds,
			 const char *calls)
{
	struct interpreter it = traced_newest();

	traced_ready(target, text, it.exe, "run.py", "busy_empty", seconds, calls, NULL);
}

static void setup(void)
{
	start_target(&t, pid, "0", "5000");
	pyprofd_start(&d, NULL);
}

static void teardown(void)
{
	pyprofd_shutdown(&d);
	traced_stop(&t);
}

TestSuite(commands, .init = setup, .fini = teardown);

static json_int_t number(json_t *target, const char *key)
{
	json_t *v = json_object_get(target, key);

	cr_assert(json_is_integer(v), "%s is not a number", key);
	return json_integer_value(v);
}

static void check_state(size_t i, const char *state)
{
	json_t *target = ctl_target_at_rest(&d, i);

	cr_assert_str_eq(json_string_value(json_object_get(target, "state")), state);
	json_decref(target);
}

static void ok(const char *a, const char *b, const char *c)
{
	free(ctl_ok(&d, a, b, c, NULL));
}

/* Runs the target's loop; returns the target's own count of calls of empty(). */
static json_int_t run_target(struct traced *target)
{
	json_t *result;
	json_int_t calls;

	traced_go(target);
	traced_expect(target, "done");
	result = json_loads(target->result, 0, NULL);
	calls = json_integer_value(json_object_get(result, "calls"));
	cr_assert(calls > 0, "it says %s", target->result);
	json_decref(result);
	return calls;
}

/* Returns the number of calls of empty() in a text report; 0 without such a row. */
static long long calls_of_empty(const char *report)
{
	const char *row = strstr(report, "(empty)");

	if (!row)
		return 0;
	while (row > report && row[-1] != '\n')
		row--;
	return strtoll(row, NULL, 10);
}

static long long snapshot_calls(const char *opt, const char *value)
{
	char *text = ctl_ok(&d, "snapshot", "-f", "text", opt, value, NULL);
	long long n = calls_of_empty(text);

	free(text);
	return n;
}

/* ---- without a target ---- */

static void nothing_is_traced(void)
{
	char *text = ctl_ok(&d, "status", NULL);

	cr_assert(strstr(text, "no targets"), "%s", text);
	free(text);
	ok("ping", NULL, NULL);
	ok("start", NULL, NULL);
	ok("stop", NULL, NULL);
	ok("clear", NULL, NULL);
	ok("snapshot", NULL, NULL);
	ctl_fails(&d, 3, "not attached", "detach", pid, NULL);
	ctl_fails(&d, 3, "not attached", "start", "--pid", pid, NULL);
	ctl_fails(&d, 3, "not attached", "snapshot", "--pid", pid, NULL);
}

static void doctor_needs_no_daemon(void)
{
	struct pyprofd other;
	char *text;

	pyprofd_init(&other);
	text = ctl_ok(&other, "doctor", pid, NULL);
	cr_assert(strstr(text, "can be traced"), "%s", text);
	cr_assert(strstr(text, "build-id") && strstr(text, "leave"), "%s", text);
	cr_assert(strstr(text, "\nforecast"), "%s", text);
	free(text);
	text = ctl_ok(&other, "doctor", traced_newest().file, NULL);
	cr_assert(strstr(text, "can be traced"), "%s", text);
	free(text);
	pyprofd_deinit(&other);
}

/* The program only calls functions, so the forecast overhead is over 100 %. */
static void doctor_forecasts(void)
{
	struct traced busy;
	char *text, of[16];

	/* doctor looks at the process for a moment, in which it must have a CPU: before other work of the machine. */
	assert_ok(setpriority(PRIO_PROCESS, 0, -20));
	traced_ready(&busy, NULL, traced_newest().exe, "shares.py", "calls", NULL);
	text = ctl_ok(&d, "doctor", pid_text(of, busy.pid), NULL);
	cr_assert(strstr(text, " million calls per second of CPU time, trace +"), "%s", text);
	cr_assert(strstr(text, "less overhead"), "%s", text);
	free(text);
	/* The forecast has left no breakpoint in the process. */
	text = ctl_ok(&d, "doctor", pid_text(of, busy.pid), NULL);
	cr_assert(!strstr(text, "breakpoints "), "%s", text);
	free(text);
	traced_stop(&busy);
}

static void help_and_version(void)
{
	static const char *const names[] = {"attach", "detach", "start",    "stop",	"clear",
					    "status", "ping",	"shutdown", "snapshot", "doctor"};
	struct pyprofd none = {.sock = "/nonexistent/socket"};
	char *text = ctl_ok(&none, "--help", NULL);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *one = ctl_ok(&none, names[i], "--help", NULL);

		cr_assert(strstr(text, names[i]), "%s is not in --help", names[i]);
		cr_assert(strstr(one, names[i]));
		free(one);
	}
	free(text);
	text = ctl_ok(&none, "--version", NULL);
	cr_assert_str_eq(text, "pyprofctl " PYPROF_VERSION "\n");
	free(text);
}

Test(commands, without_a_target)
{
	nothing_is_traced();
	help_and_version();
	doctor_needs_no_daemon();
	doctor_forecasts();
}

/* ---- with targets ---- */

/* The valid process is attached; the other one is reported. */
static void attach_several_one_bad(void)
{
	char line[64];
	struct ran r;

	pid_text(pid2, pid_of_nobody());
	r = ctl(&d, "attach", pid2, pid, NULL);
	snprintf(line, sizeof(line), "process %s: attached\n", pid);
	cr_assert_eq(r.status, 3);
	cr_assert(strstr(r.err, pid2), "%s", r.err);
	cr_assert_str_eq(r.out, line);
	ran_free(&r);
	check_state(0, "tracing");
	ctl_fails(&d, 7, "attached already", "attach", pid, NULL);
	ctl_fails(&d, 2, "not a process id", "attach", pid, "0", NULL);
	ctl_fails(&d, 2, "given twice", "attach", pid, pid, NULL);
	ctl_fails(&d, 2, "no process is given", "attach", NULL);
	ctl_fails(&d, 2, "no process is given", "dump", "--json", NULL);
}

static void status_for_programs(void)
{
	char *text = ctl_ok(&d, "status", "--json", NULL);
	json_t *root = json_loads(text, 0, NULL), *target;

	target = json_array_get(json_object_get(root, "targets"), 0);
	cr_assert_eq(number(root, "pid"), d.pid);
	cr_assert(number(root, "uptime_ns") > 0);
	cr_assert_eq(number(target, "pid"), t.pid);
	cr_assert(strstr(json_string_value(json_object_get(target, "cmdline")), "busy_empty"));
	cr_assert(json_is_true(json_object_get(target, "exact")));
	cr_assert(json_is_object(json_object_get(target, "losses")));
	json_decref(root);
	free(text);
}

static void counts_exactly(void)
{
	long long calls = run_target(&t);

	cr_assert_eq(snapshot_calls(NULL, NULL), calls);
	cr_assert_eq(snapshot_calls("--pid", pid), calls);
	cr_assert_eq(snapshot_calls("--tid", pid), calls, "its main thread");
	cr_assert_eq(snapshot_calls("--clock", "wall"), calls);
	cr_assert_eq(ctl_number(&d, 0, "lost"), 0);
	cr_assert_eq(ctl_number(&d, 0, "unmatched"), 0);
	ctl_fails(&d, 3, "thread 1 was not traced", "snapshot", "--tid", "1", NULL);
	ctl_fails(&d, 3, "not attached", "snapshot", "--pid", "1", NULL);
}

static void detach_forgets(void)
{
	ok("detach", pid, NULL);
	ctl_fails(&d, 3, "not attached", "detach", pid, NULL);
	cr_assert_eq(snapshot_calls(NULL, NULL), 0);
	ok("attach", pid, NULL);
	cr_assert_eq(ctl_number(&d, 0, "lost"), 0);
	cr_assert_eq(snapshot_calls(NULL, NULL), 0);
}

Test(commands, attach_and_detach)
{
	attach_several_one_bad();
	status_for_programs();
	counts_exactly();
	detach_forgets();
}

Test(commands, start_after_attach)
{
	long long calls;

	ok("attach", "--no-start", pid);
	ok("start", "-p", pid);
	check_state(0, "tracing");
	ok("start", NULL, NULL);
	calls = run_target(&t);
	cr_assert_eq(snapshot_calls(NULL, NULL), calls);
	ok("clear", "--pid", pid);
	cr_assert_eq(snapshot_calls(NULL, NULL), 0);
	check_state(0, "tracing");
}

/* Waits until more than this many calls of empty() are reported. */
static long long wait_for_calls(long long more)
{
	long long n;

	while ((n = snapshot_calls(NULL, NULL)) <= more) {
		cr_assert(!patience_over(), "still %lld calls", n);
		patience_step();
	}
	return n;
}

/*
 * While the target is calling: nothing is counted before start, stop keeps the data, and start continues
 * it.
 */
Test(commands, stop_and_start_again)
{
	long long n;

	traced_stop(&t);
	start_target(&t, pid, "3600", NULL);
	ok("attach", "--no-start", pid);
	check_state(0, "attached");
	traced_go(&t);
	traced_work(&t, PATIENCE_MOMENT_MS);
	cr_assert_eq(snapshot_calls(NULL, NULL), 0);
	cr_assert_eq(ctl_number(&d, 0, "events"), 0);
	ok("start", NULL, NULL);
	wait_for_calls(0);
	ok("stop", NULL, NULL);
	check_state(0, "attached");
	ok("stop", NULL, NULL);
	n = snapshot_calls(NULL, NULL);
	cr_assert(n > 0);
	cr_assert_eq(snapshot_calls(NULL, NULL), n);
	ok("start", "--pid", pid);
	wait_for_calls(n);
	cr_assert_eq(ctl_number(&d, 0, "lost"), 0);
	cr_assert_eq(ctl_number(&d, 0, "unmatched"), 0);
}

static bool has_ended(void)
{
	json_t *target = ctl_target(&d, 0);
	bool ended = strcmp(json_string_value(json_object_get(target, "state")), "ended") == 0;

	json_decref(target);
	return ended;
}

/* One of them ends, and then the other one. */
Test(commands, two_targets)
{
	long long a, b;
	char *text;

	start_target(&u, pid2, "0", "8000");
	ok("attach", pid, pid2);
	text = ctl_ok(&d, "status", NULL);
	cr_assert(strstr(text, pid) && strstr(text, pid2), "%s", text);
	free(text);
	a = run_target(&t);
	b = run_target(&u);
	cr_assert_eq(snapshot_calls("--pid", pid), a);
	cr_assert_eq(snapshot_calls("--pid", pid2), b);
	cr_assert_eq(snapshot_calls(NULL, NULL), a + b);
	ok("stop", "--pid", pid2);
	check_state(0, "tracing");
	check_state(1, "attached");
	traced_close(&t);
	cr_assert_eq(traced_wait(&t), 0);
	while (!has_ended()) {
		cr_assert(!patience_over(), "its end is not noticed");
		patience_step();
	}
	cr_assert_eq(snapshot_calls("--pid", pid), a, "its data is kept");
	ctl_fails(&d, 3, "has ended", "start", "--pid", pid, NULL);
	ok("detach", pid, NULL);
	cr_assert_eq(ctl_number(&d, 0, "pid"), u.pid);
	cr_assert_eq(snapshot_calls(NULL, NULL), b);
	traced_finish(&u);
}
