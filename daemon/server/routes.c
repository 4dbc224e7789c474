// SPDX-License-Identifier: BSD-2-Clause
/* The control API's routes and their handlers: see routes.h. */
#include "server/routes_priv.h"

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
#include "server/history_requests.h"
#include "server/http_listener.h"
#include "server/status_json.h"
#include "server/metrics_request.h"
#include "server/pprof_requests.h"
#include "server/pushes.h"
#include "server/render.h"
#include "server/slow_requests.h"
#include "server/snapshot_query.h"
#include "server/timeline_requests.h"

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

const char *routes_params_of(const struct route *route, char buf[ROUTES_PARAMS_MAX])
{
	size_t n =
		(size_t)snprintf(buf, ROUTES_PARAMS_MAX, "%s", route->params ? route->params : "");

	for (const struct opt *row = target_opt_table;
	     route->target_opts && row->name && n < ROUTES_PARAMS_MAX; row++)
		n += (size_t)snprintf(buf + n, ROUTES_PARAMS_MAX - n, "%s%s", n ? "," : "",
				      row->key);
	return buf;
}

static int handle_index(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
			struct response *rs, struct diag *diag)
{
	json_t *list = json_array();
	char params[ROUTES_PARAMS_MAX];

	(void)ctx, (void)rq, (void)path_pid, (void)diag;
	for (const struct route *r = routes; r->method; r++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:b}", "method",
						      r->method, "path", r->path, "parameters",
						      routes_params_of(r, params), "help", r->help,
						      "http", (int)r->http));
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

static int handle_status(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
			 struct response *rs, struct diag *diag)
{
	json_int_t uptime = (json_int_t)(clock_monotonic_ns() - ctx->start_ns);
	uint64_t overhead, own;

	(void)rq, (void)path_pid, (void)diag;
	sessions_overhead(ctx->sessions, &overhead, &own);
	return response_set_json(
		rs, 200,
		json_pack("{s:s, s:s, s:i, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I}",
			  "program", "pyprofd", "version", PYPROF_VERSION, "pid", (int)getpid(),
			  "uptime_ns", uptime, "http", http_json(ctx), "dropped_clients",
			  json_of_dropped(&ctx->dropped), "refused_requests",
			  refused_json(&ctx->refused), "targets", json_of_targets(ctx->sessions, 0),
			  "attaching", json_of_attaching(ctx->sessions), "pushes",
			  json_of_pushes(ctx->pusher), "continuous",
			  ctx->continuous ? ctx->continuous(ctx->ctx) : json_null(),
			  "overhead_in_all", json_of_overhead(overhead, own), "overhead_ns",
			  (json_int_t)overhead, "own_cpu_ns", (json_int_t)own));
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
	target_opts_not_light(&g);
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
	char text[FORECAST_TEXT], asked[FORECAST_TEXT], name[sizeof(f.name)];
	struct target_opts o;
	const char *advice, *question;
	pid_t pid = 0;
	int r;

	(void)path_pid;
	r = inspect_requested(ctx, rq, &pid, &o, diag);
	if (r < 0)
		return r;
	f = sessions_forecast(ctx->sessions, pid, &o);
	advice = forecast_advice(&f.forecast, f.cost);
	question = forecast_question(&f.forecast, &o, asked);
	return response_set_json(
		rs, 200,
		json_pack("{s:i, s:s, s:o, s:f, s:s, s:s, s:s, s:o}", "pid", (int)pid, "name",
			  utf8_clean(f.name, name, sizeof(name)), "forecast",
			  json_of_forecast(&f.forecast), "cost", 100 * f.cost, "text",
			  forecast_text(&f.forecast, f.cost, f.limit, text), "advice",
			  advice ? advice : "", "question", question ? question : "", "children",
			  json_of_workers(&f.workers)));
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

static void cut(struct routes_ctx *ctx, pid_t pid, bool detaches)
{
	if (!ctx->cut)
		return;
	sessions_read_rings(ctx->sessions);
	ctx->cut(ctx->ctx, pid, detaches);
}

static int handle_detach(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
			 struct response *rs, struct diag *diag)
{
	int r;

	(void)rq;
	cut(ctx, path_pid, true);
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
	pid_t pid = 0;
	int r = request_get_pid(rq, "pid", &pid, diag);

