// SPDX-License-Identifier: BSD-2-Clause
/* snapshot writes a profile; callers, callees, threads, coroutines and tree are reports of it. */
#include "cmd.h"

#include <errno.h>

#include "format/format.h"
#include "query.h"

/* clang-format off: rows are macros */
static const struct opt snapshot_opts[] = {
	QUERY_OPT_FORMAT, QUERY_OPTS_ALL, QUERY_OPTS_SINCE, QUERY_OPTS_TREE, {NULL},
};

static const struct opt report_opts[] = {
	QUERY_OPTS_ALL,
	{NULL},
};

static const struct opt tree_opts[] = {
	QUERY_OPTS_ALL,
	QUERY_OPTS_TREE,
	{NULL},
};
/* clang-format on */

static int run_snapshot(const struct cmd_call *call, struct diag *diag)
{
	const struct query *q = call->opts;
	const struct format *unused;
	/* the daemon knows the names of its formats */
	int r = q->format ? 0 : format_choose(NULL, q->output, &unused, diag);

	if (r == 0 && q->since && q->since_last)
		r = diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "use one of them",
			     "--since NAME and --since-last exclude each other");

	return r < 0 ? r : query_run(call, q, query_format(q), diag);
}

static int run_callers(const struct cmd_call *call, struct diag *diag)
{
	return query_run(call, call->opts, "callers", diag);
}

static int run_callees(const struct cmd_call *call, struct diag *diag)
{
	return query_run(call, call->opts, "callees", diag);
}

static int run_threads(const struct cmd_call *call, struct diag *diag)
{
	return query_run(call, call->opts, "threads", diag);
}

static int run_coroutines(const struct cmd_call *call, struct diag *diag)
{
	return query_run(call, call->opts, "coroutines", diag);
}

static int run_tree(const struct cmd_call *call, struct diag *diag)
{
	return query_run(call, call->opts, "tree", diag);
}

static int run_counters(const struct cmd_call *call, struct diag *diag)
{
	return query_run(call, call->opts, "counters", diag);
}

static int run_gil(const struct cmd_call *call, struct diag *diag)
{
	return query_run(call, call->opts, "gil", diag);
}

static int run_memory(const struct cmd_call *call, struct diag *diag)
{
	return query_run(call, call->opts, "memory", diag);
}

#define REPORT(cmd_name, cmd_summary, cmd_opts, cmd_run)                                           \
	{                                                                                          \
		.name = (cmd_name), .operands = "[PATTERN]...", .summary = (cmd_summary),          \
		.opts = (cmd_opts), .opts_size = sizeof(struct query), .max_operands = CMD_ANY,    \
		.run = (cmd_run),                                                                  \
	}

const struct cmd cmd_snapshot = REPORT("snapshot",
				       "Write a profile; PATTERNs restrict rows as in pstats",
				       snapshot_opts, run_snapshot);
const struct cmd cmd_callers =
	REPORT("callers", "Callers of these functions", report_opts, run_callers);
const struct cmd cmd_callees =
	REPORT("callees", "Functions called by these", report_opts, run_callees);
const struct cmd cmd_threads =
	REPORT("threads", "Calls and times of each thread", report_opts, run_threads);
const struct cmd cmd_coroutines = REPORT("coroutines",
					 "Lifetimes of coroutines, generators, greenlets",
					 report_opts, run_coroutines);
const struct cmd cmd_tree = REPORT("tree", "Calling-context tree", tree_opts, run_tree);
const struct cmd cmd_counters = REPORT("counters", "Resource counters of each function, if enabled",
				       report_opts, run_counters);
const struct cmd cmd_gil =
	REPORT("gil", "Functions that held the GIL while others waited", report_opts, run_gil);
const struct cmd cmd_memory =
	REPORT("memory", "Growth of memory by function, if enabled", report_opts, run_memory);
