// SPDX-License-Identifier: BSD-2-Clause
/*
 * Attaching is a state: several targets at a time, each with a step in the status, which is answered
 * meanwhile; it can be cancelled, and helper processes do what takes long.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/caps.h"
#include "harness/daemon.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/traced.h"

static struct pyprofd d;
static struct traced targets[2];
static char pids[2][16];
static char cache[] = "/tmp/pyprof-cache-XXXXXX";

/* The cache is empty, so each first attach runs the self-test. */
static void setup(void)
{
	pyprofd_init(&d);
	unsetenv("CACHE_DIRECTORY");
	cr_assert(mkdtemp(cache) && setenv("XDG_CACHE_HOME", cache, 1) == 0);
	for (int i = 0; i < 2; i++) {
		targets[i] = (struct traced){0};
		traced_ready(&targets[i], pids[i], traced_newest().exe, "run.py", "mixed", NULL);
	}
}

static void teardown(void)
{
	char verdicts[64];

	for (int i = 0; i < 2; i++)
		traced_stop(&targets[i]);
	snprintf(verdicts, sizeof(verdicts), "%s/pyprofd", cache);
	if (access(verdicts, F_OK) == 0)
		temp_dir_remove(strdup(verdicts));
	rmdir(cache);
}

TestSuite(attaching, .init = setup, .fini = teardown);

/* The step at which a process is being attached; "": it is not. */
static void step_of(const json_t *status, pid_t pid, char ret[32])
{
	const json_t *list = json_object_get(status, "attaching"), *a;
	size_t i;

	*ret = '\0';
	json_array_foreach(list, i, a) if (json_integer_value(json_object_get(a, "pid")) == pid)
		snprintf(ret, 32, "%s", json_string_value(json_object_get(a, "step")));
}

static bool is_at(pid_t pid, const char *step)
{
	json_t *status = ctl_status(&d);
	char now[32];

	step_of(status, pid, now);
	json_decref(status);
	return strcmp(now, step) == 0;
}

static bool both_are_verified(void)
{
	json_t *status = ctl_status(&d);
	char a[32], b[32];

	step_of(status, targets[0].pid, a);
	step_of(status, targets[1].pid, b);
	json_decref(status);
	return strcmp(a, "verifying") == 0 && strcmp(b, "verifying") == 0;
}

static bool status_is_answered(void)
{
	struct ran r = ctl(&d, "status", NULL);
	bool ret = r.status == 0;

	ran_free(&r);
	return ret;
}

static bool is_target(pid_t pid)
{
	json_t *target = ctl_target_of(&d, pid);

	json_decref(target);
	return target;
}

/* `pyprofctl ARG PID` in the background; without output. */
static pid_t ctl_in_background(const char *command, const char *pid)
{
	const char *build = getenv("PYPROF_BUILD");
	char path[4096];
	pid_t child = fork();

	cr_assert(child >= 0);
	if (child)
		return child;
	snprintf(path, sizeof(path), "%s/pyprofctl", build ? build : "build");
	if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
		_exit(126);
	execl(path, path, "--socket", d.sock, command, pid, NULL);
	_exit(127);
}

static int end_of(pid_t child)
{
	int status;

	cr_assert_eq(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define UNTIL(condition)                                                                           \
	do {                                                                                       \
		double until_ = traced_seconds() + DAEMON_DEADLINE;                                \
		while (!(condition))                                                               \
			cr_assert(traced_seconds() < until_, "%s", #condition);                    \
	} while (0)

Test(attaching, several_at_a_time_and_one_is_cancelled)
{
	pid_t attach[2];
	json_t *status;

	pyprofd_launch(&d, NULL);
	pyprofd_ready(&d);
	for (int i = 0; i < 2; i++)
		attach[i] = ctl_in_background("attach", pids[i]);
	UNTIL(both_are_verified());
	/* Starting pyprofctl takes long enough where traps are slow. */
	cr_assert(ctl_answers(&d, caps_slow_traps() ? 3.0 : 1.0));
	free(ctl_ok(&d, "detach", pids[0], NULL));
	cr_assert_eq(end_of(attach[0]), 3);
	cr_assert_eq(end_of(attach[1]), 0);
	status = ctl_status(&d);
	cr_assert(json_array_size(json_object_get(status, "attaching")) == 0);
	cr_assert(json_array_size(json_object_get(status, "targets")) == 1);
	json_decref(status);
	pyprofd_shutdown(&d);
}

/* The status shows what the daemon's start waits for; a ping is answered when that is done. */
Test(attaching, of_the_command_line)
{
	pid_t ping;

	pyprofd_launch(&d, "--pid", pids[0], "--pid", pids[1], NULL);
	UNTIL(status_is_answered());
	ping = ctl_in_background("ping", NULL);
	UNTIL(is_at(targets[0].pid, "verifying"));
	cr_assert(waitpid(ping, NULL, WNOHANG) == 0, "a ping was answered too early");
	/* It waits for 5 s at most; a self-test for the first time takes that long on a busy machine. */
	if (end_of(ping) != 0)
		UNTIL(end_of(ctl_in_background("ping", NULL)) == 0);
	cr_assert(is_target(targets[0].pid) && is_target(targets[1].pid));
	pyprofd_end(&d);
}

/* A daemon that is ended while it attaches reports what it has not done, and its helpers end with it. */
Test(attaching, is_ended_with_the_daemon)
{
	struct ran r;

	pyprofd_launch(&d, "--pid", pids[0], NULL);
	UNTIL(status_is_answered());
	UNTIL(is_at(targets[0].pid, "verifying"));
	cr_assert(kill(d.pid, SIGTERM) == 0);
	r = pyprofd_wait(&d);
	cr_assert_eq(r.status, 1, "%s", r.err);
	cr_assert(strstr(r.err, "stopped before attaching to process"), "%s", r.err);
	ran_free(&r);
	pyprofd_deinit(&d);
}

/* The kernel ends the helpers of a daemon that is killed: pyprofd_kill() waits for them. */
Test(attaching, is_killed_with_the_daemon)
{
	pyprofd_launch(&d, "--pid", pids[0], NULL);
	UNTIL(status_is_answered());
	UNTIL(is_at(targets[0].pid, "verifying"));
	pyprofd_kill(&d);
}
