// SPDX-License-Identifier: BSD-2-Clause
/*
 * Continuous mode and history: processes come and go, their intervals add up to the whole, and survive
 * the daemon. All processes of a test have its tag on their command lines, as others run beside it.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness/daemon.h"
#include "harness/interpreters.h"
#include "harness/push_server.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/traced.h"

static struct pyprofd d;
static char tag[32], script[512], keep[96];

static void setup(void)
{
	const char *top = getenv("PYPROF_TOP");

	pyprofd_init(&d);
	snprintf(tag, sizeof(tag), "tag-%d-%u", (int)getpid(),
		 (unsigned int)(clock_monotonic_ns() / 1000 % 1000000));
	snprintf(script, sizeof(script), "%s/tests/targets/continuous.py", top ? top : ".");
	pyprofd_file(&d, "keep", keep, sizeof(keep));
}

TestSuite(continuous, .init = setup, .timeout = 180);

/* ---- processes ---- */

/* how: NULL, or a shell's command line around "$@" */
static pid_t start_with(const char *how, const char *mode)
{
	const char *const python = traced_newest().exe;
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (how)
		execl("/bin/sh", "sh", "-c", how, "sh", python, script, mode, tag, NULL);
	execl(python, python, script, mode, tag, NULL);
	_exit(127);
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---- the daemon's state ---- */

/* A number in status: a member of `continuous`, or of an object in it. */
static int64_t state(const char *object, const char *key)
{
	json_t *status = ctl_status(&d);
	const json_t *c = json_object_get(status, "continuous");
	int64_t v =
		json_integer_value(json_object_get(object ? json_object_get(c, object) : c, key));

	json_decref(status);
	return v;
}

static void pause_ms(long ms)
{
	const struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&ts, NULL);
}

static void wait_for(const char *object, const char *key, int64_t least)
{
	const uint64_t until = clock_monotonic_ns() + 60 * UINT64_C(1000000000);
	int64_t v = state(object, key);

	while (v < least && clock_monotonic_ns() < until) {
		pause_ms(100);
		v = state(object, key);
	}
	cr_assert_geq(v, least, "%s is %lld, not %lld", key, (long long)v, (long long)least);
}

static json_t *parse(char *text)
{
	json_t *v = json_loads(text, 0, NULL);

	cr_assert(v, "no JSON: %.200s", text);
	free(text);
	return v;
}

static const json_t *label(const json_t *interval, const char *name)
{
	return json_object_get(json_object_get(interval, "labels"), name);
}

static size_t intervals_of(const json_t *list, pid_t pid)
{
	const json_t *v = json_object_get(list, "intervals"), *iv;
	size_t i, n = 0;
	char text[16];

	pid_text(text, pid);
	json_array_foreach(v, i, iv) n += strcmp(json_string_value(label(iv, "pid")), text) == 0;
	return n;
}

static int64_t sum_of(const json_t *list, const char *key)
{
	const json_t *v = json_object_get(list, "intervals"), *iv;
	int64_t sum = 0;
	size_t i;

	json_array_foreach(v, i, iv) sum += json_integer_value(json_object_get(iv, key));
	return sum;
}

/* Wait until the kept intervals have so many samples of a process. */
static void wait_for_samples(pid_t pid, int64_t least)
{
	const uint64_t until = clock_monotonic_ns() + 90 * UINT64_C(1000000000);
	char condition[32];
	int64_t samples;

	snprintf(condition, sizeof(condition), "pid=^%d$", (int)pid);
	do {
		json_t *list = parse(ctl_ok(&d, "history", "--json", "--where", condition, NULL));

		samples = sum_of(list, "samples");
		json_decref(list);
		pause_ms(200);
	} while (samples < least && clock_monotonic_ns() < until);
	cr_assert_geq(samples, least, "%lld samples of process %d", (long long)samples, (int)pid);
}

/* Wait until all processes have ended, and their last intervals are kept. */
static void wait_until_none(void)
{
	const uint64_t until = clock_monotonic_ns() + 60 * UINT64_C(1000000000);

	while (state("processes", "sampled") && clock_monotonic_ns() < until)
		pause_ms(100);
	cr_assert_eq(state("processes", "sampled"), 0);
	pause_ms(500);
}

/* ---- tests ---- */

