// SPDX-License-Identifier: BSD-2-Clause
/* The control API's routes and their handlers: see routes.h. */
#include "server/routes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/utf8_clean.h"
#include "format/format.h"
#include "pyprof/version.h"
#include "server/http_listener.h"
#include "server/status_json.h"
#include "server/metrics.h"
#include "server/render.h"
#include "server/slow_requests.h"
#include "server/snapshot_query.h"
#include "server/timeline_requests.h"

#define API_HINT   "GET /v1 lists all routes"
#define HTTP_HINT  "this listener serves /metrics and /debug/pprof/"
#define PARAMS_MAX 256

/* --- responses about targets --- */

static int answer_targets(struct routes_ctx *ctx, pid_t pid, struct response *rs)
{
	return response_set_json(
		rs, 200, json_pack("{s:o}", "targets", json_of_targets(ctx->sessions, pid)));
}

static int answer_target(struct routes_ctx *ctx, unsigned int status, pid_t pid,
			 struct response *rs, struct diag *diag)
{
	struct session_status st;
	int r;

	r = sessions_status_pid(ctx->sessions, pid, &st, diag);
	if (r < 0)
		return r;
	return response_set_json(rs, status, json_of_status(&st));
}

/* --- handlers --- */

/* The names of a route's parameters, comma-separated; "" if it has none. */
static const char *params_of(const struct route *route, char buf[PARAMS_MAX])
{
	size_t n = (size_t)snprintf(buf, PARAMS_MAX, "%s", route->params ? route->params : "");

	for (const struct opt *row = target_opt_table;
	     route->target_opts && row->name && n < PARAMS_MAX; row++)
		n += (size_t)snprintf(buf + n, PARAMS_MAX - n, "%s%s", n ? "," : "", row->key);
	return buf;
}

static int handle_index(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
			struct response *rs, struct diag *diag)
{
	json_t *list = json_array();
	char params[PARAMS_MAX];

	(void)ctx, (void)rq, (void)path_pid, (void)diag;
	for (const struct route *r = routes; r->method; r++)
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:s, s:s, s:b}", "method", r->method,
						"path", r->path, "parameters", params_of(r, params),
						"help", r->help, "http", (int)r->http));
	return response_set_json(rs, 200, json_pack("{s:o}", "routes", list));
}

static int handle_ping(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
		       struct response *rs, struct diag *diag)
{
	(void)ctx, (void)rq, (void)path_pid, (void)diag;
	return response_set_json(rs, 200,
				 json_pack("{s:s, s:s, s:i}", "program", "pyprofd", "version",
					   PYPROF_VERSION, "pid", (int)getpid()));
}

static json_t *dropped_json(const struct dropped_clients *d)
{
	return json_pack("{s:I, s:I, s:I}", "late", (json_int_t)d->late, "unread",
			 (json_int_t)d->unread, "crowded", (json_int_t)d->crowded);
}

static json_t *http_json(const struct routes_ctx *ctx)
{
	const struct http_listener *l = ctx->http;

	return l ? json_pack("{s:s, s:b, s:b}", "address", l->text, "tls", l->cert != NULL, "token",
			     l->token != NULL)
		 : json_null();
}

static json_t *refused_json(const struct refused_requests *n)
{
	return json_pack("{s:I, s:I}", "token", (json_int_t)n->token, "site", (json_int_t)n->site);
}

static json_t *attaching_json(const struct sessions *ss)
{
	struct session_attaching a;
	json_t *list = json_array();

	for (size_t i = 0; sessions_attaching(ss, i, &a); i++)
		json_array_append_new(list,
				      json_pack("{s:i, s:s}", "pid", (int)a.pid, "step", a.step));
	return list;
}

static int handle_status(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
			 struct response *rs, struct diag *diag)
{
	json_int_t uptime = (json_int_t)(clock_monotonic_ns() - ctx->start_ns);

	(void)rq, (void)path_pid, (void)diag;
	return response_set_json(
		rs, 200,
		json_pack("{s:s, s:s, s:i, s:I, s:o, s:o, s:o, s:o, s:o}", "program", "pyprofd",
			  "version", PYPROF_VERSION, "pid", (int)getpid(), "uptime_ns", uptime,
			  "http", http_json(ctx), "dropped_clients", dropped_json(&ctx->dropped),
			  "refused_requests", refused_json(&ctx->refused), "targets",
			  json_of_targets(ctx->sessions, 0), "attaching",
			  attaching_json(ctx->sessions)));
}

