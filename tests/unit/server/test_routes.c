// SPDX-License-Identifier: BSD-2-Clause
/* server/routes: requests to responses, without sockets. */
#include "server/routes.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "fakes/sessions.c"
#include "format/format.h"
#include "harness/test.h"

static struct routes_ctx ctx;
static struct response rs;
static json_t *answer;
static int shutdowns, shutdown_result;

static int count_shutdown(void *userdata, struct diag *diag)
{
	(void)userdata;
	shutdowns++;
	return shutdown_result < 0 && shutdown_result != -EINPROGRESS
		       ? diag_set(diag, shutdown_result, PYP_EXIT_FAILURE, "", "not written")
		       : shutdown_result;
}

static void setup(void)
{
	struct sessions *ss;

	assert_ok(sessions_new(NULL, NULL, &ss, NULL));
	assert_ok(sessions_attach(ss, 42, true, NULL, NULL));
	ctx = (struct routes_ctx){.sessions = ss, .owner = 500, .shutdown = count_shutdown};
	response_init(&rs);
}

static void teardown(void)
{
	sessions_free(ctx.sessions);
	response_deinit(&rs);
	json_decref(answer);
	answer = NULL;
	check_no_leaks();
}

TestSuite(routes, .init = setup);

/* Dispatch; the body, if it is JSON, is parsed to `answer`. Returns the status. */
static unsigned int ask_as(uid_t uid, const char *method, const char *uri, const char *body)
{
	const struct routes_input in = {
		.peer = {.uid = uid},
		.method = method,
		.uri = uri,
		.body = body,
		.nbody = strlen(body),
	};

	response_deinit(&rs);
	json_decref(answer);
	answer = NULL;
	routes_dispatch(&ctx, &in, &rs, &(struct routes_wait){0});
	if (rs.body && rs.mime[12] == 'j')
		answer = json_loadb(rs.body, rs.size, 0, NULL);
	return rs.status;
}

static unsigned int ask(const char *method, const char *uri, const char *body)
{
	return ask_as(0, method, uri, body);
}

/* The answer is a complete error with this exit code. */
static void assert_error(int code)
{
	cr_assert(answer);
	cr_assert(json_integer_value(json_object_get(answer, "code")) == code, "%s", rs.body);
	cr_assert_str_eq(json_string_value(json_object_get(answer, "error")),
			 diag_exit_name((enum pyp_exit)code));
	cr_assert(json_string_length(json_object_get(answer, "message")) > 0);
	cr_assert(json_is_string(json_object_get(answer, "hint")));
}

static json_int_t number_at(const char *key)
{
	return json_integer_value(json_object_get(answer, key));
}

static char *snapshot_body(void)
{
	char *body = calloc(1, rs.size + 1);

	cr_assert(rs.fd >= 0);
	cr_assert(pread(rs.fd, body, rs.size, 0) == (ssize_t)rs.size);
	return body;
}

Test(routes, index_lists_every_route)
{
	size_t n = 0;

	for (const struct route *r = routes; r->method; r++, n++) {
		cr_assert(r->path[0] == '/' && r->handle && r->help);
	}
	cr_assert(ask("GET", "/v1", "") == 200);
	cr_assert(json_array_size(json_object_get(answer, "routes")) == n);
	teardown();
}

static void assert_overhead(const json_t *o)
{
	cr_assert(json_integer_value(json_object_get(o, "overhead_ns")) == 300000000 &&
		  json_integer_value(json_object_get(o, "own_cpu_ns")) == 1200000000 &&
		  json_real_value(json_object_get(o, "overhead_in_all")) == 0.25);
}

Test(routes, ping_status_targets)
{
	cr_assert(ask("GET", "/v1/ping", "") == 200);
	cr_assert_str_eq(json_string_value(json_object_get(answer, "program")), "pyprofd");
	cr_assert(ask("HEAD", "/v1/ping", "") == 200);
	cr_assert(ask("GET", "/v1/status", "") == 200);
	assert_overhead(answer);
	assert_overhead(json_array_get(json_object_get(answer, "targets"), 0));
	cr_assert(json_array_size(json_object_get(answer, "targets")) == 1);
	cr_assert(ask("GET", "/v1/targets", "") == 200);
	cr_assert(json_array_size(json_object_get(answer, "targets")) == 1);
	cr_assert(ask("GET", "/v1/targets/42", "") == 200);
	cr_assert(number_at("pid") == 42);
	cr_assert_str_eq(json_string_value(json_object_get(answer, "cmdline")),
			 "python3 \"app\".py\n\\ ?");
	cr_assert(ask("GET", "/v1/targets/43", "") == 404);
	assert_error(PYP_EXIT_NO_PROCESS);
	teardown();
}

