// SPDX-License-Identifier: BSD-2-Clause
/*
 * A busy target and a daemon that has 2 % of a CPU: `status` and `stop` are still answered within a
 * second, and all events recorded before a stop are in the profile.
 */
#include <jansson.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/caps.h"
#include "harness/cpu_group.h"
#include "harness/daemon.h"
#include "harness/test.h"
#include "harness/traced.h"

#define QUOTA_US (CPU_GROUP_PERIOD_US / 50) /* 2 % */
#define REPEAT	 10
#define ANSWER_S 1.0

static struct pyprofd d;
static struct traced t;
static char pid[16];

static void setup(void)
{
	caps_require_bpf();
	cpu_group_make();
	pyprofd_init(&d);
}

static void teardown(void)
{
	if (!cpu_group_made())
		return;
	if (d.pid) {
		cpu_group_quota(-1);
		pyprofd_shutdown(&d);
	}
	traced_stop(&t);
	cpu_group_remove();
}

TestSuite(overload, .init = setup, .fini = teardown);

/* One CPU for the target, the others for all other processes */
static void pin(pid_t to_pin)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	assert_ok(sched_setaffinity(to_pin, sizeof(one), &one));
}

static void start_busy(const char *seconds)
{
	traced_ready(&t, pid, traced_newest().exe, "run.py", "busy_empty", seconds, NULL);
	pin(t.pid);
}

static void start_daemon(const char *ring)
{
	pyprofd_launch(&d, "--ring-size", ring, NULL);
	pyprofd_ready(&d);
	cpu_group_add(d.pid);
}

/* The longest time of a command, printed. */
static double timed(const char *command, double *most)
{
	double start = traced_seconds(), took;

	free(ctl_ok(&d, command, NULL));
	took = traced_seconds() - start;
	if (took > *most)
		*most = took;
	return took;
}

static json_int_t number(const char *name)
{
	json_t *one = ctl_target(&d, 0);
	json_int_t n = json_integer_value(json_object_get(one, name));

	json_decref(one);
	return n;
}

/* Has the process not ended, be it reaped or not? */
static bool is_alive(long process)
{
	char path[64], line[512] = "", *name_end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/stat", process);
	f = fopen(path, "re");
	if (!f)
		return false;
	name_end = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	fclose(f);
	return name_end && strlen(name_end) > 2 && name_end[2] != 'Z';
}

static unsigned int helpers(void)
{
	char path[64], line[512] = "", *at = line, *end;
	unsigned int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", d.pid, d.pid);
	f = fopen(path, "re");
	cr_assert(f, "%s", path);
	(void)!fgets(line, sizeof(line), f);
	fclose(f);
	for (long one; (one = strtol(at, &end, 10)) > 0; at = end)
		n += is_alive(one);
	return n;
}

/*
 * The process that measures the probes' cost shares the daemon's quota and is not the load of this
 * test. It also runs if costs measured earlier are known, and then no answer waits for it. The other
 * helpers hold the probes, and read the target's memory.
 */
static void wait_for_costs(void)
{
	const struct timespec moment = {.tv_nsec = 20000000};
	double end = traced_seconds() + DAEMON_DEADLINE;

	free(ctl_ok(&d, "snapshot", "-f", "json", NULL));
	for (; helpers() > 2; nanosleep(&moment, NULL))
		cr_assert(traced_seconds() < end, "a helper has not ended");
}

static void until_state(const char *state)
{
	const struct timespec moment = {.tv_nsec = 20000000};
	double end = traced_seconds() + DAEMON_DEADLINE;

	for (bool there = false; !there; nanosleep(&moment, NULL)) {
		json_t *one = ctl_target(&d, 0);

		there = strcmp(json_string_value(json_object_get(one, "state")), state) == 0;
		json_decref(one);
		cr_assert(traced_seconds() < end, "the target is not %s", state);
	}
}

Test(overload, status_and_stop_are_answered)
{
	const struct timespec load = {.tv_sec = 1, .tv_nsec = 500000000};
	double status = 0, stop = 0;

	start_busy("1000");
	traced_go(&t);
	start_daemon("32M");
	free(ctl_ok(&d, "attach", "--no-start", pid, NULL));
	wait_for_costs();
	for (int i = 0; i < REPEAT; i++) {
		double a, b;

		free(ctl_ok(&d, "start", NULL));
		cpu_group_quota(QUOTA_US);
		nanosleep(&load, NULL); /* the ring fills */
		a = timed("status", &status);
		b = timed("stop", &stop);
		cpu_group_quota(-1);
		until_state("attached");
		fprintf(stderr, "  status %.3f s, stop %.3f s; %lld events lost\n", a, b,
			(long long)number("lost"));
	}
	cr_assert(status < ANSWER_S, "status took %.3f s", status);
	cr_assert(stop < ANSWER_S, "stop took %.3f s", stop);
}

/* Calls of empty() in a profile */
static json_int_t calls_of_empty(const json_t *root)
{
	json_int_t calls = 0;
	json_t *f;
	size_t i;

	json_array_foreach(json_object_get(root, "functions"), i, f)
	{
		if (strcmp(json_string_value(json_object_get(f, "name")), "empty") == 0)
			calls += json_integer_value(json_object_get(f, "ncalls"));
	}
	return calls;
}

/* The calls fit the ring, and are still there when the daemon gets the stop request. */
Test(overload, what_was_recorded_before_a_stop_is_counted)
{
	json_t *result, *profile;
	double took = 0;
	char *text;

	start_busy("1");
	start_daemon("128M");
	free(ctl_ok(&d, "attach", pid, NULL));
	wait_for_costs();
	cpu_group_quota(QUOTA_US);
	traced_go(&t);
	traced_expect(&t, "done");
	timed("stop", &took);
	cr_assert(took < ANSWER_S, "stop took %.3f s", took);
	fprintf(stderr, "  stop %.3f s; %lld bytes are still to be read\n", took,
		(long long)number("pending_bytes"));
	/* waits for the ring */
	text = ctl_ok(&d, "snapshot", "-f", "json", NULL);
	profile = json_loads(text, 0, NULL);
	result = json_loads(t.result, 0, NULL);
	cr_assert(json_is_true(json_object_get(profile, "exact")));
	cr_assert_eq(calls_of_empty(profile), json_integer_value(json_object_get(result, "calls")));
	until_state("attached");
	/* A start reads the target's stacks, with a deadline. */
	cpu_group_quota(-1);
	free(ctl_ok(&d, "start", NULL));
	until_state("tracing");
	json_decref(profile);
	json_decref(result);
	free(text);
}
