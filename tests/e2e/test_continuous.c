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
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"
#include "harness/background.h"
#include "harness/daemon.h"
#include "harness/interpreters.h"
#include "harness/kept.h"
#include "harness/patience.h"
#include "harness/push_server.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "target/target.h"

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

/* how: NULL, or a shell's command line around "$@". out: its standard output; -1: the test's */
static pid_t start_with(const char *how, const char *mode, int out)
{
	const char *const python = traced_newest().exe;
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (out >= 0)
		dup2(out, 1);
	if (how)
		execl("/bin/sh", "sh", "-c", how, "sh", python, script, mode, tag, NULL);
	execl(python, python, script, mode, tag, NULL);
	_exit(127);
}

/* The program has started, and does nothing from here on but what its mode is. */
static pid_t start(const char *mode)
{
	char line[16];
	int out[2];
	pid_t pid;

	assert_ok(pipe2(out, O_CLOEXEC));
	pid = start_with(NULL, mode, out[1]);
	close(out[1]);
	interpreter_line(out[0], line, sizeof(line));
	close(out[0]);
	return pid;
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

static uint64_t cpu_ns(pid_t pid)
{
	uint64_t ns = 0;

	cr_assert(clock_process_cpu_ns(pid, &ns));
	return ns;
}

/* Wait until a process has used so much CPU time from now on. */
static void wait_for_cpu(pid_t pid, uint64_t ms)
{
	const uint64_t until = cpu_ns(pid) + ms * 1000000;

	while (cpu_ns(pid) < until) {
		cr_assert(!patience_over(), "process %d does not work", (int)pid);
		patience_step();
	}
}

static void wait_for(const char *object, const char *key, int64_t least)
{
	int64_t v;

	while ((v = state(object, key)) < least) {
		cr_assert(!patience_over(), "%s is %" PRId64 ", not %" PRId64, key, v, least);
		ctl_step();
	}
}

/* Wait until all processes have ended, and their last intervals are given to be kept. */
static void wait_until_none(void)
{
	while (state("processes", "sampled")) {
		cr_assert(!patience_over(), "%" PRId64 " are still sampled",
			  state("processes", "sampled"));
		ctl_step();
	}
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

/* The kept intervals of a process, or, if it is 0, of all: their number, and that of their samples */
static size_t kept_of(pid_t pid, int64_t *ret_samples)
{
	json_t *list = background_api(&d, "GET", "/v1/history", NULL);
	const json_t *v = json_object_get(list, "intervals"), *iv;
	size_t i, n = 0;
	char text[16];

	*ret_samples = 0;
	pid_text(text, pid);
	json_array_foreach(v, i, iv)
	{
		if (pid && strcmp(json_string_value(label(iv, "pid")), text) != 0)
			continue;
		*ret_samples += json_integer_value(json_object_get(iv, "samples"));
		n++;
	}
	json_decref(list);
	return n;
}

static void wait_for_kept(pid_t pid, size_t intervals, int64_t samples)
{
	int64_t s;
	size_t n;

	while ((n = kept_of(pid, &s)) < intervals || s < samples) {
		cr_assert(!patience_over(), "process %d: %zu intervals, %" PRId64 " samples",
			  (int)pid, n, s);
		ctl_step();
	}
}

/* ---- tests ---- */

/* A process that ends before it is old enough to be sampled, repeatedly, as this test may be late to end it */
static void end_one_at_once(void)
{
	do {
		pid_t pid = start("seldom");

		cr_assert(!patience_over(), "none was short-lived");
		end(pid);
		ctl_step();
	} while (!state("processes", "short_lived"));
}

static void check_labels(const json_t *interval)
{
	cr_assert_str_eq(json_string_value(label(interval, "service")), "continuous");
	cr_assert_str_eq(json_string_value(label(interval, "zone")), "a");
}

/* Before the daemon, by exec, by exec from a shell, by fork; and one that ends at once. */
Test(continuous, processes_come_and_go)
{
	pid_t before = start("seldom"), exec, shell, forks, child;
	int64_t samples, bound;
	double expected;
	json_t *list;

	pyprofd_start(&d, "--continuous", "--interval", "1", "--rate", RATE_TEXT, "--match", tag,
		      "--label", "zone=a", NULL);
	shell = start_with("sleep 3; exec \"$@\"", "seldom", -1);
	wait_for("processes", "sampled", 1);
	exec = start("seldom");
	end_one_at_once();
	forks = start("fork");
	wait_for("processes", "sampled", 5);
	cr_assert_eq(target_children(forks, &child, 1), 1);
	wait_for_kept(before, 1, 2);
	wait_for_kept(exec, 1, 2);
	wait_for_kept(shell, 1, 2);
	/*
	 * The parent only waits, once it has started, so it has at most a sample per period of the CPU time until
	 * then, with a deviation of no more than their root, of which 5.7 are exceeded once in 10^8 times. Its child is
	 * another process, and has more.
	 */
	expected = RATE * (double)cpu_ns(forks) / 1e9;
	bound = (int64_t)(expected + 5.7 * sqrt(expected)) + 10;
	wait_for_kept(child, 1, bound + 1);
	kept_of(forks, &samples);
	cr_assert_leq(samples, bound);
	end(before);
	end(exec);
	end(shell);
	end(forks); /* its child ends with it */
	list = parse(ctl_ok(&d, "history", "--json", NULL));
	cr_assert_geq(intervals_of(list, before), 1);
	cr_assert_geq(intervals_of(list, exec), 1);
	cr_assert_geq(intervals_of(list, shell), 1);
	check_labels(json_array_get(json_object_get(list, "intervals"), 0));
	json_decref(list);
	wait_until_none();
	free(ctl_ok(&d, "status", NULL));
	pyprofd_shutdown(&d);
}

/* What is kept is also sent, each interval once. */
static void check_sent(struct push_server *server, const json_t *list, pid_t pid)
{
	json_t *log = push_server_log(server), *record;
	uint64_t sent_ns = 0;
	size_t i;

	cr_assert_eq(json_array_size(log), intervals_of(list, pid));
	json_array_foreach(log, i, record)
	{
		cr_assert_str_eq(json_string_value(json_object_get(record, "service")),
				 "continuous");
		sent_ns += (uint64_t)json_integer_value(
			json_object_get(json_object_get(record, "sums"), "cpu"));
	}
	cr_assert_leq(sent_ns, (uint64_t)kept_sum(list, "cpu_ns"));
	cr_assert_geq(2 * sent_ns, (uint64_t)kept_sum(list, "cpu_ns"), "outside Python excepted");
	json_decref(log);
	push_server_check(server);
}

/* The process works only while it is sampled. */
Test(continuous, intervals_add_up_and_are_sent)
{
	struct push_server server;
	char url[64], *dir = temp_dir_new();
	pid_t pid = start("busy");
	uint64_t from, to;
	json_t *list, *profile;
	double stolen;
	struct ran r;

	kill(pid, SIGSTOP);
	push_server_start(&server, dir, "200", NULL);
	pyprofd_start(&d, "--continuous", "--interval", "1", "--rate", "999", "--match", tag,
		      "--keep", keep, "--push", push_server_url(&server, "pyroscope+http", url),
		      NULL);
	wait_for("processes", "sampled", 1);
	from = cpu_ns(pid);
	stolen = kept_stolen_s();
	kill(pid, SIGCONT);
	wait_for_cpu(pid, 1000);
	kill(pid, SIGSTOP);
	wait_for_kept(pid, 2, 0);
	to = cpu_ns(pid);
	stolen = kept_stolen_s() - stolen;
	end(pid);
	wait_until_none();
	/* At its end, the daemon has written all of them. */
	free(ctl_ok(&d, "shutdown", NULL));
	r = pyprofd_wait(&d);
	cr_assert_eq(r.status, 0, "%s", r.err);
	ran_free(&r);
	list = parse(ctl_ok(&d, "history", "list", "--dir", keep, "--from", "-9h", "--json", NULL));
	profile = parse(
		ctl_ok(&d, "history", "merge", "--dir", keep, "--from", "-9h", "-f", "json", NULL));
	cr_assert_eq(json_array_size(json_object_get(profile, "targets")), 1);
	kept_check_sum(list, 999, (double)(to - from) / 1e9, stolen);
	check_sent(&server, list, pid);
	json_decref(list);
	json_decref(profile);
	push_server_stop(&server);
	temp_dir_remove(dir);
	pyprofd_deinit(&d);
}

/* What was measured of one process */
static void wait_for_inner(pid_t pid, const char *other, const char *none)
{
	char condition[32], *text = NULL;
	bool found = false;

	snprintf(condition, sizeof(condition), "pid=^%d$", (int)pid);
	while (!found) {
		free(text);
		wait_for_kept(pid, 1, 1);
		text = ctl_ok(&d, "history", "merge", "--where", condition, NULL);
		found = strstr(text, "(inner)");
		cr_assert(found || !patience_over(), "%s", text);
		if (!found)
			ctl_step();
	}
	cr_assert(strstr(text, other) && !strstr(text, none), "%s", text);
	free(text);
}

/* A process that follows another gets its BPF instance, with nothing of the one before. */
static void one_process_after_the_other(void)
{
	for (int i = 0; i < 3; i++) {
		pid_t pid = start(i % 2 ? "half" : "seldom");

		wait_for("processes", "attached", i + 1);
		wait_for("processes", "sampled", 1);
		wait_for_inner(pid, i % 2 ? "(half)" : "(seldom)", i % 2 ? "(seldom)" : "(half)");
		end(pid);
		wait_until_none();
	}
}

/*
 * A client traces a process that continuous mode does not sample, twice, after sampled ones have ended: nothing of
 * what makes those light applies to it.
 */
static void a_client_traces_beside_it(void)
{
	const char *const python = traced_newest().exe;
	char text[16], *table;
	pid_t other;

	patience_pass(1500); /* the last instance of the BPF programs may be used again */
	other = fork();
	cr_assert_geq(other, 0);
	if (other == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(python, python, script, "half", NULL);
		_exit(127);
	}
	for (int i = 0; i < 2; i++) {
		free(ctl_ok(&d, "attach", "--mode", "trace", pid_text(text, other), NULL));
		ctl_until(&d, 0, "events", 1000);
		table = ctl_ok(&d, "snapshot", "--pid", text, NULL);
		cr_assert(strstr(table, "(inner)") && strstr(table, "(outer)"), "%s", table);
		cr_assert_not(strstr(table, "<unknown"), "%s", table);
		free(table);
		free(ctl_ok(&d, "detach", text, NULL));
	}
	end(other);
}

/* Of a daemon that did not run for a while. */
static void cuts_are_left_out(void)
{
	char *text;

	assert_ok(kill(d.pid, SIGSTOP));
	patience_pass(3500);
	assert_ok(kill(d.pid, SIGCONT));
	wait_for(NULL, "left_out_cuts", 1);
	text = ctl_ok(&d, "status", NULL);
	cr_assert(strstr(text, "cuts left out"), "%s", text);
	free(text);
}

Test(continuous, one_after_the_other)
{
	pyprofd_start(&d, "--continuous", "--interval", "1", "--rate", RATE_TEXT, "--match", tag,
		      NULL);
	one_process_after_the_other();
	a_client_traces_beside_it();
	cuts_are_left_out();
	pyprofd_shutdown(&d);
}

/* ---- other modes ---- */

/* A number of a function in what is kept: a column of format csv. */
static int64_t figure(const char *function, const char *column)
{
	char *text = ctl_ok(&d, "history", "merge", "-f", "csv", NULL), *rest = text;
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

static void wait_for_calls(pid_t pid, size_t intervals, int64_t calls)
{
	do {
		wait_for_kept(pid, intervals, 0);
		ctl_step();
		cr_assert(!patience_over(), "%" PRId64 " calls", figure("outer", "ncalls"));
	} while (figure("outer", "ncalls") < calls);
}

/* Each call is in one interval: inner() is called as often as outer(), once in each call of it. */
Test(continuous, calls_are_counted)
{
	pid_t pid = start("half");
	int64_t outer, inner;
	char *text;

	pyprofd_start(&d, "--continuous", "--mode", "count", "--interval", "1", "--match", tag,
		      NULL);
	wait_for_calls(pid, 3, 100);
	end(pid);
	wait_until_none();
	text = ctl_ok(&d, "history", "merge", "-f", "json", NULL);
	cr_assert(strstr(text, "\"mode\": \"count\"") || strstr(text, "\"mode\":\"count\""));
	free(text);
	/* The last interval may be kept only after this: the sums of all others are as equal. */
	outer = figure("outer", "ncalls");
	inner = figure("inner", "ncalls");
	cr_assert(llabs(inner - outer) <= 1, "%" PRId64 " calls of inner(), %" PRId64 " of outer()",
		  inner, outer);
	pyprofd_shutdown(&d);
}

/*
 * The bound of the windows is the one asked for, and each interval has an estimate of all calls. A window counts one
 * more of the two functions only if it begins or ends in the microsecond between their calls, of the thousand that
 * both take: it does not happen to a tenth of all calls.
 */
Test(continuous, traced_in_windows)
{
	pid_t pid = start("half");
	json_t *target, *windows;
	int64_t outer, inner;

	pyprofd_start(&d, "--continuous", "--max-overhead", "3", "--interval", "1", "--match", tag,
		      NULL);
	wait_for("processes", "sampled", 1);
	target = ctl_target_of(&d, pid);
	windows = json_object_get(target, "windows");
	cr_assert_eq(json_integer_value(json_object_get(windows, "max_overhead_percent")), 3);
	cr_assert_str_eq(json_string_value(json_object_get(target, "mode")), "trace");
	json_decref(target);
	wait_for_calls(pid, 3, 100);
	target = ctl_target_of(&d, pid);
	cr_assert_eq(json_integer_value(json_object_get(target, "lost")), 0);
	json_decref(target);
	end(pid);
	wait_until_none();
	outer = figure("outer", "ncalls");
	inner = figure("inner", "ncalls");
	cr_assert(llabs(inner - outer) <= outer / 10 + 5,
		  "%" PRId64 " calls of inner(), %" PRId64 " of outer()", inner, outer);
	pyprofd_shutdown(&d);
}

/*
 * A client clears or detaches a process before an interval ends: what was sampled until then is kept. 200 ms of CPU
 * time have 200 samples, with a deviation of 14.
 */
Test(continuous, a_client_clears_and_detaches_a_process)
{
	pid_t pid = start("busy");
	char text[16];

	pyprofd_start(&d, "--continuous", "--interval", "60", "--rate", "999", "--match", tag,
		      NULL);
	wait_for("processes", "sampled", 1);
	wait_for_cpu(pid, 200);
	free(ctl_ok(&d, "clear", NULL));
	wait_for_kept(pid, 1, 50);
	wait_for_cpu(pid, 200);
	free(ctl_ok(&d, "detach", pid_text(text, pid), NULL));
	wait_for_kept(pid, 2, 100);
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
	text = ctl_ok(&d, "history", "merge", "9h", "--dir", keep, "--where",
		      "service=^continuous$", NULL);
	cr_assert(strstr(text, "(outer)") && strstr(text, "(inner)"), "%s", text);
	free(text);
	ctl_fails(&d, 3, "no intervals", "history", "merge", "9h", "--dir", keep, "--where",
		  "service=other", NULL);
}

Test(continuous, files_survive_kill_9)
{
	pid_t pid = start("seldom");
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
	free(ctl_ok(&d, "history", "diff", "--dir", keep, "-f", "json", "9h", "9h", NULL));
	end(pid);
	pyprofd_shutdown(&d);
}

/* The number of intervals that a list stands for */
static size_t unmerged(const json_t *list)
{
	const json_t *iv;
	size_t i, count = 0;

	json_array_foreach(json_object_get(list, "intervals"), i, iv)
	{
		int64_t merged = json_integer_value(json_object_get(iv, "merged"));

		count += merged ? (size_t)merged : 1;
	}
	return count;
}

/* The intervals in memory, which are not merged, and those on disk have the same sums, once the last one is there. */
static void expect_same_sums(void)
{
	json_t *memory = NULL, *disk = NULL;

	do {
		json_decref(memory);
		json_decref(disk);
		cr_assert(!patience_over(), "they never have as many");
		ctl_step();
		disk = parse(ctl_ok(&d, "history", "--dir", keep, "--json", NULL));
		memory = parse(ctl_ok(&d, "history", "--json", NULL));
	} while (unmerged(disk) != unmerged(memory));
	cr_assert_lt(json_array_size(json_object_get(disk, "intervals")),
		     json_array_size(json_object_get(memory, "intervals")), "some are merged");
	cr_assert_eq(unmerged(memory), json_array_size(json_object_get(memory, "intervals")));
	cr_assert_eq(kept_sum(disk, "samples"), kept_sum(memory, "samples"));
	cr_assert_eq(kept_sum(disk, "cpu_ns"), kept_sum(memory, "cpu_ns"));
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
	pid_t busy = start("seldom"), half = start("half");
	const char *const merging[] = {"--interval", "1", "--merge-after", "3", "--merge-to", "4"};
	char *before, *after;

	pyprofd_start(&d, "--continuous", "--keep", keep, "--match", tag, merging[0], merging[1],
		      merging[2], merging[3], merging[4], merging[5], NULL);
	wait_for("disk", "merged", 9);
	end(busy);
	end(half);
	wait_until_none();
	expect_same_sums();
	kill(d.pid, SIGKILL);
	free(pyprofd_wait(&d).out);
	before = ctl_ok(&d, "history", "merge", "9h", "--dir", keep, "-f", "csv", NULL);
	pyprofd_launch(&d, "--continuous", "--keep", keep, "--match", tag, merging[0], merging[1],
		       merging[2], merging[3], merging[4], merging[5], NULL);
	pyprofd_ready(&d);
	/* what is left is merged, too */
	wait_for("disk", "merged", 1);
	after = ctl_ok(&d, "history", "merge", "9h", "--dir", keep, "-f", "csv", NULL);
	expect_same_rows(before, after);
	free(before);
	free(after);
	pyprofd_shutdown(&d);
}

/* It is reported, and the rest goes on. */
Test(continuous, a_full_disk_is_not_fatal)
{
	pid_t pid = start("seldom");
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
