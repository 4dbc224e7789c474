// SPDX-License-Identifier: BSD-2-Clause
/* Reports of a snapshot that the client has: see report.h. */
#include "report.h"

#include <errno.h>
#include <inttypes.h>

#include "base/parse.h"
#include "base/terminal.h"
#include "format/format.h"
#include "saved.h"
#include "source.h"

#define MAX_PATTERNS 64

/* The report to write, and its options */
struct report {
	const struct format *format;
	const struct snapshot *snapshot;
	struct format_opts opts;
	const char *restricts[MAX_PATTERNS + 1];
	char limit[24];
};

static int set_restrictions(struct report *r, const struct cmd_call *call, const struct query *o,
			    int first, struct diag *diag)
{
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

int report_run(const struct cmd_call *call, const struct query *o, int first,
	       const struct report_source *from, struct diag *diag)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	_cleanup_(source_freep) struct source *src = NULL;
	struct report r = {0};
	int err;

	err = format_choose(o->format, o->output, &r.format, diag);
	if (!err)
		err = set_options(&r.opts, o, call->out, diag);
	if (!err)
		err = set_restrictions(&r, call, o, first, diag);
	if (!err)
		err = format_opts_check(&r.opts, diag);
	if (!err)
		err = from->load(from->ctx, &s, diag);
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
