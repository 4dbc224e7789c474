// SPDX-License-Identifier: BSD-2-Clause
/*
 * lines: self time by source line, with the source text. From the daemon, or from a saved profile.
 * This process reads the source files, not the daemon: see source.h.
 */
#include "cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "format/format.h"
#include "query.h"
#include "saved.h"
#include "snapshot/load.h"
#include "source.h"

#define MAX_PATTERNS 62

struct lines_opts {
	const char *output, *from, *sort;
	pid_t pid;
	uint64_t limit;
	bool no_source;
};

#define FIELD(f) .offset = offsetof(struct lines_opts, f)

static const struct opt opts[] = {
	{"output", 'o', OPT_STRING, FIELD(output), "FILE", "output file (default: stdout)"},
	{"from", 0, OPT_STRING, FIELD(from), "FILE",
	 "a saved profile (JSON), instead of the daemon's"},
	{"pid", 'p', OPT_PID, FIELD(pid), "PID", "only this process"},
	{"sort", 's', OPT_STRING, FIELD(sort), "KEY[,KEY]", "sort keys, as in pstats"},
	{"limit", 'l', OPT_U64, FIELD(limit), "N", "at most N functions", .min = 1,
	 .max = INT32_MAX},
	{"no-source", 0, OPT_FLAG, FIELD(no_source), NULL, "only line numbers"},
	{NULL},
};

/* The report to write, and its options */
struct lines_report {
	const struct snapshot *snapshot;
	struct format_opts opts;
	const char *restricts[MAX_PATTERNS + 1];
	char limit[24];
};

static int set_options(struct lines_report *r, const struct cmd_call *call, struct diag *diag)
{
	const struct lines_opts *o = call->opts;

	if (call->noperands > MAX_PATTERNS)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "", "too many patterns");
	for (int i = 0; i < call->noperands; i++)
		r->restricts[r->opts.nrestrict++] = call->operands[i];
	if (o->limit) {
		snprintf(r->limit, sizeof(r->limit), "%" PRIu64, o->limit);
		r->restricts[r->opts.nrestrict++] = r->limit;
	}
	r->opts.restrict_ = r->restricts;
	r->opts.sort = o->sort;
	r->opts.filter.pid = o->from ? (uint32_t)o->pid : 0; /* the daemon selects the process */
	r->opts.colour = !o->output && query_colour(call->out);
	return format_opts_check(&r->opts, diag);
}

static int write_report(void *ctx, FILE *out, struct diag *diag)
{
	const struct lines_report *r = ctx;

	return format_write(format_find("lines"), r->snapshot, &r->opts, out, diag);
}

static int run(const struct cmd_call *call, struct diag *diag)
{
	const struct lines_opts *o = call->opts;
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	_cleanup_(source_freep) struct source *src = NULL;
	struct lines_report r = {0};
	int err = set_options(&r, call, diag);

	if (!err)
		err = o->from ? snapshot_load(o->from, &s, diag)
			      : query_fetch(call, o->pid, 0, &s, diag);
	if (err < 0)
		return err;
	r.snapshot = s;
	if (!o->no_source) {
		src = source_new(s, !o->from);
		if (!src)
			return diag_errno(diag, ENOMEM, "cannot read source files");
		r.opts.source = source_format(src);
	}
	return saved_write(o->output, call->out, write_report, &r, diag);
}

const struct cmd cmd_lines = {
	.name = "lines",
	.operands = "[PATTERN]...",
	.summary = "Self time by source line, from samples",
	.opts = opts,
	.opts_size = sizeof(struct lines_opts),
	.max_operands = CMD_ANY,
	.run = run,
};
