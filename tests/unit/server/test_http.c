// SPDX-License-Identifier: BSD-2-Clause
/* server/server with the HTTP listener: what it serves, to whom, and how much they can hold. */
#include "server/server.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fakes/sessions.c"
#include "harness/patience.h"
#include "harness/server_rig.h"
#include "harness/temp_dir.h"
#include "harness/test.h"

#define TOKEN "0123456789abcdef0123456789abcdef"
/* user:TOKEN */
#define BASIC "dXNlcjowMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZg=="

TestSuite(http);

static void start(unsigned int timeout_s, unsigned int max)
{
	rig.http_opts.addr = "127.0.0.1:0";
	server_rig_start(timeout_s, max);
}

static void counted(const char *expected)
{
	char *reply;

	cr_assert(server_rig_ask(GET("/metrics"), &reply) == 200);
	cr_assert(strstr(reply, expected), "%s: %s", expected, reply);
	free(reply);
}

/* It has no route that controls a target, whatever the method. */
Test(http, serves_reads_only)
{
	char request[256];
	char *reply;

	start(0, 0);
	cr_assert(server_rig_http_ask(HTTP_GET("/metrics"), &reply) == 200);
	cr_assert(strstr(reply, "pyprofd_build_info"));
	free(reply);
	for (const struct route *r = routes; r->method; r++) {
		char path[64];
		int status;

		snprintf(path, sizeof(path), "%.*s42", (int)strcspn(r->path, "{"), r->path);
		if (!strchr(r->path, '{'))
			snprintf(path, sizeof(path), "%s", r->path);
		snprintf(request, sizeof(request), "%s %s HTTP/1.1\r\nHost: localhost\r\n\r\n",
			 r->method, path);
		if (r->http)
			continue;
		status = server_rig_http_ask(request, NULL);
		cr_assert(status == 404 || status == 405, "%s: %d", request, status);
	}
	for (const struct route *r = routes; r->method; r++)
		cr_assert(!r->http ||
				  (r->privilege == PRIVILEGE_READ && strcmp(r->method, "GET") == 0),
			  "%s", r->path);
	cr_assert(server_rig_http_ask("POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", NULL) ==
		  405);
	cr_assert(rig.sessions->stops == 0 && rig.sessions->n == 1);
	server_rig_stop();
}

Test(http, no_bodies)
{
	start(0, 0);
	cr_assert(server_rig_http_ask("POST /metrics HTTP/1.1\r\nHost: localhost\r\n"
				      "Content-Length: 1\r\n\r\nx",
				      NULL) == 413);
	cr_assert(server_rig_http_ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n"
				      "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
				      NULL) == 413);
	server_rig_stop();
}

Test(http, other_sites)
{
	start(0, 0);
	cr_assert(server_rig_http_ask(GET("/metrics"), NULL) == 403, "Host: x");
	cr_assert(server_rig_http_ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n"
				      "Sec-Fetch-Site: cross-site\r\n\r\n",
				      NULL) == 403);
	cr_assert(server_rig_http_ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n"
				      "Origin: http://example.org\r\n\r\n",
				      NULL) == 403);
	counted("pyprofd_refused_requests_total{reason=\"site\"} 3\n");
	counted("pyprofd_refused_requests_total{reason=\"token\"} 0\n");
	server_rig_stop();
}

Test(http, token)
{
	char dir[64], path[96], *reply;
	FILE *f;

	snprintf(dir, sizeof(dir), "/tmp/pyprof-token-XXXXXX");
	temp_dir_make(dir);
	snprintf(path, sizeof(path), "%s/token", dir);
	f = fopen(path, "w");
	fputs(TOKEN "\n", f);
	fclose(f);
	assert_ok(chmod(path, 0400));
	rig.http_opts.token_file = path;
	start(0, 0);
	cr_assert(server_rig_http_ask(HTTP_GET("/metrics"), &reply) == 401);
	cr_assert(strstr(reply, "WWW-Authenticate: Basic "), "%s", reply);
	cr_assert(!strstr(reply, TOKEN));
	free(reply);
	cr_assert(server_rig_http_ask("GET /metrics HTTP/1.1\r\nHost: x\r\n"
				      "Authorization: Bearer " TOKEN "\r\n\r\n",
				      NULL) == 200);
	cr_assert(server_rig_http_ask("GET /metrics HTTP/1.1\r\nHost: x\r\n"
				      "Authorization: Basic " BASIC "\r\n\r\n",
				      NULL) == 200);
	cr_assert(server_rig_http_ask("GET /metrics HTTP/1.1\r\nHost: x\r\n"
				      "Authorization: Basic !\r\n\r\n",
				      NULL) == 401);
	cr_assert(server_rig_http_ask("GET /nope HTTP/1.1\r\nHost: x\r\n\r\n", NULL) == 401,
		  "what there is, is not told either");
	counted("pyprofd_refused_requests_total{reason=\"token\"} 3\n");
	temp_dir_delete(dir);
	server_rig_stop();
}

