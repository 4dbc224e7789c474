// SPDX-License-Identifier: BSD-2-Clause
/*
 * waits: why functions waited; and the longest waits, with the descriptors that they waited for. This
 * process looks the descriptors up, not the daemon: a process can block the reader.
 */
#include "cmd.h"

#include "find/descriptor.h"
#include "longest_text.h"
#include "query.h"
#include "saved.h"

struct waits_opts {
	struct query query; /* first: the rows of query.h have its offsets */
	uint64_t longest;   /* 0: not given */
};

/* clang-format off: rows are macros */
static const struct opt opts[] = {
	QUERY_OPTS_ALL,
	{"by-thread", 0, OPT_FLAG, QUERY_FIELD(by_thread), NULL,
	 "a row per thread, instead of functions"},
	{"longest", 0, OPT_U64, .offset = offsetof(struct waits_opts, longest), "N",
	 "instead the N longest waits: time, thread, function,\nand what its descriptor is now",
	 .min = 1, .max = INT32_MAX},
	{NULL},
};
/* clang-format on */

struct report {
	const struct snapshot *snapshot;
	struct longest_opts opts;
};

static int write_longest(void *ctx, FILE *out, struct diag *diag)
{
	const struct report *r = ctx;

	return longest_text(r->snapshot, &r->opts, out, diag);
}

static int run(const struct cmd_call *call, struct diag *diag)
{
	const struct waits_opts *o = call->opts;
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	struct report r = {
		.opts = {.limit = o->longest,
			 .patterns = call->operands,
			 .npatterns = call->noperands,
			 .describe = descriptor_describe},
	};
	int err;

	if (!o->longest)
		return query_run(call, &o->query, "waits", diag);
	err = query_fetch(call, o->query.pid, o->query.tid, &s, diag);
	if (err < 0)
		return err;
	r.snapshot = s;
	return saved_write(o->query.output, call->out, write_longest, &r, diag);
}

const struct cmd cmd_waits = {
	.name = "waits",
	.operands = "[PATTERN]...",
	.summary = "Reasons why each function waited: GIL, locks, I/O",
	.opts = opts,
	.opts_size = sizeof(struct waits_opts),
	.max_operands = CMD_ANY,
	.run = run,
};
