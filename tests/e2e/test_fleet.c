// SPDX-License-Identifier: BSD-2-Clause
/* Profiles of simulated hosts in a real ClickHouse, compared with the merge of the same files. */
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/clickhouse.h"
#include "harness/daemon.h"
#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"
#include "harness/tool.h"
#include "harness/traced.h"
#include "interval/interval.h"
#include "push/kinds.h"
#include "snapshot/load.h"

#define HOSTS 20

static struct pyprofd d; /* never started: its directory only */
static struct clickhouse server;
static char files[HOSTS][128];
static uint64_t start_ns;

static const char program[] = "import json, sys, threading, time\n"
			      "def tokens(n):\n"
			      "    for _ in range(n): pass\n"
			      "def walk(n):\n"
			      "    return n and walk(n - 1)\n"
			      "def handle():\n"
			      "    tokens(5000); json.dumps([1] * 20); walk(9); time.sleep(0.001)\n"
			      "def many():\n"
			      "    for _ in range(100): handle()\n"
			      "ts = [threading.Thread(target=many) for _ in range(3)]\n"
			      "for t in ts: t.start()\n"
			      "for t in ts: t.join()\n";

static void use(int port)
{
	char url[128];

	clickhouse_address(port, "fleet", url, sizeof(url));
	cr_assert(setenv("PYPROF_FLEET", url, 1) == 0);
}

static void setup(void)
{
	pyprofd_init(&d);
	start_ns = ((uint64_t)time(NULL) - 1800) * 1000000000;
}

static void teardown(void)
{
	clickhouse_end(&server);
	pyprofd_deinit(&d);
}

TestSuite(fleet, .init = setup, .fini = teardown, .timeout = 300);

/* ---- intervals ---- */

/* Takes the snapshot. */
static void save(struct snapshot *s, unsigned int host)
{
	uint8_t id[INTERVAL_ID_BYTES] = {0xfe, [15] = (uint8_t)host};
	struct diag diag = {0};
	struct interval *iv;
	char name[32];
	FILE *out;

	snprintf(name, sizeof(name), "host%02u", host);
	s->host = snapshot_str(s, name);
	iv = interval_new(id, start_ns + host, start_ns + host + 10000000000, s);
	cr_assert(iv);
	assert_ok(interval_set_label(iv, INTERVAL_HOST, name));
	assert_ok(interval_set_label(iv, INTERVAL_SERVICE, "it's \"web\" \\ 100%"));
	assert_ok(interval_set_label(iv, "version", host % 2 ? "1.0" : "2.0"));
	assert_ok(interval_set_label(iv, "zone", host % 4 ? "north" : "south\t'"));
	snprintf(name, sizeof(name), "%02u.json", host);
	pyprofd_file(&d, name, files[host], sizeof(files[host]));
	out = fopen(files[host], "we");
	cr_assert(out);
	assert_diag_ok(interval_write(iv, out, &diag), &diag);
	cr_assert(fclose(out) == 0);
	interval_free(iv);
}

/* Half of them are random, half of a real program: traced, or in the given mode. */
static void make_files(const char *mode)
{
	char script[128], real[128];
	struct diag diag = {0};
	FILE *f;

	pyprofd_file(&d, "program.py", script, sizeof(script));
	pyprofd_file(&d, "real.json", real, sizeof(real));
	f = fopen(script, "we");
	cr_assert(f && fputs(program, f) >= 0 && fclose(f) == 0);
	free(ctl_ok(&d, "run", "--mode", mode, "-o", real, "--", traced_newest().exe, script,
		    NULL));
	for (unsigned int i = 0; i < HOSTS; i++) {
		struct snapshot *s = NULL;

		if (i % 2 && strcmp(mode, "trace") == 0)
			s = snapshot_random(i);
		else
			assert_diag_ok(snapshot_load(real, &s, &diag), &diag);
		save(s, i);
	}
}

static void insert(unsigned int first, unsigned int n)
{
	for (unsigned int i = first; i < first + n; i += 2)
		free(ctl_ok(&d, "fleet", "insert", files[i], files[i + 1], NULL));
}

/* ---- comparison ---- */

static json_t *parse(char *text)
{
	json_t *ret = json_loads(text, 0, NULL);

	cr_assert(ret, "%.300s", text);
	free(text);
	return ret;
}

static json_t *merged(const char *format)
{
	char out[128];

	pyprofd_file(&d, "merged.json", out, sizeof(out));
	free(ctl_ok(&d, "report", "-f", format, "-o", out, files[0], files[1], files[2], files[3],
		    files[4], files[5], files[6], files[7], files[8], files[9], files[10],
		    files[11], files[12], files[13], files[14], files[15], files[16], files[17],
		    files[18], files[19], NULL));
	return parse(file_text(out, NULL));
}

