// SPDX-License-Identifier: BSD-2-Clause
/*
 * Commands for several targets: a bad one does not affect the others, followed children have their
 * parent's options and stop with it, and the data of an ended target is only discarded on request.
 */
#include <errno.h>
#include <jansson.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/caps.h"
#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/test.h"
#include "harness/tool.h"
#include "harness/traced.h"

static struct pyprofd d;
static struct traced t;
static char pid[16];

static void setup(void)
{
	caps_require_bpf();
	traced_ready(&t, pid, traced_newest().exe, "process_tree.py", NULL);
	pyprofd_init(&d);
}

static void teardown(void)
{
	if (d.pid)
		pyprofd_shutdown(&d);
	else
		pyprofd_deinit(&d);
	traced_stop(&t);
}

TestSuite(targets, .init = setup, .fini = teardown);

static pid_t fork_member(unsigned int by)
{
	unsigned int number;
	char line[32];
	int child;

	snprintf(line, sizeof(line), "fork %u 1", by);
	traced_say(&t, line);
	cr_assert(sscanf(traced_answer(&t, "child"), "%u %d", &number, &child) == 2);
	traced_expect(&t, "forked");
	return child;
}

/* Returns the target with this pid in the status; NULL: none. Owned by the caller. */
static json_t *target_of(pid_t wanted)
{
	json_t *root = ctl_status(&d), *list = json_object_get(root, "targets"), *found = NULL,
	       *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		if (json_integer_value(json_object_get(one, "pid")) == wanted)
			found = json_incref(one);
	}
	json_decref(root);
	return found;
}

static bool state_is(pid_t wanted, const char *state)
{
	json_t *one = target_of(wanted);
	bool is = one && strcmp(json_string_value(json_object_get(one, "state")), state) == 0;

	json_decref(one);
	return is;
}

static void until_state(pid_t wanted, const char *state)
{
	while (!state_is(wanted, state)) {
		cr_assert(!patience_over(), "process %d is not %s", wanted, state);
		patience_step();
	}
}

