// SPDX-License-Identifier: BSD-2-Clause
/* objects: count a process's objects by type. Runs without a daemon. */
#include "cmd.h"

#include <errno.h>
#include <time.h>

#include "base/parse.h"
#include "dump/objects.h"
#include "dump/objects_report.h"
#include "saved.h"

struct objects_cmd_opts {
	const char *output, *since;
	uint64_t diff_ns;
	int sort; /* index into sorts */
	uint64_t limit;
	bool json;
};

static const char *const sorts[] = {"count", "size", NULL};

#define TEXT_ROWS 25
#define FIELD(f)  .offset = offsetof(struct objects_cmd_opts, f)

static const struct opt opts[] = {
	{"json", 0, OPT_FLAG, FIELD(json), NULL, "as JSON, all types"},
	{"since", 0, OPT_STRING, FIELD(since), "FILE",
	 "show changes since this saved census (--json)"},
	{"diff", 0, OPT_DURATION, FIELD(diff_ns), "DURATION",
	 "take two censuses this far apart, show changes"},
	{"sort", 's', OPT_CHOICE, FIELD(sort), "count|size", "order of the rows (default: count)",
	 .choices = sorts},
	{"limit", 'l', OPT_U64, FIELD(limit), "N", "at most N rows (text: 25 if not given)",
	 .min = 1, .max = INT32_MAX},
	{"output", 'o', OPT_STRING, FIELD(output), "FILE", "output file (default: stdout)"},
	{NULL},
};

struct reports {
	const struct objects_report *now, *before;
	const struct objects_cmd_opts *opts;
};

static int write_reports(void *ctx, FILE *out, struct diag *diag)
{
	const struct reports *w = ctx;
	struct objects_report_opts o = {.sort = (enum objects_report_sort)w->opts->sort,
					.limit = w->opts->limit};
	int r;

	if (!o.limit && !w->opts->json)
		o.limit = TEXT_ROWS;
	r = (w->opts->json ? objects_report_write_json
			   : objects_report_write_text)(w->now, w->before, &o, out);
	return r < 0 ? diag_errno(diag, -r, "cannot write the objects") : 0;
}

static int take(struct objects *objects, pid_t pid, struct objects_report *ret, struct diag *diag)
{
	struct objects_report r = {.pid = pid};
	struct timespec now;
	int err;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	r.time_ns = (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
	snprintf(r.version, sizeof(r.version), "%s", objects_version(objects));
	snprintf(r.command, sizeof(r.command), "%s", objects_command(objects));
	err = objects_census(objects, &r.census, diag);
	if (err < 0)
		return err;
	*ret = r;
	return 0;
}

static void wait_ns(uint64_t ns)
{
	(void)nanosleep(&(struct timespec){.tv_sec = (time_t)(ns / 1000000000),
					   .tv_nsec = (long)(ns % 1000000000)},
			NULL);
}

static int run(const struct cmd_call *call, struct diag *diag)
{
	const struct objects_cmd_opts *o = call->opts;
	_cleanup_(objects_report_deinit) struct objects_report before = {0}, now = {0};
	_cleanup_(objects_freep) struct objects *objects = NULL;
	const bool two = o->since || o->diff_ns;
	pid_t pid;
	int r;

	if (o->since && o->diff_ns)
		return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "give only one of them",
				"--since and --diff are mutually exclusive");
	r = parse_pid(call->operands[0], &pid);
	if (r < 0)
		return diag_set(diag, r, PYP_EXIT_USAGE, "usage: pyprofctl objects PID",
				"invalid pid '%s'", call->operands[0]);
	if (o->since)
		r = objects_report_load(o->since, &before, diag);
	if (r == 0)
		r = objects_open(pid, &objects, diag);
	if (r == 0 && o->diff_ns) {
		r = take(objects, pid, &before, diag);
		if (r == 0)
			wait_ns(o->diff_ns);
	}
	if (r == 0)
		r = take(objects, pid, &now, diag);
	if (r < 0)
		return r;
	return saved_write(o->output, call->out, write_reports,
			   &(struct reports){&now, two ? &before : NULL, o}, diag);
}

const struct cmd cmd_objects = {
	.name = "objects",
	.operands = "PID",
	.summary = "Count the objects in a process by type (no daemon)",
	.opts = opts,
	.opts_size = sizeof(struct objects_cmd_opts),
	.min_operands = 1,
	.max_operands = 1,
	.run = run,
};
