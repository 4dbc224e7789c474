// SPDX-License-Identifier: BSD-2-Clause
/* ping and shutdown */
#include "cmd.h"

#include "client.h"

#define PING_TIMEOUT_S 5

static int run_ping(const struct cmd_call *call, struct diag *diag)
{
	_cleanup_(client_freep) struct client *c = NULL;
	int r;

	r = client_open(call->socket, &c, diag);
	if (r < 0)
		return r;
	client_set_timeout(c, PING_TIMEOUT_S);
	return client_request(c, "GET", "/v1/ping", NULL, NULL, diag);
}

/* Returns when the daemon has written its results and closed the socket. */
static int run_shutdown(const struct cmd_call *call, struct diag *diag)
{
	_cleanup_(client_freep) struct client *c = NULL;
	int r;

	r = client_open(call->socket, &c, diag);
	if (r == 0)
		r = client_request(c, "POST", "/v1/shutdown", NULL, NULL, diag);
	return r < 0 ? r : client_wait_closed(c, diag);
}

const struct cmd cmd_ping = {
	.name = "ping",
	.summary = "Check that the daemon is running (exit status)",
	.run = run_ping,
};

const struct cmd cmd_shutdown = {
	.name = "shutdown",
	.summary = "Stop the daemon; it writes the profile given by -o",
	.run = run_shutdown,
};
