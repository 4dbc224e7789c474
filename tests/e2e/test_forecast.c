// SPDX-License-Identifier: BSD-2-Clause
/*
 * The expected overhead of a mode is reported before a process is attached; at a terminal, the user
 * is asked for confirmation if it is high.
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
	pyprofd_start(&d, NULL);
}

static void teardown(void)
{
	if (d.pid)
		pyprofd_shutdown(&d);
	traced_stop(&busy);
}

TestSuite(forecast, .init = setup, .fini = teardown);

static double percent(const json_t *target, const char *key)
{
	return json_number_value(json_object_get(json_object_get(target, "forecast"), key));
}

/*
 * The forecast is of what the target does in a given time, and there is none if it had no CPU meanwhile, as may be
 * on a busy machine: once more.
 */
static struct ran attach(const char *option, const char *value)
{
	for (;;) {
		struct ran r = ctl(&d, "attach", pid, option, value, NULL);

		cr_assert_eq(r.status, 0, "%s", r.err);
		if (!strstr(r.forecast, ": no forecast: "))
			return r;
		cr_assert(!patience_over(), "%s", r.forecast);
		ran_free(&r);
		free(ctl_ok(&d, "detach", pid, NULL));
	}
}

static void is_reported_before_attaching(void)
{
	struct ran r = attach(NULL, NULL);
	json_t *target;

	cr_assert(strstr(r.forecast, "trace +") &&
			  strstr(r.forecast, " · --max-overhead 5: +5.0 %"),
		  "%s", r.forecast);
	cr_assert(strstr(r.forecast, "pyprofd: warning: expected overhead: about "), "%s",
		  r.forecast);
	cr_assert(strstr(r.forecast, "less overhead"), "%s", r.forecast);
	ran_free(&r);
	target = ctl_target(&d, 0);
	cr_assert(percent(target, "count") > 25, "%g", percent(target, "count"));
	cr_assert(percent(target, "trace") > percent(target, "count"));
	json_decref(target);
	free(ctl_ok(&d, "detach", pid, NULL));
}

/* A mode with bounded overhead causes no warning. */
static void of_a_mode_that_costs_little(void)
{
	struct ran r = attach("--max-overhead", "5");

	cr_assert(strstr(r.forecast, "trace +") && !strstr(r.forecast, "warning"), "%s",
		  r.forecast);
	ran_free(&r);
	free(ctl_ok(&d, "detach", pid, NULL));
}

/* ---- at a terminal ---- */

/* Runs pyprofctl on a terminal, and sends the answer when it asks. Returns its exit status. */
static int try_at_terminal(const char *answer, char said[4096], const char *option)
{
	const char *build = getenv("PYPROF_BUILD");
	char path[4096];
	size_t n = 0;
	int fd, status;
	pid_t child;

	snprintf(path, sizeof(path), "%s/pyprofctl", build ? build : "build");
	child = forkpty(&fd, NULL, NULL, NULL);
	cr_assert(child >= 0);
	if (child == 0) {
		execl(path, path, "--socket", d.sock, "attach", pid, option, NULL);
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
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool is_attached(void)
{
	json_t *status = ctl_status(&d);
	bool ret = json_array_size(json_object_get(status, "targets")) > 0;

	json_decref(status);
	return ret;
}

static int at_terminal(const char *answer, char said[4096], const char *option)
{
	for (;;) {
		int status = try_at_terminal(answer, said, option);

		if (!strstr(said, "no forecast: "))
			return status;
		cr_assert(!patience_over(), "%s", said);
		free(ctl_ok(&d, "detach", pid, NULL));
	}
}

static void asks_at_a_terminal(void)
{
	char said[4096] = "";

	cr_assert_eq(at_terminal("n\n", said, NULL), 1, "%s", said);
	cr_assert(strstr(said, "not attached to process") && !is_attached(), "%s", said);
	cr_assert_eq(at_terminal("\n", said, NULL), 1, "%s", said);
	cr_assert(!is_attached());
	cr_assert_eq(at_terminal("y\n", said, NULL), 0, "%s", said);
	cr_assert(is_attached());
	free(ctl_ok(&d, "detach", pid, NULL));
}

static void does_not_ask_with_yes(void)
{
	char said[4096] = "";

	cr_assert_eq(at_terminal(NULL, said, "--yes"), 0, "%s", said);
	cr_assert(strstr(said, "warning") && !strstr(said, "[y/N]"), "%s", said);
	cr_assert(is_attached());
}

Test(forecast, of_a_program_that_only_calls)
{
	is_reported_before_attaching();
	of_a_mode_that_costs_little();
	asks_at_a_terminal();
	does_not_ask_with_yes();
}
