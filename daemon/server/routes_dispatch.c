// SPDX-License-Identifier: BSD-2-Clause
/* Finding a request's route, and processing it, now or when what it waits for is over: see routes.h. */
#include "server/routes_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "server/pprof_requests.h"
#include "server/render.h"

#define API_HINT  "GET /v1 lists all routes"
#define HTTP_HINT "this listener serves /metrics and /debug/pprof/"

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
	spans_end(&ctx->spans, wait->span);
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
	case WAIT_SPAN:
		return ctx->draining || clock_monotonic_ns() >= wait->until_ns;
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
	char params[ROUTES_PARAMS_MAX];
	int r;

	if (ctx->draining && !route->draining && in->waited != WAIT_SHUTDOWN)
		return refuse_draining(diag);
	r = request_parse_body(rq, in->body, in->nbody, diag);
	if (r == 0)
		r = request_check_params(rq, routes_params_of(route, params), diag);
	return r == 0 ? request_get_pid(rq, "pid", ret_pid, diag) : r;
}

/* What a request waits for before it is handled. */
static struct routes_wait wait_before(struct routes_ctx *ctx, const struct route *route,
				      const struct routes_input *in, pid_t pid)
{
	const struct routes_wait wait = {.what = route->wait, .pid = pid};

	if (ctx->starting && in->since_ns && !route->early)
		return (struct routes_wait){.what = WAIT_STARTED};
	if (route->renders && ctx->render && !(route->spans && !in->span))
		return (struct routes_wait){.what = WAIT_RENDERER};
	return has_to_wait(ctx, in, &wait) ? wait : (struct routes_wait){0};
}

static int answer_rendered(struct routes_ctx *ctx, struct response *rs, struct diag *diag)
{
	_cleanup_(render_freep) struct render *render = TAKE_PTR(ctx->render);

	return render_take(render, rs, diag);
}

static int begin_span(struct routes_ctx *ctx, const struct request *rq,
		      struct routes_wait *ret_wait, struct diag *diag)
{
	uint32_t id = 0;
	int r = pprof_request_begin(ctx->sessions, rq, &ctx->spans, &id, diag);

	if (r < 0)
		return r;
	*ret_wait = (struct routes_wait){
		.what = WAIT_SPAN, .span = id, .until_ns = spans_find(&ctx->spans, id)->end_ns};
	return 0;
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
	if (route->spans && !in->span)
		return begin_span(ctx, rq, ret_wait, diag);
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

/* A request that has waited for a span waits for the records until its end. */
static struct routes_input as_of_span(struct routes_ctx *ctx, const struct routes_input *in)
{
	const struct span *span = spans_find(&ctx->spans, in->span);
	struct routes_input ret = *in;

	if (span && in->since_ns)
		ret.since_ns = span->end_ns;
	return ret;
}

static int process(struct routes_ctx *ctx, const struct route *route, struct request *rq,
		   pid_t path_pid, const struct routes_input *in, struct response *rs,
		   struct routes_wait *wait, struct diag *diag)
{
	const struct routes_input now = as_of_span(ctx, in);
	int r;

	if (in->waited == WAIT_RENDERED)
		return answer_rendered(ctx, rs, diag);
	r = peer_check(&in->peer, ctx->owner, route->privilege, diag);
	if (r == 0)
		r = handle(ctx, route, rq, path_pid, &now, rs, wait, diag);
	if (wait->what == WAIT_NOT)
		spans_end(&ctx->spans, in->span);
	else if (in->span)
		wait->span = in->span;
	return r;
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
	/* authorize before anything else */
	r = peer_check(&in->peer, ctx->owner, PRIVILEGE_READ, &diag);
	rq.since_ns = in->since_ns;
	rq.accept = in->accept;
	rq.span = in->span;
	rq.http = in->http;
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
	r = process(ctx, route, &rq, path_pid, in, rs, wait, &diag);
	if (r < 0)
		answer_error(rs, r, &diag);
	if (r < 0 && route->text_errors)
		response_set_text_error(rs, &diag);
}
