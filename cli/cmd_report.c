// SPDX-License-Identifier: BSD-2-Clause
/* report: convert and merge saved snapshots. Runs without a daemon. */
#include "cmd.h"

#include <string.h>
#include <unistd.h>

#include "query.h"
#include "report.h"
#include "saved.h"

/* clang-format off: rows are macros */
static const struct opt opts[] = {
	QUERY_OPT_FORMAT,
	QUERY_OPTS_ALL,
	QUERY_OPTS_TREE,
	{NULL},
};
/* clang-format on */

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

struct files {
	const struct cmd_call *call;
	int n;
};

static int load(void *ctx, struct snapshot **ret, struct diag *diag)
{
	const struct files *f = ctx;
	const struct query *o = f->call->opts;

	return saved_load(f->call->operands, (size_t)f->n, o->clock, ret, diag);
}

static int run(const struct cmd_call *call, struct diag *diag)
{
	struct files f = {.call = call, .n = count_files(call)};

	return report_run(call, call->opts, f.n, &(struct report_source){load, &f}, diag);
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
