// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tracing is stopped, started or interrupted, and the target forks, executes, exits or is killed.
 * The target is never harmed, and no breakpoint is left in a process that is not traced. The target
 * calls functions all the time, in six threads, and checks its own results.
 */
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "harness/counts.h"
#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/python.h"
#include "harness/sites.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "stats/view.h"

#define CYCLES	 12
#define CHILDREN 4
#define PROGRAMS 5

static void start_load(struct traced *t, struct sites *sites, const char *exe)
{
	fprintf(stderr, "with %s\n", exe);
	traced_start(t, exe, "load.py", NULL);
	/* A busy machine may not let it be read for more than a second. */
	t->ring_bytes = 64u << 20;
	traced_expect(t, "ready");
	sites_find(sites, t->pid);
	cr_assert(sites_changed(sites, t->pid) == 0);
}

/* Ends the target, which has verified its results. */
static void finish_load(struct traced *t)
{
	traced_say(t, "stop");
	traced_expect(t, "checked ok");
	traced_finish(t);
}

static uint64_t rounds(struct traced *t)
{
	traced_say(t, "rounds");
	return strtoull(traced_answer(t, "rounds"), NULL, 10);
}

static uint64_t calls(struct traced *t)
{
	_cleanup_(snapshot_freep) struct snapshot *s = traced_snapshot(t);
	_cleanup_(view_freep) struct view *v = NULL;

	assert_ok(view_build(s, NULL, &v));
	return counts_named(v, "work").ncalls;
}

static bool has_more_calls(struct traced *t, void *ctx)
{
	return calls(t) > *(uint64_t *)ctx;
}

static void expect_calls(struct traced *t)
{
	uint64_t now = calls(t);

	traced_until(t, has_more_calls, &now, "calls");
}

static void on_few(void (*test)(const char *exe))
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_few(v);

	for (size_t i = 0; i < n; i++)
		test(v[i].exe);
	check_no_leaks();
}

/* For what depends on no interpreter */
static void on_newest(void (*test)(const char *exe))
{
	test(traced_newest().exe);
	check_no_leaks();
}

/* stop, start, clear ----------------------------------------------------------------------- */

static bool has_more_rounds(struct traced *t, void *ctx)
{
	return rounds(t) > *(uint64_t *)ctx;
}

/* The target works on. */
static void expect_rounds(struct traced *t)
{
	uint64_t now = rounds(t);

	traced_until(t, has_more_rounds, &now, "rounds");
}

static void check_stopped(struct traced *t, const struct sites *sites)
{
	uint64_t counted;

	traced_halt(t);
	cr_assert(sites_changed(sites, t->pid) == 0, "breakpoints are left after stop");
	cr_assert(traced_status(t).state == SESSION_ATTACHED);
	counted = calls(t);
	cr_assert(counted > 0, "stop forgot the data");
	expect_rounds(t);
	cr_assert(calls(t) == counted, "calls are counted though tracing has stopped");
}

static void stop_start_clear(const char *exe)
{
	struct sites sites;
	struct traced t;
	uint64_t counted;

	start_load(&t, &sites, exe);
	traced_attach(&t);
	cr_assert(sites_changed(&sites, t.pid) == (int)sites.n, "not all sites are on");
	expect_calls(&t);
	check_stopped(&t, &sites);
	counted = calls(&t);

	assert_ok(sessions_start(t.sessions, t.pid, NULL));
	cr_assert(sites_changed(&sites, t.pid) == (int)sites.n);
	expect_calls(&t);
	cr_assert(calls(&t) > counted, "start did not go on where stop left off");
	check_stopped(&t, &sites);

	assert_ok(sessions_clear(t.sessions, t.pid, NULL));
	cr_assert(calls(&t) == 0 && traced_status(&t).events == 0, "clear left something");
	finish_load(&t);
}

Test(lifecycle, stop_start_clear)
{
	on_few(stop_start_clear);
}

/* The end of the target -------------------------------------------------------------------- */

static bool has_ended(struct traced *t, void *ctx)
{
	(void)ctx;
	return t->ended > 0;
}

static void check_ended(struct traced *t, const char *reason)
{
	struct session_status status;

	traced_until(t, has_ended, NULL, "news of the target's end");
	status = traced_status(t);
	cr_assert(status.state == SESSION_ENDED && t->ended == 1);
	cr_assert(strcmp(status.end_reason, reason) == 0, "ended: \"%s\"", status.end_reason);
	cr_assert(calls(t) > 0, "the data is gone");
	cr_assert(sessions_start(t->sessions, status.pid, NULL) < 0, "an ended target started");
	assert_ok(sessions_stop(t->sessions, status.pid, NULL));
}

static void exits(const char *exe)
{
	struct sites sites;
	struct traced t;

	start_load(&t, &sites, exe);
	traced_attach(&t);
	expect_calls(&t);
	traced_say(&t, "stop");
	traced_expect(&t, "checked ok");
	cr_assert(traced_wait(&t) == 0);
	check_ended(&t, "exited");
	traced_stop(&t);
}

