// SPDX-License-Identifier: BSD-2-Clause
/* Profiles of simulated hosts in a real ClickHouse: see fleet_rig.h. */
#include "harness/fleet_rig.h"

#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"
#include "harness/tool.h"
#include "harness/traced.h"
#include "interval/interval.h"
#include "snapshot/load.h"

struct pyprofd fleet_d;
struct clickhouse fleet_server;
char fleet_files[FLEET_HOSTS][128];
uint64_t fleet_start_ns, fleet_step_ns;
char fleet_rig_database[16] = "fleet";

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

const char *fleet_url(int port, char *out, size_t size)
{
	return clickhouse_address(port, fleet_rig_database, out, size);
}

void fleet_use(int port)
{
	char url[128];

	cr_assert(setenv("PYPROF_FLEET", fleet_url(port, url, sizeof(url)), 1) == 0);
}

void fleet_setup(void)
{
	clickhouse_need();
	pyprofd_init(&fleet_d);
	clickhouse_start(&fleet_server);
}

void fleet_teardown(void)
{
	clickhouse_end(&fleet_server);
	pyprofd_deinit(&fleet_d);
}

void fleet_begin(const char *test)
{
	static unsigned int n;

	fprintf(stderr, "-- %s\n", test);
	snprintf(fleet_rig_database, sizeof(fleet_rig_database), "fleet%u", ++n);
	fleet_use(fleet_server.port);
	fleet_start_ns = ((uint64_t)time(NULL) - 1800) * 1000000000;
	fleet_step_ns = 0;
}

char *fleet_ask(const char *sql, ...)
{
	_cleanup_free_ char *data = NULL;
	char url[64];
	const char *curl[] = {"curl", "-sf", "--data-binary", NULL, url, NULL};
	va_list ap;

	va_start(ap, sql);
	cr_assert(vasprintf(&data, sql, ap) > 0);
	va_end(ap);
	curl[3] = data;
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/", fleet_server.port);
	return tool_run(curl);
}

/* ---- intervals ---- */

static json_t *merge; /* of the present files; NULL: not known */

/* Takes the snapshot. */
void fleet_save(struct snapshot *s, unsigned int host)
{
	uint8_t id[INTERVAL_ID_BYTES] = {0xfe, [15] = (uint8_t)host};
	uint64_t start = fleet_start_ns + host * (fleet_step_ns + 1);
	struct diag diag = {0};
	struct interval *iv;
	char name[32];
	FILE *out;

	json_decref(merge);
	merge = NULL;
	snprintf(name, sizeof(name), "host%02u", host);
	s->host = snapshot_str(s, name);
	iv = interval_new(id, start, start + 10000000000, s);
	cr_assert(iv);
	assert_ok(interval_set_label(iv, INTERVAL_HOST, name));
	assert_ok(interval_set_label(iv, INTERVAL_SERVICE, "it's \"web\" \\ 100%"));
	assert_ok(interval_set_label(iv, "version", host % 2 ? "1.0" : "2.0"));
	assert_ok(interval_set_label(iv, "zone", host % 4 ? "north" : "south\t'"));
	snprintf(name, sizeof(name), "%02u.json", host);
	pyprofd_file(&fleet_d, name, fleet_files[host], sizeof(fleet_files[host]));
	out = fopen(fleet_files[host], "we");
	cr_assert(out);
	assert_diag_ok(interval_write(iv, out, &diag), &diag);
	cr_assert(fclose(out) == 0);
	interval_free(iv);
}

/* A profile of the program in this mode, made when it is first needed */
static const char *real_profile(const char *mode, char out[128])
{
	char script[128], name[32];
	FILE *f;

	snprintf(name, sizeof(name), "%s.json", mode);
	pyprofd_file(&fleet_d, name, out, 128);
	if (access(out, R_OK) == 0)
		return out;
	pyprofd_file(&fleet_d, "program.py", script, sizeof(script));
	f = fopen(script, "we");
	cr_assert(f && fputs(program, f) >= 0 && fclose(f) == 0);
	free(ctl_ok(&fleet_d, "run", "--mode", mode, "-o", out, "--", traced_newest().exe, script,
		    NULL));
	return out;
}

void fleet_make_files(const char *mode)
{
	struct diag diag = {0};
	char real[128];

	real_profile(mode, real);
	for (unsigned int i = 0; i < FLEET_HOSTS; i++) {
		struct snapshot *s = NULL;

		if (i % 4 && strcmp(mode, "trace") == 0)
			s = snapshot_random(i);
		else
			assert_diag_ok(snapshot_load(real, &s, &diag), &diag);
		fleet_save(s, i);
	}
}

void fleet_put(unsigned int first, unsigned int n)
{
	for (unsigned int i = first; i < first + n; i += 2)
		free(ctl_ok(&fleet_d, "fleet", "insert", fleet_files[i], fleet_files[i + 1], NULL));
}

/* ---- comparison ---- */

json_t *fleet_parse(char *text)
{
	json_t *ret = json_loads(text, 0, NULL);

	cr_assert(ret, "%.300s", text);
	free(text);
	return ret;
}

/* The merge of all files, computed once for them. A new reference. */
static json_t *merged(void)
{
	char out[128];

	if (merge)
		return json_incref(merge);
	pyprofd_file(&fleet_d, "merged.json", out, sizeof(out));
	free(ctl_ok(&fleet_d, "report", "-f", "json", "-o", out, fleet_files[0], fleet_files[1],
		    fleet_files[2], fleet_files[3], fleet_files[4], fleet_files[5], fleet_files[6],
		    fleet_files[7], fleet_files[8], fleet_files[9], fleet_files[10],
		    fleet_files[11], fleet_files[12], fleet_files[13], fleet_files[14],
		    fleet_files[15], fleet_files[16], fleet_files[17], fleet_files[18],
		    fleet_files[19], NULL));
	merge = fleet_parse(file_text(out, NULL));
	return json_incref(merge);
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
json_t *fleet_functions(const json_t *root)
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
json_t *fleet_edges(const json_t *root)
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

void fleet_assert_same(json_t *a, json_t *b, const char *what)
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
void fleet_assert_near(const json_t *a, const json_t *b)
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
void fleet_assert_all_there(void)
{
	json_t *local = merged(), *fleet = fleet_parse(ctl_ok(&fleet_d, "fleet", "top", "-f",
							      "json", "--from", "-9h", NULL));

	fleet_assert_same(fleet_functions(local), fleet_functions(fleet), "functions");
	fleet_assert_same(fleet_edges(local), fleet_edges(fleet), "edges");
	fleet_assert_near(local, fleet);
	json_decref(local);
	json_decref(fleet);
}
