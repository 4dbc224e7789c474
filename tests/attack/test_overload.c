// SPDX-License-Identifier: BSD-2-Clause
/*
 * A busy target and a daemon that has 2 % of a CPU: `status` and `stop` are still answered with the
 * CPU time of a second, and all events recorded before a stop are in the profile.
 */
#include <jansson.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "harness/caps.h"
#include "harness/cpu_group.h"
#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/test.h"
#include "harness/traced.h"

#define QUOTA_US (CPU_GROUP_PERIOD / 50) /* 2 % */
#define REPEAT	 4
#define CALLS	 "100000"

/* CPU time that an answer may take, in seconds: what the daemon has in a second of wall time */
#define ANSWER ((double)QUOTA_US / CPU_GROUP_PERIOD)

#define STATUS "GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n"
#define STOP   "POST /v1/stop HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"

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

static void start(const char *script, const char *arg, const char *more)
{
	traced_ready(&t, pid, traced_newest().exe, script, arg, more, NULL);
	pin(t.pid);
}

static void start_daemon(const char *ring)
{
	pyprofd_launch(&d, "--ring-size", ring, NULL);
	pyprofd_ready(&d);
	cpu_group_add(d.pid);
}

/*
 * The daemon's CPU time from a request to its answer, in seconds. The test sends the request itself:
 * while a client starts, the daemon reads events.
 */
static double answered(const char *request)
{
	const struct timeval limit = patience_left();
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char text[13] = "";
	double took;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", d.sock);
	assert_ok(connect(fd, (struct sockaddr *)&addr, sizeof(addr)));
	assert_ok(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	took = -patience_cpu_s(d.pid);
	cr_assert_eq(send(fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
	cr_assert_eq(recv(fd, text, sizeof(text) - 1, MSG_WAITALL), sizeof(text) - 1);
	took += patience_cpu_s(d.pid);
	cr_assert_str_eq(text, "HTTP/1.1 200");
	close(fd);
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
 * helpers hold the probes, read the target's memory, and fork helpers.
 */
static void wait_for_costs(void)
{
	free(ctl_ok(&d, "snapshot", "-f", "json", NULL));
	for (; helpers() > 3; patience_step())
		cr_assert(!patience_over(), "a helper has not ended");
}

static void until_state(const char *state)
{
	for (bool there = false; !there; patience_step()) {
		json_t *one = ctl_target(&d, 0);

		there = strcmp(json_string_value(json_object_get(one, "state")), state) == 0;
		json_decref(one);
		cr_assert(!patience_over(), "the target is not %s", state);
	}
}

/*
 * The daemon is stopped meanwhile: then there is more to read than an answer may take, however slow
 * the target is.
 */
static void fill_ring(void)
{
	assert_ok(kill(d.pid, SIGSTOP));
	traced_work(&t, PATIENCE_WHILE_MS);
	assert_ok(kill(d.pid, SIGCONT));
}

Test(overload, status_and_stop_are_answered)
{
	double status = 0, stop = 0;

	start("run.py", "busy_empty", "3600");
	traced_go(&t);
	start_daemon("32M");
	free(ctl_ok(&d, "attach", "--no-start", pid, NULL));
	wait_for_costs();
	for (int i = 0; i < REPEAT; i++) {
		double a, b;

		free(ctl_ok(&d, "start", NULL));
		cpu_group_quota(QUOTA_US);
		fill_ring();
		a = answered(STATUS);
		b = answered(STOP);
		status = a > status ? a : status;
		stop = b > stop ? b : stop;
		cpu_group_quota(-1);
		until_state("attached");
		fprintf(stderr, "  CPU time of status %.4f s, of stop %.4f s; %lld events lost\n",
			a, b, (long long)number("lost"));
	}
	cr_assert(status < ANSWER, "status took %.3f s of CPU time", status);
	cr_assert(stop < ANSWER, "stop took %.3f s of CPU time", stop);
}

/* Calls of work() in a profile */
static json_int_t calls_of_work(const json_t *root)
{
	json_int_t calls = 0;
	json_t *f;
	size_t i;

	json_array_foreach(json_object_get(root, "functions"), i, f)
	{
		if (strcmp(json_string_value(json_object_get(f, "name")), "work") == 0)
			calls += json_integer_value(json_object_get(f, "ncalls"));
	}
	return calls;
}

/* The calls fit the ring, and are still there when the daemon gets the stop request. */
Test(overload, what_was_recorded_before_a_stop_is_counted)
{
	json_t *profile;
	double took;
	char *text;

	start("process_tree.py", NULL, NULL);
	start_daemon("128M");
	free(ctl_ok(&d, "attach", pid, NULL));
	wait_for_costs();
	cpu_group_quota(QUOTA_US);
	traced_say(&t, "work 0 " CALLS);
	traced_expect(&t, "worked");
	took = answered(STOP);
	cr_assert(took < ANSWER, "stop took %.3f s of CPU time", took);
	fprintf(stderr, "  CPU time of stop %.4f s; %lld bytes are still to be read\n", took,
		(long long)number("pending_bytes"));
	/* waits for the ring */
	text = ctl_ok(&d, "snapshot", "-f", "json", NULL);
	profile = json_loads(text, 0, NULL);
	cr_assert(json_is_true(json_object_get(profile, "exact")));
	cr_assert_eq(calls_of_work(profile), strtoll(CALLS, NULL, 10));
	until_state("attached");
	/* A start reads the target's stacks, with a deadline. */
	cpu_group_quota(-1);
	free(ctl_ok(&d, "start", NULL));
	until_state("tracing");
	json_decref(profile);
	free(text);
}
