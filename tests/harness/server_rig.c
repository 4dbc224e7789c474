// SPDX-License-Identifier: BSD-2-Clause
#include "harness/server_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sockpath.h"
#include "harness/patience.h"
#include "harness/temp_dir.h"
#include "harness/test.h"
#include "server/socket.h"
#include "session/session.h"

#define REPLY_MAX (64 << 20)

struct server_rig rig;

uint64_t server_rig_ms(void)
{
	return clock_monotonic_ns() / 1000000;
}

static void on_drained(void *ctx)
{
	(void)ctx;
	rig.drained++;
}

static int on_shutdown(void *ctx, struct diag *diag)
{
	(void)ctx, (void)diag;
	return server_drain(rig.server, on_drained, NULL);
}

void server_rig_drain(void)
{
	assert_ok(server_drain(rig.server, on_drained, NULL));
}

void server_rig_wait_drained(void)
{

	while (!rig.drained && !patience_over())
		server_rig_turn();
	cr_assert(rig.drained == 1);
}

void server_rig_start(unsigned int timeout_s, unsigned int max_connections)
{
	struct server_opts *opts = &rig.opts;
	struct diag diag = {0};

	signal(SIGPIPE, SIG_IGN);
	snprintf(rig.dir, sizeof(rig.dir), "/tmp/pyprof-server-XXXXXX");
	temp_dir_make(rig.dir);
	snprintf(rig.path, sizeof(rig.path), "%s/s", rig.dir);
	assert_ok(sd_event_new(&rig.event));
	assert_ok(control_socket_open(rig.path, (gid_t)-1, &rig.socket, NULL));
	assert_ok(sessions_new(rig.event, NULL, &rig.sessions, NULL));
	assert_ok(sessions_attach(rig.sessions, 42, true, NULL, NULL));
	assert_diag_ok(http_listener_open(&rig.http_opts, &rig.http, &diag), &diag);
	opts->http = rig.http;
	opts->timeout_s = timeout_s;
	opts->max_connections = max_connections;
	opts->routes.owner = geteuid(); /* the user that may use it, besides root */
	opts->routes.readers = PEER_NO_GROUP;
	opts->routes.sessions = rig.sessions;
	if (!opts->routes.shutdown)
		opts->routes.shutdown = on_shutdown;
	assert_diag_ok(server_new(rig.event, control_socket_fd(rig.socket), opts, &rig.server,
				  &diag),
		       &diag);
}

void server_rig_stop(void)
{
	server_free(rig.server);
	sessions_free(rig.sessions);
	control_socket_free(rig.socket);
	http_listener_free(rig.http);
	sd_event_unref(rig.event);
	temp_dir_delete(rig.dir);
	check_no_leaks();
}

void server_rig_turn(void)
{
	cr_assert(sd_event_run(rig.event, 10000) >= 0);
}

int server_rig_client(void)
{
	struct sockaddr_un addr;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_ok(sockpath_addr(rig.path, &addr, NULL));
	assert_ok(connect(fd, (struct sockaddr *)&addr, sizeof(addr)));
	return fd;
}

int server_rig_http_client(void)
{
	struct address a;
	int fd;

	assert_ok(address_parse(rig.http->text, &a, NULL));
	fd = socket(a.sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_ok(connect(fd, (struct sockaddr *)&a.sa, a.n));
	assert_ok(fcntl(fd, F_SETFL, O_NONBLOCK));
	return fd;
}

void server_rig_put(int fd, const char *data, size_t n)
{

	while (n && !patience_over()) {
		ssize_t w = send(fd, data, n, MSG_NOSIGNAL);

		if (w < 0 && errno != EAGAIN)
			return;
		data += w < 0 ? 0 : w;
		n -= w < 0 ? 0 : (size_t)w;
		server_rig_turn();
	}
	cr_assert(n == 0, "the server does not read");
}

void server_rig_puts(int fd, const char *s)
{
	server_rig_put(fd, s, strlen(s));
}

int server_rig_request(const char *request)
{
	int fd = server_rig_client();

	server_rig_puts(fd, request);
	return fd;
}

int server_rig_http_request(const char *request)
{
	int fd = server_rig_http_client();

	server_rig_puts(fd, request);
	return fd;
}

size_t reply_length(const char *buf)
{
	const char *end = strstr(buf, "\r\n\r\n");
	const char *length = strstr(buf, "Content-Length: ");

	if (!end || !length || length > end)
		return 0;
	return (size_t)(end + 4 - buf) + strtoul(length + 16, NULL, 10);
}

char *server_rig_get(int fd, bool *eof)
{
	char *buf = calloc(1, 4096);
	size_t n = 0, size = 4096;

	if (eof)
		*eof = false;
	while (!patience_over()) {
		ssize_t r;
		size_t want = reply_length(buf);

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
			server_rig_turn();
	}
	cr_assert_fail("no reply: %s", buf);
	return buf;
}

int reply_status(const char *reply)
{
	int status = 0;

	if (strncmp(reply, "HTTP/1.1 ", 9) == 0)
		status = (int)strtol(reply + 9, NULL, 10);
	return status;
}

void server_rig_answered(int fd, int status)
{
	char *reply = server_rig_get(fd, NULL);

	cr_assert(reply_status(reply) == status, "%s", reply);
	free(reply);
	close(fd);
}

static int reply_of(int fd, char **ret)
{
	int status;
	char *reply;

	reply = server_rig_get(fd, NULL);
	close(fd);
	status = reply_status(reply);
	if (ret)
		*ret = reply;
	else
		free(reply);
	return status;
}

int server_rig_ask(const char *request, char **ret)
{
	return reply_of(server_rig_request(request), ret);
}

int server_rig_http_ask(const char *request, char **ret)
{
	return reply_of(server_rig_http_request(request), ret);
}

void server_rig_unanswered(int fd)
{
	cr_assert(recv(fd, &(char){0}, 1, 0) < 0 && errno == EAGAIN, "it was answered");
}
