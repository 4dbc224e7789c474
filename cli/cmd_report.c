// SPDX-License-Identifier: BSD-2-Clause
/* report: saved snapshots in any format, several as one. Runs without a daemon. */
#include "cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "format/format.h"
#include "saved.h"

#define MAX_PATTERNS 64

struct report_opts {
	const char *format, *output, *sort;
	pid_t pid, tid;
	int clock; /* index into saved_clocks; 0: the files' own */
	uint64_t limit;
};

#define FIELD(f) .offset = offsetof(struct report_opts, f)

static const struct opt opts[] = {
	{"format", 'f', OPT_STRING, FIELD(format), "FORMAT",
	 "text, pstats, json, ...; else by FILE's extension,\nelse text"},
	{"output", 'o', OPT_STRING, FIELD(output), "FILE", "write it there instead of to stdout"},
	{"pid", 'p', OPT_PID, FIELD(pid), "PID", "only this process"},
	{"tid", 't', OPT_PID, FIELD(tid), "TID", "only this thread"},
	{"clock", 0, OPT_CHOICE, FIELD(clock), "cpu|wall", "which clock it shows",
	 .choices = saved_clocks},
	{"sort", 's', OPT_STRING, FIELD(sort), "KEY[,KEY]", "pstats' sort keys"},
	{"limit", 'l', OPT_U64, FIELD(limit), "N", "at most N rows", .min = 1, .max = INT32_MAX},
	{NULL},
};

/* What to write, and how. */
struct report {
	const struct format *format;
	const struct snapshot *snapshot;
	struct format_opts opts;
	const char *restricts[MAX_PATTERNS + 1];
	char limit[24];
};

static int choose_format(const struct report_opts *o, const struct format **ret, struct diag *diag)
{
	char hint[200];
	size_t n;

	*ret = o->output ? format_of_file(o->output) : NULL;
	if (o->format)
		*ret = format_find(o->format);
	else if (!*ret)
		*ret = format_find("text");
	if (*ret)
		return 0;
	n = (size_t)snprintf(hint, sizeof(hint), "known formats:");
	for (const struct format *f = formats; f->name && n < sizeof(hint); f++)
		n += (size_t)snprintf(hint + n, sizeof(hint) - n, " %s", f->name);
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, hint, "unknown format '%s'", o->format);
}

static bool looks_like_file(const char *s)
{
	size_t n = strlen(s);

	return access(s, F_OK) == 0 || strchr(s, '/') || (n > 5 && strcmp(s + n - 5, ".json") == 0);
}

/* Files come first, and the first operand is one; patterns begin where nothing looks like a file. */
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
	const struct report_opts *o = call->opts;

	if (call->noperands - first > MAX_PATTERNS)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "", "too many patterns");
	for (int i = first; i < call->noperands; i++)
		r->restricts[r->opts.nrestrict++] = call->operands[i];
	if (o->limit) {
		snprintf(r->limit, sizeof(r->limit), "%" PRIu64, o->limit);
		r->restricts[r->opts.nrestrict++] = r->limit;
	}
	r->opts.restrict_ = r->restricts;
	return 0;
}

static bool has_thread(const struct snapshot *s, const struct view_filter *filter)
{
	for (uint32_t i = 0; i < s->nthreads; i++)
		if (view_selects(filter, &s->threads[i]))
			return true;
	return false;
}

/* Said here in words that fit: there is no daemon to ask for its processes. */
static int check_filter(const struct snapshot *s, const struct view_filter *filter,
			struct diag *diag)
{
	if ((!filter->pid && !filter->tid) || has_thread(s, filter))
		return 0;
	return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "the text format says which there are",
			"no such process or thread is in what was saved");
}

static int write_report(void *ctx, FILE *out, struct diag *diag)
{
	const struct report *r = ctx;

	return format_write(r->format, r->snapshot, &r->opts, out, diag);
}

static int run(const struct cmd_call *call, struct diag *diag)
{
	const struct report_opts *o = call->opts;
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	struct report r = {.opts = {.sort = o->sort,
				    .filter = {.pid = (uint32_t)o->pid, .tid = (uint32_t)o->tid}}};
	int nfiles = count_files(call), err;

	err = choose_format(o, &r.format, diag);
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
	r.opts.clock = o->clock ? (enum snapshot_clock)(o->clock - 1) : s->clock;
	return saved_write(o->output, call->out, write_report, &r, diag);
}

const struct cmd cmd_report = {
	.name = "report",
	.operands = "FILE... [PATTERN]...",
	.summary = "Show saved snapshots as one; needs no daemon",
	.opts = opts,
	.opts_size = sizeof(struct report_opts),
	.min_operands = 1,
	.max_operands = CMD_ANY,
	.run = run,
};
