// SPDX-License-Identifier: BSD-2-Clause
/*
 * server/server: bytes on a socket to bytes on a socket. The clients are raw sockets in the same
 * process; while they wait, the test turns the event loop.
 */
#include "server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>
#include <time.h>
#include <unistd.h>

#include "base/sockpath.h"
#include "fakes/sessions.c"
#include "harness/test.h"
#include "server/socket.h"

#define DEADLINE_MS 15000
#define REPLY_MAX   (64 << 20)

static char dir[64], path[96];
static struct sd_event *event;
static struct control_socket *sock;
static struct sessions *sessions;
static struct server *server;
static int drained;

static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void on_drained(void *ctx)
{
	(void)ctx;
	drained++;
}

static int on_shutdown(void *ctx, struct diag *diag)
{
	(void)ctx, (void)diag;
	return server_drain(server, on_drained, NULL);
}

static size_t least_rate;
static bool starting;
static int (*on_shutdown_fn)(void *ctx, struct diag *diag) = on_shutdown;

/* owner: whose uid may use it, besides root. */
static void start(unsigned int timeout_s, unsigned int max_connections)
{
	struct server_opts opts = {
		.routes = {.owner = geteuid(), .shutdown = on_shutdown_fn, .starting = starting},
		.timeout_s = timeout_s,
		.max_connections = max_connections,
		.least_rate = least_rate,
	};
	struct diag diag = {0};

	signal(SIGPIPE, SIG_IGN);
	snprintf(dir, sizeof(dir), "/tmp/pyprof-server-XXXXXX");
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
	assert_ok(sd_event_new(&event));
	assert_ok(control_socket_open(path, &sock, NULL));
	assert_ok(sessions_new(event, NULL, &sessions, NULL));
	assert_ok(sessions_attach(sessions, 42, true, NULL, NULL));
	opts.routes.sessions = sessions;
	assert_diag_ok(server_new(event, control_socket_fd(sock), &opts, &server, &diag), &diag);
}

static void stop(void)
{
	server_free(server);
	sessions_free(sessions);
	control_socket_free(sock);
	sd_event_unref(event);
	rmdir(dir);
	check_no_leaks();
}

TestSuite(server, .timeout = 60);

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void turn(void)
{
	cr_assert(sd_event_run(event, 10000) >= 0);
}

static int client(void)
{
	struct sockaddr_un addr;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_ok(sockpath_addr(path, &addr, NULL));
	assert_ok(connect(fd, (struct sockaddr *)&addr, sizeof(addr)));
	return fd;
}

/* Send all of it, turning the loop while the socket is full; stops when the server closes. */
static void put(int fd, const char *data, size_t n)
{
	uint64_t end = now_ms() + DEADLINE_MS;

	while (n && now_ms() < end) {
		ssize_t w = send(fd, data, n, MSG_NOSIGNAL);

		if (w < 0 && errno != EAGAIN)
			return;
		data += w < 0 ? 0 : w;
		n -= w < 0 ? 0 : (size_t)w;
		turn();
	}
	cr_assert(n == 0, "the server does not read");
}

static void puts_to(int fd, const char *s)
{
	put(fd, s, strlen(s));
}

/* Is there a whole reply in buf? Its length, or 0. */
static size_t whole_reply(const char *buf)
{
	const char *end = strstr(buf, "\r\n\r\n");
	const char *length = strstr(buf, "Content-Length: ");

	if (!end || !length || length > end)
		return 0;
	return (size_t)(end + 4 - buf) + strtoul(length + 16, NULL, 10);
}

/* One reply, or what came until the server closed. Owned. eof (may be NULL): it did close. */
static char *get(int fd, bool *eof)
{
	uint64_t end = now_ms() + DEADLINE_MS;
	char *buf = calloc(1, 4096);
	size_t n = 0, size = 4096;

	if (eof)
		*eof = false;
	while (now_ms() < end) {
		ssize_t r;
		size_t want = whole_reply(buf);

		if (want && n >= want && !eof)
			return buf;
		if (n + 1 == size) {
			size *= 2;
			cr_assert(size <= REPLY_MAX);
			buf = realloc(buf, size);
		}
		/* one byte too many would belong to the next reply */
		r = recv(fd, buf + n,
			 want && !eof ? (want - n < size - n - 1 ? want - n : size - n - 1)
			 : want	      ? size - n - 1
				      : 1,
			 0);
		if (r == 0 || (r < 0 && errno != EAGAIN)) {
			if (eof)
				*eof = true;
			return buf;
		}
		n += r > 0 ? (size_t)r : 0;
		buf[n] = '\0';
		if (r < 0)
			turn();
	}
	cr_assert_fail("no reply: %s", buf);
	return buf;
}

