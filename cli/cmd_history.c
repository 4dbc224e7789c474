// SPDX-License-Identifier: BSD-2-Clause
/* history: list, add up and compare the intervals of continuous mode. */
#include "cmd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "history.h"
#include "history_table.h"
#include "query.h"
#include "report.h"

struct history_opts {
	struct query query; /* first, for QUERY_OPTS_ALL */
	const char *from, *to, *dir;
	struct opt_words where;
	bool json, each, force;
};

#define FIELD(f) .offset = offsetof(struct history_opts, f)

/* clang-format off: rows are macros */
static const struct opt opts[] = {
	{"from", 0, OPT_STRING, FIELD(from), "TIME",
	 "begin of the span: 14:00, -5min, 'yesterday 14:00',\n2026-11-26T14:00"},
	{"to", 0, OPT_STRING, FIELD(to), "TIME", "its end (default: now)"},
	{"where", 0, OPT_WORDS, FIELD(where), "LABEL=REGEX",
	 "only intervals with such a label: service=^web; may\nbe repeated"},
	{"dir", 0, OPT_STRING, FIELD(dir), "DIR",
	 "read the directory of `pyprofd --keep`, without a\ndaemon"},
	{"json", 0, OPT_FLAG, FIELD(json), NULL, "list: as JSON"},
	{"each", 0, OPT_FLAG, FIELD(each), NULL, "list: a row for each interval"},
	{"force", 0, OPT_FLAG, FIELD(force), NULL, "diff: compare what was measured differently"},
	QUERY_OPT_FORMAT,
	QUERY_OPTS_ALL,
	QUERY_OPTS_TREE,
	{NULL},
};
/* clang-format on */

static const char *const actions[] = {"list", "merge", "diff", NULL};
enum action { LIST, MERGE, DIFF };

/* A command line, and the position of its next operand */
struct args {
	const struct cmd_call *call;
	const struct history_opts *o;
	struct when when;
	int next;
};

#define SPAN_TEXT 128

/* ---- spans ---- */

/* The next operand as a span; the shell has split "yesterday 14:00-14:05" into two. */
static int take_span(struct args *a, char text[SPAN_TEXT], struct when_span *ret, struct diag *diag)
{
	char *const *v = a->call->operands + a->next;
	const int left = a->call->noperands - a->next;
	const bool day = left > 1 && (strcmp(v[0], "yesterday") == 0 || strcmp(v[0], "today") == 0);

	if (!left)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
				"e.g. history diff 14:00-14:05 yesterday 14:00-14:05",
				"history: a span is missing");
	snprintf(text, SPAN_TEXT, "%s%s%s", v[0], day ? " " : "", day ? v[1] : "");
	a->next += 1 + day;
	return when_span(&a->when, text, ret, diag);
}

static int span_of_options(const struct args *a, struct when_span *ret, struct diag *diag)
{
	int r = 0;

	*ret = (struct when_span){.to_ns = a->when.now_ns + 1};
	if (a->o->from)
		r = when_time(&a->when, a->o->from, &ret->from_ns, diag);
	if (r == 0 && a->o->to)
		r = when_time(&a->when, a->o->to, &ret->to_ns, diag);
	if (r == 0 && ret->to_ns <= ret->from_ns)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "put the earlier time into --from",
				"the span from --from to --to is empty");
	return r;
}

/* --from and --to, or an operand that is a span. */
static int choose_span(struct args *a, char text[SPAN_TEXT], struct when_span *ret,
		       struct diag *diag)
{
	const int before = a->next;
	struct diag why = {0};

	if (a->o->from || a->o->to || a->next == a->call->noperands) {
		snprintf(text, SPAN_TEXT, "%s..%s", a->o->from ? a->o->from : "",
			 a->o->to ? a->o->to : "now");
		return span_of_options(a, ret, diag);
	}
	if (take_span(a, text, ret, &why) == 0)
		return 0;
	/* a pattern */
	a->next = before;
	snprintf(text, SPAN_TEXT, "the whole history");
	return span_of_options(a, ret, diag);
}

static struct history_of of_args(const struct args *a, const struct when_span *span)
{
	return (struct history_of){.socket = a->call->socket,
				   .dir = a->o->dir,
				   .span = *span,
				   .where = (const char *const *)a->o->where.v,
				   .nwhere = a->o->where.n};
}