Test(routes, attach_and_detach)
{
	cr_assert(ask("POST", "/v1/targets", "{\"pid\": 7, \"start\": false}") == 201);
	cr_assert_str_eq(rs.location, "/v1/targets/7");
	cr_assert_str_eq(json_string_value(json_object_get(answer, "state")), "attached");
	cr_assert(ask("POST", "/v1/targets", "{\"pid\": 7}") == 409);
	assert_error(PYP_EXIT_BUSY);
	cr_assert(ask("POST", "/v1/targets?pid=8", "") == 201);
	cr_assert_str_eq(json_string_value(json_object_get(answer, "state")), "tracing");
	cr_assert(ask("POST", "/v1/targets", "{\"pid\": 1001}") == 404);
	assert_error(PYP_EXIT_NO_PROCESS);
	cr_assert(ask("POST", "/v1/targets", "{\"pid\": 1002}") == 403);
	assert_error(PYP_EXIT_PERMISSION);
	cr_assert(ask("POST", "/v1/targets", "{\"pid\": 1003}") == 422);
	assert_error(PYP_EXIT_UNTRACEABLE);
	cr_assert(ask("DELETE", "/v1/targets/7", "") == 200);
	cr_assert(number_at("detached") == 7);
	cr_assert(ask("DELETE", "/v1/targets/7", "") == 404);
	teardown();
}

Test(routes, forecast)
{
	const json_t *f;

	cr_assert(ask("POST", "/v1/forecast",
		      "{\"pid\": 7, \"mode\": \"trace\", \"exact\": true}") == 200);
	f = json_object_get(answer, "forecast");
	cr_assert(json_number_value(json_object_get(f, "trace")) == 350);
	cr_assert(json_number_value(json_object_get(f, "count")) == 175);
	cr_assert(json_number_value(json_object_get(answer, "cost")) == 350);
	cr_assert(strstr(json_string_value(json_object_get(answer, "text")), "trace +350 %"));
	cr_assert(strstr(json_string_value(json_object_get(answer, "advice")), "the default"));
	cr_assert(strstr(json_string_value(json_object_get(answer, "question")),
			 "trace every call? it costs about +35"));
	cr_assert(ask("POST", "/v1/forecast", "{\"pid\": 7, \"max_overhead\": 5}") == 200);
	cr_assert_str_eq(json_string_value(json_object_get(answer, "question")), "");
	cr_assert(ask("POST", "/v1/forecast?pid=8", "") == 200);
	cr_assert(json_is_null(json_object_get(answer, "forecast")));
	cr_assert(strstr(json_string_value(json_object_get(answer, "text")), "no forecast"));
	cr_assert(ask("POST", "/v1/forecast", "{}") == 400);
	assert_error(PYP_EXIT_USAGE);
	teardown();
}

static void assert_mode(const char *mode)
{
	cr_assert_str_eq(json_string_value(json_object_get(answer, "mode")), mode);
}

Test(routes, attach_in_a_mode)
{
	cr_assert(ask("POST", "/v1/targets", "{\"pid\": 7, \"mode\": \"count\"}") == 201);
	assert_mode("count");
	cr_assert(ask("POST", "/v1/targets", "{\"pid\": 8, \"mode\": \"sample\", \"rate\": 9}") ==
		  201);
	assert_mode("sample");
	cr_assert(number_at("rate_hz") == 9);
	cr_assert(ask("POST", "/v1/targets", "{\"pid\": 9}") == 201);
	assert_mode("trace");
	cr_assert(ask("POST", "/v1/targets", "{\"pid\": 11, \"mode\": \"count\", \"rate\": 199}") ==
		  201);
	assert_mode("count");
	cr_assert(number_at("rate_hz") == 199);
	cr_assert(ask("POST", "/v1/targets", "{\"pid\": 10, \"mode\": \"guess\"}") == 400);
	assert_error(PYP_EXIT_USAGE);
	cr_assert(ask("POST", "/v1/targets", "{\"pid\": 10, \"rate\": 10000}") == 400);
	cr_assert(ask("POST", "/v1/targets?pid=10&mode=sample&rate=0", "") == 400);
	cr_assert(ask("GET", "/v1/targets/10", "") == 404);
	teardown();
}

