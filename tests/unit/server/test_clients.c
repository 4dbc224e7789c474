// SPDX-License-Identifier: BSD-2-Clause
/* server/server, clients that wait, that are slow, that leave, and more of them than are allowed. */
#include "server/server.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "fakes/sessions.c"
#include "harness/patience.h"
#include "harness/server_rig.h"
#include "harness/test.h"

TestSuite(server);

/* Has the server closed it? A look does not read anything. */
static bool is_closed(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLRDHUP};

	return poll(&p, 1, 0) > 0 && p.revents & (POLLRDHUP | POLLHUP);
}

static void answers_metric(const char *expected)
{
	char *reply;

	cr_assert(server_rig_ask(GET("/metrics"), &reply) == 200);
	cr_assert(strstr(reply, expected), "no %s in %s", expected, reply);
	free(reply);
}

/* A profile waits until the rings are read; others are answered meanwhile. */
Test(server, a_waiting_client_blocks_no_other)
{
	char *reply;
	int fd;

	server_rig_start(0, 0);
	rig.sessions->behind = true;
	fd = server_rig_request(GET("/v1/snapshot"));
	for (int i = 0; i < 10; i++)
		cr_assert(server_rig_ask(GET("/v1/status"), NULL) == 200);
	server_rig_unanswered(fd);
	rig.sessions->behind = false;
	reply = server_rig_get(fd, NULL);
	cr_assert(reply_status(reply) == 200, "%s", reply);
	free(reply);
	/* its connection goes on; one that is waiting when the server ends is no leak */
	rig.sessions->behind = true;
	server_rig_puts(fd, GET("/v1/snapshot"));
	cr_assert(server_rig_ask(GET("/v1/ping"), NULL) == 200);
	server_rig_stop();
	close(fd);
}

Test(server, client_disconnects_mid_reply)
{
	server_rig_start(0, 0);
	rig.sessions->funcs = 20000;
	for (int i = 0; i < 3; i++) {
		int fd = server_rig_client();
		char buf[100];

		server_rig_puts(fd, GET("/v1/snapshot?format=json"));
		for (int j = 0; j < 20 && recv(fd, buf, sizeof(buf), 0) <= 0; j++)
			server_rig_turn();
		close(fd);
	}
	cr_assert(server_rig_ask(GET("/v1/ping"), NULL) == 200);
	server_rig_stop();
}

Test(server, large_answers_to_two_clients_at_once)
{
	int a, b;
	char *ra, *rb;

	server_rig_start(0, 0);
	rig.sessions->funcs = 20000;
	a = server_rig_client();
	b = server_rig_client();
	server_rig_puts(a, GET("/v1/snapshot?format=json"));
	server_rig_puts(b, GET("/v1/snapshot?format=json"));
	cr_assert(server_rig_ask(GET("/v1/ping"), NULL) == 200,
		  "a third one is answered in between");
	rb = server_rig_get(b, NULL);
	ra = server_rig_get(a, NULL);
	cr_assert(reply_status(ra) == 200 && reply_status(rb) == 200);
	cr_assert(strlen(ra) > 1000000 && strlen(ra) == reply_length(ra));
	cr_assert(strlen(rb) == reply_length(rb));
	free(ra);
	free(rb);
	close(a);
	close(b);
	server_rig_stop();
}

Test(server, unread_answer_is_dropped)
{
	int fd;

	server_rig_start(1, 0);
	rig.sessions->funcs = 20000; /* some 4 MB */
	fd = server_rig_request(GET("/v1/snapshot?format=json"));
	while (!is_closed(fd)) {
		cr_assert(!patience_over(), "it is still served");
		server_rig_turn();
	}
	answers_metric("pyprofd_dropped_clients_total{reason=\"unread\"} 1\n");
	answers_metric("pyprofd_dropped_clients_total{reason=\"late\"} 0\n");
	close(fd);
	server_rig_stop();
}

/* It reads on and on, each piece in time, but would take several times as long as it may. */
Test(server, slowly_read_answer_is_dropped)
{
	static char piece[32 * 1024];
	int fd;

	rig.opts.least_rate = 16 << 20;
	server_rig_start(1, 0);
	rig.sessions->funcs = 20000; /* some 4 MB */
	fd = server_rig_request(GET("/v1/snapshot?format=json"));
	while (!is_closed(fd)) {
		cr_assert(!patience_over(), "it is still served");
		(void)!recv(fd, piece, sizeof(piece), 0);
		patience_pass(50);
		assert_ok(sd_event_run(rig.event, 0) < 0);
	}
	answers_metric("pyprofd_dropped_clients_total{reason=\"unread\"} 1\n");
	close(fd);
	server_rig_stop();
}