/* Clients that send nothing are closed after the deadline; others are served meanwhile. */
Test(http, slow_clients)
{
	int fds[3];
	bool eof;

	start(1, 0);
	for (int i = 0; i < 3; i++)
		fds[i] = server_rig_http_request(i ? "GET /metrics HTTP/1.1\r\nHost: local" : "");
	cr_assert(server_rig_http_ask(HTTP_GET("/metrics"), NULL) == 200);
	for (int i = 0; i < 3; i++) {
		free(server_rig_get(fds[i], &eof));
		cr_assert(eof);
		close(fds[i]);
	}
	counted("pyprofd_dropped_clients_total{reason=\"late\"} 3\n");
	server_rig_stop();
}

/* While the daemon itself does nothing, as on an overloaded machine, no client is late. */
Test(http, a_blocked_daemon)
{
	for (int late = 0; late < 2; late++) {
		int fd;

		start(1, 0);
		fd = server_rig_http_request("GET /metrics HTTP/1.1\r\nHost: local");
		for (int k = 0; k < 20; k++)
			server_rig_turn();
		patience_pass(2500); /* it handles no event */
		if (late)
			server_rig_turn();
		server_rig_puts(fd, "host\r\n\r\n");
		server_rig_answered(fd, 200);
		counted("pyprofd_dropped_clients_total{reason=\"late\"} 0\n");
		server_rig_stop();
	}
}

/* One host has half of the places, and a new connection is served; the control socket has its own. */
Test(http, many_clients)
{
	enum { N = 40 };
	int fds[N], open = 0;

	start(0, 16);
	for (int i = 0; i < N; i++) {
		fds[i] = server_rig_http_client();
		server_rig_turn();
	}
	cr_assert(server_rig_http_ask(HTTP_GET("/metrics"), NULL) == 200);
	cr_assert(server_rig_ask(GET("/v1/ping"), NULL) == 200);
	for (int i = 0; i < 5; i++)
		server_rig_turn();
	for (int i = 0; i < N; i++) {
		open += recv(fds[i], &(char){0}, 1, 0) < 0 && errno == EAGAIN;
		close(fds[i]);
	}
	cr_assert(open <= 8, "%d", open);
	server_rig_stop();
}

/* ---- /debug/pprof/ ---- */

#define PROFILE(query) HTTP_GET("/debug/pprof/profile?" query)

Test(http, profile_of_a_span)
{
	uint64_t begin = server_rig_ms();
	const char *body;
	char *reply;

	start(0, 0);
	cr_assert(server_rig_http_ask(PROFILE("seconds=1&pid=42"), &reply) == 200);
	cr_assert(server_rig_ms() - begin >= 1000);
	cr_assert(strstr(reply, "Content-Type: application/octet-stream\r\n"), "%s", reply);
	cr_assert(strstr(reply, "Content-Disposition: attachment; filename=\"profile\"\r\n"));
	body = strstr(reply, "\r\n\r\n") + 4;
	cr_assert(memcmp(body, "\x1f\x8b", 2) == 0, "gzip");
	cr_assert(rig.sessions->snapshots == 2);
	free(reply);
	server_rig_stop();
}

