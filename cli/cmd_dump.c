// SPDX-License-Identifier: BSD-2-Clause
/* dump: the Python stacks of a process's threads at this moment. Runs without a daemon. */
#include <stdbool.h>

#include "base/parse.h"
#include "cmd.h"
#include "dump/dump.h"

struct dump_opts {
	bool json;
};

static const struct opt opts[] = {
	{"json", 0, OPT_FLAG, .offset = offsetof(struct dump_opts, json), NULL,
	 "print JSON, with threads that run no Python"},
	{NULL},
};

static int run(const struct cmd_call *call, struct diag *diag)
{
	const struct dump_opts *o = call->opts;
	_cleanup_(dump_freep) struct dump *d = NULL;
	pid_t pid;
	int r = parse_pid(call->operands[0], &pid);

	if (r < 0)
		return diag_set(diag, r, PYP_EXIT_USAGE, "usage: pyprofctl dump PID",
				"invalid pid '%s'", call->operands[0]);
	r = dump_take(pid, &d, diag);
	if (r < 0)
		return r;
	r = o->json ? dump_print_json(d, call->out) : dump_print_text(d, call->out);
	return r < 0 ? diag_errno(diag, -r, "cannot write the dump") : 0;
}

const struct cmd cmd_dump = {
	.name = "dump",
	.operands = "PID",
	.summary = "Print each thread's Python stack now (no daemon)",
	.opts = opts,
	.opts_size = sizeof(struct dump_opts),
	.min_operands = 1,
	.max_operands = 1,
	.run = run,
};
