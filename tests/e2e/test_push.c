// SPDX-License-Identifier: BSD-2-Clause
/*
 * `pyprofd --push` and `pyprofctl push`: what arrives at a receiver equals what the daemon reports,
 * to the nanosecond for the same snapshot; and what happens to receivers is shown.
 */
#include <jansson.h>
#include <signal.h>
#include <unistd.h>

#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/push_server.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "snapshot/load.h"

#define TOKEN "s3cr3t-token"

static struct pyprofd d;
static struct traced t;
static struct push_server server;
static char pid[16], url[64], other_url[64], *dir;

static void setup(void)
{
	signal(SIGPIPE, SIG_IGN);
	dir = temp_dir_new();
}

static void teardown(void)
{
	temp_dir_remove(dir);
}

TestSuite(push, .init = setup, .fini = teardown);

/* A program with calls of every kind, or with those of one function */
static void start_mixed(void)
{
	traced_ready(&t, pid, traced_newest().exe, "run.py", "mixed", NULL);
}

static void start_simple(void)
{
	traced_ready(&t, pid, traced_newest().exe, "run.py", "busy_empty", "0", "2000", NULL);
}

/* ---- sums ---- */

struct sums {
	uint64_t calls, cpu, wall;
};

static struct sums sums_of(const struct snapshot *s)
{
	struct sums ret = {0};

	for (uint32_t i = 0; i < s->nnodes; i++) {
		if (s->nodes[i].parent == SNAPSHOT_NONE)
			continue;
		ret.calls += s->nodes[i].calls;
		ret.cpu += s->nodes[i].self[SNAPSHOT_CPU];
		ret.wall += s->nodes[i].self[SNAPSHOT_WALL];
	}
	return ret;
}

static uint64_t sum_of(const json_t *record, const char *value)
{
	return (uint64_t)json_integer_value(
		json_object_get(json_object_get(record, "sums"), value));
}

static void expect_sums(const struct snapshot *s)
{
	json_t *log = push_server_log(&server), *record;
	struct sums expected = sums_of(s);
	size_t i;

	cr_assert_eq(json_array_size(log), 2);
	json_array_foreach(log, i, record)
	{
		cr_assert_eq(sum_of(record, "calls"), expected.calls);
		cr_assert_eq(sum_of(record, "cpu"), expected.cpu);
		cr_assert_eq(sum_of(record, "wall"), expected.wall);
		cr_assert_str_eq(json_string_value(json_object_get(record, "service")), "run");
	}
	json_decref(log);
	push_server_check(&server);
}

/* A saved snapshot, by both kinds, without a daemon */
static void check_saved(const char *path)
{
	struct snapshot *s = NULL;
	struct diag diag = {0};
	char *out;

	push_server_start(&server, dir, "200", NULL);
	out = ctl_ok(&d, "push", path, push_server_url(&server, "pyroscope+http", url), NULL);
	cr_assert(strstr(out, "HTTP 200"), "%s", out);
	free(out);
	free(ctl_ok(&d, "push", path, push_server_url(&server, "otlp+http", url), NULL));
	assert_diag_ok(snapshot_load(path, &s, &diag), &diag);
	cr_assert(sums_of(s).calls > 1000);
	expect_sums(s);
	snapshot_free(s);
	push_server_stop(&server);
}

static void check_failures(const char *path)
{
	push_server_start(&server, dir, "503", "400", NULL);
	push_server_url(&server, "pyroscope+http", url);
	ctl_fails(&d, 1, "HTTP 503", "push", path, url, NULL);
	ctl_fails(&d, 1, "HTTP 400", "push", url, NULL);
	ctl_fails(&d, 2, "not a kind", "push", path, "carrier+http://127.0.0.1", NULL);
	ctl_fails(&d, 2, "credentials", "push", path, "otlp+https://me:secret@host", NULL);
	ctl_fails(&d, 1, "cannot open", "push", "/nonexistent.json", url, NULL);
	ctl_fails(&d, 3, "", "push", "--pid", "1", url, NULL);
	push_server_stop(&server);
	ctl_fails(&d, 1, "not sent", "push", path, url, NULL);
}