Test(http, profiles_are_refused)
{
	char *reply;

	start(0, 0);
	cr_assert(server_rig_http_ask(PROFILE("seconds=301"), &reply) == 400);
	cr_assert(strstr(reply, "X-Go-Pprof: 1\r\n") && strstr(reply, "text/plain"), "%s", reply);
	cr_assert(strstr(reply, "\r\n\r\ninvalid seconds '301'; "), "%s", reply);
	free(reply);
	cr_assert(server_rig_http_ask(PROFILE("seconds=0"), NULL) == 400);
	cr_assert(server_rig_http_ask(PROFILE("seconds=0.9"), NULL) == 400);
	cr_assert(server_rig_ask(GET("/debug/pprof/profile?seconds=0.01"), NULL) == 200,
		  "on the control socket");
	cr_assert(server_rig_http_ask(PROFILE("seconds=-1"), NULL) == 400);
	cr_assert(server_rig_http_ask(PROFILE("seconds=x"), NULL) == 400);
	cr_assert(server_rig_http_ask(PROFILE("seconds=1&x=1"), NULL) == 400);
	cr_assert(server_rig_http_ask(PROFILE("seconds=1&pid=43"), NULL) == 404);
	cr_assert(server_rig_http_ask("HEAD /debug/pprof/profile HTTP/1.1\r\nHost: localhost\r\n"
				      "Connection: close\r\n\r\n",
				      NULL) == 405);
	assert_ok(sessions_stop(rig.sessions, 0, NULL));
	cr_assert(server_rig_http_ask(PROFILE("seconds=1"), &reply) == 404);
	cr_assert(strstr(reply, "no target is being traced; "), "%s", reply);
	free(reply);
	assert_ok(sessions_detach(rig.sessions, 42, NULL));
	cr_assert(server_rig_http_ask(PROFILE("seconds=1"), &reply) == 404);
	cr_assert(strstr(reply, "there is no target; attach"), "%s", reply);
	free(reply);
	cr_assert(rig.sessions->snapshots == 2);
	server_rig_stop();
}

/* Their number is limited, and one whose client has gone is dropped before its time is over. */
Test(http, waiting_profiles_are_limited)
{
	int fds[SPANS_MAX], status = 503;
	char *reply;

	start(0, 0);
	for (size_t i = 0; i < SPANS_MAX; i++)
		fds[i] = server_rig_http_request(PROFILE("seconds=300"));
	cr_assert(server_rig_http_ask(PROFILE("seconds=1"), &reply) == 503);
	cr_assert(strstr(reply, "; try again later"), "%s", reply);
	free(reply);
	for (size_t i = 0; i < SPANS_MAX; i++)
		server_rig_unanswered(fds[i]);
	cr_assert(server_rig_http_ask(HTTP_GET("/metrics"), NULL) == 200, "others are served");
	close(fds[0]);
	while (status == 503 && !patience_over())
		status = server_rig_http_ask(PROFILE("seconds=1"), NULL);
	cr_assert(status == 200, "%d", status);
	for (size_t i = 1; i < SPANS_MAX; i++)
		close(fds[i]);
	server_rig_stop();
}

/* The place of a profile that fails is free again. */
Test(http, profiles_whose_target_goes)
{
	start(0, 0);
	for (size_t i = 0; i < SPANS_MAX + 1; i++) {
		int fd = server_rig_request(GET("/debug/pprof/profile?seconds=0.05&pid=42"));
		const int taken = rig.sessions->snapshots;

		while (rig.sessions->snapshots == taken && !patience_over())
			server_rig_turn();
		assert_ok(sessions_detach(rig.sessions, 42, NULL));
		server_rig_answered(fd, 404);
		assert_ok(sessions_attach(rig.sessions, 42, true, NULL, NULL));
	}
	server_rig_stop();
}

Test(http, the_end_does_not_wait_for_profiles)
{
	int fd;

	start(0, 0);
	fd = server_rig_http_request(PROFILE("seconds=300"));
	for (int i = 0; i < 5; i++)
		server_rig_turn();
	server_rig_drain();
	server_rig_answered(fd, 503);
	server_rig_wait_drained();
	server_rig_stop();
}

Test(http, pprof_pages)
{
	char *reply;

	start(0, 0);
	rig.sessions->st[0].cmdline[0] = '<';
	cr_assert(server_rig_http_ask(HTTP_GET("/debug/pprof/"), &reply) == 200);
	cr_assert(strstr(reply, "Content-Type: text/html; charset=utf-8\r\n"));
	cr_assert(strstr(reply, "\"/debug/pprof/profile?pid=42\""), "%s", reply);
	cr_assert(strstr(reply, "&#60;ython3 &#34;app&#34;"), "%s", reply);
	free(reply);
	cr_assert(server_rig_http_ask(HTTP_GET("/debug/pprof"), NULL) == 200);
	cr_assert(server_rig_http_ask(HTTP_GET("/debug/pprof/cmdline?pid=42"), &reply) == 200);
	cr_assert(strstr(reply, "\r\n\r\n<ython3 "), "%s", reply);
	free(reply);
	cr_assert(server_rig_http_ask(HTTP_GET("/debug/pprof/cmdline?pid=43"), NULL) == 404);
	cr_assert(server_rig_http_ask(HTTP_GET("/debug/pprof/symbol"), &reply) == 200);
	cr_assert(strstr(reply, "num_symbols: 0\n"));
	free(reply);
	server_rig_stop();
}
