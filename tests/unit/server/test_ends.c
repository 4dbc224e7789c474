// SPDX-License-Identifier: BSD-2-Clause
/* server/server, its start and its end: what waits, what is refused, what is still answered. */
#include "server/server.h"

#include <errno.h>
#include <unistd.h>

#include "fakes/sessions.c"
#include "harness/patience.h"
#include "harness/server_rig.h"
#include "harness/test.h"

TestSuite(server);

static bool written;

static int shutdown_in_two_steps(void *ctx, struct diag *diag)
{
	(void)ctx, (void)diag;
	server_refuse(rig.server);
	return written ? 0 : -EINPROGRESS;
}

/* A turn without an event takes 10 ms: the second for which clients may delay an end, 100 turns. */
#define FEW_TURNS 50

Test(server, drains)
{
	int idle, turns = 0;

	server_rig_start(0, 0);
	idle = server_rig_client(); /* an idle client must not delay the end */
	server_rig_turn();
	cr_assert(server_rig_ask("POST /v1/shutdown HTTP/1.1\r\nHost: x\r\n\r\n", NULL) == 200);
	for (; !rig.drained && turns < FEW_TURNS; turns++)
		server_rig_turn();
	cr_assert(rig.drained == 1, "it waits for the idle client");
	cr_assert(server_rig_ask(GET("/v1/ping"), NULL) == 503);
	close(idle);
	server_rig_stop();
}

/* A client that does not read its answer cannot keep the daemon from ending. */
Test(server, drains_in_spite_of_a_stuck_client)
{
	uint64_t begin;
	int fd;

	server_rig_start(0, 0);
	rig.sessions->funcs = 20000;
	fd = server_rig_request(GET("/v1/snapshot?format=json"));
	for (int i = 0; i < 10; i++)
		server_rig_turn();
	begin = server_rig_ms();
	server_rig_drain();
	server_rig_wait_drained();
	cr_assert(server_rig_ms() - begin >= 900);
	close(fd);
	server_rig_stop();
}

Test(server, ends_with_clients_connected)
{
	int fd;

	server_rig_start(0, 0);
	fd = server_rig_request("POST /v1/stop HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{");
	server_rig_turn();
	server_rig_stop();
	close(fd);
}

Test(server, drains_after_the_profile_that_is_being_written)
{
	char *reply;
	int fd;

	server_rig_start(0, 0);
	rig.sessions->funcs = 5000;
	fd = server_rig_request(GET("/v1/snapshot?format=json"));
	while (!rig.sessions->snapshots && !patience_over())
		server_rig_turn();
	server_rig_drain();
	reply = server_rig_get(fd, NULL);
	cr_assert(reply_status(reply) == 200 && strlen(reply) == reply_length(reply));
	server_rig_wait_drained();
	free(reply);
	close(fd);
	server_rig_stop();
}

/* It may or may not have been written by then; nothing leaks either way. */
Test(server, ends_while_a_profile_is_written)
{
	int fd;

	server_rig_start(0, 0);
	rig.sessions->funcs = 20000; /* some 4 MB */
	fd = server_rig_request(GET("/v1/snapshot?format=json"));
	for (int i = 0; i < 3 && !rig.sessions->snapshots; i++)
		server_rig_turn();
	server_rig_stop();
	close(fd);
}

Test(server, drain_cancels_attaching)
{
	int fd;

	server_rig_start(0, 0);
	rig.sessions->slow = 7;
	fd = server_rig_request(POST_TARGET_7);
	cr_assert(server_rig_ask(GET("/v1/ping"), NULL) == 200);
	server_rig_drain();
	server_rig_answered(fd, 503);
	server_rig_wait_drained();
	server_rig_stop();
}

/* While the daemon starts, a ping waits; the status is answered. */
Test(server, ping_waits_for_the_start)
{
	int fd;

	rig.opts.routes.starting = true;
	server_rig_start(0, 0);
	fd = server_rig_request(GET("/v1/ping"));
	cr_assert(server_rig_ask(GET("/v1/status"), NULL) == 200);
	server_rig_unanswered(fd);
	server_started(rig.server);
	server_rig_answered(fd, 200);
	server_rig_stop();
}

/* A server that fails to start refuses waiting requests. */
Test(server, start_that_fails)
{
	int fd;

	rig.opts.routes.starting = true;
	server_rig_start(0, 0);
	fd = server_rig_request(GET("/v1/ping"));
	cr_assert(server_rig_ask(GET("/v1/status"), NULL) == 200);
	server_rig_drain();
	server_rig_answered(fd, 503);
	server_rig_wait_drained();
	server_rig_stop();
}

/* The answer to a shutdown comes when results are written; until then nothing else is answered. */
Test(server, shutdown_waits_for_results)
{
	int fd;

	rig.opts.routes.shutdown = shutdown_in_two_steps;
	server_rig_start(0, 0);
	fd = server_rig_request("POST /v1/shutdown HTTP/1.1\r\nHost: x\r\n\r\n");
	for (int i = 0; i < 10; i++)
		server_rig_turn();
	cr_assert(server_rig_ask(GET("/v1/status"), NULL) == 503);
	server_rig_unanswered(fd);
	written = true;
	server_rig_drain();
	server_rig_answered(fd, 200);
	server_rig_wait_drained();
	server_rig_stop();
}
