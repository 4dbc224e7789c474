// SPDX-License-Identifier: BSD-2-Clause
/* report: convert and merge saved snapshots. Runs without a daemon. */
#include "cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/parse.h"
#include "base/terminal.h"
#include "format/format.h"
#include "query.h"
#include "saved.h"
#include "source.h"

#define MAX_PATTERNS 64

/* clang-format off: rows are macros */
static const struct opt opts[] = {
	QUERY_OPT_FORMAT,
	QUERY_OPTS_ALL,
	QUERY_OPTS_TREE,
	{NULL},
};
/* clang-format on */

/* The report to write, and its options */
struct report {
	const struct format *format;
	const struct snapshot *snapshot;
	struct format_opts opts;
	const char *restricts[MAX_PATTERNS + 1];
	char limit[24];
};

static bool looks_like_file(const char *s)
{
	size_t n = strlen(s);

	return access(s, F_OK) == 0 || strchr(s, '/') || (n > 5 && strcmp(s + n - 5, ".json") == 0);
}

/* Operands are files first (at least one), then patterns, from the first that is not like a file
 * name. */
static int count_files(const struct cmd_call *call)
{
	int n = 1;

	while (n < call->noperands && looks_like_file(call->operands[n]))
		n++;
	return n;
}

static int set_restrictions(struct report *r, const struct cmd_call *call, int first,
			    struct diag *diag)
{
	const struct query *o = call->opts;
	uint64_t limit = query_limit(o, r->format->name, o->output ? NULL : call->out);

	if (call->noperands - first > MAX_PATTERNS)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "", "too many patterns");
	for (int i = first; i < call->noperands; i++)
		r->restricts[r->opts.nrestrict++] = call->operands[i];
	if (limit) {
		snprintf(r->limit, sizeof(r->limit), "%" PRIu64, limit);
		r->restricts[r->opts.nrestrict++] = r->limit;
	}
	r->opts.restrict_ = r->restricts;
	return 0;
}

/* Options that snapshot would send to the daemon */
static int set_options(struct format_opts *to, const struct query *q, FILE *out, struct diag *diag)
{
	*to = (struct format_opts){.sort = q->sort,
				   .filter = {.pid = (uint32_t)q->pid, .tid = (uint32_t)q->tid},
				   .reverse = q->reverse,
				   .strip_dirs = q->strip_dirs,
				   .only_my_code = q->only_my_code,
				   .builtins_of = q->builtins_of,
				   .columns = q->columns,
				   .colour = !q->output && query_colour(out),
				   .verbose = q->verbose,
				   .by_thread = q->by_thread,
				   .busy = q->busy,
				   .width = q->output ? 0 : (uint32_t)terminal_columns(out),
				   .depth = (uint32_t)q->depth};
	if (!q->min_share)
		return 0;
	if (parse_percent(q->min_share, &to->min_share) < 0)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "expected a percentage, 0 to 100",
				"--min-share: '%s' is not valid", q->min_share);
	if (to->min_share <= 0)
		to->min_share = -1;
	return 0;
}

static bool has_thread(const struct snapshot *s, const struct view_filter *filter)
{
	for (uint32_t i = 0; i < s->nthreads; i++)
		if (view_selects(filter, &s->threads[i]))
			return true;
	return false;
}

/* Checked here, because format_write()'s message would refer to the daemon's targets. */
static int check_filter(const struct snapshot *s, const struct view_filter *filter,
			struct diag *diag)
{
	if ((!filter->pid && !filter->tid) || has_thread(s, filter))
		return 0;
	return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "the text format lists them",
			"the saved snapshots do not contain this process or thread");
}

static int write_report(void *ctx, FILE *out, struct diag *diag)
{
	const struct report *r = ctx;

	return format_write(r->format, r->snapshot, &r->opts, out, diag);
}

static int run(const struct cmd_call *call, struct diag *diag)
{
	const struct query *o = call->opts;
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	_cleanup_(source_freep) struct source *src = NULL;
	struct report r = {0};
	int nfiles = count_files(call), err;

	err = format_choose(o->format, o->output, &r.format, diag);
	if (!err)
		err = set_options(&r.opts, o, call->out, diag);
	if (!err)
		err = set_restrictions(&r, call, nfiles, diag);
	if (!err)
		err = format_opts_check(&r.opts, diag);
	if (!err)
		err = saved_load(call->operands, (size_t)nfiles, o->clock, &s, diag);
	if (!err)
		err = check_filter(s, &r.opts.filter, diag);
	if (err < 0)
		return err;
	r.snapshot = s;
	src = source_new(s, false);
	if (!src)
		return diag_errno(diag, ENOMEM, "cannot read source files");
	r.opts.source = source_format(src);
	r.opts.clock = o->clock ? (enum snapshot_clock)(o->clock - 1) : s->clock;
	return saved_write(o->output, call->out, write_report, &r, diag);
}

const struct cmd cmd_report = {
	.name = "report",
	.operands = "FILE... [PATTERN]...",
	.summary = "Convert or merge saved snapshots (no daemon)",
	.opts = opts,
	.opts_size = sizeof(struct query),
	.min_operands = 1,
	.max_operands = CMD_ANY,
	.run = run,
};
