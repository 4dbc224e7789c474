// SPDX-License-Identifier: BSD-2-Clause
/*
 * Continuous mode and history: processes come and go, their intervals add up to the whole, and survive
 * the daemon. All processes of a test have its tag on their command lines, as others run beside it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"
#include "harness/daemon.h"
#include "harness/interpreters.h"
#include "harness/push_server.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/traced.h"

#define RATE	  99u
#define RATE_TEXT "99"

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

TestSuite(continuous, .init = setup);

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

/* Wait until a process has used so much CPU time from now on. */
static void wait_for_cpu(pid_t pid, uint64_t ms)
{
	const uint64_t until = clock_monotonic_ns() + 60 * UINT64_C(1000000000);
	uint64_t begun = 0, now = 0;

	cr_assert(clock_process_cpu_ns(pid, &begun));
	do {
		pause_ms(20);
		cr_assert(clock_process_cpu_ns(pid, &now));
	} while (now - begun < ms * 1000000 && clock_monotonic_ns() < until);
	cr_assert_geq(now - begun, ms * 1000000);
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

/* The number of a process's samples in the kept intervals */
static int64_t samples_of(pid_t pid)
{
	char condition[32];
	json_t *list;
	int64_t samples;

	snprintf(condition, sizeof(condition), "pid=^%d$", (int)pid);
	list = parse(ctl_ok(&d, "history", "--json", "--where", condition, NULL));
	samples = sum_of(list, "samples");
	json_decref(list);
	return samples;
}

/* Wait until the kept intervals have so many samples of a process. */
static void wait_for_samples(pid_t pid, int64_t least)
{
	const uint64_t until = clock_monotonic_ns() + 90 * UINT64_C(1000000000);
	int64_t samples;

	do {
		samples = samples_of(pid);
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
	uint64_t started = 0;
	json_t *list;

	pyprofd_start(&d, "--continuous", "--interval", "1", "--rate", RATE_TEXT, "--match", tag,
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
	cr_assert(clock_process_cpu_ns(forks, &started));
	end(forks); /* its child is another process, which ends with it */
	list = parse(ctl_ok(&d, "history", "--json", NULL));
	cr_assert_geq(intervals_of(list, before), 1);
	cr_assert_geq(intervals_of(list, exec), 1);
	cr_assert_geq(intervals_of(list, shell), 1);
	/* it only waits, once it has started */
	cr_assert_leq((uint64_t)samples_of(forks), 2 * RATE * started / 1000000000 + 1,
		      "%" PRIu64 " ms", started / 1000000);
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
	uint64_t from = 0, to = 0;
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
	pyprofd_start(&d, "--continuous", "--interval", "1", "--rate", RATE_TEXT, "--match", tag,
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
	pyprofd_start(&d, "--continuous", "--interval", "1", "--rate", RATE_TEXT, "--match", tag,
		      NULL);
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

/* Of a daemon that did not run for a while. */
Test(continuous, cuts_are_left_out)
{
	pid_t pid = start_with(NULL, "busy");
	char *text;

	pyprofd_start(&d, "--continuous", "--interval", "1", "--rate", RATE_TEXT, "--match", tag,
		      NULL);
	wait_for(NULL, "intervals", 1);
	assert_ok(kill(d.pid, SIGSTOP));
	pause_ms(3500);
	assert_ok(kill(d.pid, SIGCONT));
	wait_for(NULL, "left_out_cuts", 1);
	text = ctl_ok(&d, "status", NULL);
	cr_assert(strstr(text, "cuts left out"), "%s", text);
	free(text);
	end(pid);
	pyprofd_shutdown(&d);
}

/* ---- other modes ---- */

/* A number of a function in what is kept: a column of format csv. */
static int64_t figure(const char *function, const char *column)
{
	char *text = ctl_ok(&d, "history", "merge", "5min", "-f", "csv", NULL), *rest = text;
	char *head = strsep(&rest, "\n"), *line, *field;
	size_t at = 0, i = 0;
	char wanted[64];
	int64_t v = -1;

	while ((field = strsep(&head, ",")) && strcmp(field, column) != 0)
		at++;
	cr_assert(field, "no column %s", column);
	snprintf(wanted, sizeof(wanted), "\"%s\"", function);
	while ((line = strsep(&rest, "\n")))
		if (strstr(line, wanted)) {
			while ((field = strsep(&line, ",")) && i < at)
				i++;
			v = field ? strtoll(field, NULL, 10) : -1;
			break;
		}
	free(text);
	return v;
}

static void wait_for_intervals(pid_t pid, int64_t least)
{
	const uint64_t until = clock_monotonic_ns() + 90 * UINT64_C(1000000000);
	int64_t n;

	do {
		json_t *list = parse(ctl_ok(&d, "history", "--json", NULL));

		n = (int64_t)intervals_of(list, pid);
		json_decref(list);
		pause_ms(200);
	} while (n < least && clock_monotonic_ns() < until);
	cr_assert_geq(n, least);
}

/* Each call is in one interval: inner() is called as often as outer(), once in each call of it. */
Test(continuous, calls_are_counted)
{
	pid_t pid = start_with(NULL, "busy");
	int64_t outer, inner;
	char *text;

	pyprofd_start(&d, "--continuous", "--mode", "count", "--interval", "1", "--match", tag,
		      NULL);
	wait_for_intervals(pid, 4);
	end(pid);
	wait_until_none();
	outer = figure("outer", "ncalls");
	inner = figure("inner", "ncalls");
	cr_assert_gt(outer, 100);
	cr_assert(llabs(inner - outer) <= 1, "%lld calls of inner(), %lld of outer()",
		  (long long)inner, (long long)outer);
	text = ctl_ok(&d, "history", "merge", "5min", "-f", "json", NULL);
	cr_assert(strstr(text, "\"mode\": \"count\"") || strstr(text, "\"mode\":\"count\""));
	free(text);
	pyprofd_shutdown(&d);
}

/* The bound of the windows is the one asked for, and each interval has an estimate of all calls. */
Test(continuous, traced_in_windows)
{
	pid_t pid = start_with(NULL, "half");
	json_t *target, *windows;
	int64_t outer, inner;

	pyprofd_start(&d, "--continuous", "--max-overhead", "3", "--interval", "2", "--match", tag,
		      NULL);
	wait_for("processes", "sampled", 1);
	target = ctl_target_of(&d, pid);
	windows = json_object_get(target, "windows");
	cr_assert_eq(json_integer_value(json_object_get(windows, "max_overhead_percent")), 3);
	cr_assert_str_eq(json_string_value(json_object_get(target, "mode")), "trace");
	json_decref(target);
	wait_for_intervals(pid, 3);
	target = ctl_target_of(&d, pid);
	cr_assert_eq(json_integer_value(json_object_get(target, "lost")), 0);
	json_decref(target);
	end(pid);
	wait_until_none();
	outer = figure("outer", "ncalls");
	inner = figure("inner", "ncalls");
	cr_assert_gt(outer, 0);
	cr_assert(llabs(inner - outer) <= outer / 10 + 5, "%lld calls of inner(), %lld of outer()",
		  (long long)inner, (long long)outer);
	pyprofd_shutdown(&d);
}

/*
 * A client traces a process that continuous mode does not sample, twice, after sampled ones have ended: nothing of
 * what makes those light applies to it.
 */
Test(continuous, a_client_traces_beside_it)
{
	const char *const python = traced_newest().exe;
	pid_t other, sampled = start_with(NULL, "half");
	char text[16], *table;

	pyprofd_start(&d, "--continuous", "--interval", "1", "--match", tag, NULL);
	wait_for("processes", "sampled", 1);
	end(sampled);
	wait_until_none();
	pause_ms(1500); /* its instance of the BPF programs may be used again */
	other = fork();
	cr_assert_geq(other, 0);
	if (other == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(python, python, script, "half", NULL);
		_exit(127);
	}
	for (int i = 0; i < 2; i++) {
		free(ctl_ok(&d, "attach", "--mode", "trace", pid_text(text, other), NULL));
		wait_for_cpu(other, 250);
		table = ctl_ok(&d, "snapshot", "--pid", text, NULL);
		cr_assert(strstr(table, "(inner)") && strstr(table, "(outer)"), "%s", table);
		cr_assert_not(strstr(table, "<unknown"), "%s", table);
		free(table);
		free(ctl_ok(&d, "detach", text, NULL));
	}
	end(other);
	pyprofd_shutdown(&d);
}

/* The samples of all intervals of a process that a client clears or detaches before an interval ends. */
static int64_t samples_before(const char *command, bool with_pid)
{
	pid_t pid = start_with(NULL, "busy");
	char text[16];
	json_t *list;
	int64_t n;

	pyprofd_start(&d, "--continuous", "--interval", "60", "--rate", "199", "--match", tag,
		      NULL);
	wait_for("processes", "sampled", 1);
	wait_for_cpu(pid, 750);
	free(ctl_ok(&d, command, with_pid ? pid_text(text, pid) : NULL, NULL));
	list = parse(ctl_ok(&d, "history", "list", "--from", "-5min", "--json", NULL));
	n = sum_of(list, "samples");
	json_decref(list);
	return n;
}

Test(continuous, a_client_detaches_a_process)
{
	cr_assert_geq(samples_before("detach", true), 50);
	wait_until_none();
	pyprofd_shutdown(&d);
}

Test(continuous, a_client_clears_a_process)
{
	cr_assert_geq(samples_before("clear", false), 50);
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

/* The intervals in memory, which are not merged, and those on disk have the same sums. */
static void expect_same_sums(void)
{
	json_t *memory = parse(ctl_ok(&d, "history", "--json", NULL));
	json_t *disk = parse(ctl_ok(&d, "history", "--dir", keep, "--json", NULL)), *iv;
	size_t i, n = json_array_size(json_object_get(memory, "intervals")), count = 0;

	json_array_foreach(json_object_get(disk, "intervals"), i, iv)
	{
		int64_t merged = json_integer_value(json_object_get(iv, "merged"));

		count += merged ? (size_t)merged : 1;
	}
	cr_assert_lt(i, n, "some are merged");
	cr_assert_eq(count, n);
	cr_assert_eq(sum_of(disk, "samples"), sum_of(memory, "samples"));
	cr_assert_eq(sum_of(disk, "cpu_ns"), sum_of(memory, "cpu_ns"));
	json_decref(memory);
	json_decref(disk);
}

static long long error_in(const char *text)
{
	uint64_t ns;

	assert_ok(parse_u64(text, 0, INT64_MAX, &ns));
	return (long long)ns;
}

/* Errors are stored in whole ns, so they may differ by one if they were merged in another order. */
static void expect_same_rows(char *before, char *after)
{
	bool error[64] = {false};
	char *line, *other;

	for (size_t row = 0; (line = strsep(&before, "\r\n")) && (other = strsep(&after, "\r\n"));
	     row++) {
		char *a, *b;

		for (size_t i = 0; (a = strsep(&line, ",")) && (b = strsep(&other, ",")); i++) {
			cr_assert_lt(i, 64);
			if (row == 0)
				error[i] = strstr(a, "_error") != NULL;
			if (!error[i] || !*a || !*b || row == 0)
				cr_assert_str_eq(b, a, "row %zu, column %zu", row, i);
			else
				cr_assert_leq(llabs(error_in(b) - error_in(a)), 1, "%s, %s", b, a);
		}
		cr_assert(!line && !other);
	}
	cr_assert(!before && !after);
}

Test(continuous, old_intervals_are_merged)
{
	pid_t busy = start_with(NULL, "busy"), half = start_with(NULL, "half");
	const char *const merging[] = {"--interval", "1", "--merge-after", "3", "--merge-to", "4"};
	char *before, *after;

	pyprofd_start(&d, "--continuous", "--keep", keep, "--match", tag, merging[0], merging[1],
		      merging[2], merging[3], merging[4], merging[5], NULL);
	wait_for("disk", "merged", 9);
	end(busy);
	end(half);
	wait_until_none();
	pause_ms(1500); /* the last cut is on disk */
	expect_same_sums();
	kill(d.pid, SIGKILL);
	free(pyprofd_wait(&d).out);
	before = ctl_ok(&d, "history", "merge", "5min", "--dir", keep, "-f", "csv", NULL);
	pyprofd_launch(&d, "--continuous", "--keep", keep, "--match", tag, merging[0], merging[1],
		       merging[2], merging[3], merging[4], merging[5], NULL);
	pyprofd_ready(&d);
	/* what is left is merged, too */
	wait_for("disk", "merged", 1);
	after = ctl_ok(&d, "history", "merge", "5min", "--dir", keep, "-f", "csv", NULL);
	expect_same_rows(before, after);
	free(before);
	free(after);
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
	pyprofd_fails(&d, 2, "require --keep", "--continuous", "--merge-to", "300", NULL);
	pyprofd_fails(&d, 2, "--merge-to", "--continuous", "--keep", keep, "--merge-to", "2h",
		      NULL);
	pyprofd_launch(&d, NULL);
	pyprofd_ready(&d);
	ctl_fails(&d, 2, "keeps no history", "history", NULL);
	ctl_fails(&d, 2, "invalid span", "history", "list", "25:00-26:00", NULL);
	ctl_fails(&d, 2, "invalid condition", "history", "--dir", d.dir, "--where", "x", NULL);
	pyprofd_shutdown(&d);
}