static char *key_of(const json_t *f)
{
	char *key = NULL;

	cr_assert(f);
	cr_assert(asprintf(&key, "%s:%lld:%s:%s:%lld:%d",
			   json_string_value(json_object_get(f, "file")),
			   json_integer_value(json_object_get(f, "line")),
			   json_string_value(json_object_get(f, "name")),
			   json_is_string(json_object_get(f, "qualname"))
				   ? json_string_value(json_object_get(f, "qualname"))
				   : "",
			   json_integer_value(json_object_get(f, "variant")),
			   json_is_true(json_object_get(f, "pseudo"))) > 0);
	return key;
}

/* Functions by identity. Errors are sums of floating-point numbers, so they are compared apart;
 * resumptions are known of single processes only. */
static json_t *functions(const json_t *root)
{
	json_t *ret = json_object(), *list = json_object_get(root, "functions"), *f;
	size_t i;

	json_array_foreach(list, i, f)
	{
		char *key = key_of(f);
		json_t *copy = json_deep_copy(f);

		json_object_del(copy, "error");
		json_object_del(copy, "lines");
		json_object_del(copy, "resumed");
		cr_assert_null(json_object_get(ret, key), "%s twice", key);
		json_object_set_new(ret, key, copy);
		free(key);
	}
	return ret;
}

/* Edges by the identities of both functions */
static json_t *edges(const json_t *root)
{
	json_t *ret = json_object(), *list = json_object_get(root, "functions"), *e;
	size_t i;

	json_array_foreach(json_object_get(root, "edges"), i, e)
	{
		const json_t *caller = json_object_get(e, "caller");
		char *to = key_of(json_array_get(
			list, (size_t)json_integer_value(json_object_get(e, "callee"))));
		char *from =
			json_is_null(caller)
				? strdup("")
				: key_of(json_array_get(list, (size_t)json_integer_value(caller)));
		json_t *copy = json_deep_copy(e);
		char *key = NULL;

		cr_assert(asprintf(&key, "%s > %s", from, to) > 0);
		json_object_del(copy, "caller");
		json_object_del(copy, "callee");
		json_object_set_new(ret, key, copy);
		free(key);
		free(from);
		free(to);
	}
	return ret;
}

static void assert_same(json_t *a, json_t *b, const char *what)
{
	const char *key;
	json_t *v;

	cr_assert(json_object_size(a) > 3);
	cr_assert_eq(json_object_size(a), json_object_size(b), "%zu %s, not %zu",
		     json_object_size(a), what, json_object_size(b));
	json_object_foreach(a, key, v)
	{
		const json_t *other = json_object_get(b, key);

		cr_assert(other && json_equal(v, other), "%s:\n%s\n%s", key, json_dumps(v, 0),
			  other ? json_dumps(other, 0) : "none");
	}
	json_decref(a);
	json_decref(b);
}

/* Errors and lines, within the rounding of an error to whole nanoseconds */
static void assert_near(const json_t *a, const json_t *b)
{
	const json_t *list[2] = {json_object_get(a, "functions"), json_object_get(b, "functions")};
	json_t *by_key = json_object(), *f;
	size_t i;

	json_array_foreach(list[1], i, f)
	{
		char *key = key_of(f);

		json_object_set(by_key, key, f);
		free(key);
	}
	json_array_foreach(list[0], i, f)
	{
		char *key = key_of(f);
		const json_t *x = json_object_get(json_object_get(f, "error"), "tottime"),
			     *y = json_object_get(json_object_get(json_object_get(by_key, key),
								  "error"),
						  "tottime");
		json_int_t cpu[] = {json_integer_value(json_object_get(x, "cpu")),
				    json_integer_value(json_object_get(y, "cpu"))};

		cr_assert(llabs(cpu[0] - cpu[1]) <= 1, "%s: %lld %lld", key, cpu[0], cpu[1]);
		cr_assert_eq(
			json_array_size(json_object_get(f, "lines")),
			json_array_size(json_object_get(json_object_get(by_key, key), "lines")),
			"%s", key);
		free(key);
	}
	json_decref(by_key);
}

/* What the database has is the merge of all files, to the nanosecond. */
static void assert_all_there(void)
{
	json_t *local = merged("json"),
	       *fleet = parse(ctl_ok(&d, "fleet", "top", "-f", "json", NULL));

	assert_same(functions(local), functions(fleet), "functions");
	assert_same(edges(local), edges(fleet), "edges");
	assert_near(local, fleet);
	json_decref(local);
	json_decref(fleet);
}

