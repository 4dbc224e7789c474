// SPDX-License-Identifier: BSD-2-Clause
/* dump: the Python stacks of processes' threads at this moment. Runs without a daemon. */
#include <stdbool.h>

#include "cmd.h"
#include "dump/dumper.h"
#include "pick.h"

struct cmd_dump_opts {
	struct pick_opts pick;
	bool json, locals;
};

/* clang-format off: rows are macros */
static const struct opt options[] = {
	PICK_OPTS(struct cmd_dump_opts, pick),
	{"locals", 0, OPT_FLAG, .offset = offsetof(struct cmd_dump_opts, locals), NULL,
	 "show short values of local variables, which may be\nsecrets"},
	{"json", 0, OPT_FLAG, .offset = offsetof(struct cmd_dump_opts, json), NULL,
	 "print JSON, with threads that run no Python"},
	{NULL},
};
/* clang-format on */

static int dump_one(const struct picked *p, const struct cmd_dump_opts *o, FILE *out,
		    struct diag *diag)
{
	const struct dump_opts opts = {.locals = o->locals};
	_cleanup_(dump_freep) struct dump *d = NULL;
	int r = dump_take(p->pid, &opts, &d, diag);

	if (r == 0)
		r = pick_check_same(p, diag);
	if (r < 0)
		return r;
	r = o->json ? dump_print_json(d, out) : dump_print_text(d, out);
	return r < 0 ? diag_errno(diag, -r, "cannot write the dump") : 0;
}

/* Several dumps are separated by empty lines; in JSON, they follow each other. */
static int run(const struct cmd_call *call, struct diag *diag)
{
	const struct cmd_dump_opts *o = call->opts;
	struct pick pick;
	bool printed = false;

	(void)pick_processes(&o->pick, call->operands, (size_t)call->noperands, false, &pick, diag);
	for (size_t i = 0; i < pick.n; i++) {
		struct diag why = {0};

		if (printed && !o->json)
			putc('\n', call->out);
		if (dump_one(&pick.v[i], o, call->out, &why) < 0)
			pick_report(&why, diag);
		else
			printed = true;
	}
	return diag->err;
}

const struct cmd cmd_dump = {
	.name = "dump",
	.operands = "[PID|NAME]...",
	.summary = "Print each thread's Python stack now (no daemon)",
	.opts = options,
	.opts_size = sizeof(struct cmd_dump_opts),
	.max_operands = CMD_ANY,
	.run = run,
};
