// SPDX-License-Identifier: BSD-2-Clause
/* server/server, requests: bytes on a socket to bytes on a socket. */
#include "server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "fakes/sessions.c"
#include "harness/server_rig.h"
#include "harness/test.h"

TestSuite(server);

static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

Test(server, answers)
{
	char *reply;
	int before, after;

	server_rig_start(0, 0);
	before = count_fds();
	cr_assert(server_rig_ask(GET("/v1/ping"), &reply) == 200);
	cr_assert(strstr(reply, "Content-Type: application/json\r\n"));
	cr_assert(strstr(reply, "\"program\": \"pyprofd\""));
	free(reply);
	cr_assert(server_rig_ask(GET("/v1/snapshot"), &reply) == 200);
	cr_assert(strstr(reply, "app.py:1(main)"));
	free(reply);
	cr_assert(server_rig_ask("POST /v1/targets HTTP/1.1\r\nHost: x\r\nContent-Length: "
				 "10\r\n\r\n{\"pid\": "
				 "7}",
				 &reply) == 201);
	cr_assert(strstr(reply, "Location: /v1/targets/7\r\n"));
	free(reply);
	cr_assert(server_rig_ask("PATCH /v1/ping HTTP/1.1\r\nHost: x\r\n\r\n", &reply) == 405);
	cr_assert(strstr(reply, "Allow: GET, HEAD\r\n"));
	free(reply);
	cr_assert(server_rig_ask(GET("/nope"), NULL) == 404);
	cr_assert(server_rig_ask(GET("/v1/ping%00"), NULL) == 400);
	for (int i = 0; i < 5; i++)
		server_rig_turn();
	after = count_fds();
	cr_assert(after == before, "%d descriptors, then %d", before, after);
	server_rig_stop();
}

