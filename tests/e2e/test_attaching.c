// SPDX-License-Identifier: BSD-2-Clause
/*
 * Attaching is a state: several targets at a time, each with a step in the status, which is answered
 * meanwhile; it can be cancelled, and helper processes do what takes long.
 */
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "target/target.h"

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

static void forget_verdicts(void)
{
	char verdicts[64];

	snprintf(verdicts, sizeof(verdicts), "%s/pyprofd", cache);
	if (access(verdicts, F_OK) == 0)
		temp_dir_remove(strdup(verdicts));
}

static void teardown(void)
{
	for (int i = 0; i < 2; i++)
		traced_stop(&targets[i]);
	forget_verdicts();
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

static bool both_are_at(const char *step)
{
	return is_at(targets[0].pid, step) && is_at(targets[1].pid, step);
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
		while (!(condition)) {                                                             \
			cr_assert(!patience_over(), "%s", #condition);                             \
			patience_step();                                                           \
		}                                                                                  \
	} while (0)

/* The daemon's helpers, which run the self-tests: a stopped one has no result. */
static void signal_helpers(int signal)
{
	pid_t v[64];
	size_t n = target_children(d.pid, v, sizeof(v) / sizeof(*v));

	for (size_t i = 0; i < n; i++)
		kill(v[i], signal);
}

/* Returns whether the helpers are stopped while both targets (or one) are being verified. */
static bool stopped_while_verifying(bool both)
{
	bool ret = false;

	if (both ? both_are_at("verifying") : is_at(targets[0].pid, "verifying")) {
		signal_helpers(SIGSTOP);
		ret = both ? both_are_at("verifying") : is_at(targets[0].pid, "verifying");
		if (!ret)
			signal_helpers(SIGCONT);
	}
	return ret;
}

/* On a busy machine, the self-tests may be over before this process has looked: once more. */
static bool attach_until_stopped(pid_t attach[2])
{
	siginfo_t ended = {0};

	for (int i = 0; i < 2; i++)
		attach[i] = ctl_in_background("attach", pids[i]);
	while (!stopped_while_verifying(true)) {
		for (int i = 0; i < 2; i++) {
			waitid(P_PID, (id_t)attach[i], &ended, WEXITED | WNOHANG | WNOWAIT);
			if (ended.si_pid)
				return false;
		}
		patience_step();
	}
	return true;
}

Test(attaching, several_at_a_time_and_one_is_cancelled)
{
	pid_t attach[2];
	json_t *status;

	pyprofd_launch(&d, NULL);
	pyprofd_ready(&d);
	while (!attach_until_stopped(attach)) {
		cr_assert(!patience_over());
		for (int i = 0; i < 2; i++) {
			cr_assert_eq(end_of(attach[i]), 0);
			free(ctl_ok(&d, "detach", pids[i], NULL));
		}
		forget_verdicts();
	}
	/* It answers while what it waits for is stopped. */
	free(ctl_ok(&d, "status", NULL));
	free(ctl_ok(&d, "detach", pids[0], NULL));
	cr_assert_eq(end_of(attach[0]), 3);
	signal_helpers(SIGCONT);
	cr_assert_eq(end_of(attach[1]), 0);
	status = ctl_status(&d);
	cr_assert(json_array_size(json_object_get(status, "attaching")) == 0);
	cr_assert(json_array_size(json_object_get(status, "targets")) == 1);
	json_decref(status);
	pyprofd_shutdown(&d);
}

static bool status_is_answered(void)
{
	struct ran r;
	bool ret;

	if (access(d.sock, F_OK) < 0)
		return false;
	r = ctl(&d, "status", NULL);
	ret = r.status == 0;
	ran_free(&r);
	return ret;
}

/* Start a daemon that attaches to one target, or also to another one, and stop its helpers while it verifies the first. */
static void launch_until_stopped(const char *option, const char *other)
{
	for (;;) {
		bool missed = false;

		pyprofd_launch(&d, "--pid", pids[0], option, other, NULL);
		UNTIL(status_is_answered());
		while (!missed && !stopped_while_verifying(false)) {
			missed = is_target(targets[0].pid);
			patience_step();
		}
		if (!missed)
			return;
		cr_assert(!patience_over());
		kill(d.pid, SIGTERM);
		ran_free(&(struct ran[]){pyprofd_wait(&d)}[0]);
		forget_verdicts();
	}
}

static bool answers_ping(void)
{
	struct diag diag = {0};
	struct client *c;
	int r;

	assert_ok(client_open(d.sock, &c, &diag));
	client_set_timeout(c, 1);
	r = client_request(c, "GET", "/v1/ping", NULL, NULL, &diag);
	client_free(c);
	return r == 0;
}

/* The status shows what the daemon's start waits for; a ping is answered when that is done. */
Test(attaching, of_the_command_line)
{
	launch_until_stopped("--pid", pids[1]);
	cr_assert(!answers_ping(), "a ping was answered too early");
	signal_helpers(SIGCONT);
	UNTIL(answers_ping());
	cr_assert(is_target(targets[0].pid) && is_target(targets[1].pid));
	pyprofd_end(&d);
}

/* A daemon that is ended while it attaches reports what it has not done, and its helpers end with it. */
Test(attaching, is_ended_with_the_daemon)
{
	struct ran r;

	launch_until_stopped(NULL, NULL);
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
	launch_until_stopped(NULL, NULL);
	pyprofd_kill(&d);
}

/*
 * Where the cost of a hit comes from, as a report of the first process says; "": measured on its
 * build.
 */
static void attached_cost_is(const char *verify, const char *source)
{
	char *report, *text;

	free(ctl_ok(&d, "attach", "--max-overhead", "10", pids[0], verify, NULL));
	report = ctl_ok(&d, "snapshot", "-f", "json", NULL);
	text = strstr(report, "cost of a hit: ");
	if (*source)
		cr_assert(text && strncmp(text + 15, source, strlen(source)) == 0, "%.80s", text);
	else
		cr_assert(!text, "%.80s", text);
	/* It is subtracted in any case. */
	cr_assert(strstr(report, "\"hit_ns\":{") || strstr(report, "\"hit_ns\": {"));
	free(report);
	free(ctl_ok(&d, "detach", pids[0], NULL));
}

/* The only entry becomes that of another file. */
static void make_entry_of_another(void)
{
	char dir[64], from[400], to[80];
	DIR *list;
	struct dirent *e;

	snprintf(dir, sizeof(dir), "%s/pyprofd", cache);
	list = opendir(dir);
	cr_assert(list);
	do
		e = readdir(list);
	while (e && e->d_name[0] == '.');
	cr_assert(e);
	snprintf(from, sizeof(from), "%s/%s", dir, e->d_name);
	snprintf(to, sizeof(to), "%s/0-1-1", dir);
	closedir(list);
	assert_ok(rename(from, to));
}

/* If it cannot be measured, what was measured on another build is better than a guess. */
Test(attaching, cost_of_a_hit)
{
	pyprofd_start(&d, NULL);
	attached_cost_is("--no-verify", "assumed");
	attached_cost_is(NULL, "");
	attached_cost_is("--no-verify", "");
	make_entry_of_another();
	attached_cost_is("--no-verify", "measured on another build");
	attached_cost_is(NULL, "");
	pyprofd_shutdown(&d);
}
