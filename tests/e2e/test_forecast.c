// SPDX-License-Identifier: BSD-2-Clause
/*
 * The expected overhead of a mode is reported before a process is attached. By default it has a limit. Without one, the
 * user is asked for consent at a terminal if it is high; elsewhere, --yes is needed.
 */
#include <poll.h>
#include <pty.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/test.h"
#include "harness/traced.h"

static struct pyprofd d;
static struct traced busy;
static char pid[16];

static void setup(void)
{
	/* The daemon looks at the target for a moment, in which it must have a CPU: before other work of the machine. */
	assert_ok(setpriority(PRIO_PROCESS, 0, -20));
	/* The target only calls functions. */
	traced_ready(&busy, pid, traced_newest().exe, "shares.py", "calls", NULL);
	pyprofd_init(&d);
	d.defaults = true;
}

static void start(void)
{
	pyprofd_launch(&d, NULL);
	pyprofd_ready(&d);
}

static void teardown(void)
{
	if (d.pid)
		pyprofd_shutdown(&d);
	else
		pyprofd_deinit(&d);
	traced_stop(&busy);
}

TestSuite(forecast, .init = setup, .fini = teardown);

static double percent(const json_t *target, const char *key)
{
	return json_number_value(json_object_get(json_object_get(target, "forecast"), key));
}

static json_int_t limit_of(const json_t *target)
{
	return json_integer_value(
		json_object_get(json_object_get(target, "windows"), "max_overhead_percent"));
}

static bool is_attached(void)
{
	json_t *status = ctl_status(&d);
	bool ret = json_array_size(json_object_get(status, "targets")) > 0;

	json_decref(status);
	return ret;
}

/* There is no forecast if the target had no CPU while the daemon looked at it, as may be on a busy machine. */
static bool has_no_forecast(const char *text)
{
	bool none = strstr(text, ": no forecast: ");

	cr_assert(!none || !patience_over(), "%s", text);
	return none;
}

static struct ran attach(const char *option, const char *value)
{
	for (;;) {
		struct ran r = ctl(&d, "attach", pid, option, value, NULL);

		cr_assert_eq(r.status, 0, "%s", r.err);
		if (!has_no_forecast(r.forecast))
			return r;
		ran_free(&r);
		free(ctl_ok(&d, "detach", pid, NULL));
	}
}

/* ---- not at a terminal ---- */

/* Nothing but the limit is known before. */
static void assert_limit(struct ran *r, const char *said)
{
	const char *line = strchr(r->forecast, '\n');

	cr_assert(strstr(r->forecast, said) && line && line[1] == '\0', "%s", r->forecast);
	ran_free(r);
}

/* The probes take at most 10 % of the target's CPU time, so nothing warns and nothing is refused. */
static void has_a_limit_by_default(void)
{
	struct ran r = attach(NULL, NULL);
	json_t *target = ctl_target(&d, 0);

	assert_limit(&r, ": at most about +10 % of its own CPU time, or 0.5 % of a CPU (--exact: "
			 "no limit)\n");
	cr_assert_eq(limit_of(target), 10);
	cr_assert(json_integer_value(json_object_get(target, "rate_hz")) > 0);
	cr_assert(json_is_null(json_object_get(target, "forecast")));
	json_decref(target);
	free(ctl_ok(&d, "detach", pid, NULL));
}

static void has_another_limit(void)
{
	struct ran r = attach("--max-overhead", "5");
	json_t *target = ctl_target(&d, 0);

	assert_limit(&r, ": at most about +5 % of its own CPU time, or 0.5 % of a CPU (--exact: no "
			 "limit)\n");
	cr_assert_eq(limit_of(target), 5);
	json_decref(target);
	free(ctl_ok(&d, "detach", pid, NULL));
}

static void has_none_with_exact(void)
{
	struct ran r = attach("--exact", "--yes");
	json_t *target = ctl_target(&d, 0);

	cr_assert(strstr(r.forecast, "trace +") && strstr(r.forecast, " · the default +10 %"), "%s",
		  r.forecast);
	cr_assert(strstr(r.forecast, "pyprofd: warning: expected overhead: about ") &&
			  strstr(r.forecast, "less overhead: the default"),
		  "%s", r.forecast);
	ran_free(&r);
	cr_assert(percent(target, "count") > 25, "%g", percent(target, "count"));
	cr_assert(percent(target, "trace") > percent(target, "count"));
	cr_assert(!json_object_get(target, "windows"));
	json_decref(target);
	free(ctl_ok(&d, "detach", pid, NULL));
}