static size_t lines(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

/* ---- options ------------------------------------------------------------------------------ */

static void check_bound(pid_t of, int percent)
{
	json_t *one = target_of(of), *windows = json_object_get(one, "windows");

	cr_assert_eq(
		json_integer_value(json_object_get(windows, "max_overhead_percent")), percent,
		"process %d has the bound %lld", of,
		(long long)json_integer_value(json_object_get(windows, "max_overhead_percent")));
	json_decref(one);
}

Test(targets, children_have_their_parents_bound)
{
	pid_t child, grandchild;

	pyprofd_launch(&d, NULL);
	pyprofd_ready(&d);
	free(ctl_ok(&d, "attach", "--max-overhead", "5", "--follow-children", pid, NULL));
	check_bound(t.pid, 5);
	child = fork_member(0);
	until_state(child, "tracing");
	check_bound(child, 5);
	grandchild = fork_member(1);
	until_state(grandchild, "tracing");
	check_bound(grandchild, 5);
}

/* A target attached without a limit does not pass the daemon's limit to its children. */
Test(targets, children_have_no_bound_of_the_daemons)
{
	pid_t child;
	char url[64], body[128];
	const char *argv[] = {"curl", "-sS", "--fail", "--unix-socket", d.sock, "-d",
			      body,   url,   NULL};

	tool_need("curl");
	pyprofd_launch(&d, "--max-overhead", "5", NULL);
	pyprofd_ready(&d);
	snprintf(url, sizeof(url), "http://localhost/v1/targets");
	snprintf(body, sizeof(body),
		 "{\"pid\": %d, \"max_overhead\": 0, \"follow_children\": true}", t.pid);
	free(tool_run(argv));
	check_bound(t.pid, 0);
	child = fork_member(0);
	until_state(child, "tracing");
	check_bound(child, 0);
}

Test(targets, a_request_can_say_that_children_are_not_followed)
{
	char url[64], body[128];
	const char *argv[] = {"curl", "-sS", "--fail", "--unix-socket", d.sock, "-d",
			      body,   url,   NULL};
	json_t *one;

	tool_need("curl");
	pyprofd_launch(&d, "--follow-children", NULL);
	pyprofd_ready(&d);
	snprintf(url, sizeof(url), "http://localhost/v1/targets");
	snprintf(body, sizeof(body), "{\"pid\": %d, \"follow_children\": false}", t.pid);
	free(tool_run(argv));
	one = target_of(t.pid);
	cr_assert(json_is_false(json_object_get(one, "follow_children")));
	json_decref(one);
}

/* ---- several targets ---------------------------------------------------------------------- */

Test(targets, attach_attaches_what_it_can)
{
	char nobody[16], another[16];
	struct traced other;
	struct ran r;

	traced_ready(&other, NULL, traced_newest().exe, "process_tree.py", NULL);
	pid_text(nobody, pid_of_nobody());
	pid_text(another, other.pid);
	pyprofd_launch(&d, NULL);
	pyprofd_ready(&d);
	r = ctl(&d, "attach", nobody, pid, "1", another, NULL);
	cr_assert_eq(r.status, 3, "status %d: %s", r.status, r.err);
	cr_assert(strstr(r.err, nobody), "%s", r.err);
	cr_assert_eq(lines(r.err), 2, "%s", r.err);
	ran_free(&r);
	cr_assert(state_is(t.pid, "tracing"));
	cr_assert(state_is(other.pid, "tracing"));
	traced_stop(&other);
}

/* Two targets cannot be started because they have executed another program. */
Test(targets, start_starts_what_it_can)
{
	char one[16], two[16];
	pid_t first = fork_member(0), second = fork_member(0), third = fork_member(0);
	char three[16];
	struct ran r;

	pid_text(one, first);
	pid_text(two, second);
	pid_text(three, third);
	pyprofd_launch(&d, NULL);
	pyprofd_ready(&d);
	free(ctl_ok(&d, "attach", "--no-start", one, pid, two, three, NULL));
	traced_say(&t, "other 1");
	traced_expect(&t, "other");
	traced_say(&t, "other 2");
	traced_expect(&t, "other");
	r = ctl(&d, "start", NULL);
	cr_assert_eq(r.status, 3, "status %d: %s", r.status, r.err);
	cr_assert(strstr(r.err, one) && strstr(r.err, two), "%s", r.err);
	cr_assert_eq(lines(r.err), 2, "%s", r.err);
	ran_free(&r);
	cr_assert(state_is(t.pid, "tracing"));
	cr_assert(state_is(third, "tracing"));
}

Test(targets, start_of_ended_targets_alone_is_an_error)
{
	pid_t ended = t.pid;

	pyprofd_launch(&d, NULL);
	pyprofd_ready(&d);
	free(ctl_ok(&d, "attach", pid, NULL));
	traced_say(&t, "stop");
	cr_assert_eq(traced_wait(&t), 0);
	until_state(ended, "ended");
	ctl_fails(&d, 3, "ended", "start", NULL);
}

Test(targets, stop_and_start_of_a_master_are_its_workers_too)
{
	pid_t child, grandchild, other = fork_member(0);
	char worker[16];

	pyprofd_launch(&d, NULL);
	pyprofd_ready(&d);
	free(ctl_ok(&d, "attach", "--follow-children", pid, NULL));
	until_state(other, "tracing");
	child = fork_member(0);
	until_state(child, "tracing");
	grandchild = fork_member(2);
	until_state(grandchild, "tracing");
	free(ctl_ok(&d, "stop", "-p", pid_text(worker, child), NULL));
	until_state(child, "attached");
	until_state(grandchild, "attached");
	cr_assert(state_is(t.pid, "tracing") && state_is(other, "tracing"));
	free(ctl_ok(&d, "stop", "-p", pid, NULL));
	until_state(t.pid, "attached");
	until_state(other, "attached");
	until_state(child, "attached");
	until_state(grandchild, "attached");
	free(ctl_ok(&d, "start", "-p", pid, NULL));
	cr_assert(state_is(t.pid, "tracing") && state_is(child, "tracing"));
	cr_assert(state_is(other, "tracing") && state_is(grandchild, "tracing"));
}

/* ---- reuse of a pid ------------------------------------------------------------------------ */

/* Start an interpreter with this pid. */
static pid_t python_with_pid(pid_t wanted)
{
	const char *exe = traced_newest().exe;
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uintptr_t)&wanted,
		.set_tid_size = 1,
	};
	long r = syscall(SYS_clone3, &args, sizeof(args));

	if (r == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(exe, exe, "-c", "import time; time.sleep(3600)", NULL);
		_exit(127);
	}
	return (pid_t)r;
}

static long long calls_of_work(void)
{
	char *text = ctl_ok(&d, "snapshot", "-f", "json", NULL);
	json_t *root = json_loads(text, 0, NULL), *f;
	long long calls = 0;
	size_t i;

	json_array_foreach(json_object_get(root, "functions"), i, f)
	{
		if (strcmp(json_string_value(json_object_get(f, "name")), "work") == 0)
			calls += json_integer_value(json_object_get(f, "ncalls"));
	}
	json_decref(root);
	free(text);
	return calls;
}

Test(targets, a_pid_that_is_used_again_replaces_nobodys_data)
{
	pid_t again, before = t.pid;
	struct ran r;

	pyprofd_launch(&d, NULL);
	pyprofd_ready(&d);
	free(ctl_ok(&d, "attach", pid, NULL));
	traced_say(&t, "work 0 100");
	traced_expect(&t, "worked");
	traced_say(&t, "stop");
	cr_assert_eq(traced_wait(&t), 0);
	until_state(before, "ended");
	cr_assert_eq(calls_of_work(), 100);
	again = python_with_pid(before);
	cr_assert_eq(again, before, "clone3: %s", strerror(errno));
	/* it is refused until it runs Python */
	while ((r = ctl(&d, "attach", pid, NULL)).status == 5) {
		cr_assert(!patience_over(), "it does not run Python: %s", r.err);
		ran_free(&r);
		patience_step();
	}
	cr_assert_eq(r.status, 7, "status %d: %s", r.status, r.err);
	cr_assert(strstr(r.err, "kept") && strstr(r.err, "detach"), "%s", r.err);
	ran_free(&r);
	cr_assert_eq(calls_of_work(), 100, "the data of the ended process is gone");
	free(ctl_ok(&d, "detach", pid, NULL));
	free(ctl_ok(&d, "attach", pid, NULL));
	cr_assert(state_is(again, "tracing"));
	kill(again, SIGKILL);
	waitpid(again, NULL, 0);
}
