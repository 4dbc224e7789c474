// SPDX-License-Identifier: BSD-2-Clause
/*
 * Two daemons on one target: each detects the other and names it at attach, in its status and in
 * its reports, as long as the other one is active.
 */
#include "base/cleanup.h"
#include "harness/caps.h"
#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/test.h"
#include "harness/traced.h"

TestSuite(two_daemons, .init = caps_require_bpf);

static bool warns(const struct pyprofd *d, const char *what)
{
	_cleanup_free_ char *status = ctl_ok(d, "status", NULL);

	return strstr(status, what) != NULL;
}

/* The daemon looks for other tracers every two seconds. */
static void wait_until_warns(const struct pyprofd *d, const char *what, bool wanted)
{
	while (warns(d, what) != wanted) {
		cr_assert(!patience_over(), "%s: not %s", what, wanted ? "said" : "taken back");
		patience_pass(PATIENCE_MOMENT_MS);
	}
}

static void check_reports(const struct pyprofd *d, const char *what)
{
	_cleanup_free_ char *json = ctl_ok(d, "snapshot", "-f", "json", NULL);
	_cleanup_free_ char *text = ctl_ok(d, "snapshot", "-f", "text", NULL);

	cr_assert(strstr(json, what) && strstr(text, what), "no report says: %s", what);
}

static void end_with(struct pyprofd *d, const char *what)
{
	struct ran r;

	free(ctl_ok(d, "shutdown", NULL));
	r = pyprofd_wait(d);
	cr_assert_eq(r.status, 0);
	cr_assert(strstr(r.err, what), "it was not said at attach: \"%s\"", r.err);
	ran_free(&r);
	pyprofd_deinit(d);
}

Test(two_daemons, each_names_the_other)
{
	char pid[16], first_text[64], second_text[64];
	struct pyprofd first, second;
	struct traced t;

	traced_ready(&t, NULL, traced_newest().exe, "load.py", "0.01", NULL);
	pyprofd_start(&first, "--no-verify", "--pid", pid_text(pid, t.pid), NULL);
	cr_assert(!warns(&first, "another tracer"));
	pyprofd_start(&second, "--no-verify", "--pid", pid, NULL);
	snprintf(first_text, sizeof(first_text), "another tracer (pid %d)", (int)first.pid);
	snprintf(second_text, sizeof(second_text), "another tracer (pid %d)", (int)second.pid);
	cr_assert(warns(&second, first_text));
	check_reports(&second, first_text);
	wait_until_warns(&first, second_text, true);
	check_reports(&first, second_text);
	end_with(&second, first_text);
	wait_until_warns(&first, "another tracer", false);
	pyprofd_shutdown(&first);
	traced_say(&t, "stop");
	traced_expect(&t, "checked ok");
	traced_finish(&t);
	check_no_leaks();
}

/* Probes of a daemon that has ended are not reported as stale breakpoints. */
Test(two_daemons, the_first_ends_first)
{
	struct pyprofd first, second;
	struct traced t;
	char pid[16];

	traced_ready(&t, NULL, traced_newest().exe, "load.py", "0.01", NULL);
	pyprofd_start(&first, "--no-verify", "--pid", pid_text(pid, t.pid), NULL);
	pyprofd_start(&second, "--no-verify", "--pid", pid, NULL);
	pyprofd_shutdown(&first);
	wait_until_warns(&second, "another tracer", false);
	cr_assert(!warns(&second, "breakpoints"));
	end_with(&second, "another tracer");
	traced_say(&t, "stop");
	traced_expect(&t, "checked ok");
	traced_finish(&t);
	check_no_leaks();
}

/* doctor also finds the daemon, and does not report its breakpoints as stale. */
Test(two_daemons, doctor_names_it)
{
	_cleanup_free_ char *said = NULL;
	char pid[16], what[64];
	struct pyprofd d;
	struct traced t;

	traced_ready(&t, NULL, traced_newest().exe, "load.py", "0.01", NULL);
	pyprofd_start(&d, "--no-verify", "--pid", pid_text(pid, t.pid), NULL);
	said = ctl_ok(&d, "doctor", pid, NULL);
	snprintf(what, sizeof(what), "another tracer (pid %d)", (int)d.pid);
	cr_assert(strstr(said, what), "%s", said);
	cr_assert(!strstr(said, "left by"), "%s", said);
	pyprofd_shutdown(&d);
	traced_say(&t, "stop");
	traced_expect(&t, "checked ok");
	traced_finish(&t);
	check_no_leaks();
}