Test(routes, control)
{
	cr_assert(ask("POST", "/v1/stop", "") == 200);
	cr_assert(ctx.sessions->st[0].state == SESSION_ATTACHED);
	cr_assert(ask("POST", "/v1/start", "{\"pid\": 42}") == 200);
	cr_assert(ctx.sessions->st[0].state == SESSION_TRACING);
	cr_assert(ask("POST", "/v1/clear", "{}") == 200);
	cr_assert(ctx.sessions->clears == 1);
	cr_assert(ask("POST", "/v1/clear?pid=5", "") == 404);
	cr_assert(ask("POST", "/v1/shutdown", "") == 200);
	cr_assert(shutdowns == 1);
	teardown();
}

Test(routes, no_such_path_no_such_method)
{
	const char *paths[] = {"/",
			       "/v2/ping",
			       "/v1/",
			       "/v1/pingx",
			       "/v1/targets/",
			       "/v1/targets/x",
			       "/v1/targets/0",
			       "/v1/targets/1/2",
			       "//v1/ping",
			       "/v1/targets/-1",
			       "/v1/../metrics"};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		cr_assert(ask("GET", paths[i], "") == 404, "%s", paths[i]);
		assert_error(PYP_EXIT_USAGE);
	}
	cr_assert(ask("DELETE", "/v1/ping", "") == 405);
	cr_assert_str_eq(rs.allow, "GET, HEAD");
	assert_error(PYP_EXIT_USAGE);
	cr_assert(ask("PUT", "/v1/targets", "") == 405);
	cr_assert_str_eq(rs.allow, "GET, HEAD, POST");
	cr_assert(ask("get", "/v1/ping", "") == 405);
	cr_assert(ask("POST", "/v1/targets/1", "") == 405);
	cr_assert_str_eq(rs.allow, "GET, HEAD, DELETE");
	teardown();
}

Test(routes, hostile_uris)
{
	const char *bad[] = {"",
			     "v1/ping",
			     "http://x/v1/ping",
			     "*",
			     "/v1/%",
			     "/v1/%2",
			     "/v1/%zz",
			     "/v1/ping%00",
			     "/v1/ping?%",
			     "/v1/ping?a=%0",
			     "/v1/ping?a=%00",
			     "/v1/ping?x=1",
			     "/v1/ping?=",
			     "/v1/stop?pid=1&pid=2"};
	static char big[REQUEST_URI_MAX + 2];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_assert(ask("GET", bad[i], "") == 400 || ask("POST", bad[i], "") == 400, "%s: %u",
			  bad[i], rs.status);
		assert_error(PYP_EXIT_USAGE);
	}
	memset(big, 'a', sizeof(big) - 1);
	big[0] = '/';
	cr_assert(ask("GET", big, "") == 414);
	assert_error(PYP_EXIT_USAGE);
	cr_assert(ask("GET", "/v1/p%69ng?&&", "") == 200);
	teardown();
}

Test(routes, too_many_parameters)
{
	char uri[4096] = "/v1/snapshot?";

	for (int i = 0; i <= REQUEST_PARAMS_MAX; i++)
		strncat(uri, "restrict=a&", sizeof(uri) - strlen(uri) - 1);
	cr_assert(ask("GET", uri, "") == 400);
	assert_error(PYP_EXIT_USAGE);
	teardown();
}