static int handle_targets(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
			  struct response *rs, struct diag *diag)
{
	(void)rq, (void)path_pid, (void)diag;
	return answer_targets(ctx, 0, rs);
}

static int handle_target(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
			 struct response *rs, struct diag *diag)
{
	(void)rq;
	return answer_target(ctx, 200, path_pid, rs, diag);
}

/* Override the daemon's options in *ret by those of the request. */
static int query_target_opts(const struct request *rq, struct target_opts *ret, struct diag *diag)
{
	struct target_opts_given g = {.opts = *ret};
	int r = 0;

	for (const struct opt *row = target_opt_table; r == 0 && row->name; row++) {
		const char *text = request_get(rq, row->key);

		if (text)
			r = target_opts_set(&g, row, text, diag);
	}
	if (r == 0)
		r = target_opts_check_given(&g, diag);
	*ret = g.opts;
	return r;
}

/* Get the pid and target options. -EINPROGRESS: the process is being inspected. */
static int inspect_requested(struct routes_ctx *ctx, const struct request *rq, pid_t *ret_pid,
			     struct target_opts *ret_opts, struct diag *diag)
{
	int r;

	*ret_opts = sessions_target_opts(ctx->sessions);
	r = request_get_pid(rq, "pid", ret_pid, diag);
	if (r == 0)
		r = query_target_opts(rq, ret_opts, diag);
	if (r < 0)
		return r;
	if (!*ret_pid)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "send {\"pid\": N}",
				"pid is required");
	return sessions_look(ctx->sessions, *ret_pid, ret_opts, rq->since_ns, diag);
}

/* Errors of the target are reported when it is attached. */
static int handle_forecast(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
			   struct response *rs, struct diag *diag)
{
	struct session_forecast f;
	char text[FORECAST_TEXT], name[sizeof(f.name)];
	struct target_opts o;
	const char *advice;
	pid_t pid = 0;
	int r;

	(void)path_pid;
	r = inspect_requested(ctx, rq, &pid, &o, diag);
	if (r < 0)
		return r;
	f = sessions_forecast(ctx->sessions, pid, &o);
	advice = forecast_advice(&f.forecast, f.cost);
	return response_set_json(
		rs, 200,
		json_pack("{s:i, s:s, s:o, s:f, s:s, s:s, s:o}", "pid", (int)pid, "name",
			  utf8_clean(f.name, name, sizeof(name)), "forecast",
			  json_of_forecast(&f.forecast), "cost", 100 * f.cost, "text",
			  forecast_text(&f.forecast, f.cost, text), "advice", advice ? advice : "",
			  "children", json_of_workers(&f.workers)));
}

static int handle_attach(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
			 struct response *rs, struct diag *diag)
{
	struct target_opts o;
	bool start = true;
	pid_t pid = 0;
	int r;

	(void)path_pid;
	r = request_get_bool(rq, "start", &start, diag);
	if (r == 0)
		r = inspect_requested(ctx, rq, &pid, &o, diag);
	if (r == 0)
		r = sessions_attach(ctx->sessions, pid, start, &o, diag);
	if (r < 0)
		return r;
	snprintf(rs->location, sizeof(rs->location), "/v1/targets/%d", pid);
	return answer_target(ctx, 201, pid, rs, diag);
}

static int handle_detach(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
			 struct response *rs, struct diag *diag)
{
	int r;

	(void)rq;
	r = sessions_detach(ctx->sessions, path_pid, diag);
	if (r < 0)
		return r;
	return response_set_json(rs, 200, json_pack("{s:i}", "detached", (int)path_pid));
}

/* start, stop and clear, for one target or all */
static int control(struct routes_ctx *ctx, const struct request *rq, struct response *rs,
		   int (*fn)(struct sessions *, pid_t, struct diag *), struct diag *diag)
{
	pid_t pid = 0;
	int r;

	r = request_get_pid(rq, "pid", &pid, diag);
	if (r == 0)
		r = fn(ctx->sessions, pid, diag);
	return r < 0 ? r : answer_targets(ctx, pid, rs);
}