static int status_of(const char *reply)
{
	int status = 0;

	if (strncmp(reply, "HTTP/1.1 ", 9) == 0)
		status = (int)strtol(reply + 9, NULL, 10);
	return status;
}

/* A request on a connection of its own, which is closed. The reply's status. */
static int ask(const char *request, char **ret)
{
	int fd = client(), status;
	char *reply;

	puts_to(fd, request);
	reply = get(fd, NULL);
	close(fd);
	status = status_of(reply);
	if (ret)
		*ret = reply;
	else
		free(reply);
	return status;
}

#define GET(uri) "GET " uri " HTTP/1.1\r\nHost: x\r\n\r\n"

Test(server, answers)
{
	char *reply;
	int before, after;

	start(0, 0);
	before = count_fds();
	cr_assert(ask(GET("/v1/ping"), &reply) == 200);
	cr_assert(strstr(reply, "Content-Type: application/json\r\n"));
	cr_assert(strstr(reply, "\"program\": \"pyprofd\""));
	free(reply);
	cr_assert(ask(GET("/v1/snapshot"), &reply) == 200);
	cr_assert(strstr(reply, "app.py:1(main)"));
	free(reply);
	cr_assert(ask("POST /v1/targets HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{\"pid\": "
		      "7}",
		      &reply) == 201);
	cr_assert(strstr(reply, "Location: /v1/targets/7\r\n"));
	free(reply);
	cr_assert(ask("PATCH /v1/ping HTTP/1.1\r\nHost: x\r\n\r\n", &reply) == 405);
	cr_assert(strstr(reply, "Allow: GET, HEAD\r\n"));
	free(reply);
	cr_assert(ask(GET("/nope"), NULL) == 404);
	cr_assert(ask(GET("/v1/ping%00"), NULL) == 400);
	for (int i = 0; i < 5; i++)
		turn();
	after = count_fds();
	cr_assert(after == before, "%d descriptors, then %d", before, after);
	stop();
}