	(void)path_pid;
	if (r < 0)
		return r;
	cut(ctx, pid, false);
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

static int handle_history(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
			  struct response *rs, struct diag *diag)
{
	const struct keep *keep = ctx->history ? ctx->history(ctx->ctx) : NULL;
	const size_t held = bodies_held(&ctx->bodies, rq->reader);
	const size_t max = bodies_max(&ctx->bodies, rq->reader);

	(void)path_pid;
	return history_request(keep, max > held ? max - held : 0, rq, rs, diag);
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

/* the dispatch completes the response. */
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

/* --- /debug/pprof/ --- */

static int handle_pprof_index(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
			      struct response *rs, struct diag *diag)
{
	(void)rq, (void)path_pid, (void)diag;
	return pprof_request_index(ctx->sessions, rs);
}

static int handle_pprof_cmdline(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
				struct response *rs, struct diag *diag)
{
	(void)path_pid;
	return pprof_request_cmdline(ctx->sessions, rq, rs, diag);
}

static int handle_pprof_symbol(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
			       struct response *rs, struct diag *diag)
{
	(void)ctx, (void)rq, (void)path_pid, (void)diag;
	return pprof_request_symbol(rs);
}

/* At the end of the span; the dispatch completes the response. */
static int handle_pprof_profile(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
				struct response *rs, struct diag *diag)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL, *before = NULL;
	struct snapshot_query q;
	int r;

	(void)path_pid, (void)rs;
	r = pprof_request_end(ctx->sessions, rq, &ctx->spans, &q, &s, &before, diag);
	if (r < 0)
		return r;
	r = render_start(TAKE_PTR(s), TAKE_PTR(before), &q, bodies_held(&ctx->bodies, rq->reader),
			 bodies_max(&ctx->bodies, rq->reader), &ctx->render, diag);
	return r < 0 ? r : -EINPROGRESS;
}

/* --- /metrics --- */

static int handle_metrics(struct routes_ctx *ctx, const struct request *rq, pid_t path_pid,
			  struct response *rs, struct diag *diag)
{
	struct metrics_request mr = {
		.sessions = ctx->sessions,
		.totals = &ctx->totals,
		.functions = ctx->metrics_functions,
		.accept = rq->accept,
		.now_ns = clock_monotonic_ns(),
		.dropped = ctx->dropped,
		.refused = ctx->refused,
	};
	int r;

	(void)path_pid, (void)rs;
	pushes_get(ctx->pusher, &mr.pushes);
	r = metrics_request_start(&mr, bodies_held(&ctx->bodies, rq->reader),
				  bodies_max(&ctx->bodies, rq->reader), &ctx->render, diag);
	return r < 0 ? r : -EINPROGRESS;
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
	{"GET", "/v1/history", HISTORY_PARAMS, PRIVILEGE_READ, handle_history,
	 "intervals that continuous mode keeps"},
	{"GET", HISTORY_INTERVALS, HISTORY_PARAMS, PRIVILEGE_READ, handle_history, "their profiles",
	 .no_head = true},
	{"POST", "/v1/shutdown", NULL, PRIVILEGE_CONTROL, handle_shutdown, "stop the daemon",
	 .later = WAIT_SHUTDOWN, .early = true},
	{"GET", "/metrics", NULL, PRIVILEGE_READ, handle_metrics, "metrics for Prometheus",
	 .later = WAIT_RENDERED, .early = true, .renders = true, .http = true},
	{"GET", "/debug/pprof/", NULL, PRIVILEGE_READ, handle_pprof_index, "links to profiles",
	 .http = true},
	{"GET", "/debug/pprof", NULL, PRIVILEGE_READ, handle_pprof_index, "the same", .http = true},
	{"GET", "/debug/pprof/profile", PPROF_PROFILE_PARAMS, PRIVILEGE_READ, handle_pprof_profile,
	 "a profile of the next seconds, for pprof", WAIT_CURRENT, .later = WAIT_RENDERED,
	 .renders = true, .spans = true, .text_errors = true, .http = true, .no_head = true},
	{"GET", "/debug/pprof/cmdline", "pid", PRIVILEGE_READ, handle_pprof_cmdline,
	 "command lines of targets", .text_errors = true, .http = true},
	{"GET", "/debug/pprof/symbol", NULL, PRIVILEGE_READ, handle_pprof_symbol,
	 "for tools that ask: profiles have names", .http = true},
	{NULL},
};
