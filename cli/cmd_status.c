// SPDX-License-Identifier: BSD-2-Clause
/* status: list the daemon's targets. */
#include "cmd.h"

#include <errno.h>

#include "base/terminal.h"
#include "client.h"
#include "render.h"

struct status_opts {
	bool json;
};

static const struct opt opts[] = {
	{"json", 0, OPT_FLAG, offsetof(struct status_opts, json), NULL,
	 "print the JSON of the HTTP API"},
	{NULL},
};

static int run(const struct cmd_call *call, struct diag *diag)
{
	const struct status_opts *o = call->opts;
	_cleanup_(client_freep) struct client *c = NULL;
	_cleanup_(json_decrefp) json_t *status = NULL;
	int r;

	r = client_open(call->socket, &c, diag);
	if (r == 0)
		r = client_request(c, "GET", "/v1/status", NULL, &status, diag);
	if (r < 0)
		return r;
	if (!o->json) {
		render_status(status, terminal_columns(call->out), call->out);
		return 0;
	}
	json_dumpf(status, call->out, JSON_INDENT(2));
	putc('\n', call->out);
	return 0;
}

const struct cmd cmd_status = {
	.name = "status",
	.summary = "Show traced processes and their health",
	.opts = opts,
	.opts_size = sizeof(struct status_opts),
	.run = run,
};