/* ---- actions ---- */

static int run_list(struct args *a, struct diag *diag)
{
	_cleanup_(json_decrefp) json_t *list = NULL;
	struct when_span span;
	struct history_of of;
	char text[SPAN_TEXT];
	int r = choose_span(a, text, &span, diag);

	if (r == 0 && a->next < a->call->noperands)
		r = take_span(a, text, &span, diag);
	if (r < 0)
		return r;
	of = of_args(a, &span);
	r = history_list(&of, &list, diag);
	if (r < 0)
		return r;
	if (!a->o->json) {
		history_table(list, a->o->each, a->call->out);
		return 0;
	}
	json_dumpf(list, a->call->out, JSON_INDENT(2));
	putc('\n', a->call->out);
	return 0;
}

struct merging {
	struct history_of of;
	char text[SPAN_TEXT];
};

static int load_merged(void *ctx, struct snapshot **ret, struct diag *diag)
{
	struct merging *m = ctx;

	return history_sum(&m->of, m->text, ret, diag);
}

static int run_merge(struct args *a, struct diag *diag)
{
	struct when_span span;
	struct merging m;
	int r = choose_span(a, m.text, &span, diag);

	if (r < 0)
		return r;
	m.of = of_args(a, &span);
	return report_run(a->call, &a->o->query, a->next, &(struct report_source){load_merged, &m},
			  diag);
}

static int diff_format(const struct query *q, int *ret, struct diag *diag)
{
	*ret = 0;
	if (!q->format)
		return 0;
	for (int i = 1; compare_formats[i]; i++)
		if (strcmp(compare_formats[i], q->format) == 0)
			*ret = i;
	return *ret ? 0
		    : diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "expected text or json",
			       "history diff has no format '%.100s'", q->format);
}

static int load_side(struct args *a, char text[SPAN_TEXT], struct snapshot **ret, struct diag *diag)
{
	struct when_span span;
	struct history_of of;
	int r = take_span(a, text, &span, diag);

	if (r < 0)
		return r;
	of = of_args(a, &span);
	return history_sum(&of, text, ret, diag);
}

static int run_diff(struct args *a, struct diag *diag)
{
	const struct query *q = &a->o->query;
	struct compare_opts co = {
		.output = q->output, .clock = q->clock, .limit = q->limit, .force = a->o->force};
	_cleanup_(snapshot_freep) struct snapshot *before = NULL, *after = NULL;
	char text[2][SPAN_TEXT];
	bool json;
	int r = diff_format(q, &co.format, diag);

	if (r == 0)
		r = compare_format(&co, &json, diag);
	if (r == 0)
		r = load_side(a, text[0], &before, diag);
	if (r == 0)
		r = load_side(a, text[1], &after, diag);
	if (r < 0)
		return r;
	if (a->next < a->call->noperands)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "diff compares two spans",
				"history: unexpected argument '%.100s'",
				a->call->operands[a->next]);
	return compare_run((const struct diff_side[]){{.snapshot = before, .name = text[0]},
						      {.snapshot = after, .name = text[1]}},
			   &co, a->call->out, diag);
}

/* The first operand, if it is one; otherwise list. */
static enum action take_action(struct args *a)
{
	for (int i = 0; a->call->noperands && actions[i]; i++)
		if (strcmp(a->call->operands[0], actions[i]) == 0) {
			a->next = 1;
			return (enum action)i;
		}
	return LIST;
}

static int run(const struct cmd_call *call, struct diag *diag)
{
	struct args a = {.call = call, .o = call->opts, .when = when_local()};

	switch (take_action(&a)) {
	case MERGE:
		return run_merge(&a, diag);
	case DIFF:
		return run_diff(&a, diag);
	case LIST:
		break;
	}
	return run_list(&a, diag);
}

const struct cmd cmd_history = {
	.name = "history",
	.operands = "[ACTION] [SPAN]...",
	.summary = "Continuous mode: list, merge, diff intervals",
	.opts = opts,
	.opts_size = sizeof(struct history_opts),
	.max_operands = CMD_ANY,
	.run = run,
};