Test(server, head_has_no_body)
{
	int fd;
	char *reply;
	bool eof;

	server_rig_start(0, 0);
	fd = server_rig_request("HEAD /v1/ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	reply = server_rig_get(fd, &eof);
	cr_assert(eof && reply_status(reply) == 200);
	cr_assert_str_eq(strstr(reply, "\r\n\r\n"), "\r\n\r\n");
	free(reply);
	close(fd);
	server_rig_stop();
}

Test(server, keep_alive_and_pipelining)
{
	int fd;

	server_rig_start(0, 0);
	fd = server_rig_client();
	for (int i = 0; i < 3; i++) {
		char *reply;

		server_rig_puts(fd, GET("/v1/ping"));
		reply = server_rig_get(fd, NULL);
		cr_assert(reply_status(reply) == 200);
		free(reply);
	}
	server_rig_puts(fd,
			GET("/v1/ping") GET("/nope") "POST /v1/stop HTTP/1.1\r\nHost: x\r\n"
						     "Content-Length: 2\r\n\r\n{}" GET("/metrics"));
	for (int i = 0; i < 4; i++) {
		const int expected[] = {200, 404, 200, 200};
		char *reply = server_rig_get(fd, NULL);

		cr_assert(reply_status(reply) == expected[i], "%d: %s", i, reply);
		free(reply);
	}
	cr_assert(rig.sessions->stops == 1);
	close(fd);
	server_rig_stop();
}

Test(server, malformed)
{
	const char *bad[] = {"\r\n\r\n\r\n\r\nnonsense\r\n\r\n",
			     "GET\r\n\r\n",
			     "GET /v1/ping\r\n\r\n",
			     "GET /v1/ping HTTP/9.9\r\n\r\n",
			     "GET /v1/ping HTTP/1.1\r\nHost x\r\n\r\n",
			     "POST /v1/stop HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
			     "POST /v1/stop HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
			     "POST /v1/stop HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
			     "\r\nzz\r\n",
			     "\x16\x03\x01\x02\xff\xff\xff\r\n\r\n"};

	server_rig_start(1, 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int status = server_rig_ask(bad[i], NULL);

		cr_assert(status != 200 && status != 500, "%zu: %d", i, status);
		cr_assert(server_rig_ask(GET("/v1/ping"), NULL) == 200);
	}
	cr_assert(rig.sessions->stops == 0);
	server_rig_stop();
}

Test(server, oversized_headers)
{
	size_t n = 256 * 1024;
	char *big = malloc(n + 1);
	char *reply;
	int fd, status;

	server_rig_start(2, 0);
	memset(big, 'a', n);
	big[n] = '\0';
	memcpy(big, "GET /", 5);
	fd = server_rig_request(big);
	reply = server_rig_get(fd, NULL);
	status = reply_status(reply);
	cr_assert(status == 0 || status == 414 || status == 431, "%d", status);
	free(reply);
	close(fd);

	memcpy(big, "GET /v1/ping HTTP/1.1\r\nX: ", 26);
	fd = server_rig_request(big);
	reply = server_rig_get(fd, NULL);
	status = reply_status(reply);
	cr_assert(status == 0 || status == 431 || status == 413, "%d", status);
	free(reply);
	close(fd);

	/* what still fits the connection's memory is refused by ourselves, as JSON */
	memcpy(big, "GET /aaaaaaaaaaaaaaaaaaaaa", 26);
	snprintf(big + REQUEST_URI_MAX + 100, 64, " HTTP/1.1\r\nHost: x\r\n\r\n");
	cr_assert(server_rig_ask(big, &reply) == 414);
	cr_assert(strstr(reply, "application/json"));
	free(reply);
	cr_assert(server_rig_ask(GET("/v1/ping"), NULL) == 200);
	free(big);
	server_rig_stop();
}

Test(server, oversized_body)
{
	size_t n = REQUEST_BODY_MAX + 1;
	char *reply, *body = malloc(n + 256), head[160];
	int fd;

	server_rig_start(2, 0);
	/* announced: refused at once */
	snprintf(head, sizeof(head),
		 "POST /v1/stop HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", n);
	cr_assert(server_rig_ask(head, &reply) == 413);
	cr_assert(strstr(reply, "application/json"));
	free(reply);
	cr_assert(server_rig_ask("POST /v1/stop HTTP/1.1\r\nHost: x\r\n"
				 "Content-Length: 18446744073709551617\r\n\r\n",
				 NULL) >= 400);

	/* not announced: listened to, then refused */
	fd = server_rig_request(
		"POST /v1/stop HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
	snprintf(head, sizeof(head), "%zx\r\n", n);
	server_rig_puts(fd, head);
	memset(body, ' ', n);
	server_rig_put(fd, body, n);
	server_rig_puts(fd, "\r\n0\r\n\r\n");
	reply = server_rig_get(fd, NULL);
	cr_assert(reply_status(reply) == 413, "%s", reply);
	free(reply);
	close(fd);
	cr_assert(rig.sessions->stops == 0);

	/* just as much as there may be */
	snprintf(head, sizeof(head),
		 "POST /v1/stop HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", n - 1);
	fd = server_rig_request(head);
	server_rig_put(fd, body, n - 1);
	reply = server_rig_get(fd, NULL);
	cr_assert(reply_status(reply) == 200, "%s", reply);
	free(reply);
	close(fd);
	free(body);
	server_rig_stop();
}

/* Endless bodies are cut off. */
Test(server, endless_body)
{
	char *reply, chunk[4096 + 16];
	bool eof = false;
	int fd;

	server_rig_start(2, 0);
	fd = server_rig_request(
		"POST /v1/stop HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
	snprintf(chunk, sizeof(chunk), "1000\r\n%4096s\r\n", "");
	for (int i = 0; i < 400; i++)
		server_rig_puts(fd, chunk);
	reply = server_rig_get(fd, &eof);
	cr_assert(eof && reply_status(reply) != 200);
	free(reply);
	close(fd);
	server_rig_stop();
}

Test(server, half_a_request_dies)
{
	const char *halves[] = {"", "GET", "GET /v1/ping HTTP/1.1\r\nHost: x\r\n",
				"POST /v1/stop HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"};
	int fds[4];

	server_rig_start(1, 0);
	for (size_t i = 0; i < 4; i++) {
		fds[i] = server_rig_request(halves[i]);
	}
	cr_assert(server_rig_ask(GET("/v1/ping"), NULL) == 200, "the others must not wait");
	for (size_t i = 0; i < 4; i++) {
		bool eof;
		char *reply = server_rig_get(fds[i], &eof);

		cr_assert(eof && reply_status(reply) != 200, "%zu: %s", i, reply);
		free(reply);
		close(fds[i]);
	}
	cr_assert(rig.sessions->stops == 0);
	server_rig_stop();
}