/* Before the daemon, by exec, by exec from a shell, by fork; and one that ends at once. */
Test(continuous, processes_come_and_go)
{
	pid_t before = start_with(NULL, "busy"), exec, shell, forks;
	json_t *list;

	pyprofd_start(&d, "--continuous", "--interval", "1", "--rate", "99", "--match", tag,
		      "--label", "zone=a", NULL);
	wait_for("processes", "sampled", 1);
	exec = start_with(NULL, "busy");
	shell = start_with("sleep 3; exec \"$@\"", "busy");
	forks = start_with(NULL, "fork");
	end(start_with(NULL, "busy"));
	wait_for("processes", "sampled", 5);
	cr_assert_geq(state("processes", "short_lived"), 1);
	wait_for_samples(before, 2);
	wait_for_samples(exec, 2);
	wait_for_samples(shell, 2);
	end(before);
	end(exec);
	end(shell);
	end(forks); /* its child is another process, which ends with it */
	list = parse(ctl_ok(&d, "history", "--json", NULL));
	cr_assert_geq(intervals_of(list, before), 1);
	cr_assert_geq(intervals_of(list, exec), 1);
	cr_assert_geq(intervals_of(list, shell), 1);
	cr_assert_eq(intervals_of(list, forks), 0, "it only waits");
	cr_assert_str_eq(json_string_value(label(
				 json_array_get(json_object_get(list, "intervals"), 0), "service")),
			 "continuous");
	cr_assert_str_eq(json_string_value(label(
				 json_array_get(json_object_get(list, "intervals"), 0), "zone")),
			 "a");
	json_decref(list);
	wait_until_none();
	free(ctl_ok(&d, "status", NULL));
	pyprofd_shutdown(&d);
}

/* Each sample is in one interval: their sum is the process's CPU time, within the error of samples. */
Test(continuous, intervals_add_up)
{
	pid_t pid = start_with(NULL, "half");
	uint64_t from, to;
	double cpu, merged;
	json_t *list, *profile;
	int64_t samples;

	pyprofd_start(&d, "--continuous", "--interval", "1", "--rate", "199", "--match", tag, NULL);
	wait_for("processes", "sampled", 1);
	cr_assert(clock_process_cpu_ns(pid, &from));
	wait_for_samples(pid, 300);
	cr_assert(clock_process_cpu_ns(pid, &to));
	end(pid);
	wait_until_none();
	list = parse(ctl_ok(&d, "history", "list", "--from", "-5min", "--json", NULL));
	profile = parse(ctl_ok(&d, "history", "merge", "--from", "-5min", "-f", "json", NULL));
	samples = sum_of(list, "samples");
	merged = (double)sum_of(list, "cpu_ns");
	cpu = (double)(to - from);
	cr_assert_eq(json_array_size(json_object_get(profile, "targets")), 1);
	cr_assert_geq(samples, 300);
	cr_assert_lt(fabs(merged - cpu), 5 * sqrt((double)samples) * 1e9 / 199 + 0.15 * cpu,
		     "%.3f s in intervals, %.3f s of CPU time", merged / 1e9, cpu / 1e9);
	json_decref(list);
	json_decref(profile);
	pyprofd_shutdown(&d);
}

/* What is kept is also sent, each interval once. */
Test(continuous, intervals_are_sent)
{
	struct push_server server;
	char url[64], *dir = temp_dir_new();
	pid_t pid = start_with(NULL, "busy");
	json_t *list, *log, *record;
	uint64_t sent_ns = 0;
	size_t i, n;

	push_server_start(&server, dir, "200", NULL);
	pyprofd_start(&d, "--continuous", "--interval", "1", "--rate", "99", "--match", tag,
		      "--push", push_server_url(&server, "pyroscope+http", url), NULL);
	wait_for_samples(pid, 100);
	end(pid);
	wait_until_none();
	list = parse(ctl_ok(&d, "history", "--json", NULL));
	n = intervals_of(list, pid);
	pyprofd_shutdown(&d);
	log = push_server_log(&server);
	cr_assert_eq(json_array_size(log), n);
	json_array_foreach(log, i, record)
	{
		cr_assert_str_eq(json_string_value(json_object_get(record, "service")),
				 "continuous");
		sent_ns += (uint64_t)json_integer_value(
			json_object_get(json_object_get(record, "sums"), "cpu"));
	}
	cr_assert_leq(sent_ns, (uint64_t)sum_of(list, "cpu_ns"));
	cr_assert_geq(2 * sent_ns, (uint64_t)sum_of(list, "cpu_ns"), "outside Python excepted");
	json_decref(log);
	json_decref(list);
	push_server_check(&server);
	push_server_stop(&server);
	temp_dir_remove(dir);
}

/* A process that follows another gets its BPF instance, with nothing of the one before. */
Test(continuous, one_process_after_the_other)
{
	pyprofd_start(&d, "--continuous", "--interval", "1", "--rate", "99", "--match", tag, NULL);
	for (int i = 0; i < 4; i++) {
		pid_t pid = start_with(NULL, i % 2 ? "half" : "busy");
		char condition[32], *text;

		wait_for("processes", "attached", i + 1);
		wait_for("processes", "sampled", 1);
		wait_for_samples(pid, 5);
		end(pid);
		wait_until_none();
		snprintf(condition, sizeof(condition), "pid=^%d$", (int)pid);
		text = ctl_ok(&d, "history", "merge", "--where", condition, NULL);
		cr_assert(strstr(text, "(inner)"), "%s", text);
		cr_assert_eq(!strstr(text, "(half)"), i % 2 == 0, "%s", text);
		cr_assert_eq(!strstr(text, "(busy)"), i % 2 == 1, "%s", text);
		free(text);
	}
	pyprofd_shutdown(&d);
}