static void add_failure(void *list, pid_t pid, int err, const struct diag *diag)
{
	json_t *failure = response_error_json(diag, err);

	json_object_set_new(failure, "pid", json_integer(pid));
	json_array_append_new(list, failure);
}

/* Start as many as possible. The error is the first target's; "failures" has all of them. */
static int handle_start(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
			struct response *rs, struct diag *diag)
{
	_cleanup_(json_decrefp) json_t *failures = json_array();
	json_t *answer;
	pid_t pid = 0;
	int r;

	(void)path_pid;
	r = request_get_pid(rq, "pid", &pid, diag);
	if (r < 0)
		return r;
	r = sessions_start_each(ctx->sessions, pid, add_failure, failures, diag);
	if (r == 0)
		return answer_targets(ctx, pid, rs);
	if (!json_array_size(failures))
		return r;
	answer = response_error_json(diag, r);
	json_object_set(answer, "failures", failures);
	return response_set_json(rs, response_status(diag->exit), answer);
}

static int handle_stop(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
		       struct response *rs, struct diag *diag)
{
	(void)path_pid;
	return control(ctx, rq, rs, sessions_stop, diag);
}

static int handle_clear(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
			struct response *rs, struct diag *diag)
{
	(void)path_pid;
	return control(ctx, rq, rs, sessions_clear, diag);
}

static int handle_shutdown(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
			   struct response *rs, struct diag *diag)
{
	int r;

	(void)rq, (void)path_pid;
	r = ctx->shutdown(ctx->ctx, diag);
	return r < 0 ? r : response_set_json(rs, 200, json_pack("{s:b}", "shutdown", 1));
}

/* --- /v1/timelines --- */

static int handle_timeline_begin(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
				 struct response *rs, struct diag *diag)
{
	(void)path_pid;
	return timeline_request_begin(ctx->sessions, rq, rs, diag);
}

static int handle_timelines(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
			    struct response *rs, struct diag *diag)
{
	(void)rq, (void)path_pid, (void)diag;
	return timeline_request_list(ctx->sessions, rs);
}

static int handle_timeline_read(struct routes_ctx *ctx, const struct request *rq, pid_t id,
				struct response *rs, struct diag *diag)
{
	(void)rq;
	return timeline_request_read(ctx->sessions, (uint32_t)id, rs, diag);
}

static int handle_timeline_end(struct routes_ctx *ctx, const struct request *rq, pid_t id,
			       struct response *rs, struct diag *diag)
{
	(void)rq;
	return timeline_request_end(ctx->sessions, (uint32_t)id, rs, diag);
}

/* --- /v1/slow --- */

static int handle_slow_begin(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
			     struct response *rs, struct diag *diag)
{
	(void)path_pid;
	return slow_request_begin(ctx->sessions, rq, rs, diag);
}

static int handle_slow_read(struct routes_ctx *ctx, const struct request *rq, pid_t id,
			    struct response *rs, struct diag *diag)
{
	return slow_request_read(ctx->sessions, rq, (uint32_t)id, rs, diag);
}

static int handle_slow_end(struct routes_ctx *ctx, const struct request *rq, pid_t id,
			   struct response *rs, struct diag *diag)
{
	(void)rq;
	return slow_request_end(ctx->sessions, (uint32_t)id, rs, diag);
}

/* --- /v1/snapshot --- */

static int check_tid(const struct snapshot *s, uint32_t tid, struct diag *diag)
{
	for (uint32_t i = 0; i < s->nthreads; i++)
		if (!tid || s->threads[i].tid == tid)
			return 0;
	return !tid ? 0
		    : diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS,
			       "the json format lists all threads", "thread %u was not traced",
			       tid);
}