Test(push, by_the_client)
{
	char path[160];

	start_mixed();
	snprintf(path, sizeof(path), "%s/now.json", dir);
	pyprofd_start(&d, "--pid", pid, NULL);
	traced_go(&t);
	traced_expect(&t, "done");
	free(ctl_ok(&d, "snapshot", "-o", path, NULL));
	check_saved(path);
	check_failures(path);
	pyprofd_shutdown(&d);
	traced_finish(&t);
}

static uint64_t all_calls(const struct push_server *from)
{
	json_t *log = push_server_log(from), *record;
	uint64_t sum = 0;
	size_t i;

	json_array_foreach(log, i, record) sum += sum_of(record, "calls");
	json_decref(log);
	return sum;
}

static void wait_for_requests(const struct push_server *of, size_t n)
{
	while (push_server_count(of, NULL, NULL) < n) {
		cr_assert(!patience_over(), "%zu requests", push_server_count(of, NULL, NULL));
		ctl_step();
	}
}

/* A number of one of the receivers, or of an object in it */
static json_int_t receivers(size_t i, const char *object, const char *key)
{
	json_t *status = ctl_status(&d);
	const json_t *push = json_array_get(json_object_get(status, "pushes"), i);
	json_int_t n = json_integer_value(
		json_object_get(object ? json_object_get(push, object) : push, key));

	json_decref(status);
	return n;
}

static bool none_waits(void *unused)
{
	(void)unused;
	return receivers(0, NULL, "queued") == 0;
}

/* The intervals of a run, the last one sent at the daemon's end, have all calls, each once. */
Test(push, intervals_add_up_to_the_run)
{
	json_t *target;
	uint64_t calls;
	size_t ids, n;
	struct snapshot *s = NULL;
	struct diag diag = {0};
	char path[160];
	struct ran r;

	start_mixed();
	snprintf(path, sizeof(path), "%s/end.json", dir);
	push_server_start(&server, dir, "503", "200", NULL);
	pyprofd_start(&d, "--pid", pid, "--push", push_server_url(&server, "pyroscope+http", url),
		      "--push-every", "200ms", "--push-service", "shop", "-o", path, NULL);
	wait_for_requests(&server, 1);
	traced_go(&t);
	traced_expect(&t, "done");
	target = ctl_target(&d, 0);
	cr_assert(json_is_true(json_object_get(target, "exact")));
	json_decref(target);
	/* At its end, the daemon does not wait long for a receiver. */
	patience_until(none_waits, NULL, "the requests");
	free(ctl_ok(&d, "shutdown", NULL));
	r = pyprofd_wait(&d);
	cr_assert_null(strstr(r.err, "not sent"), "%s", r.err);
	ran_free(&r);
	pyprofd_deinit(&d);
	assert_diag_ok(snapshot_load(path, &s, &diag), &diag);
	calls = sums_of(s).calls;
	n = push_server_count(&server, "200", &ids);
	cr_assert(n >= 2);
	cr_assert_eq(ids, n, "each interval once");
	push_server_check(&server);
	cr_assert(calls > 1000);
	/* The refused attempt was repeated with the same interval, whose calls are there twice. */
	{
		json_t *log = push_server_log(&server);
		uint64_t first = sum_of(json_array_get(log, 0), "calls");

		cr_assert_eq(all_calls(&server) - first, calls);
		cr_assert_str_eq(
			json_string_value(json_object_get(json_array_get(log, 0), "service")),
			"shop");
		json_decref(log);
	}
	snapshot_free(s);
	push_server_stop(&server);
	traced_finish(&t);
}