/* It sends a byte now and then, while others come and go: these do not put off its end. */
Test(server, late_request_is_dropped_while_others_connect)
{
	int fd;

	server_rig_start(1, 0);
	fd = server_rig_request("GET /v1/ping HTTP/1.1\r\nX: ");
	while (!is_closed(fd)) {
		cr_assert(!patience_over(), "it still has its place");
		(void)!send(fd, "x", 1, MSG_NOSIGNAL);
		cr_assert(server_rig_ask(GET("/v1/ping"), NULL) == 200);
		patience_pass(PATIENCE_MOMENT_MS);
	}
	answers_metric("pyprofd_dropped_clients_total{reason=\"late\"} 1\n");
	close(fd);
	server_rig_stop();
}

/* The daemon did not run for longer than a request may take: what was sent meanwhile is in time. */
Test(server, a_late_daemon_drops_no_request)
{
	int fd;

	server_rig_start(1, 0);
	fd = server_rig_request("GET /v1/ping HTTP/1.1\r\n");
	for (int i = 0; i < 20; i++)
		server_rig_turn();
	server_rig_puts(fd, "Host: localhost\r\n");
	patience_pass(2500);
	server_rig_turn();
	server_rig_puts(fd, "\r\n");
	server_rig_answered(fd, 200);
	answers_metric("pyprofd_dropped_clients_total{reason=\"late\"} 0\n");
	close(fd);
	server_rig_stop();
}

/* Its answer waits: it makes room at once all the same, and what it asked for is not done. */
Test(server, a_waiting_client_gives_way)
{
	int fds[60];
	char *reply;

	server_rig_start(0, 32); /* no user may have more than 24 of them */
	rig.sessions->behind = true;
	for (int i = 0; i < 60; i++) {
		fds[i] = server_rig_request(
			"POST /v1/clear HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
		for (int j = 0; j < 5; j++)
			server_rig_turn(); /* until it waits: before that it is the first to give way */
	}
	for (int i = 0; i < 30; i++)
		while (!is_closed(fds[i])) {
			cr_assert(!patience_over(), "%d still waits", i);
			server_rig_turn();
		}
	cr_assert(rig.sessions->clears == 0);
	rig.sessions->behind = false;
	reply = server_rig_get(fds[59], NULL);
	cr_assert(reply_status(reply) == 200, "%s", reply);
	free(reply);
	cr_assert(rig.sessions->clears > 0 && rig.sessions->clears <= 24, "%d",
		  rig.sessions->clears);
	for (int i = 0; i < 60; i++)
		close(fds[i]);
	server_rig_stop();
}

/* One more than there may be waits until another one leaves. */
Test(server, too_many_connections)
{
	char *reply;
	int a, b, c;

	server_rig_start(0, 2);
	a = server_rig_client();
	b = server_rig_client();
	server_rig_puts(a, GET("/v1/ping"));
	server_rig_puts(b, GET("/v1/ping"));
	free(server_rig_get(a, NULL));
	free(server_rig_get(b, NULL));
	c = server_rig_request(GET("/v1/ping"));
	for (int i = 0; i < 10; i++)
		server_rig_turn();
	close(a);
	reply = server_rig_get(c, NULL);
	cr_assert(reply_status(reply) == 200);
	free(reply);
	close(b);
	close(c);
	server_rig_stop();
}

/* One profile is written at a time: the others wait, and clients that left hold nobody up. */
Test(server, profiles_are_written_in_turn)
{
	int fds[6];

	server_rig_start(0, 0);
	rig.sessions->funcs = 5000;
	for (size_t i = 0; i < 6; i++) {
		fds[i] = server_rig_request(GET("/v1/snapshot?format=json"));
	}
	close(fds[0]);
	close(fds[2]);
	cr_assert(server_rig_ask(GET("/v1/ping"), NULL) == 200);
	for (size_t i = 1; i < 6; i += i == 1 ? 2 : 1) {
		char *reply = server_rig_get(fds[i], NULL);

		cr_assert(reply_status(reply) == 200, "%zu", i);
		free(reply);
		close(fds[i]);
	}
	server_rig_stop();
}

/* An attach that takes long keeps nobody waiting, shows in the status, and ends when detached. */
Test(server, attaching_shows_and_is_cancelled)
{
	char *reply;
	int fds[2];

	server_rig_start(0, 0);
	rig.sessions->slow = 7;
	for (int i = 0; i < 2; i++) {
		fds[i] = server_rig_request(POST_TARGET_7);
	}
	cr_assert(server_rig_ask(GET("/v1/status"), &reply) == 200);
	cr_assert(strstr(reply, "\"pid\": 7,\n      \"step\": \"planning\""), "%s", reply);
	free(reply);
	server_rig_unanswered(fds[0]);
	cr_assert(server_rig_ask("DELETE /v1/targets/7 HTTP/1.1\r\nHost: x\r\n\r\n", NULL) == 200);
	for (int i = 0; i < 2; i++)
		server_rig_answered(fds[i], 404);
	cr_assert(server_rig_ask(POST_TARGET_7, NULL) == 201, "a later request is not cancelled");
	cr_assert(server_rig_ask(GET("/v1/status"), &reply) == 200);
	cr_assert(strstr(reply, "\"attaching\": []"), "%s", reply);
	free(reply);
	server_rig_stop();
}