/* Runs a command that attaches, until there was a forecast; it must be refused. */
static void assert_refused(const char *const *argv)
{
	struct ran r = {0};

	do {
		ran_free(&r);
		r = ctl(&d, argv[0], argv[1], argv[2], argv[3], argv[4], argv[5], argv[6], NULL);
		if (strcmp(argv[0], "attach") == 0 && r.status == 0)
			free(ctl_ok(&d, "detach", pid, NULL));
	} while (has_no_forecast(r.forecast));
	cr_assert_eq(r.status, PYP_EXIT_USAGE, "%s: %d, %s", argv[0], r.status, r.err);
	cr_assert(strstr(r.err, "not attached to process") && strstr(r.err, "add --yes") &&
			  strstr(r.err, "the default has a limit"),
		  "%s", r.err);
	cr_assert_str_eq(r.out, "");
	ran_free(&r);
}

static void is_refused_without_yes(void)
{
	assert_refused((const char *const[]){"attach", "--exact", pid, NULL, NULL, NULL, NULL});
	cr_assert(!is_attached());
	assert_refused((const char *const[]){"record", "--exact", "-d", "0.1", "--pid", pid, NULL});
	assert_refused((const char *const[]){"slow", "-d", "0.1", "-p", pid, NULL, NULL});
	assert_refused((const char *const[]){"timeline", "-d", "0.1", "-p", pid, NULL, NULL});
	cr_assert(!is_attached());
}

static void counts_resources_of_every_call(void)
{
	ctl_fails(&d, PYP_EXIT_USAGE, "add --exact", "attach", "--counters", "io", pid, NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "add --exact, or --mode sample", "attach", "--counters",
		  "memory", pid, NULL);
	free(ctl_ok(&d, "attach", "--counters", "io", "--exact", "--yes", pid, NULL));
	free(ctl_ok(&d, "detach", pid, NULL));
}

/* What attaches by itself traces each call; if a target has a limit already, that is the reason why it cannot. */
static void recorders_need_exact(void)
{
	free(ctl_ok(&d, "attach", pid, NULL));
	ctl_fails(&d, PYP_EXIT_USAGE, "attach to it with --exact", "slow", "-d", "0.1", NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "attach to it with --exact", "timeline", "-d", "0.1", "-p",
		  pid, NULL);
	free(ctl_ok(&d, "detach", pid, NULL));
	free(ctl_ok(&d, "slow", "-d", "0.1", "-y", "-p", pid, NULL));
	free(ctl_ok(&d, "timeline", "-d", "0.1", "--yes", "-o", "/dev/null", "-p", pid, NULL));
	cr_assert(!is_attached());
}

Test(forecast, of_a_program_that_only_calls)
{
	start();
	has_a_limit_by_default();
	has_another_limit();
	has_none_with_exact();
	is_refused_without_yes();
	counts_resources_of_every_call();
	recorders_need_exact();
}

/* The daemon in the foreground, by the same rule. */
Test(forecast, of_the_daemons_own_targets)
{
	struct ran r = {0};

	do {
		ran_free(&r);
		pyprofd_launch(&d, "--exact", "-d", "0.1", "--pid", pid, NULL);
		r = pyprofd_wait(&d);
	} while (r.status == 0 && !patience_over());
	cr_assert_eq(r.status, PYP_EXIT_USAGE, "%s", r.err);
	cr_assert(strstr(r.err, "not attached to process") && strstr(r.err, "add --yes"), "%s",
		  r.err);
	ran_free(&r);
	pyprofd_launch(&d, "--exact", "--yes", "-d", "0.1", "--pid", pid, NULL);
	r = pyprofd_wait(&d);
	cr_assert_eq(r.status, 0, "%s", r.err);
	ran_free(&r);
	pyprofd_launch(&d, "-d", "0.1", "--pid", pid, NULL);
	r = pyprofd_wait(&d);
	cr_assert_eq(r.status, 0, "%s", r.err);
	ran_free(&r);
}

/* A program that has not started has no forecast. */
Test(forecast, of_a_program_to_be_started)
{
	const char *const exe = traced_newest().exe;
	struct ran r = ctl(&d, "run", "--exact", "-o", "/dev/null", "--", exe, "-c", "1", NULL);

	cr_assert_eq(r.status, 0, "%s", r.err);
	cr_assert(strstr(r.forecast,
			 "no forecast: it has not started, and every call will be traced"),
		  "%s", r.forecast);
	ran_free(&r);
	r = ctl(&d, "run", "-y", "-o", "/dev/null", "--", exe, "-c", "1", NULL);
	cr_assert_eq(r.status, 0, "%s", r.err);
	assert_limit(&r, "overhead: ");
}

/* ---- at a terminal ---- */

