// SPDX-License-Identifier: BSD-2-Clause
/* Parameters of a profile request: see snapshot_query.h. */
#include "server/snapshot_query.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "server/marks.h"

#define WIDTH_MAX 10000

static int query_format(const struct request *rq, struct snapshot_query *q, struct diag *diag)
{
	const char *name = request_get(rq, "format");
	char hint[320];
	size_t n;

	q->format = format_find(name ? name : "text");
	if (q->format)
		return 0;
	n = (size_t)snprintf(hint, sizeof(hint), "known formats:");
	for (const struct format *f = formats; f->name && n < sizeof(hint); f++)
		n += (size_t)snprintf(hint + n, sizeof(hint) - n, " %s", f->name);
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, hint, "unknown format '%s'",
			name ? name : "text");
}

static int query_clock(const struct request *rq, struct snapshot_query *q, struct diag *diag)
{
	const char *clock = request_get(rq, "clock");

	if (!clock)
		return 0;
	q->clock_given = true;
	if (strcmp(clock, "cpu") == 0)
		q->opts.clock = SNAPSHOT_CPU;
	else if (strcmp(clock, "wall") == 0)
		q->opts.clock = SNAPSHOT_WALL;
	else
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "expected cpu or wall",
				"invalid clock '%s'", clock);
	return 0;
}

/* Add each `restrict` in order, and the limit as a last restriction. */
static int query_restrict(const struct request *rq, struct snapshot_query *q, struct diag *diag)
{
	const char *limit = request_get(rq, "limit");
	uint64_t rows;

	for (size_t i = 0; i < rq->nparams; i++)
		if (strcmp(rq->params[i].key, "restrict") == 0)
			q->restricts[q->opts.nrestrict++] = rq->params[i].value;
	if (limit) {
		if (parse_u64(limit, 0, INT32_MAX, &rows) < 0)
			return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "expected a number of rows",
					"invalid limit '%s'", limit);
		q->restricts[q->opts.nrestrict++] = limit;
	}
	q->opts.restrict_ = q->restricts;
	return 0;
}

static int query_width(const struct request *rq, struct format_opts *o, struct diag *diag)
{
	const char *width = request_get(rq, "width");
	uint64_t n = 0;

	if (width && parse_u64(width, 0, WIDTH_MAX, &n) < 0)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "expected a number of columns",
				"invalid width '%s'", width);
	o->width = (uint32_t)n;
	return 0;
}

/* Parameters for reports in a terminal */
static int query_report(const struct request *rq, struct snapshot_query *q, struct diag *diag)
{
	const char *depth = request_get(rq, "depth"), *share = request_get(rq, "min_share");
	struct format_opts *o = &q->opts;
	uint64_t n = 0;
	int r;

	r = request_get_bool(rq, "reverse", &o->reverse, diag);
	if (r == 0)
		r = request_get_bool(rq, "strip_dirs", &o->strip_dirs, diag);
	if (r == 0)
		r = request_get_bool(rq, "only_my_code", &o->only_my_code, diag);
	if (r == 0)
		r = request_get_bool(rq, "colour", &o->colour, diag);
	if (r == 0)
		r = request_get_bool(rq, "verbose", &o->verbose, diag);
	if (r == 0)
		r = request_get_bool(rq, "by_thread", &o->by_thread, diag);
	if (r == 0)
		r = request_get_bool(rq, "busy", &o->busy, diag);
	if (r == 0)
		r = query_width(rq, o, diag);
	if (r < 0)
		return r;
	if (depth && parse_u64(depth, 1, INT32_MAX, &n) < 0)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "expected a number of levels",
				"invalid depth '%s'", depth);
	o->depth = (uint32_t)n;
	if (!share)
		return 0;
	if (parse_percent(share, &o->min_share) < 0)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "expected a percentage, 0 to 100",
				"invalid min_share '%s'", share);
	if (o->min_share <= 0)
		o->min_share = -1;
	return 0;
}

int snapshot_query_parse(const struct request *rq, struct snapshot_query *q, struct diag *diag)
{
	pid_t pid = 0, tid = 0;
	int r;

	r = query_format(rq, q, diag);
	if (r == 0)
		r = query_clock(rq, q, diag);
	if (r == 0)
		r = query_restrict(rq, q, diag);
	if (r == 0)
		r = query_report(rq, q, diag);
	if (r == 0)
		r = request_get_pid(rq, "pid", &pid, diag);
	if (r == 0)
		r = request_get_pid(rq, "tid", &tid, diag);
	if (r == 0)
		r = request_get_bool(rq, "raw", &q->raw, diag);
	if (r < 0)
		return r;
	q->opts.filter = (struct view_filter){.pid = (uint32_t)pid, .tid = (uint32_t)tid};
	q->since = request_get(rq, "since");
	if (q->since && marks_check(q->since, diag) < 0)
		return -EINVAL;
	q->opts.sort = request_get(rq, "sort");
	q->opts.columns = request_get(rq, "columns");
	q->opts.builtins_of = request_get(rq, "builtins_of");
	return format_opts_check(&q->opts, diag);
}