Test(routes, hostile_bodies)
{
	const char *bad[] = {
		"x",
		"[]",
		"1",
		"null",
		"{",
		"{\"pid\": [1]}",
		"{\"pid\": {}}",
		"{\"pid\": 1.5}",
		"{\"pid\": -1}",
		"{\"pid\": true}",
		"{\"pid\": \"x\"}",
		"{\"pid\": 1, \"pid\": 2}",
		"{\"pid\": 1e9}",
		"{\"nope\": 1}",
		"{\"pid\": 1} junk",
		"{\"pid\": 5, \"start\": 7}",
		"{\"start\": true}",
		"{\"pid\": null}",
		"{\"pid\": 99999999999999999999}",
		"{\"p\\u0000id\": 1}",
		"\xff",
		"{\"\": 1}",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_assert(ask("POST", "/v1/targets", bad[i]) == 400, "%s: %u", bad[i], rs.status);
		assert_error(PYP_EXIT_USAGE);
	}
	cr_assert(ask("POST", "/v1/targets?pid=7", "{\"pid\": 7}") == 400, "given twice");
	cr_assert(ask("POST", "/v1/targets", " \r\n{\"pid\": \"9\"}\n") == 201);
	cr_assert(ctx.sessions->n == 2);
	teardown();
}

Test(routes, deep_body)
{
	static char deep[REQUEST_BODY_MAX];

	memset(deep, '[', sizeof(deep) - 1);
	cr_assert(ask("POST", "/v1/stop", deep) == 400);
	assert_error(PYP_EXIT_USAGE);
	teardown();
}

Test(routes, snapshot)
{
	char *body;

	cr_assert(ask("GET", "/v1/snapshot", "") == 200);
	body = snapshot_body();
	cr_assert(strstr(body, "function calls"));
	cr_assert(strstr(body, "app.py:1(main)"));
	free(body);
	cr_assert_str_eq(rs.mime, format_find("text")->mime);

	cr_assert(ask("GET", "/v1/snapshot?format=json&pid=42&tid=43&clock=wall", "") == 200);
	body = snapshot_body();
	answer = json_loads(body, 0, NULL);
	free(body);
	cr_assert(json_is_object(answer));
	teardown();
}

/* Above the limit there is an error, and nothing of the profile. */
Test(routes, snapshot_too_large)
{
	ctx.bodies.max = 100;
	for (const struct format *f = formats; f->name; f++) {
		char uri[128];

		snprintf(uri, sizeof(uri), "/v1/snapshot?format=%s", f->name);
		/* refused before: not measured */
		if (f->flags & (FORMAT_OF_COUNTERS | FORMAT_OF_WAITS | FORMAT_OF_LINES))
			continue;
		cr_assert(ask("GET", uri, "") == 507, "%s: %u", f->name, rs.status);
		assert_error(PYP_EXIT_FAILURE);
		cr_assert(rs.fd < 0);
	}
	/* what others are being sent is in the way */
	ctx.bodies.max = 1 << 20;
	ctx.bodies.held = (1 << 20) - 100;
	cr_assert(ask("GET", "/v1/snapshot", "") == 503, "%u", rs.status);
	assert_error(PYP_EXIT_FAILURE);
	ctx.bodies.held = 0;
	cr_assert(ask("GET", "/v1/snapshot", "") == 200);
	teardown();
}

/* There is nothing to report of it, which is no failure of the daemon. */
Test(routes, snapshot_of_what_was_not_measured)
{
	for (const struct format *f = formats; f->name; f++) {
		char uri[128];

		if (!(f->flags & (FORMAT_OF_COUNTERS | FORMAT_OF_WAITS | FORMAT_OF_LINES)))
			continue;
		snprintf(uri, sizeof(uri), "/v1/snapshot?format=%s", f->name);
		cr_assert(ask("GET", uri, "") == 400, "%s: %u", f->name, rs.status);
		assert_error(PYP_EXIT_FAILURE);
	}
	teardown();
}

Test(routes, snapshot_restrictions_in_order)
{
	char *body;

	ctx.sessions->funcs = 30;
	cr_assert(ask("GET", "/v1/snapshot?restrict=f1&restrict=%5C(f1%5B0-4%5D%5C)&limit=2", "") ==
		  200);
	body = snapshot_body();
	cr_assert(strstr(body, "due to restriction"), "%s", body);
	cr_assert(strstr(body, "(f10)") && !strstr(body, "(f15)"));
	free(body);
	teardown();
}