/* ---- tests ---- */

Test(fleet, sums_are_those_of_the_merged_files)
{
	char *text;

	clickhouse_need();
	make_files("trace");
	clickhouse_start(&server);
	use(server.port);
	ctl_fails(&d, PYP_EXIT_FAILURE, "fleet init", "fleet", "top", NULL);
	free(ctl_ok(&d, "fleet", "init", NULL));
	free(ctl_ok(&d, "fleet", "init", NULL));
	ctl_fails(&d, PYP_EXIT_FAILURE, "no profiles match", "fleet", "top", NULL);
	insert(0, HOSTS);
	assert_all_there();
	insert(4, 8); /* once more */
	assert_all_there();
	text = ctl_ok(&d, "fleet", "hosts", "-w", "service=it's \"web\" \\ 100%", "-w",
		      "zone=south\t'", "-w", "version!=1.0", "-w", "host~^host0", NULL);
	cr_assert(strstr(text, "host00") && strstr(text, "host04") && strstr(text, "host08"));
	cr_assert(!strstr(text, "host01") && !strstr(text, "host02") && !strstr(text, "host12"));
	free(text);
	ctl_fails(&d, PYP_EXIT_FAILURE, "no profiles match", "fleet", "top", "--to", "-1h",
		  "--from", "-2h", NULL);
	ctl_fails(&d, PYP_EXIT_FAILURE, "no profiles match", "fleet", "top", "-w",
		  "service=' OR 1 = 1 OR '\\' = '", NULL);
}

Test(fleet, reports_are_those_of_snapshots)
{
	char page[128], *text;

	clickhouse_need();
	make_files("trace");
	clickhouse_start(&server);
	use(server.port);
	free(ctl_ok(&d, "fleet", "init", NULL));
	insert(0, HOSTS);
	text = ctl_ok(&d, "fleet", "top", "-s", "calls", "-l", "3", "handle", NULL);
	cr_assert(strstr(text, "20 processes of service it's") && strstr(text, "20 hosts") &&
			  strstr(text, "(handle)"),
		  "%s", text);
	free(text);
	text = ctl_ok(&d, "fleet", "tree", NULL);
	cr_assert(strstr(text, "below") && strstr(text, "20 profiles"), "%s", text);
	free(text);
	text = ctl_ok(&d, "fleet", "diff", "-w", "version=2.0", "--before-where", "version=1.0",
		      "--force", NULL);
	cr_assert(strstr(text, "tokens"), "%s", text);
	free(text);
	pyprofd_file(&d, "fleet.html", page, sizeof(page));
	free(ctl_ok(&d, "fleet", "html", "-o", page, NULL));
	text = file_text(page, NULL);
	cr_assert(text && strstr(text, "tokens"));
	free(text);
	text = ctl_ok(&d, "fleet", "services", "-f", "json", NULL);
	cr_assert(strstr(text, "\"hosts\": 20") && strstr(text, "\"profiles\": 20"), "%s", text);
	free(text);
}

/* Estimates have errors and lines. */
Test(fleet, samples_keep_errors_and_lines)
{
	clickhouse_need();
	make_files("sample");
	clickhouse_start(&server);
	use(server.port);
	free(ctl_ok(&d, "fleet", "init", NULL));
	insert(0, HOSTS);
	insert(0, HOSTS);
	assert_all_there();
}

Test(fleet, modes_are_not_added)
{
	char *text;

	clickhouse_need();
	make_files("sample");
	clickhouse_start(&server);
	use(server.port);
	free(ctl_ok(&d, "fleet", "init", NULL));
	free(ctl_ok(&d, "fleet", "insert", files[0], NULL));
	save(snapshot_random(1), 1);
	free(ctl_ok(&d, "fleet", "insert", files[1], NULL));
	ctl_fails(&d, PYP_EXIT_USAGE, "different mode", "fleet", "top", NULL);
	text = ctl_ok(&d, "fleet", "top", "-w", "mode=sample", NULL);
	cr_assert(strstr(text, "mode sample"), "%s", text);
	free(text);
}

/* Starts `fleet insert` of all files and returns its pid. */
static pid_t start_insert(void)
{
	char program_path[256];
	const char *argv[HOSTS + 4] = {program_path, "fleet", "insert"};
	pid_t pid = fork();

	cr_assert(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(program_path, sizeof(program_path), "%s/pyprofctl", getenv("PYPROF_BUILD"));
	for (int i = 0; i < HOSTS; i++)
		argv[3 + i] = files[i];
	dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 1);
	dup2(1, 2);
	execv(program_path, (char *const *)argv);
	_exit(127);
}

