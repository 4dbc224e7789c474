// SPDX-License-Identifier: BSD-2-Clause
/* attach, detach, start, stop, clear */
#include "cmd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/parse.h"
#include "client.h"
#include "forecast.h"
#include "pick.h"
#include "target_args.h"

struct attach_opts {
	bool no_start, yes;
	struct pick_opts pick;
	struct target_opts_given target;
};

/* clang-format off: rows are macros */
static const struct opt attach_opts[] = {
	PICK_OPTS(struct attach_opts, pick),
	{"no-start", 0, OPT_FLAG, offsetof(struct attach_opts, no_start), NULL,
	 "attach only; `start` begins recording"},
	{"yes", 'y', OPT_FLAG, offsetof(struct attach_opts, yes), NULL,
	 "consent to a high overhead: do not ask"},
	{NULL},
};
/* clang-format on */

/* start, stop, clear */
struct control_opts {
	pid_t pid; /* 0: all */
};

static const struct opt control_opts[] = {
	{"pid", 'p', OPT_PID, offsetof(struct control_opts, pid), "PID",
	 "only this process (default: all)"},
	{NULL},
};

static int operand_pid(const char *s, pid_t *ret, struct diag *diag)
{
	if (parse_pid(s, ret) == 0)
		return 0;
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "expected a process id",
			"'%s' is not a process id", s);
}

struct attaching {
	const struct attach_opts *o;
	const struct pick *all;
	struct client *c;
};

static int attach_pid(void *ctx, pid_t pid, struct diag *diag)
{
	const struct attaching *a = ctx;
	const struct attach_opts *o = a->o;
	_cleanup_(json_decrefp)
		json_t *body = json_pack("{s:i, s:b}", "pid", (int)pid, "start", !o->no_start);
	char late[FORECAST_LINE];
	int r = forecast_confirm(a->c, &(struct forecast_of){pid, &o->target, a->all, o->yes}, late,
				 diag);

	if (r < 0)
		return r;
	target_args_add(&o->target, body);
	r = client_request(a->c, "POST", "/v1/targets", body, NULL, diag);
	if (r == 0)
		fputs(late, stderr);
	return r;
}

static int run_attach(const struct cmd_call *call, struct diag *diag)
{
	const struct attach_opts *o = call->opts;
	_cleanup_(client_freep) struct client *c = NULL;
	struct pick pick;
	int r;

	r = target_args_check(&o->target, diag);
	if (r < 0)
		return r;
	r = pick_processes(&o->pick, call->operands, (size_t)call->noperands, o->target.opts.follow,
			   &pick, diag);
	if (!pick.n)
		return r;
	r = client_open(call->socket, &c, diag);
	for (size_t i = 0; c && i < pick.n; i++) {
		struct attaching a = {o, &pick, c};
		struct diag why = {0};

		if (pick_attach(&pick.v[i], c, attach_pid, &a, &why) < 0)
			pick_report(&why, diag);
		else
			fprintf(call->out, "process %d: attached%s\n", (int)pick.v[i].pid,
				o->no_start ? ", not started" : "");
		/* without a daemon all others would fail, too */
		if (why.exit == PYP_EXIT_NO_DAEMON)
			break;
	}
	return r < 0 ? r : diag->err;
}

static int run_detach(const struct cmd_call *call, struct diag *diag)
{
	_cleanup_(client_freep) struct client *c = NULL;
	pid_t pid = 0;
	int r;

	r = operand_pid(call->operands[0], &pid, diag);
	if (r == 0)
		r = client_open(call->socket, &c, diag);
	return r < 0 ? r : client_detach(c, pid, diag);
}

static int control(const struct cmd_call *call, const char *path, struct client **ret,
		   struct diag *diag)
{
	const struct control_opts *o = call->opts;
	_cleanup_(json_decrefp) json_t *body = json_object();
	int r;

	if (o->pid)
		json_object_set_new(body, "pid", json_integer(o->pid));
	r = client_open(call->socket, ret, diag);
	return r < 0 ? r : client_request(*ret, "POST", path, body, NULL, diag);
}

/* Log one line per target that could not be started, instead of the response's summary. */
static void report_failures(const json_t *failures, struct diag *diag)
{
	size_t n = json_array_size(failures);

	if (n < 2)
		return;
	diag_clear(diag);
	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ char *text = json_dumps(json_array_get(failures, i), JSON_COMPACT);
		struct diag why = {0};

		client_error(0, text, text ? strlen(text) : 0, &why);
		pick_report(&why, diag);
	}
}

static int run_start(const struct cmd_call *call, struct diag *diag)
{
	_cleanup_(client_freep) struct client *c = NULL;
	int r = control(call, "/v1/start", &c, diag);

	if (r < 0 && c)
		report_failures(json_object_get(client_last_error(c), "failures"), diag);
	return r;
}

static int run_stop(const struct cmd_call *call, struct diag *diag)
{
	_cleanup_(client_freep) struct client *c = NULL;

	return control(call, "/v1/stop", &c, diag);
}

static int run_clear(const struct cmd_call *call, struct diag *diag)
{
	_cleanup_(client_freep) struct client *c = NULL;

	return control(call, "/v1/clear", &c, diag);
}

#define PID_COMMAND(cmd_name, cmd_summary, cmd_run)                                                \
	{                                                                                          \
		.name = (cmd_name), .summary = (cmd_summary), .opts = control_opts,                \
		.opts_size = sizeof(struct control_opts), .run = (cmd_run),                        \
	}

const struct cmd cmd_start =
	PID_COMMAND("start", "Attach the probes and start recording", run_start);
const struct cmd cmd_stop = PID_COMMAND("stop", "Detach the probes, keep the data", run_stop);
const struct cmd cmd_clear = PID_COMMAND("clear", "Reset counts and times to zero", run_clear);

const struct cmd cmd_attach = {
	.name = "attach",
	.operands = "[PID|NAME]...",
	.summary = "Attach to processes and trace them",
	.opts = attach_opts,
	.opts_size = sizeof(struct attach_opts),
	TARGET_ARGS(struct attach_opts, target),
	.max_operands = CMD_ANY,
	.run = run_attach,
};

const struct cmd cmd_detach = {
	.name = "detach",
	.operands = "PID",
	.summary = "Detach from a process and forget its data",
	.min_operands = 1,
	.max_operands = 1,
	.run = run_detach,
};
