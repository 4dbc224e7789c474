// SPDX-License-Identifier: BSD-2-Clause
/* fleet: profiles of many machines, stored by ClickHouse. Runs without a daemon. */
#include "cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "compare.h"
#include "fleet_client.h"
#include "fleet_fetch.h"
#include "fleet_hours.h"
#include "fleet_time.h"
#include "fleet_write.h"
#include "report.h"

#define ADDRESS	     "clickhouse+"
#define FROM_DEFAULT "-1h"
#define FROM_ROLLUP  "-168h"
#define WAIT_DEFAULT UINT64_C(600000000000)
#define NS_PER_S     UINT64_C(1000000000)

struct fleet_opts {
	struct query query; /* first: QUERY_FIELD() are offsets in it */
	const char *from, *until, *before_from, *before_until;
	struct opt_words where, before_where;
	const char *password_file;
	uint64_t timeout_ns, wait_ns;
	bool force, no_hours;
};

#define FIELD(f) .offset = offsetof(struct fleet_opts, f)

/* clang-format off: rows are macros */
static const struct opt opts[] = {
	{"from", 0, OPT_STRING, FIELD(from), "TIME",
	 "profiles that start at this time or later: -15m,\n14:00, 2026-11-26T14:00Z; "
	 "default: " FROM_DEFAULT},
	{"to", 0, OPT_STRING, FIELD(until), "TIME", "profiles that start before; default: now"},
	{"where", 'w', OPT_WORDS, FIELD(where), "COND",
	 "profiles whose label matches: service=web, host!=a,\nversion~^1\\.; may be repeated"},
	{"before-from", 0, OPT_STRING, FIELD(before_from), "TIME",
	 "diff: the span to compare with; default: that of\n--from and --to"},
	{"before-to", 0, OPT_STRING, FIELD(before_until), "TIME", "diff: its end"},
	{"before-where", 0, OPT_WORDS, FIELD(before_where), "COND",
	 "diff: its conditions, in place of --where with the\nsame label"},
	{"force", 0, OPT_FLAG, FIELD(force), NULL,
	 "diff: compare profiles that were measured with\ndifferent options"},
	{"no-hours", 0, OPT_FLAG, FIELD(no_hours), NULL, "add up profiles only, not sums of hours"},
	{"wait", 0, OPT_DURATION, FIELD(wait_ns), "DURATION",
	 "rollup: an hour is complete this long after its\nend; default: 10m"},
	{"password-file", 0, OPT_STRING, FIELD(password_file), "FILE",
	 "its first line is the database user's password"},
	{"timeout", 0, OPT_DURATION, FIELD(timeout_ns), "DURATION",
	 "for each question; default: 300s"},
	QUERY_OPT_FORMAT,
	QUERY_OPT_OUTPUT,
	QUERY_OPT_CLOCK,
	QUERY_OPTS_SHOWN,
	QUERY_OPTS_TREE,
	{NULL},
};
/* clang-format on */

/* A call, its options, and what the operands contain */
struct fleet {
	const struct cmd_call *call;
	const struct fleet_opts *o;
	const char *url; /* NULL: from the environment */
	char **operands; /* without the action and the address */
	int noperands;
	uint64_t now_s;
	struct fleet_client *client;
};

static int set_conditions(struct question *q, const struct opt_words *words, struct diag *diag)
{
	int r = 0;

	for (size_t i = 0; i < words->n && r == 0; i++)
		r = question_filter_add(q, words->v[i], diag);
	return r;
}

static int set_span(const struct fleet *f, const char *from, const char *until, struct question *q,
		    struct diag *diag)
{
	int r = fleet_time_parse(from ? from : FROM_DEFAULT, f->now_s, "from", &q->from_s, diag);

	if (r == 0)
		r = fleet_time_parse(until ? until : "now", f->now_s, "to", &q->until_s, diag);
	if (r == 0 && q->from_s >= q->until_s)
		r = diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "--from must be earlier than --to",
			     "the span is empty");
	return r;
}

static int ask_for(const struct fleet *f, struct question *q, struct diag *diag)
{
	int r;

	*q = (struct question){.database = fleet_database(f->client),
			       .profiles_only = f->o->no_hours};
	r = set_span(f, f->o->from, f->o->until, q, diag);
	return r < 0 ? r : set_conditions(q, &f->o->where, diag);
}

/* The other side of a comparison: what is not given is as on the first side. */
static int ask_before(const struct fleet *f, struct question *q, struct diag *diag)
{
	const struct fleet_opts *o = f->o;
	struct question own = {0};
	int r = ask_for(f, q, diag);

	if (r == 0)
		r = set_span(f, o->before_from ? o->before_from : o->from,
			     o->before_until ? o->before_until : o->until, q, diag);
	if (r == 0)
		r = set_conditions(&own, &o->before_where, diag);
	for (unsigned int i = 0; i < own.nfilters; i++)
		question_filter_remove(q, own.filters[i].name);
	return r < 0 ? r : set_conditions(q, &o->before_where, diag);
}

/* ---- actions ---- */

static int fetch_asked(void *ctx, struct snapshot **ret, struct diag *diag)
{
	const struct fleet *f = ctx;
	struct question q;
	int r = ask_for(f, &q, diag);

	return r < 0 ? r : fleet_fetch(f->client, &q, ret, diag);
}