/* The server is killed at different moments of an insert, which is then repeated. */
Test(fleet, killing_the_server_loses_and_doubles_nothing)
{
	clickhouse_need();
	make_files("trace");
	clickhouse_start(&server);
	use(server.port);
	free(ctl_ok(&d, "fleet", "init", NULL));
	insert(0, 10); /* acknowledged, so these must still be there */
	clickhouse_kill(&server);
	ctl_fails(&d, PYP_EXIT_FAILURE, "cannot reach", "fleet", "top", NULL);
	for (int i = 0; i < 6; i++) {
		struct timespec delay = {.tv_nsec = (20 + 60 * i) * 1000 * 1000};
		char *text;
		pid_t pid;

		clickhouse_restart(&server);
		text = ctl_ok(&d, "fleet", "services", "-f", "json", NULL);
		cr_assert(strstr(text, "\"hosts\": 10") || strstr(text, "\"hosts\": 20"), "%s",
			  text);
		free(text);
		pid = start_insert();
		nanosleep(&delay, NULL);
		clickhouse_kill(&server);
		cr_assert(waitpid(pid, NULL, 0) == pid);
	}
	clickhouse_restart(&server);
	insert(10, 10);
	assert_all_there();
}

/* Starts the program that cuts off answers; returns its port. */
static int start_cutter(int cut, pid_t *ret_pid)
{
	char path[256], port[16], count[16], text[16] = "";
	int out[2];
	FILE *f;

	snprintf(path, sizeof(path), "%s/tests/targets/cut_answers.py", getenv("PYPROF_TOP"));
	snprintf(port, sizeof(port), "%d", server.port);
	snprintf(count, sizeof(count), "%d", cut);
	cr_assert(pipe2(out, O_CLOEXEC) == 0);
	*ret_pid = fork();
	cr_assert(*ret_pid >= 0);
	if (*ret_pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], 1);
		execlp("python3", "python3", path, port, count, NULL);
		_exit(127);
	}
	close(out[1]);
	f = fdopen(out[0], "r");
	cr_assert(f && fgets(text, sizeof(text), f)); /* the whole line, however it is written */
	fclose(f);
	return (int)strtol(text, NULL, 10);
}

/* The server has the rows, the client does not know it and inserts them again. */
Test(fleet, answers_that_are_cut_off_double_nothing)
{
	pid_t cutter;

	clickhouse_need();
	make_files("trace");
	clickhouse_start(&server);
	use(start_cutter(HOSTS, &cutter));
	free(ctl_ok(&d, "fleet", "init", NULL));
	for (unsigned int i = 0; i < HOSTS; i++)
		ctl_fails(&d, PYP_EXIT_FAILURE, "cannot reach", "fleet", "insert", files[i], NULL);
	assert_all_there();
	insert(0, HOSTS);
	assert_all_there();
	kill(cutter, SIGKILL);
	cr_assert(waitpid(cutter, NULL, 0) == cutter);
}

/* What the daemon sends is an insert of this server. */
Test(fleet, pushed_requests_are_stored)
{
	char body[128], file[160], url[8192];
	struct diag diag = {0};
	char *text;

	clickhouse_need();
	make_files("trace");
	clickhouse_start(&server);
	use(server.port);
	free(ctl_ok(&d, "fleet", "init", NULL));
	pyprofd_file(&d, "body", body, sizeof(body));
	snprintf(file, sizeof(file), "@%s", body);
	for (unsigned int i = 0; i < 2 * HOSTS; i++) {
		const char *const curl[] = {"curl",	     "-sf", "-H", "Content-Encoding: gzip",
					    "--data-binary", file,  url,  NULL};
		struct push_request *rq = NULL;
		struct interval *iv = NULL;
		size_t n = 0;
		FILE *out;

		text = file_text(files[i % HOSTS], &n);
		assert_diag_ok(interval_parse(text, n, files[i % HOSTS], &iv, &diag), &diag);
		assert_diag_ok(push_kind_find("clickhouse", NULL)->encode(iv, &rq, &diag), &diag);
		out = fopen(body, "we");
		cr_assert(out && fwrite(rq->body, 1, rq->nbody, out) == rq->nbody);
		cr_assert(fclose(out) == 0);
		snprintf(url, sizeof(url), "http://127.0.0.1:%d/?database=fleet%s", server.port,
			 rq->path);
		free(tool_run(curl));
		push_request_free(rq);
		interval_free(iv);
		free(text);
	}
	assert_all_there();
}