/* answer_rendered() completes the response. */
static int handle_snapshot(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
			   struct response *rs, struct diag *diag)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL, *before = NULL;
	struct snapshot_query q = {0};
	int r;

	(void)path_pid, (void)rs;
	r = snapshot_query_parse(rq, &q, diag);
	if (r < 0)
		return r;
	/* a mark is of all targets, as the next request may select another one */
	r = sessions_snapshot(ctx->sessions, q.since ? 0 : (pid_t)q.opts.filter.pid, &s, diag);
	if (r == 0)
		r = check_tid(s, q.opts.filter.tid, diag);
	if (r == 0 && q.since)
		r = marks_exchange(rq->reader ? &ctx->reader_marks : &ctx->marks, q.since, s,
				   &before, diag);
	if (r < 0)
		return r;
	r = render_start(TAKE_PTR(s), TAKE_PTR(before), &q, bodies_held(&ctx->bodies, rq->reader),
			 bodies_max(&ctx->bodies, rq->reader), &ctx->render, diag);
	return r < 0 ? r : -EINPROGRESS;
}

static int answer_rendered(struct routes_ctx *ctx, struct response *rs, struct diag *diag)
{
	_cleanup_(render_freep) struct render *render = TAKE_PTR(ctx->render);

	return render_take(render, rs, diag);
}

static int handle_metrics(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
			  struct response *rs, struct diag *diag)
{
	_cleanup_free_ struct session_status *st = NULL;
	size_t n = sessions_count(ctx->sessions);
	struct metrics_out out = {.plain = metrics_want_plain(rq->accept)};

	(void)path_pid, (void)diag;
	st = calloc(n + 1, sizeof(*st));
	if (!st)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sessions_status(ctx->sessions, i, &st[i]);
	out.f = open_memstream(&rs->body, &rs->size);
	if (!out.f)
		return -ENOMEM;
	metrics_write(st, n, &ctx->dropped, &ctx->refused, &out);
	if (fclose(out.f) != 0)
		return -ENOMEM;
	rs->mime = out.plain ? METRICS_PLAIN_MIME : METRICS_MIME;
	rs->status = 200;
	return 0;
}

const struct route routes[] = {
	{"GET", "/v1", NULL, PRIVILEGE_READ, handle_index, "list of routes", .early = true},
	{"GET", "/v1/ping", NULL, PRIVILEGE_READ, handle_ping, "check that the daemon is running"},
	{"GET", "/v1/status", NULL, PRIVILEGE_READ, handle_status, "the daemon and its targets",
	 .early = true},
	{"GET", "/v1/targets", NULL, PRIVILEGE_READ, handle_targets, "all targets", .early = true},
	{"POST", "/v1/targets", "pid,start", PRIVILEGE_CONTROL, handle_attach,
	 "attach to a process", .target_opts = true, .later = WAIT_LOOKED},
	{"POST", "/v1/forecast", "pid", PRIVILEGE_CONTROL, handle_forecast,
	 "predict the overhead of tracing a process", .target_opts = true, .later = WAIT_LOOKED},
	{"GET", "/v1/targets/{pid}", NULL, PRIVILEGE_READ, handle_target, "one target",
	 .early = true},
	{"DELETE", "/v1/targets/{pid}", NULL, PRIVILEGE_CONTROL, handle_detach,
	 "detach and discard the data", .early = true},
	{"POST", "/v1/start", "pid", PRIVILEGE_CONTROL, handle_start, "attach the probes",
	 WAIT_STOPPED},
	{"POST", "/v1/stop", "pid", PRIVILEGE_CONTROL, handle_stop,
	 "detach the probes, keep the data", .early = true},
	{"POST", "/v1/clear", "pid", PRIVILEGE_CONTROL, handle_clear,
	 "reset counts and times to zero", WAIT_CURRENT},
	{"GET", "/v1/snapshot", SNAPSHOT_QUERY_PARAMS, PRIVILEGE_READ, handle_snapshot, "a profile",
	 WAIT_CURRENT, .later = WAIT_RENDERED, .renders = true, .no_head = true},
	{"POST", "/v1/timelines", "pid,duration,buffer,keep,trigger", PRIVILEGE_CONTROL,
	 handle_timeline_begin, "record a timeline of each call and return", WAIT_CURRENT},
	{"GET", "/v1/timelines", NULL, PRIVILEGE_READ, handle_timelines,
	 "timelines being recorded"},
	{"GET", "/v1/timelines/{id}", NULL, PRIVILEGE_CONTROL, handle_timeline_read,
	 "fetch the next piece of a timeline", WAIT_CURRENT, .draining = true, .no_head = true},
	{"DELETE", "/v1/timelines/{id}", NULL, PRIVILEGE_CONTROL, handle_timeline_end,
	 "stop recording; buffered data remains readable", WAIT_CURRENT},
	{"POST", "/v1/slow", "pid,match,over,n,clock", PRIVILEGE_CONTROL, handle_slow_begin,
	 "record slow calls, each with the calls inside it", WAIT_CURRENT},
	{"GET", "/v1/slow/{id}", "trees,steps", PRIVILEGE_CONTROL, handle_slow_read,
	 "the slow calls so far", WAIT_CURRENT, .no_head = true},
	{"DELETE", "/v1/slow/{id}", NULL, PRIVILEGE_CONTROL, handle_slow_end,
	 "stop recording slow calls"},
	{"POST", "/v1/shutdown", NULL, PRIVILEGE_CONTROL, handle_shutdown, "stop the daemon",
	 .later = WAIT_SHUTDOWN, .early = true},
	{"GET", "/metrics", NULL, PRIVILEGE_READ, handle_metrics, "OpenMetrics", .early = true,
	 .http = true},
	{NULL},
};

