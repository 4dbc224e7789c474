// SPDX-License-Identifier: BSD-2-Clause
/* diff: compare two saved snapshots. Runs without a daemon. */
#include "cmd.h"

#include "compare.h"
#include "saved.h"
#include "snapshot/load.h"

#define FIELD(f) .offset = offsetof(struct compare_opts, f)

static const struct opt opts[] = {
	{"format", 'f', OPT_CHOICE, FIELD(format), "text|json",
	 "output format; default: from the extension of FILE,\notherwise text",
	 .choices = compare_formats},
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

static int run(const struct cmd_call *call, struct diag *diag)
{
	_cleanup_(snapshot_freep) struct snapshot *before = NULL, *after = NULL;
	bool json = false;
	int err = compare_format(call->opts, &json, diag);

	if (!err)
		err = snapshot_load(call->operands[0], &before, diag);
	if (!err)
		err = snapshot_load(call->operands[1], &after, diag);
	if (err < 0)
		return err;
	return compare_run(
		(const struct diff_side[]){{.snapshot = before, .name = call->operands[0]},
					   {.snapshot = after, .name = call->operands[1]}},
		call->opts, call->out, diag);
}

const struct cmd cmd_diff = {
	.name = "diff",
	.operands = "BEFORE AFTER",
	.summary = "Compare two snapshots",
	.opts = opts,
	.opts_size = sizeof(struct compare_opts),
	.min_operands = 2,
	.max_operands = 2,
	.run = run,
};