static void killed(const char *exe)
{
	struct sites sites;
	struct traced t;
	int status;

	start_load(&t, &sites, exe);
	traced_attach(&t);
	expect_calls(&t);
	kill(t.pid, SIGKILL);
	status = traced_wait(&t);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	check_ended(&t, "exited");
	traced_stop(&t);
}

static void executes(const char *exe)
{
	struct sites sites;
	struct traced t;

	start_load(&t, &sites, exe);
	traced_attach(&t);
	expect_calls(&t);
	traced_say(&t, "exec");
	traced_expect(&t, "executed");
	check_ended(&t, "executed another program");
	traced_finish(&t);
}

Test(lifecycle, target_exits)
{
	on_newest(exits);
}

Test(lifecycle, target_is_killed)
{
	on_newest(killed);
}

Test(lifecycle, target_executes_another_program)
{
	on_newest(executes);
}

/* Children --------------------------------------------------------------------------------- */

struct children {
	const struct sites *sites;
	pid_t pids[CHILDREN];
};

static bool children_are_clean(struct traced *t, void *ctx)
{
	const struct children *f = ctx;

	(void)t;
	for (int i = 0; i < CHILDREN; i++) {
		int changed = sites_changed(f->sites, f->pids[i]);

		cr_assert(changed >= 0, "child %d has died", f->pids[i]);
		if (changed)
			return false;
	}
	return true;
}

static void fork_children(struct traced *t, struct children *f)
{
	char command[32];
	double cpu;

	snprintf(command, sizeof(command), "fork %d", CHILDREN);
	traced_say(t, command);
	for (int i = 0; i < CHILDREN; i++)
		f->pids[i] = (pid_t)strtol(traced_answer(t, "child"), NULL, 10);
	traced_expect(t, "forked");
	cpu = patience_cpu_s(getpid());
	traced_until(t, children_are_clean, f, "children without breakpoints");
	cpu = patience_cpu_s(getpid()) - cpu;
	fprintf(stderr, "  children without breakpoints after %.3f s of CPU time\n", cpu);
	cr_assert(cpu < 0.5, "after %.3f s of CPU time", cpu);
}

static void forks(const char *exe)
{
	struct sites sites;
	struct children children = {.sites = &sites};
	struct traced t;
	char command[32];

	start_load(&t, &sites, exe);
	traced_attach(&t);
	expect_calls(&t);
	for (int i = 0; i < 2; i++) {
		fork_children(&t, &children);
		traced_say(&t, "join");
		traced_expect(&t, "joined ok");
	}
	snprintf(command, sizeof(command), "run %d", PROGRAMS);
	traced_say(&t, command);
	traced_expect(&t, "run ok");
	cr_assert(traced_status(&t).state == SESSION_TRACING, "the session ended");
	cr_assert(sites_changed(&sites, t.pid) == (int)sites.n);
	expect_calls(&t);
	cr_assert(traced_status(&t).lost == 0);
	finish_load(&t);
}

Test(lifecycle, target_forks)
{
	on_few(forks);
}

/* Attach and detach, again and again ------------------------------------------------------- */

/*
 * On one interpreter CYCLES times, for what depends on the moment; the others only differ in their
 * sites, which each cycle checks.
 */
static void cycles(const char *exe)
{
	const int n = strcmp(exe, traced_newest().exe) == 0 ? CYCLES : 1;
	struct sites sites;
	struct traced t;
	uint64_t before;

	start_load(&t, &sites, exe);
	before = rounds(&t);
	for (int i = 0; i < n; i++) {
		traced_attach(&t);
		expect_calls(&t);
		cr_assert(traced_status(&t).lost == 0);
		assert_ok(sessions_detach(t.sessions, t.pid, NULL));
		cr_assert(sites_changed(&sites, t.pid) == 0, "breakpoints after detach %d", i);
	}
	cr_assert(rounds(&t) > before);
	finish_load(&t);
}

Test(lifecycle, cycles_under_load)
{
	on_few(cycles);
}

/* The end of the daemon -------------------------------------------------------------------- */

struct wanted {
	const struct sites *sites;
	int changed;
	pid_t daemon; /* 0: no daemon is running any more */
};

static bool sites_are(struct traced *t, void *ctx)
{
	const struct wanted *w = ctx;

	cr_assert(!w->daemon || waitpid(w->daemon, NULL, WNOHANG) == 0, "the daemon has ended");
	return sites_changed(w->sites, t->pid) == w->changed;
}

static void daemon_is_killed(const char *exe)
{
	struct sites sites;
	struct wanted on = {.sites = &sites}, off = {.sites = &sites};
	struct pyprofd d;
	struct traced t;
	char pid[16];

	start_load(&t, &sites, exe);
	on.changed = (int)sites.n;
	pyprofd_init(&d);
	pyprofd_launch(&d, "--pid", pid_text(pid, t.pid), NULL);
	on.daemon = d.pid;
	traced_until(&t, sites_are, &on, "the daemon's probes");
	expect_rounds(&t);
	cr_assert(waitpid(on.daemon, NULL, WNOHANG) == 0, "the daemon has ended");
	pyprofd_kill(&d);
	traced_until(&t, sites_are, &off, "the file's bytes");
	expect_rounds(&t);
	finish_load(&t);
}

Test(lifecycle, daemon_is_killed)
{
	on_newest(daemon_is_killed);
}