Test(continuous, a_client_detaches_a_process)
{
	pid_t pid = start_with(NULL, "half");
	char text[16];

	pyprofd_start(&d, "--continuous", "--interval", "1", "--match", tag, NULL);
	wait_for("processes", "sampled", 1);
	free(ctl_ok(&d, "detach", pid_text(text, pid), NULL));
	wait_until_none();
	end(pid);
	pyprofd_shutdown(&d);
}

static void expect_history_on_disk(void)
{
	char *text;
	json_t *list = parse(ctl_ok(&d, "history", "--dir", keep, "--json", NULL));

	cr_assert_geq(json_array_size(json_object_get(list, "intervals")), 3);
	json_decref(list);
	text = ctl_ok(&d, "history", "merge", "5min", "--dir", keep, "--where",
		      "service=^continuous$", NULL);
	cr_assert(strstr(text, "(outer)") && strstr(text, "(inner)"), "%s", text);
	free(text);
	ctl_fails(&d, 3, "no intervals", "history", "merge", "5min", "--dir", keep, "--where",
		  "service=other", NULL);
}

Test(continuous, files_survive_kill_9)
{
	pid_t pid = start_with(NULL, "busy");
	char dir[64];
	struct stat st;

	pyprofd_start(&d, "--continuous", "--interval", "1", "--keep", keep, "--match", tag, NULL);
	wait_for("disk", "files", 3);
	/* pyprofd_kill() would remove the directory */
	snprintf(dir, sizeof(dir), "%s", d.dir);
	kill(d.pid, SIGKILL);
	free(pyprofd_wait(&d).out);
	expect_history_on_disk();
	assert_ok(stat(keep, &st));
	cr_assert_eq(st.st_mode & 0777, 0700);
	pyprofd_launch(&d, "--continuous", "--interval", "1", "--keep", keep, "--match", tag, NULL);
	pyprofd_ready(&d);
	wait_for("disk", "files", 6);
	expect_history_on_disk();
	free(ctl_ok(&d, "history", "diff", "--dir", keep, "-f", "json", "2min", "2min", NULL));
	end(pid);
	pyprofd_shutdown(&d);
}

/* It is reported, and the rest goes on. */
Test(continuous, a_full_disk_is_not_fatal)
{
	pid_t pid = start_with(NULL, "busy");
	char *text;

	assert_ok(mkdir(keep, 0700));
	if (mount("tmpfs", keep, "tmpfs", 0, "size=16k,mode=0700") < 0)
		cr_skip_test("needs root");
	pyprofd_start(&d, "--continuous", "--interval", "1", "--keep", keep, "--match", tag, NULL);
	wait_for("disk", "failed", 2);
	text = ctl_ok(&d, "status", NULL);
	cr_assert(strstr(text, "could not be written"), "%s", text);
	free(text);
	wait_for(NULL, "intervals", 6);
	end(pid);
	free(ctl_ok(&d, "shutdown", NULL));
	{
		struct ran r = pyprofd_wait(&d);

		cr_assert_eq(r.status, 0);
		cr_assert(strstr(r.err, "No space left"), "%s", r.err);
		ran_free(&r);
	}
	assert_ok(umount(keep));
	pyprofd_deinit(&d);
}

Test(continuous, options_are_checked)
{
	pyprofd_fails(&d, 2, "requires --continuous", "--match", "x", NULL);
	pyprofd_fails(&d, 2, "excludes", "--continuous", "--pid", "1", NULL);
	pyprofd_fails(&d, 2, "--match", "--continuous", "--match", "(", NULL);
	pyprofd_fails(&d, 2, "--label", "--continuous", "--label", "x", NULL);
	pyprofd_fails(&d, 2, "--interval", "--continuous", "--interval", "250ms", NULL);
	pyprofd_fails(&d, 2, "excludes", "--continuous", "--push", "otlp+https://host",
		      "--push-every", "5", NULL);
	pyprofd_fails(&d, 2, "--keep", "--continuous", "--keep-size", "10M", NULL);
	pyprofd_launch(&d, NULL);
	pyprofd_ready(&d);
	ctl_fails(&d, 2, "keeps no history", "history", NULL);
	ctl_fails(&d, 2, "invalid span", "history", "list", "25:00-26:00", NULL);
	ctl_fails(&d, 2, "invalid condition", "history", "--dir", d.dir, "--where", "x", NULL);
	pyprofd_shutdown(&d);
}