/* What was recorded since the last interval is sent when a client clears or detaches the target. */
static void expect_all_calls_after(const char *command, const char *arg, size_t n)
{
	struct snapshot *s = NULL;
	struct diag diag = {0};
	char path[160];

	start_simple();
	snprintf(path, sizeof(path), "%s/before.json", dir);
	push_server_start(&server, dir, "200", NULL);
	pyprofd_start(&d, "--pid", pid, "--push", push_server_url(&server, "pyroscope+http", url),
		      "--push-every", "1h", NULL);
	traced_go(&t);
	traced_expect(&t, "done");
	free(ctl_ok(&d, "snapshot", "-o", path, NULL));
	free(ctl_ok(&d, command, arg, NULL));
	wait_for_requests(&server, 1);
	pyprofd_shutdown(&d);
	assert_diag_ok(snapshot_load(path, &s, &diag), &diag);
	cr_assert_leq(push_server_count(&server, "200", NULL), n);
	cr_assert_geq(all_calls(&server), sums_of(s).calls);
	cr_assert(sums_of(s).calls > 1000);
	snapshot_free(s);
	push_server_stop(&server);
	traced_finish(&t);
}

Test(push, cleared_target_is_sent_before)
{
	expect_all_calls_after("clear", NULL, 2);
}

Test(push, detached_target_is_sent_before)
{
	expect_all_calls_after("detach", pid, 1);
}

/* ---- what is shown ---- */

static void write_token(char path[160])
{
	FILE *f;

	snprintf(path, 160, "%s/token", dir);
	f = fopen(path, "we");
	cr_assert(f);
	fputs(TOKEN "\n", f);
	fclose(f);
}

static bool text_has(const char *path, const char *what)
{
	size_t n = 0;
	char *text = file_text(path, &n);
	bool found = text && memmem(text, n, what, strlen(what));

	free(text);
	return found;
}

static void expect_hidden(const char *what)
{
	char path[64], *status = ctl_ok(&d, "status", "--json", NULL);
	FILE *f;
	int child;

	cr_assert_null(strstr(status, what));
	free(status);
	cr_assert_not(text_has(d.err, what), "in the log");
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)d.pid, (int)d.pid);
	f = fopen(path, "re");
	cr_assert(f);
	while (fscanf(f, "%d", &child) == 1) {
		snprintf(path, sizeof(path), "/proc/%d/cmdline", child);
		cr_assert_not(text_has(path, what), "in a command line");
	}
	fclose(f);
}

static bool first_says_401(void)
{
	json_t *status = ctl_status(&d);
	const json_t *push = json_array_get(json_object_get(status, "pushes"), 0);
	const bool ret = strstr(json_string_value(json_object_get(push, "last_error")), "401");

	json_decref(status);
	return ret;
}

/* An interval waits for the first receiver, which is asked again; OTLP does not repeat 401. */
static bool both_have_refused(void *unused)
{
	(void)unused;
	return receivers(0, NULL, "queued") >= 1 && first_says_401() &&
	       receivers(1, "dropped", "refused") >= 1;
}

Test(push, status_and_log_show_receivers_but_no_token)
{
	char token[160], *text;
	json_t *status, *push;
	struct ran r;

	start_simple();
	write_token(token);
	push_server_start(&server, dir, "--token", "Bearer other", "200", NULL);
	pyprofd_start(&d, "-v", "--pid", pid, "--push",
		      push_server_url(&server, "pyroscope+http", url), "--push",
		      push_server_url(&server, "otlp+http", other_url), "--push-every", "100ms",
		      "--push-token-file", token, NULL);
	traced_go(&t);
	traced_expect(&t, "done");
	wait_for_requests(&server, 2);
	patience_until(both_have_refused, NULL, "both refusals");
	status = ctl_status(&d);
	cr_assert_eq(json_array_size(json_object_get(status, "pushes")), 2);
	push = json_array_get(json_object_get(status, "pushes"), 0);
	cr_assert_str_eq(json_string_value(json_object_get(push, "url")), url);
	json_decref(status);
	text = ctl_ok(&d, "status", NULL);
	cr_assert(strstr(text, "last error: HTTP 401"), "%s", text);
	free(text);
	expect_hidden(TOKEN);
	free(ctl_ok(&d, "shutdown", NULL));
	r = pyprofd_wait(&d);
	cr_assert_eq(r.status, 0);
	cr_assert(strstr(r.err, "were not sent"), "%s", r.err);
	cr_assert_null(strstr(r.err, TOKEN));
	ran_free(&r);
	pyprofd_deinit(&d);
	push_server_stop(&server);
	traced_finish(&t);
}

