// SPDX-License-Identifier: BSD-2-Clause
/* Requests below /debug/pprof/: see pprof_requests.h. */
#include "server/pprof_requests.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/utf8_clean.h"

#define SECONDS_DEFAULT 30
#define SECONDS_MAX	300
#define TEXT_MIME	"text/plain; charset=utf-8"
#define HTML_MIME	"text/html; charset=utf-8"

static int finish(struct response *rs, FILE *f, const char *mime)
{
	if (fclose(f) != 0)
		return -ENOMEM;
	rs->mime = mime;
	rs->status = 200;
	return 0;
}

/* ---- the index ---- */

static void put_html(FILE *f, const char *text)
{
	char clean[512];

	for (const char *p = utf8_clean(text, clean, sizeof(clean)); *p; p++) {
		if (*p == '<' || *p == '&' || *p == '>' || *p == '"')
			fprintf(f, "&#%d;", *p);
		else
			fputc(*p == '\n' ? ' ' : *p, f);
	}
}

static void put_target(FILE *f, const struct session_status *st)
{
	fprintf(f,
		"<tr><td><a href=\"/debug/pprof/profile?pid=%d\">profile?pid=%d</a>"
		"<td>%s<td>",
		st->pid, st->pid, session_state_name(st->state));
	put_html(f, st->cmdline);
	fputs("\n", f);
}

int pprof_request_index(struct sessions *ss, struct response *rs)
{
	FILE *f = open_memstream(&rs->body, &rs->size);

	if (!f)
		return -ENOMEM;
	fprintf(f,
		"<!doctype html>\n<title>/debug/pprof/</title>\n<h1>/debug/pprof/</h1>\n"
		"<p>Profiles of the next <code>?seconds=</code> (%d if not given), "
		"for <code>go tool pprof</code> and scrapers.\n<table>\n"
		"<tr><td><a href=\"/debug/pprof/profile\">profile</a><td><td>all targets\n",
		SECONDS_DEFAULT);
	for (size_t i = 0; i < sessions_count(ss); i++) {
		struct session_status st;

		sessions_status(ss, i, &st);
		put_target(f, &st);
	}
	fputs("<tr><td><a href=\"/debug/pprof/cmdline\">cmdline</a><td><td>command lines\n"
	      "<tr><td><a href=\"/debug/pprof/symbol\">symbol</a><td><td>none: profiles have "
	      "names\n"
	      "<tr><td><a href=\"/metrics\">/metrics</a><td><td>for Prometheus\n</table>\n",
	      f);
	return finish(rs, f, HTML_MIME);
}

int pprof_request_symbol(struct response *rs)
{
	FILE *f = open_memstream(&rs->body, &rs->size);

	if (!f)
		return -ENOMEM;
	fputs("num_symbols: 0\n", f);
	return finish(rs, f, TEXT_MIME);
}

/* ---- targets ---- */

static int no_targets(struct diag *diag)
{
	return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS,
			"attach to a process: pyprofctl attach PID", "there is no target");
}

int pprof_request_cmdline(struct sessions *ss, const struct request *rq, struct response *rs,
			  struct diag *diag)
{
	struct session_status st;
	pid_t pid = 0;
	int r = request_get_pid(rq, "pid", &pid, diag);
	char clean[512];
	FILE *f;

	if (r == 0 && pid)
		r = sessions_status_pid(ss, pid, &st, diag);
	if (r < 0)
		return r;
	if (!sessions_count(ss))
		return no_targets(diag);
	f = open_memstream(&rs->body, &rs->size);
	if (!f)
		return -ENOMEM;
	for (size_t i = 0; i < sessions_count(ss); i++) {
		sessions_status(ss, i, &st);
		if (!pid || st.pid == pid)
			fprintf(f, "%s\n", utf8_clean(st.cmdline, clean, sizeof(clean)));
	}
	return finish(rs, f, TEXT_MIME);
}

static int check_traced(struct sessions *ss, pid_t pid, struct diag *diag)
{
	const size_t n = sessions_count(ss);
	struct session_status st;

	if (!n)
		return no_targets(diag);
	if (pid && sessions_status_pid(ss, pid, &st, diag) < 0)
		return -ESRCH;
	for (size_t i = 0; i < n; i++) {
		sessions_status(ss, i, &st);
		if ((!pid || st.pid == pid) && st.state == SESSION_TRACING)
			return 0;
	}
	return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS,
			"pyprofctl status lists the targets, start attaches the probes",
			"no target is being traced");
}

/* ---- profiles ---- */

/*
 * Go's tool sends a whole number; others may send a fraction. Anybody may be able to use the HTTP
 * listener: a second at least, so that snapshots of many requests do not keep the daemon from its work.
 */
static int seconds_of(const struct request *rq, uint64_t *ret_ns, struct diag *diag)
{
	const char *text = request_get(rq, "seconds");
	const uint64_t least = rq->http ? CLOCK_NS_PER_S : 1;

	*ret_ns = SECONDS_DEFAULT * CLOCK_NS_PER_S;
	if (!text || (parse_duration(text, ret_ns) == 0 && *ret_ns >= least &&
		      *ret_ns <= SECONDS_MAX * CLOCK_NS_PER_S))
		return 0;
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "expected a number from 1 to 300",
			"invalid seconds '%s'", text);
}

int pprof_request_begin(struct sessions *ss, const struct request *rq, struct spans *spans,
			uint32_t *ret_span, struct diag *diag)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	uint64_t ns = 0;
	pid_t pid = 0;
	int r;

	r = seconds_of(rq, &ns, diag);
	if (r == 0)
		r = request_get_pid(rq, "pid", &pid, diag);
	if (r == 0)
		r = check_traced(ss, pid, diag);
	if (r == 0)
		r = sessions_snapshot(ss, pid, &s, diag);
	if (r < 0)
		return r;
	return spans_begin(spans, TAKE_PTR(s), clock_monotonic_ns() + ns, ret_span, diag);
}

int pprof_request_end(struct sessions *ss, const struct request *rq, struct spans *spans,
		      struct snapshot_query *q, struct snapshot **ret, struct snapshot **ret_before,
		      struct diag *diag)
{
	struct span *span = spans_find(spans, rq->span);
	pid_t pid = 0;
	int r = request_get_pid(rq, "pid", &pid, diag);

	if (r == 0)
		r = sessions_snapshot(ss, pid, ret, diag);
	if (r < 0)
		return r;
	*q = (struct snapshot_query){.format = format_find("pprof"), .attachment = "profile"};
	q->opts.filter.pid = (uint32_t)pid;
	*ret_before = span ? TAKE_PTR(span->before) : NULL;
	spans_end(spans, rq->span);
	return 0;
}