/* --- finding a route and responding --- */

static bool path_match(const char *pattern, const char *path, pid_t *ret_pid)
{
	const char *brace = strchr(pattern, '{');
	size_t n = brace ? (size_t)(brace - pattern) : strlen(pattern);

	*ret_pid = 0;
	if (strncmp(pattern, path, n) != 0)
		return false;
	return brace ? parse_pid(path + n, ret_pid) == 0 : path[n] == '\0';
}

static void answer_no_route(const char *method, const char *path, bool http, struct response *rs)
{
	struct diag diag = {0};
	size_t n = 0;
	pid_t pid;

	for (const struct route *r = routes; r->method; r++)
		if ((r->http || !http) && path_match(r->path, path, &pid) && n < sizeof(rs->allow))
			n += (size_t)snprintf(
				rs->allow + n, sizeof(rs->allow) - n, "%s%s%s", n ? ", " : "",
				r->method,
				strcmp(r->method, "GET") == 0 && !r->no_head ? ", HEAD" : "");
	if (n)
		diag_set(&diag, -EINVAL, PYP_EXIT_USAGE, API_HINT,
			 "method %.16s is not allowed for %.200s", method, path);
	else
		diag_set(&diag, -EINVAL, PYP_EXIT_USAGE, http ? HTTP_HINT : API_HINT,
			 "unknown path %.200s", path);
	response_set_error(rs, n ? 405 : 404, &diag, -EINVAL);
}

const struct route *routes_find(const char *method, const char *path, bool http, pid_t *ret_pid,
				struct response *rs)
{
	const bool head = strcmp(method, "HEAD") == 0;

	for (const struct route *r = routes; r->method; r++)
		if ((r->http || !http) && strcmp(r->method, head ? "GET" : method) == 0 &&
		    !(head && r->no_head) && path_match(r->path, path, ret_pid))
			return r;
	answer_no_route(method, path, http, rs);
	return NULL;
}

static int refuse_draining(struct diag *diag)
{
	return diag_set(diag, -ESHUTDOWN, PYP_EXIT_NO_DAEMON, "start another daemon",
			"the daemon is shutting down");
}

void routes_forget(struct routes_ctx *ctx, const struct routes_wait *wait)
{
	if (wait->what == WAIT_RENDERED)
		render_free(TAKE_PTR(ctx->render));
}

bool routes_ready(const struct routes_ctx *ctx, const struct routes_wait *wait, uint64_t since_ns)
{
	switch (wait->what) {
	case WAIT_NOT:
		return true;
	case WAIT_STOPPED:
		return !sessions_stopping(ctx->sessions, wait->pid);
	case WAIT_CURRENT:
		return sessions_current(ctx->sessions, wait->pid, since_ns);
	case WAIT_STARTED:
		return !ctx->starting || ctx->draining;
	case WAIT_LOOKED:
		return sessions_looked(ctx->sessions, wait->pid);
	case WAIT_RENDERER:
		return !ctx->render; /* profiles are written one at a time */
	case WAIT_RENDERED:
		return render_done(ctx->render);
	case WAIT_SHUTDOWN:
		return ctx->stopped;
	}
	return true;
}