/* The harness checks that no process of the daemon is left, in both cases. */
Test(push, senders_end_with_the_daemon)
{
	start_simple();
	push_server_start(&server, dir, "slow:3600", NULL);
	pyprofd_start(&d, "--pid", pid, "--push", push_server_url(&server, "otlp+http", url),
		      "--push-every", "100ms", NULL);
	wait_for_requests(&server, 1);
	pyprofd_kill(&d);
	pyprofd_start(&d, "--push", url, NULL);
	pyprofd_end(&d);
	push_server_stop(&server);
	traced_stop(&t);
}

/* ---- under the unit ---- */

static const struct {
	const char *from, *to;
} drop_in[] = {
	{"PrivateNetwork=yes", "PrivateNetwork=no"},
	{"RestrictAddressFamilies=AF_UNIX",
	 "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK"},
};

/* The unit as it is with the drop-in of pushing.md */
static void write_unit(char path[160])
{
	char from[256], line[512];
	unsigned int replaced = 0;
	FILE *in = fopen(traced_path("packaging", "pyprofd.service", from, sizeof(from)), "re");
	FILE *out;

	snprintf(path, 160, "%s/push.service", dir);
	out = fopen(path, "we");
	cr_assert(in && out);
	while (fgets(line, sizeof(line), in)) {
		const char *text = line;

		for (size_t i = 0; i < sizeof(drop_in) / sizeof(drop_in[0]); i++)
			if (strncmp(line, drop_in[i].from, strlen(drop_in[i].from)) == 0) {
				text = drop_in[i].to;
				replaced++;
			}
		fprintf(out, "%s%s", text, text == line ? "" : "\n");
	}
	fclose(in);
	fclose(out);
	cr_assert_eq(replaced, 2);
}

/* The host is a name, so the sender's resolver works under all restrictions, too. */
Test(push, under_the_unit)
{
	char unit[160], confine[256], to[96];
	const char *by[] = {
		"python3", traced_path("tests/harness", "confine.py", confine, sizeof(confine)),
		unit,	   "--writable",
		d.dir,	   "--",
		NULL};

	start_simple();
	write_unit(unit);
	push_server_start(&server, dir, "200", NULL);
	snprintf(to, sizeof(to), "pyroscope+http://localhost:%d", server.port);
	pyprofd_init(&d);
	d.by = by;
	pyprofd_launch(&d, "--push", to, "--push-every", "100ms", NULL);
	pyprofd_ready(&d);
	free(ctl_ok(&d, "attach", pid, NULL));
	traced_go(&t);
	traced_expect(&t, "done");
	wait_for_requests(&server, 1);
	push_server_check(&server);
	pyprofd_end(&d);
	push_server_stop(&server);
	traced_finish(&t);
}

Test(push, wrong_options)
{
	struct pyprofd bad;

	pyprofd_init(&bad);
	pyprofd_fails(&bad, 2, "without --push", "--push-every", "5", NULL);
	pyprofd_fails(&bad, 2, "at least", "--push", "otlp+https://host", "--push-every", "1ms",
		      NULL);
	pyprofd_fails(&bad, 2, "given twice", "--push", "otlp+https://host", "--push",
		      "otlp+https://host/", NULL);
	pyprofd_fails(&bad, 2, "protocol", "--push", "https://host", NULL);
	pyprofd_fails(&bad, 2, "without TLS", "--push", "otlp+http://192.0.2.1",
		      "--push-token-file", "/dev/null", NULL);
	pyprofd_fails(&bad, 1, "cannot read", "--push", "otlp+https://192.0.2.1", "--push-ca",
		      "/nonexistent", NULL);
	pyprofd_deinit(&bad);
}
