// SPDX-License-Identifier: BSD-2-Clause
/* snapshot: a profile, to a file or to stdout. */
#include "cmd.h"

#include <errno.h>
#include <string.h>

#include "base/outfile.h"
#include "client.h"
#include "format/format.h"

struct snapshot_opts {
	const char *format, *output, *sort;
	pid_t pid, tid;
	int clock;	/* index into clocks; 0: the daemon's own */
	uint64_t limit; /* 0: none */
};

/* The empty name cannot be typed: it is what there is when nothing was given. */
static const char *const clocks[] = {"", "cpu", "wall", NULL};

#define FIELD(f) .offset = offsetof(struct snapshot_opts, f)

static const struct opt opts[] = {
	{"format", 'f', OPT_STRING, FIELD(format), "FORMAT",
	 "text, pstats, json, ...; else by FILE's extension,\nelse text"},
	{"output", 'o', OPT_STRING, FIELD(output), "FILE", "write it there instead of to stdout"},
	{"pid", 'p', OPT_PID, FIELD(pid), "PID", "only this process"},
	{"tid", 't', OPT_PID, FIELD(tid), "TID", "only this thread"},
	{"clock", 0, OPT_CHOICE, FIELD(clock), "cpu|wall", "which clock it shows",
	 .choices = clocks},
	{"sort", 's', OPT_STRING, FIELD(sort), "KEY[,KEY]", "pstats' sort keys"},
	{"limit", 'l', OPT_U64, FIELD(limit), "N", "at most N rows", .min = 1, .max = INT32_MAX},
	{NULL},
};

static const char *choose_format(const struct snapshot_opts *o)
{
	const struct format *f;

	if (o->format)
		return o->format;
	f = o->output ? format_of_file(o->output) : NULL;
	return f ? f->name : "text";
}

static char *add_number(struct client *c, char *path, const char *key, uint64_t v)
{
	char s[24];

	if (!v)
		return path;
	snprintf(s, sizeof(s), "%llu", (unsigned long long)v);
	return client_add_param(c, path, key, s);
}

/* NULL: no memory. */
static char *build_path(struct client *c, const struct cmd_call *call)
{
	const struct snapshot_opts *o = call->opts;
	char *path = client_add_param(c, strdup("/v1/snapshot"), "format", choose_format(o));

	path = add_number(c, path, "pid", (uint64_t)o->pid);
	path = add_number(c, path, "tid", (uint64_t)o->tid);
	if (o->clock)
		path = client_add_param(c, path, "clock", clocks[o->clock]);
	if (o->sort)
		path = client_add_param(c, path, "sort", o->sort);
	for (int i = 0; i < call->noperands; i++)
		path = client_add_param(c, path, "restrict", call->operands[i]);
	return add_number(c, path, "limit", o->limit);
}

static int kept(int err, struct diag *diag)
{
	snprintf(diag->hint, sizeof(diag->hint),
		 "the daemon keeps the data; choose another file with -o");
	return err;
}

static int to_file(struct client *c, const char *path, const char *output, struct diag *diag)
{
	_cleanup_(outfile_freep) struct outfile *of = NULL;
	int r;

	r = outfile_open(output, &of, diag);
	if (r < 0)
		return kept(r, diag);
	r = client_download(c, path, outfile_stream(of), diag);
	if (r < 0)
		return r;
	r = outfile_commit(of, diag);
	return r < 0 ? kept(r, diag) : 0;
}

static int run(const struct cmd_call *call, struct diag *diag)
{
	const struct snapshot_opts *o = call->opts;
	_cleanup_(client_freep) struct client *c = NULL;
	_cleanup_free_ char *path = NULL;
	int r;

	r = client_open(call->socket, &c, diag);
	if (r < 0)
		return r;
	path = build_path(c, call);
	if (!path)
		return diag_errno(diag, ENOMEM, "cannot ask for a snapshot");
	return o->output ? to_file(c, path, o->output, diag)
			 : client_download(c, path, call->out, diag);
}

const struct cmd cmd_snapshot = {
	.name = "snapshot",
	.operands = "[PATTERN]...",
	.summary = "Write a profile; PATTERNs restrict it as pstats' do",
	.opts = opts,
	.opts_size = sizeof(struct snapshot_opts),
	.max_operands = CMD_ANY,
	.run = run,
};