/* Reports differ by their default format only. */
static int run_report(struct fleet *f, const char *format, struct diag *diag)
{
	struct query query = f->o->query;
	struct cmd_call call = *f->call;

	if (!query.format && !query.output)
		query.format = format;
	call.operands = f->operands;
	call.noperands = f->noperands;
	return report_run(&call, &query, 0, &(struct report_source){fetch_asked, f}, diag);
}

static int run_diff(struct fleet *f, const char *unused, struct diag *diag)
{
	_cleanup_(snapshot_freep) struct snapshot *before = NULL, *after = NULL;
	const struct query *q = &f->o->query;
	const struct compare_opts o = {.output = q->output,
				       .format = q->format && strcmp(q->format, "json") == 0 ? 2
											     : 0,
				       .clock = q->clock,
				       .limit = q->limit,
				       .force = f->o->force};
	struct question first, second;
	bool json = false;
	int err = compare_format(&o, &json, diag);

	(void)unused;
	if (!err)
		err = ask_before(f, &first, diag);
	if (!err)
		err = ask_for(f, &second, diag);
	if (!err)
		err = fleet_fetch(f->client, &first, &before, diag);
	if (!err)
		err = fleet_fetch(f->client, &second, &after, diag);
	if (err < 0)
		return err;
	return compare_run((const struct diff_side[]){{.snapshot = before, .name = "before"},
						      {.snapshot = after, .name = "after"}},
			   &o, f->call->out, diag);
}

static int run_values(struct fleet *f, const char *label, struct diag *diag)
{
	const char *format = f->o->query.format;
	struct question q;
	int err = ask_for(f, &q, diag);

	if (err < 0)
		return err;
	return fleet_print_values(f->client, &q, label, format && strcmp(format, "json") == 0,
				  f->call->out, diag);
}

static int run_init(struct fleet *f, const char *unused, struct diag *diag)
{
	(void)unused;
	return fleet_create(f->client, diag);
}

static int run_rollup(struct fleet *f, const char *unused, struct diag *diag)
{
	const struct fleet_opts *o = f->o;
	struct fleet_rollup_opts ro = {
		.now_s = f->now_s,
		.wait_s = (o->wait_ns ? o->wait_ns : WAIT_DEFAULT) / NS_PER_S,
	};
	struct question q;
	uint64_t n = 0;
	int err = set_span(f, o->from ? o->from : FROM_ROLLUP, o->until, &q, diag);

	(void)unused;
	if (err < 0)
		return err;
	ro.from_s = q.from_s;
	ro.until_s = q.until_s;
	err = fleet_rollup(f->client, &ro, &n, diag);
	if (!err)
		fprintf(f->call->out, "%" PRIu64 " hours filled\n", n);
	return err;
}

static int run_insert(struct fleet *f, const char *unused, struct diag *diag)
{
	uint64_t n = 0;
	int err;

	(void)unused;
	if (!f->noperands)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
				"usage: pyprofctl fleet insert FILE...", "no files are given");
	err = fleet_insert_files(f->client, f->operands, (size_t)f->noperands, &n, diag);
	if (!err)
		fprintf(f->call->out, "%" PRIu64 " inserted\n", n);
	return err;
}

static const struct action {
	const char *name;
	int (*run)(struct fleet *f, const char *what, struct diag *diag);
	const char *what;
} actions[] = {
	{"top", run_report, "text"},
	{"tree", run_report, "tree"},
	{"html", run_report, "html"},
	{"diff", run_diff, NULL},
	{"services", run_values, "service"},
	{"hosts", run_values, "host"},
	{"init", run_init, NULL},
	{"insert", run_insert, NULL},
	{"rollup", run_rollup, NULL},
	{NULL},
};

static const struct action *find_action(const char *name, struct diag *diag)
{
	for (const struct action *a = actions; a->name; a++)
		if (strcmp(a->name, name) == 0)
			return a;
	diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
		 "one of top, tree, html, diff, services, hosts, init, insert, rollup",
		 "'%.60s' is no action of fleet", name);
	return NULL;
}

/* The address may be among the operands; the rest are patterns or files. */
static void take_operands(struct fleet *f, const struct cmd_call *call)
{
	f->operands = call->operands + 1;
	for (int i = 1; i < call->noperands; i++) {
		if (!f->url && strncmp(call->operands[i], ADDRESS, strlen(ADDRESS)) == 0)
			f->url = call->operands[i];
		else
			f->operands[f->noperands++] = call->operands[i];
	}
	f->operands[f->noperands] = NULL;
}

static int run(const struct cmd_call *call, struct diag *diag)
{
	_cleanup_(fleet_freep) struct fleet_client *client = NULL;
	struct fleet f = {.call = call, .o = call->opts, .now_s = (uint64_t)time(NULL)};
	const struct action *action = find_action(call->operands[0], diag);
	int err;

	if (!action)
		return -EINVAL;
	take_operands(&f, call);
	err = fleet_open(f.url, f.o->password_file, &client, diag);
	if (err < 0)
		return err;
	if (f.o->timeout_ns)
		fleet_set_timeout(client, (long)(f.o->timeout_ns / NS_PER_S + 1));
	f.client = client;
	return action->run(&f, action->what, diag);
}

const struct cmd cmd_fleet = {
	.name = "fleet",
	.operands = "ACTION [ARG]...",
	.summary = "Ask about profiles of many hosts in ClickHouse",
	.opts = opts,
	.opts_size = sizeof(struct fleet_opts),
	.min_operands = 1,
	.max_operands = CMD_ANY,
	.run = run,
};
