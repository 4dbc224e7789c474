// SPDX-License-Identifier: BSD-2-Clause
/* diff: compare two saved snapshots. Runs without a daemon. */
#include "cmd.h"

#include <errno.h>
#include <string.h>

#include "base/terminal.h"
#include "format/diff.h"
#include "format/format.h"
#include "saved.h"
#include "snapshot/load.h"

struct diff_opts {
	const char *output;
	int format; /* index into diff_formats; 0: not given */
	int clock;  /* index into saved_clocks; 0: the files' clock */
	uint64_t limit;
	bool force;
};

static const char *const diff_formats[] = {"", "text", "json", NULL}; /* "": not given */

#define FIELD(f) .offset = offsetof(struct diff_opts, f)

static const struct opt opts[] = {
	{"format", 'f', OPT_CHOICE, FIELD(format), "text|json",
	 "output format; default: from the extension of FILE,\notherwise text",
	 .choices = diff_formats},
	{"output", 'o', OPT_STRING, FIELD(output), "FILE", "output file (default: stdout)"},
	{"clock", 0, OPT_CHOICE, FIELD(clock), "cpu|wall", "clock to compare",
	 .choices = saved_clocks},
	{"force", 0, OPT_FLAG, FIELD(force), NULL,
	 "compare snapshots that were measured or saved with\ndifferent options"},
	{"limit", 'l', OPT_U64, FIELD(limit), "N",
	 "at most N rows in each table (default: 30 on a\nterminal, all in files and pipes)",
	 .min = 1, .max = INT32_MAX},
	{NULL},
};

struct output {
	const struct diff *diff;
	const struct diff_opts *opts;
	bool json;
};

/* By --format, or by the extension of the output file. */
static int choose_format(const struct diff_opts *o, bool *ret_json, struct diag *diag)
{
	const char *name = o->format ? diff_formats[o->format] : NULL;
	const struct format *f = NULL;
	int err = format_choose(name, o->output, &f, diag);

	if (err < 0)
		return err;
	*ret_json = strcmp(f->name, "json") == 0;
	if (*ret_json || strcmp(f->name, "text") == 0)
		return 0;
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "use .txt or .json, or -f",
			"diff has no %s format, which the extension of '%s' selects", f->name,
			o->output);
}

static int write_diff(void *ctx, FILE *out, struct diag *diag)
{
	const struct output *o = ctx;
	uint64_t rows = o->opts->limit || o->json || !terminal_is(out) ? o->opts->limit
								       : FORMAT_TERMINAL_ROWS;
	size_t limit = (size_t)rows;
	int err = o->json ? diff_write_json(o->diff, limit, out)
			  : diff_write_text(o->diff, limit, out);

	return err ? diag_errno(diag, -err, "cannot write the comparison") : 0;
}

static int compare(const struct diff_side side[DIFF_SIDES], const struct cmd_call *call, bool json,
		   struct diag *diag)
{
	const struct diff_opts *o = call->opts;
	enum snapshot_clock clock = o->clock ? (enum snapshot_clock)(o->clock - 1)
					     : side[DIFF_BEFORE].snapshot->clock;
	_cleanup_(diff_freep) struct diff *d = NULL;
	struct output out = {.opts = o, .json = json};
	int err = diff_check(side, &(struct diff_check){o->clock != 0, o->force}, diag);

	if (err < 0)
		return err;
	err = diff_build(side, clock, &d);
	if (err < 0)
		return diag_errno(diag, -err, "cannot compare");
	out.diff = d;
	return saved_write(o->output, call->out, write_diff, &out, diag);
}

static int run(const struct cmd_call *call, struct diag *diag)
{
	_cleanup_(snapshot_freep) struct snapshot *before = NULL, *after = NULL;
	bool json = false;
	int err = choose_format(call->opts, &json, diag);

	if (!err)
		err = snapshot_load(call->operands[0], &before, diag);
	if (!err)
		err = snapshot_load(call->operands[1], &after, diag);
	if (err < 0)
		return err;
	return compare((const struct diff_side[]){{.snapshot = before, .name = call->operands[0]},
						  {.snapshot = after, .name = call->operands[1]}},
		       call, json, diag);
}

const struct cmd cmd_diff = {
	.name = "diff",
	.operands = "BEFORE AFTER",
	.summary = "Compare two snapshots",
	.opts = opts,
	.opts_size = sizeof(struct diff_opts),
	.min_operands = 2,
	.max_operands = 2,
	.run = run,
};