/* Runs a program on a terminal, and sends the answer when it asks. Returns its exit status. */
static int try_at_terminal(const char *answer, char said[4096], const char *program,
			   const char *const *args)
{
	const char *build = getenv("PYPROF_BUILD"), *argv[16] = {program, "--socket", d.sock};
	char path[4096];
	size_t n = 0;
	int fd, status;
	pid_t child;

	for (size_t i = 0; args[i]; i++)
		argv[i + 3] = args[i];
	snprintf(path, sizeof(path), "%s/%s", build ? build : "build", program);
	said[0] = '\0';
	child = forkpty(&fd, NULL, NULL, NULL);
	cr_assert(child >= 0);
	if (child == 0) {
		execv(path, (char *const *)argv);
		_exit(127);
	}
	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t k;

		cr_assert(poll(&p, 1, patience_left_ms()) == 1, "%s", said);
		k = read(fd, said + n, 4095 - n);
		if (k <= 0)
			break;
		n += (size_t)k;
		said[n] = '\0';
		if (answer && strstr(said, "[y/N] ")) {
			cr_assert(write(fd, answer, strlen(answer)) > 0);
			answer = NULL;
		}
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	close(fd);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int at_terminal(const char *answer, char said[4096], const char *const *args)
{
	for (;;) {
		int status = try_at_terminal(answer, said, "pyprofctl", args);

		if (!has_no_forecast(said))
			return status;
		if (is_attached())
			free(ctl_ok(&d, "detach", pid, NULL));
	}
}

#define CTRL_C "\x03"

static void asks_at_a_terminal(void)
{
	const char *const attach_exact[] = {"attach", "--exact", pid, NULL};
	const char *const record[] = {"record",	   "--exact", "-d", "0.1", "-o",
				      "/dev/null", "--pid",   pid,  NULL};
	const char *const slow[] = {"slow", "-d", "0.1", "-p", pid, NULL};
	char said[4096];

	cr_assert_eq(at_terminal("n\n", said, attach_exact), 1, "%s", said);
	cr_assert(strstr(said, "trace every call? it costs about +"), "%s", said);
	cr_assert(strstr(said, "not attached to process") && !is_attached(), "%s", said);
	cr_assert_eq(at_terminal("\n", said, attach_exact), 1, "%s", said);
	cr_assert(!is_attached());
	cr_assert_eq(at_terminal("y\n", said, attach_exact), 0, "%s", said);
	cr_assert(is_attached());
	free(ctl_ok(&d, "detach", pid, NULL));
	cr_assert_eq(at_terminal("n\n", said, record), 1, "%s", said);
	cr_assert_eq(at_terminal("y\n", said, record), 0, "%s", said);
	cr_assert_eq(at_terminal(CTRL_C, said, record), 128 + SIGINT, "%s", said);
	cr_assert_eq(at_terminal("n\n", said, slow), 1, "%s", said);
	cr_assert_eq(at_terminal("n\n", said,
				 (const char *const[]){"attach", "--mode", "count", pid, NULL}),
		     1, "%s", said);
	cr_assert(strstr(said, "count every call? it costs about +"), "%s", said);
	cr_assert(!is_attached());
}

static void does_not_ask(void)
{
	char said[4096];

	cr_assert_eq(at_terminal(NULL, said, (const char *const[]){"attach", pid, NULL}), 0, "%s",
		     said);
	cr_assert(!strstr(said, "[y/N]"), "%s", said);
	free(ctl_ok(&d, "detach", pid, NULL));
	cr_assert_eq(at_terminal(NULL, said,
				 (const char *const[]){"attach", "--exact", "--yes", pid, NULL}),
		     0, "%s", said);
	cr_assert(strstr(said, "warning") && !strstr(said, "[y/N]"), "%s", said);
	cr_assert(is_attached());
}

Test(forecast, asks_for_consent)
{
	start();
	asks_at_a_terminal();
	does_not_ask();
}

Test(forecast, asks_for_consent_to_the_daemons_own_targets)
{
	const char *const args[] = {"--exact", "-d", "0.1", "--pid", pid, NULL};
	char said[4096];

	while (try_at_terminal("n\n", said, "pyprofd", args) == 0)
		cr_assert(has_no_forecast(said), "%s", said);
	cr_assert(strstr(said, "trace every call? it costs about +") &&
			  strstr(said, "not attached to process"),
		  "%s", said);
	cr_assert_eq(try_at_terminal("y\n", said, "pyprofd", args), 0, "%s", said);
	while (try_at_terminal(CTRL_C, said, "pyprofd", args) == 0)
		cr_assert(has_no_forecast(said), "%s", said);
	cr_assert(strstr(said, "stopped before attaching"), "%s", said);
}