Test(routes, snapshot_reports)
{
	static const char *const reports[] = {"callers", "callees", "threads", "tree"};
	char uri[160], *body;

	for (size_t i = 0; i < sizeof(reports) / sizeof(reports[0]); i++) {
		snprintf(uri, sizeof(uri),
			 "/v1/snapshot?format=%s&reverse=1&strip_dirs=true&only_my_code=1&depth=5&"
			 "builtins_of=len&min_share=0&colour=1&verbose=1&width=120",
			 reports[i]);
		cr_assert(ask("GET", uri, "") == 200, "%s", reports[i]);
		body = snapshot_body();
		cr_assert(strstr(body, "\033[1m"), "%s", body);
		cr_assert(strstr(body, "   folded "), "%s", body);
		free(body);
	}
	teardown();
}

/* The second request with a name gets the interval; the fake's figures are always the same. */
Test(routes, snapshot_since)
{
	char *body;

	for (int i = 0; i < 2; i++) {
		cr_assert_eq(ask("GET", "/v1/snapshot?since=me&verbose=1", ""), 200);
		body = snapshot_body();
		cr_assert(!strstr(body, ", the last snapshot") == (i == 0), "%s", body);
		cr_assert(!strstr(body, "         0 function calls") == (i == 0), "%s", body);
		free(body);
	}
	cr_assert_eq(ask("GET", "/v1/snapshot?since=other&verbose=1", ""), 200);
	body = snapshot_body();
	cr_assert(!strstr(body, ", the last snapshot"), "%s", body);
	free(body);
	marks_deinit(&ctx.marks);
	teardown();
}

Test(routes, snapshot_refuses)
{
	const char *bad[] = {"format=nope",  "format=",	      "clock=cpuu",
			     "raw=maybe",    "sort=nope",     "pid=x",
			     "pid=",	     "tid=0",	      "limit=-1",
			     "limit=x",	     "restrict=(",    "format=text&format=json",
			     "depth=0",	     "depth=x",	      "min_share=101",
			     "min_share=-1", "min_share=1e1", "reverse=maybe",
			     "colour=red",   "nope=1",	      "width=x",
			     "verbose=2x",   "since=a/b",     "since="};
	char uri[128];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(uri, sizeof(uri), "/v1/snapshot?%s", bad[i]);
		cr_assert(ask("GET", uri, "") == 400, "%s: %u", uri, rs.status);
		assert_error(PYP_EXIT_USAGE);
		cr_assert(rs.fd < 0);
	}
	cr_assert(ask("GET", "/v1/snapshot?pid=41", "") == 404);
	assert_error(PYP_EXIT_NO_PROCESS);
	cr_assert(ask("GET", "/v1/snapshot?tid=41", "") == 404);
	assert_error(PYP_EXIT_NO_PROCESS);
	teardown();
}

Test(routes, only_root_and_the_owner)
{
	cr_assert(ask_as(500, "GET", "/v1/ping", "") == 200);
	for (const struct route *r = routes; r->method; r++) {
		cr_assert(ask_as(501, r->method, r->path, "") == 403, "%s", r->path);
		assert_error(PYP_EXIT_PERMISSION);
	}
	cr_assert(ask_as(501, "GET", "/nope", "") == 403);
	cr_assert(shutdowns == 0);
	teardown();
}

static json_int_t answered(const char *key)
{
	return json_integer_value(json_object_get(answer, key));
}