/* Requests wait, instead of blocking, if reading the rings takes longer. ns */
#define CATCH_UP_NS 20000000ull

static bool has_to_wait(struct routes_ctx *ctx, const struct routes_input *in,
			const struct routes_wait *wait)
{
	if (!in->since_ns || wait->what == WAIT_NOT)
		return false;
	return !routes_ready(ctx, wait, in->since_ns) &&
	       !sessions_catch_up(ctx->sessions, wait->pid, in->since_ns,
				  clock_monotonic_ns() + CATCH_UP_NS) &&
	       !routes_ready(ctx, wait, in->since_ns);
}

/* Check everything that does not need the handler. */
static int check_request(struct routes_ctx *ctx, const struct route *route, struct request *rq,
			 const struct routes_input *in, pid_t *ret_pid, struct diag *diag)
{
	char params[PARAMS_MAX];
	int r;

	if (ctx->draining && !route->draining && in->waited != WAIT_SHUTDOWN)
		return refuse_draining(diag);
	r = request_parse_body(rq, in->body, in->nbody, diag);
	if (r == 0)
		r = request_check_params(rq, params_of(route, params), diag);
	return r == 0 ? request_get_pid(rq, "pid", ret_pid, diag) : r;
}

/* What a request waits for before it is handled. */
static struct routes_wait wait_before(struct routes_ctx *ctx, const struct route *route,
				      const struct routes_input *in, pid_t pid)
{
	const struct routes_wait wait = {.what = route->wait, .pid = pid};

	if (ctx->starting && in->since_ns && !route->early)
		return (struct routes_wait){.what = WAIT_STARTED};
	if (route->renders && ctx->render)
		return (struct routes_wait){.what = WAIT_RENDERER};
	return has_to_wait(ctx, in, &wait) ? wait : (struct routes_wait){0};
}

static int handle(struct routes_ctx *ctx, const struct route *route, struct request *rq,
		  pid_t path_pid, const struct routes_input *in, struct response *rs,
		  struct routes_wait *ret_wait, struct diag *diag)
{
	pid_t pid = 0;
	int r = check_request(ctx, route, rq, in, &pid, diag);

	if (r < 0)
		return r;
	*ret_wait = wait_before(ctx, route, in, pid);
	if (ret_wait->what != WAIT_NOT)
		return 0;
	r = route->handle(ctx, rq, path_pid, rs, diag);
	if (r != -EINPROGRESS)
		return r;
	if (route->renders && !in->since_ns)
		return answer_rendered(ctx, rs, diag);
	*ret_wait = (struct routes_wait){.what = route->later, .pid = pid};
	return 0;
}

static void answer_error(struct response *rs, int err, const struct diag *diag)
{
	response_set_error(rs, err == -EFBIG ? 507 : err == -ENOBUFS ? 503 : 0, diag, err);
}

void routes_dispatch(struct routes_ctx *ctx, const struct routes_input *in, struct response *rs,
		     struct routes_wait *wait)
{
	_cleanup_(request_deinit) struct request rq = {0};
	const struct route *route;
	struct diag diag = {0};
	pid_t path_pid;
	int r;

	*wait = (struct routes_wait){0};
	if (in->waited == WAIT_RENDERED) {
		r = answer_rendered(ctx, rs, &diag);
		if (r < 0)
			answer_error(rs, r, &diag);
		return;
	}
	/* authorize before anything else */
	r = peer_check(&in->peer, ctx->owner, PRIVILEGE_READ, &diag);
	rq.since_ns = in->since_ns;
	rq.accept = in->accept;
	rq.reader = peer_only_reads(&in->peer, ctx->owner);
	if (r == 0)
		r = request_parse_target(&rq, in->uri, &diag);
	if (r < 0) {
		response_set_error(rs, r == -ENAMETOOLONG ? 414 : 0, &diag, r);
		return;
	}
	route = routes_find(in->method, rq.path, in->http, &path_pid, rs);
	if (!route)
		return;
	r = peer_check(&in->peer, ctx->owner, route->privilege, &diag);
	if (r == 0)
		r = handle(ctx, route, &rq, path_pid, in, rs, wait, &diag);
	if (r < 0)
		answer_error(rs, r, &diag);
}