Test(server, head_has_no_body)
{
	int fd;
	char *reply;
	bool eof;

	start(0, 0);
	fd = client();
	puts_to(fd, "HEAD /v1/ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	reply = get(fd, &eof);
	cr_assert(eof && status_of(reply) == 200);
	cr_assert_str_eq(strstr(reply, "\r\n\r\n"), "\r\n\r\n");
	free(reply);
	close(fd);
	stop();
}

Test(server, keep_alive_and_pipelining)
{
	int fd;

	start(0, 0);
	fd = client();
	for (int i = 0; i < 3; i++) {
		char *reply;

		puts_to(fd, GET("/v1/ping"));
		reply = get(fd, NULL);
		cr_assert(status_of(reply) == 200);
		free(reply);
	}
	puts_to(fd, GET("/v1/ping") GET("/nope") "POST /v1/stop HTTP/1.1\r\nHost: x\r\n"
						 "Content-Length: 2\r\n\r\n{}" GET("/metrics"));
	for (int i = 0; i < 4; i++) {
		const int expected[] = {200, 404, 200, 200};
		char *reply = get(fd, NULL);

		cr_assert(status_of(reply) == expected[i], "%d: %s", i, reply);
		free(reply);
	}
	cr_assert(sessions->stops == 1);
	close(fd);
	stop();
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

	start(1, 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int status = ask(bad[i], NULL);

		cr_assert(status != 200 && status != 500, "%zu: %d", i, status);
		cr_assert(ask(GET("/v1/ping"), NULL) == 200);
	}
	cr_assert(sessions->stops == 0);
	stop();
}

Test(server, oversized_headers)
{
	size_t n = 256 * 1024;
	char *big = malloc(n + 1);
	char *reply;
	int fd, status;

	start(2, 0);
	memset(big, 'a', n);
	big[n] = '\0';
	memcpy(big, "GET /", 5);
	fd = client();
	puts_to(fd, big);
	reply = get(fd, NULL);
	status = status_of(reply);
	cr_assert(status == 0 || status == 414 || status == 431, "%d", status);
	free(reply);
	close(fd);

	memcpy(big, "GET /v1/ping HTTP/1.1\r\nX: ", 26);
	fd = client();
	puts_to(fd, big);
	reply = get(fd, NULL);
	status = status_of(reply);
	cr_assert(status == 0 || status == 431 || status == 413, "%d", status);
	free(reply);
	close(fd);

	/* what still fits the connection's memory is refused by ourselves, as JSON */
	memcpy(big, "GET /aaaaaaaaaaaaaaaaaaaaa", 26);
	snprintf(big + REQUEST_URI_MAX + 100, 64, " HTTP/1.1\r\nHost: x\r\n\r\n");
	cr_assert(ask(big, &reply) == 414);
	cr_assert(strstr(reply, "application/json"));
	free(reply);
	cr_assert(ask(GET("/v1/ping"), NULL) == 200);
	free(big);
	stop();
}

Test(server, oversized_body)
{
	size_t n = REQUEST_BODY_MAX + 1;
	char *reply, *body = malloc(n + 256), head[160];
	int fd;

	start(2, 0);
	/* announced: refused at once */
	snprintf(head, sizeof(head),
		 "POST /v1/stop HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", n);
	cr_assert(ask(head, &reply) == 413);
	cr_assert(strstr(reply, "application/json"));
	free(reply);
	cr_assert(ask("POST /v1/stop HTTP/1.1\r\nHost: x\r\n"
		      "Content-Length: 18446744073709551617\r\n\r\n",
		      NULL) >= 400);

	/* not announced: listened to, then refused */
	fd = client();
	puts_to(fd, "POST /v1/stop HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
	snprintf(head, sizeof(head), "%zx\r\n", n);
	puts_to(fd, head);
	memset(body, ' ', n);
	put(fd, body, n);
	puts_to(fd, "\r\n0\r\n\r\n");
	reply = get(fd, NULL);
	cr_assert(status_of(reply) == 413, "%s", reply);
	free(reply);
	close(fd);
	cr_assert(sessions->stops == 0);

	/* just as much as there may be */
	snprintf(head, sizeof(head),
		 "POST /v1/stop HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", n - 1);
	fd = client();
	puts_to(fd, head);
	put(fd, body, n - 1);
	reply = get(fd, NULL);
	cr_assert(status_of(reply) == 200, "%s", reply);
	free(reply);
	close(fd);
	free(body);
	stop();
}

/* Endless bodies are cut off. */
Test(server, endless_body)
{
	char *reply, chunk[4096 + 16];
	bool eof = false;
	int fd;

	start(2, 0);
	fd = client();
	puts_to(fd, "POST /v1/stop HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
	snprintf(chunk, sizeof(chunk), "1000\r\n%4096s\r\n", "");
	for (int i = 0; i < 400; i++)
		puts_to(fd, chunk);
	reply = get(fd, &eof);
	cr_assert(eof && status_of(reply) != 200);
	free(reply);
	close(fd);
	stop();
}

/* A profile waits until the rings are read; others are answered meanwhile. */
Test(server, one_that_waits_keeps_nobody_waiting)
{
	char *reply;
	int fd;

	start(0, 0);
	sessions->behind = true;
	fd = client();
	puts_to(fd, GET("/v1/snapshot"));
	for (int i = 0; i < 10; i++)
		cr_assert(ask(GET("/v1/status"), NULL) == 200);
	cr_assert(recv(fd, &(char){0}, 1, 0) < 0 && errno == EAGAIN, "it was answered");
	sessions->behind = false;
	reply = get(fd, NULL);
	cr_assert(status_of(reply) == 200, "%s", reply);
	free(reply);
	/* its connection goes on; one that is waiting when the server ends is no leak */
	sessions->behind = true;
	puts_to(fd, GET("/v1/snapshot"));
	cr_assert(ask(GET("/v1/ping"), NULL) == 200);
	stop();
	close(fd);
}

Test(server, half_a_request_dies)
{
	const char *halves[] = {"", "GET", "GET /v1/ping HTTP/1.1\r\nHost: x\r\n",
				"POST /v1/stop HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"};
	int fds[4];

	start(1, 0);
	for (size_t i = 0; i < 4; i++) {
		fds[i] = client();
		puts_to(fds[i], halves[i]);
	}
	cr_assert(ask(GET("/v1/ping"), NULL) == 200, "the others must not wait");
	for (size_t i = 0; i < 4; i++) {
		bool eof;
		char *reply = get(fds[i], &eof);

		cr_assert(eof && status_of(reply) != 200, "%zu: %s", i, reply);
		free(reply);
		close(fds[i]);
	}
	cr_assert(sessions->stops == 0);
	stop();
}

Test(server, client_disconnects_mid_reply)
{
	start(0, 0);
	sessions->funcs = 20000;
	for (int i = 0; i < 3; i++) {
		int fd = client();
		char buf[100];

		puts_to(fd, GET("/v1/snapshot?format=json"));
		for (int j = 0; j < 20 && recv(fd, buf, sizeof(buf), 0) <= 0; j++)
			turn();
		close(fd);
	}
	cr_assert(ask(GET("/v1/ping"), NULL) == 200);
	stop();
}

Test(server, large_answers_to_two_clients_at_once)
{
	int a, b;
	char *ra, *rb;

	start(0, 0);
	sessions->funcs = 20000;
	a = client();
	b = client();
	puts_to(a, GET("/v1/snapshot?format=json"));
	puts_to(b, GET("/v1/snapshot?format=json"));
	cr_assert(ask(GET("/v1/ping"), NULL) == 200, "a third one is answered in between");
	rb = get(b, NULL);
	ra = get(a, NULL);
	cr_assert(status_of(ra) == 200 && status_of(rb) == 200);
	cr_assert(strlen(ra) > 1000000 && strlen(ra) == whole_reply(ra));
	cr_assert(strlen(rb) == whole_reply(rb));
	free(ra);
	free(rb);
	close(a);
	close(b);
	stop();
}

/* Has the server closed it? A look does not read anything. */
static bool is_closed(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLRDHUP};

	return poll(&p, 1, 0) > 0 && p.revents & (POLLRDHUP | POLLHUP);
}

static void answers_metric(const char *expected)
{
	char *reply;

	cr_assert(ask(GET("/metrics"), &reply) == 200);
	cr_assert(strstr(reply, expected), "no %s in %s", expected, reply);
	free(reply);
}

static int asks_much(void)
{
	int fd;

	sessions->funcs = 100000; /* some 20 MB */
	fd = client();
	puts_to(fd, GET("/v1/snapshot?format=json"));
	return fd;
}

Test(server, unread_answer_is_dropped)
{
	uint64_t end;
	int fd;

	start(1, 0);
	fd = asks_much();
	end = now_ms() + DEADLINE_MS;
	while (!is_closed(fd)) {
		cr_assert(now_ms() < end, "it is still served");
		turn();
	}
	answers_metric("pyprofd_dropped_clients_total{reason=\"unread\"} 1\n");
	answers_metric("pyprofd_dropped_clients_total{reason=\"late\"} 0\n");
	close(fd);
	stop();
}

/* It reads on and on, each piece in time, but would take minutes. */
Test(server, slowly_read_answer_is_dropped)
{
	static char piece[32 * 1024];
	uint64_t end;
	int fd;

	least_rate = 16 << 20;
	start(1, 0);
	fd = asks_much();
	end = now_ms() + DEADLINE_MS;
	while (!is_closed(fd)) {
		cr_assert(now_ms() < end, "it is still served");
		(void)!recv(fd, piece, sizeof(piece), 0);
		poll(NULL, 0, 50);
		assert_ok(sd_event_run(event, 0) < 0);
	}
	answers_metric("pyprofd_dropped_clients_total{reason=\"unread\"} 1\n");
	close(fd);
	stop();
}

/* Its answer waits: it makes room at once all the same, and what it asked for is not done. */
Test(server, one_that_waits_gives_way)
{
	int fds[60];
	char *reply;
	uint64_t end;

	start(0, 32); /* no user may have more than 24 of them */
	sessions->behind = true;
	for (int i = 0; i < 60; i++) {
		fds[i] = client();
		puts_to(fds[i], "POST /v1/clear HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
		for (int j = 0; j < 5; j++)
			turn(); /* until it waits: before that it is the first to give way */
	}
	end = now_ms() + DEADLINE_MS;
	for (int i = 0; i < 30; i++)
		while (!is_closed(fds[i])) {
			cr_assert(now_ms() < end, "%d still waits", i);
			turn();
		}
	cr_assert(sessions->clears == 0);
	sessions->behind = false;
	reply = get(fds[59], NULL);
	cr_assert(status_of(reply) == 200, "%s", reply);
	free(reply);
	cr_assert(sessions->clears > 0 && sessions->clears <= 24, "%d", sessions->clears);
	for (int i = 0; i < 60; i++)
		close(fds[i]);
	stop();
}

/* One more than there may be waits until another one leaves. */
Test(server, too_many_connections)
{
	char *reply;
	int a, b, c;

	start(0, 2);
	a = client();
	b = client();
	puts_to(a, GET("/v1/ping"));
	puts_to(b, GET("/v1/ping"));
	free(get(a, NULL));
	free(get(b, NULL));
	c = client();
	puts_to(c, GET("/v1/ping"));
	for (int i = 0; i < 10; i++)
		turn();
	close(a);
	reply = get(c, NULL);
	cr_assert(status_of(reply) == 200);
	free(reply);
	close(b);
	close(c);
	stop();
}

Test(server, drains)
{
	uint64_t begin;
	int idle;

	start(0, 0);
	idle = client(); /* one that asks nothing must not delay the end */
	turn();
	begin = now_ms();
	cr_assert(ask("POST /v1/shutdown HTTP/1.1\r\nHost: x\r\n\r\n", NULL) == 200);
	while (!drained && now_ms() < begin + DEADLINE_MS)
		turn();
	cr_assert(drained == 1);
	cr_assert(now_ms() - begin < 900, "%lu ms", now_ms() - begin);
	cr_assert(ask(GET("/v1/ping"), NULL) == 503);
	close(idle);
	stop();
}

/* A client that does not read its answer cannot keep the daemon from ending. */
Test(server, drains_in_spite_of_a_stuck_client)
{
	uint64_t begin;
	int fd;

	start(0, 0);
	sessions->funcs = 20000;
	fd = client();
	puts_to(fd, GET("/v1/snapshot?format=json"));
	for (int i = 0; i < 10; i++)
		turn();
	begin = now_ms();
	assert_ok(server_drain(server, on_drained, NULL));
	while (!drained && now_ms() < begin + DEADLINE_MS)
		turn();
	cr_assert(drained == 1);
	cr_assert(now_ms() - begin >= 900);
	close(fd);
	stop();
}

Test(server, ends_with_clients_connected)
{
	int fd;

	start(0, 0);
	fd = client();
	puts_to(fd, "POST /v1/stop HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{");
	turn();
	stop();
	close(fd);
}

/* One profile is written at a time: the others wait, and clients that left hold nobody up. */
Test(server, profiles_are_written_in_turn)
{
	int fds[6];

	start(0, 0);
	sessions->funcs = 5000;
	for (size_t i = 0; i < 6; i++) {
		fds[i] = client();
		puts_to(fds[i], GET("/v1/snapshot?format=json"));
	}
	close(fds[0]);
	close(fds[2]);
	cr_assert(ask(GET("/v1/ping"), NULL) == 200);
	for (size_t i = 1; i < 6; i += i == 1 ? 2 : 1) {
		char *reply = get(fds[i], NULL);

		cr_assert(status_of(reply) == 200, "%zu", i);
		free(reply);
		close(fds[i]);
	}
	stop();
}

Test(server, drains_after_the_profile_that_is_being_written)
{
	uint64_t end = now_ms() + DEADLINE_MS;
	char *reply;
	int fd;

	start(0, 0);
	sessions->funcs = 5000;
	fd = client();
	puts_to(fd, GET("/v1/snapshot?format=json"));
	while (!sessions->snapshots && now_ms() < end)
		turn();
	assert_ok(server_drain(server, on_drained, NULL));
	reply = get(fd, NULL);
	cr_assert(status_of(reply) == 200 && strlen(reply) == whole_reply(reply));
	while (!drained && now_ms() < end)
		turn();
	cr_assert(drained == 1);
	free(reply);
	close(fd);
	stop();
}

/* It may or may not have been written by then; nothing leaks either way. */
Test(server, ends_while_a_profile_is_written)
{
	int fd;

	start(0, 0);
	fd = asks_much();
	for (int i = 0; i < 3 && !sessions->snapshots; i++)
		turn();
	stop();
	close(fd);
}

#define POST_TARGET_7                                                                              \
	"POST /v1/targets HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{\"pid\": 7}"

static void is_answered(int fd, int status)
{
	char *reply = get(fd, NULL);

	cr_assert(status_of(reply) == status, "%s", reply);
	free(reply);
	close(fd);
}

/* An attach that takes long keeps nobody waiting, shows in the status, and ends when detached. */
Test(server, attaching_shows_and_is_cancelled)
{
	char *reply;
	int fds[2];

	start(0, 0);
	sessions->slow = 7;
	for (int i = 0; i < 2; i++) {
		fds[i] = client();
		puts_to(fds[i], POST_TARGET_7);
	}
	cr_assert(ask(GET("/v1/status"), &reply) == 200);
	cr_assert(strstr(reply, "\"pid\": 7,\n      \"step\": \"planning\""), "%s", reply);
	free(reply);
	cr_assert(recv(fds[0], &(char){0}, 1, 0) < 0 && errno == EAGAIN, "it was answered");
	cr_assert(ask("DELETE /v1/targets/7 HTTP/1.1\r\nHost: x\r\n\r\n", NULL) == 200);
	for (int i = 0; i < 2; i++)
		is_answered(fds[i], 404);
	cr_assert(ask(POST_TARGET_7, NULL) == 201, "a later request is not cancelled");
	cr_assert(ask(GET("/v1/status"), &reply) == 200);
	cr_assert(strstr(reply, "\"attaching\": []"), "%s", reply);
	free(reply);
	stop();
}

Test(server, drain_cancels_attaching)
{
	uint64_t end = now_ms() + DEADLINE_MS;
	int fd;

	start(0, 0);
	sessions->slow = 7;
	fd = client();
	puts_to(fd, POST_TARGET_7);
	cr_assert(ask(GET("/v1/ping"), NULL) == 200);
	assert_ok(server_drain(server, on_drained, NULL));
	is_answered(fd, 503);
	while (!drained && now_ms() < end)
		turn();
	cr_assert(drained == 1);
	stop();
}

/* While the daemon starts, a ping waits; the status is answered. */
Test(server, ping_waits_for_the_start)
{
	int fd;

	starting = true;
	start(0, 0);
	fd = client();
	puts_to(fd, GET("/v1/ping"));
	cr_assert(ask(GET("/v1/status"), NULL) == 200);
	cr_assert(recv(fd, &(char){0}, 1, 0) < 0 && errno == EAGAIN, "it was answered");
	server_started(server);
	is_answered(fd, 200);
	stop();
}

/* One that is never ready refuses what waits. */
Test(server, start_that_fails)
{
	uint64_t end = now_ms() + DEADLINE_MS;
	int fd;

	starting = true;
	start(0, 0);
	fd = client();
	puts_to(fd, GET("/v1/ping"));
	cr_assert(ask(GET("/v1/status"), NULL) == 200);
	assert_ok(server_drain(server, on_drained, NULL));
	is_answered(fd, 503);
	while (!drained && now_ms() < end)
		turn();
	cr_assert(drained == 1);
	stop();
}

static bool written;

static int shutdown_in_two_steps(void *ctx, struct diag *diag)
{
	(void)ctx, (void)diag;
	server_refuse(server);
	return written ? 0 : -EINPROGRESS;
}

/* The answer to a shutdown comes when results are written; until then nothing else is answered. */
Test(server, shutdown_waits_for_results)
{
	uint64_t end = now_ms() + DEADLINE_MS;
	int fd;

	on_shutdown_fn = shutdown_in_two_steps;
	start(0, 0);
	fd = client();
	puts_to(fd, "POST /v1/shutdown HTTP/1.1\r\nHost: x\r\n\r\n");
	for (int i = 0; i < 10; i++)
		turn();
	cr_assert(ask(GET("/v1/status"), NULL) == 503);
	cr_assert(recv(fd, &(char){0}, 1, 0) < 0 && errno == EAGAIN, "it was answered");
	written = true;
	assert_ok(server_drain(server, on_drained, NULL));
	is_answered(fd, 200);
	while (!drained && now_ms() < end)
		turn();
	cr_assert(drained == 1);
	stop();
}
