// SPDX-License-Identifier: BSD-2-Clause
/* dump: the Python stacks of processes' threads at this moment. Runs without a daemon. */
#include <stdbool.h>

#include "cmd.h"
#include "dump/dump.h"
#include "pick.h"

struct dump_opts {
	struct pick_opts pick;
	bool json;
};

/* clang-format off: rows are macros */
static const struct opt opts[] = {
	PICK_OPTS(struct dump_opts, pick),
	{"json", 0, OPT_FLAG, .offset = offsetof(struct dump_opts, json), NULL,
	 "print JSON, with threads that run no Python"},
	{NULL},
};
/* clang-format on */

static int dump_one(const struct picked *p, bool json, FILE *out, struct diag *diag)
{
	_cleanup_(dump_freep) struct dump *d = NULL;
	int r = dump_take(p->pid, &d, diag);

	if (r == 0)
		r = pick_check_same(p, diag);
	if (r < 0)
		return r;
	r = json ? dump_print_json(d, out) : dump_print_text(d, out);
	return r < 0 ? diag_errno(diag, -r, "cannot write the dump") : 0;
}

/* Several dumps are separated by empty lines; in JSON, they follow each other. */
static int run(const struct cmd_call *call, struct diag *diag)
{
	const struct dump_opts *o = call->opts;
	struct pick pick;
	bool printed = false;

	(void)pick_processes(&o->pick, call->operands, (size_t)call->noperands, false, &pick, diag);
	for (size_t i = 0; i < pick.n; i++) {
		struct diag why = {0};

		if (printed && !o->json)
			putc('\n', call->out);
		if (dump_one(&pick.v[i], o->json, call->out, &why) < 0)
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
	.opts = opts,
	.opts_size = sizeof(struct dump_opts),
	.max_operands = CMD_ANY,
	.run = run,
};