Test(routes, slow_calls)
{
	static const char *const bad[] = {"{\"over\": \"soon\"}", "{\"n\": 0}",
					  "{\"n\": 201}",	  "{\"n\": \"x\"}",
					  "{\"clock\": \"sun\"}", "{\"other\": 1}"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		cr_assert(ask("POST", "/v1/slow", bad[i]) == 400, "%s", bad[i]);
	cr_assert(ask("POST", "/v1/slow", "{\"pid\": 9}") == 404);
	cr_assert(ask("GET", "/v1/slow/5", "") == 404);
	cr_assert(ask("POST", "/v1/slow",
		      "{\"match\": \"f\", \"over\": \"200ms\", \"n\": 3, \"clock\": \"cpu\"}") ==
		  201);
	cr_assert_str_eq(rs.location, "/v1/slow/5");
	cr_assert(ask("GET", "/v1/slow/5", "") == 200);
	cr_assert(answered("over_ns") == 200000000 && answered("n") == 3 &&
		  answered("clock") == SNAPSHOT_CPU && answered("detail") == SLOW_TREES);
	cr_assert(ask("GET", "/v1/slow/5?trees=0", "") == 200 &&
		  answered("detail") == SLOW_COUNTERS);
	cr_assert(ask("GET", "/v1/slow/5?steps=1", "") == 200 && answered("detail") == SLOW_STEPS);
	cr_assert(ask("GET", "/v1/slow/5?steps=maybe", "") == 400);
	cr_assert(ask("HEAD", "/v1/slow/5", "") == 405);
	cr_assert(ask("DELETE", "/v1/slow/5", "") == 200);
	cr_assert(ask("DELETE", "/v1/slow/5", "") == 404);
	/* the defaults */
	cr_assert(ask("POST", "/v1/slow", "") == 201 && ask("GET", "/v1/slow/5", "") == 200);
	cr_assert(answered("over_ns") == 0 && answered("clock") == SNAPSHOT_WALL);
}

Test(routes, timelines)
{
	const json_t *list;

	cr_assert(ask("POST", "/v1/timelines", "{\"pid\": 9}") == 404);
	assert_error(PYP_EXIT_NO_PROCESS);
	cr_assert(ask("POST", "/v1/timelines", "{\"duration\": \"soon\"}") == 400);
	assert_error(PYP_EXIT_USAGE);
	cr_assert(ask("POST", "/v1/timelines", "{\"buffer\": \"1K\"}") == 400);
	cr_assert(ask("POST", "/v1/timelines", "{\"buffer\": \"2G\"}") == 400);
	cr_assert(ask("POST", "/v1/timelines", "{\"keep\": \"always\"}") == 400);
	assert_error(PYP_EXIT_USAGE);
	cr_assert(ask("GET", "/v1/timelines/7", "") == 404);
	/* a trigger alone keeps 10 s */
	cr_assert(ask("POST", "/v1/timelines", "{\"trigger\": \"cpu:5\"}") == 201);
	cr_assert(ask("GET", "/v1/timelines", "") == 200);
	list = json_object_get(answer, "timelines");
	cr_assert(json_is_true(json_object_get(json_array_get(list, 0), "recent")));
	cr_assert(ask("DELETE", "/v1/timelines/7", "") == 200);
	cr_assert(ask("GET", "/v1/timelines/7", "") == 200 && rs.size == 3);
	cr_assert(ask("POST", "/v1/timelines", "{\"duration\": 2, \"buffer\": \"1M\"}") == 201);
	cr_assert(json_integer_value(json_object_get(answer, "id")) == 7);
	cr_assert_str_eq(rs.location, "/v1/timelines/7");
	cr_assert(ask("POST", "/v1/timelines", "") == 409);
	cr_assert(ask("GET", "/v1/timelines", "") == 200);
	cr_assert(json_array_size(json_object_get(answer, "timelines")) == 1);
	cr_assert(ask("GET", "/v1/timelines/7", "") == 200 && rs.size == 4);
	cr_assert(memcmp(rs.body, "more", 4) == 0);
	cr_assert(ask("DELETE", "/v1/timelines/8", "") == 404);
	cr_assert(ask("DELETE", "/v1/timelines/7", "") == 200);
	/* what waits is to be had to the last */
	ctx.draining = true;
	cr_assert(ask("POST", "/v1/timelines", "") == 503);
	cr_assert(ask("GET", "/v1/timelines/7", "") == 200 && rs.size == 3);
	cr_assert(ask("GET", "/v1/timelines/7", "") == 404);
	teardown();
}

Test(routes, draining)
{
	ctx.draining = true;
	cr_assert(ask("GET", "/v1/ping", "") == 503);
	assert_error(PYP_EXIT_NO_DAEMON);
	cr_assert(ask("POST", "/v1/shutdown", "") == 503);
	cr_assert(shutdowns == 0);
	teardown();
}

static enum route_wait waits(const char *method, const char *uri, enum route_wait waited)
{
	const struct routes_input in = {.method = method,
					.uri = uri,
					.body = "",
					.since_ns = clock_monotonic_ns(),
					.waited = waited};
	struct routes_wait wait;

	response_deinit(&rs);
	routes_dispatch(&ctx, &in, &rs, &wait);
	return wait.what;
}

/* While the targets of the command line are attached, what concerns them waits; the rest does not. */
Test(routes, starting)
{
	static const char *const early[][2] = {
		{"GET", "/v1"},		{"GET", "/v1/status"},
		{"GET", "/v1/targets"}, {"GET", "/v1/targets/42"},
		{"POST", "/v1/stop"},	{"DELETE", "/v1/targets/42"},
	};
	static const char *const late[][2] = {
		{"GET", "/v1/ping"},	   {"POST", "/v1/targets"}, {"POST", "/v1/forecast"},
		{"POST", "/v1/start"},	   {"POST", "/v1/clear"},   {"GET", "/v1/snapshot"},
		{"POST", "/v1/timelines"},
	};
	const struct routes_wait wait = {.what = WAIT_STARTED};

	ctx.starting = true;
	for (size_t i = 0; i < sizeof(early) / sizeof(*early); i++)
		cr_assert(waits(early[i][0], early[i][1], WAIT_NOT) == WAIT_NOT && rs.status == 200,
			  "%s: %u", early[i][1], rs.status);
	cr_assert(waits("GET", "/metrics", WAIT_NOT) == WAIT_RENDERED);
	cr_assert(waits("GET", "/metrics", WAIT_RENDERED) == WAIT_NOT && rs.status == 200);
	for (size_t i = 0; i < sizeof(late) / sizeof(*late); i++)
		cr_assert(waits(late[i][0], late[i][1], WAIT_NOT) == WAIT_STARTED, "%s",
			  late[i][1]);
	cr_assert(!routes_ready(&ctx, &wait, 1));
	ctx.starting = false;
	cr_assert(routes_ready(&ctx, &wait, 1));
	cr_assert(waits("GET", "/v1/ping", WAIT_STARTED) == WAIT_NOT && rs.status == 200);
	ctx.starting = ctx.draining = true;
	cr_assert(routes_ready(&ctx, &wait, 1));
	cr_assert(waits("GET", "/v1/ping", WAIT_STARTED) == WAIT_NOT && rs.status == 503);
	teardown();
}

/* A shutdown is answered when results are written, or that has failed, also while draining. */
Test(routes, shutdown_waits_for_results)
{
	const struct routes_wait wait = {.what = WAIT_SHUTDOWN};

	shutdown_result = -EINPROGRESS;
	cr_assert(waits("POST", "/v1/shutdown", WAIT_NOT) == WAIT_SHUTDOWN && shutdowns == 1);
	ctx.draining = true;
	cr_assert(!routes_ready(&ctx, &wait, 1));
	cr_assert(waits("POST", "/v1/shutdown", WAIT_NOT) == WAIT_NOT && rs.status == 503);
	ctx.stopped = true;
	shutdown_result = 0;
	cr_assert(routes_ready(&ctx, &wait, 1));
	cr_assert(waits("POST", "/v1/shutdown", WAIT_SHUTDOWN) == WAIT_NOT && rs.status == 200);
	shutdown_result = -EIO;
	cr_assert(waits("POST", "/v1/shutdown", WAIT_SHUTDOWN) == WAIT_NOT && rs.status == 500);
	cr_assert(shutdowns == 3);
	teardown();
}

Test(response, every_exit_code_has_a_status)
{
	for (int e = PYP_EXIT_FAILURE; e <= PYP_EXIT_BUSY; e++)
		cr_assert(response_status((enum pyp_exit)e) >= 400);
	cr_assert(response_status(PYP_EXIT_OK) == 200);
}

/* HEAD of what a GET consumes. */
Test(routes, head_changes_nothing)
{
	cr_assert(ask("POST", "/v1/timelines", "") == 201);
	cr_assert(ask("HEAD", "/v1/timelines/7", "") == 405);
	cr_assert_str_eq(rs.allow, "GET, DELETE");
	cr_assert(ask("HEAD", "/v1/snapshot", "") == 405);
	cr_assert(ask("GET", "/v1/timelines/7", "") == 200);
	cr_assert(ask("HEAD", "/v1/status", "") == 200);
	teardown();
}
