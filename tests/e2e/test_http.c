// SPDX-License-Identifier: BSD-2-Clause
/*
 * The control API as used by other programs: libcurl, and clients that violate the protocol.
 * Whatever they send, the daemon continues to trace exactly and serves the next client.
 */
#include <curl/curl.h>
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/test.h"
#include "harness/traced.h"

static struct pyprofd d;
static struct traced t;
static char pid[16];

static void setup(void)
{
	signal(SIGPIPE, SIG_IGN);
	traced_ready(&t, pid, traced_newest().exe, "run.py", "busy_empty", "0", "1000", NULL);
	pyprofd_start(&d, "--pid", pid, NULL);
}

/* The daemon still answers, and has lost no event of the target's work. */
static void teardown(void)
{
	json_t *target;

	traced_go(&t);
	traced_expect(&t, "done");
	ctl_until(&d, 0, "events", 2000);
	target = ctl_target(&d, 0);
	cr_assert(json_is_true(json_object_get(target, "exact")));
	json_decref(target);
	pyprofd_shutdown(&d);
	traced_finish(&t);
}

TestSuite(http, .init = setup, .fini = teardown);

/* --- raw --- */

static int dial(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const struct timeval deadline = patience_left();
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", d.sock);
	cr_assert(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &deadline, sizeof(deadline));
	assert_ok(connect(fd, (struct sockaddr *)&addr, sizeof(addr)));
	return fd;
}

/* Returns false if the daemon has closed the connection. */
static bool send_all(int fd, const char *data, size_t n)
{
	while (n > 0) {
		ssize_t sent = send(fd, data, n, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		data += sent;
		n -= (size_t)sent;
	}
	return true;
}

/* Returns the status of the response; 0: the connection was closed without one. */
static int answer_status(int fd)
{
	char buf[4096] = "";
	size_t n = 0;
	ssize_t got;

	while (n < sizeof(buf) - 1 && (got = recv(fd, buf + n, sizeof(buf) - 1 - n, 0)) > 0) {
		n += (size_t)got;
		if (strstr(buf, "\r\n\r\n"))
			break;
	}
	if (n == 0)
		return 0;
	cr_assert(strncmp(buf, "HTTP/1.1 ", 9) == 0, "not HTTP: %s", buf);
	return (int)strtol(buf + 9, NULL, 10);
}

static int raw(const char *request)
{
	int fd = dial(), status;

	send_all(fd, request, strlen(request));
	shutdown(fd, SHUT_WR);
	status = answer_status(fd);
	close(fd);
	return status;
}

#define HOST "Host: x\r\n"

static void malformed(void)
{
	static const char *const requests[] = {
		"\r\n\r\n",
		"nonsense\r\n\r\n",
		"GET\r\n\r\n",
		"GET /v1/ping\r\n\r\n",
		"GET /v1/ping HTTP/9.9\r\n" HOST "\r\n",
		"GET /v1/ping HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n",
		"POST /v1/stop HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999\r\n\r\n",
		"POST /v1/stop HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
		"\x16\x03\x01\x02\x01\x01",
		"\xff\xfe\xfd",
	};

	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		int status = raw(requests[i]);

		cr_assert(status != 200 || i == 3, "request %zu: %d", i, status);
		free(ctl_ok(&d, "ping", NULL));
	}
}

static void refused_by_status(void)
{
	cr_assert_eq(raw("GET /v1/ping HTTP/1.1\r\n" HOST "\r\n"), 200);
	cr_assert_eq(raw("GET /nothing HTTP/1.1\r\n" HOST "\r\n"), 404);
	cr_assert_eq(raw("DELETE /v1/ping HTTP/1.1\r\n" HOST "\r\n"), 405);
	cr_assert_eq(raw("GET /v1/snapshot?format=x HTTP/1.1\r\n" HOST "\r\n"), 400);
	cr_assert_eq(raw("GET /v1/snapshot?x=1 HTTP/1.1\r\n" HOST "\r\n"), 400);
	cr_assert_eq(raw("GET /v1/snapshot?pid=-1 HTTP/1.1\r\n" HOST "\r\n"), 400);
	cr_assert_eq(raw("GET /v1/snapshot?pid=1 HTTP/1.1\r\n" HOST "\r\n"), 404);
	cr_assert_eq(raw("GET /v1/ping?%zz HTTP/1.1\r\n" HOST "\r\n"), 400);
	cr_assert_eq(raw("POST /v1/stop HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\n{]}"), 400);
	cr_assert_eq(raw("POST /v1/targets HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\n{}"), 400);
}

/* Repeat a part of a request until it is too large. */
static int oversized(const char *head, const char *part, size_t times)
{
	int fd = dial(), status;
	bool open = send_all(fd, head, strlen(head));

	while (open && times-- > 0)
		open = send_all(fd, part, strlen(part));
	if (open)
		send_all(fd, "\r\n\r\n", 4);
	status = answer_status(fd);
	close(fd);
	return status;
}

static bool is_refusal(int status)
{
	return status == 0 || (status >= 400 && status < 500);
}

static void oversized_requests(void)
{
	static const char part[] =
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde";

	cr_assert(is_refusal(oversized("GET /", part, 10000)), "a long path");
	cr_assert(is_refusal(oversized("GET /v1/snapshot?restrict=", part, 10000)), "a parameter");
	cr_assert(is_refusal(oversized("GET /v1/ping HTTP/1.1\r\n" HOST "X: ", part, 100000)),
		  "a header");
	cr_assert(is_refusal(oversized("GET /v1/ping HTTP/1.1\r\n" HOST, "X: y\r\n", 100000)),
		  "headers");
	cr_assert(is_refusal(oversized("POST /v1/stop HTTP/1.1\r\n" HOST
				       "Content-Length: 1000000000\r\n\r\n",
				       part, 100000)),
		  "a body");
}

/*
 * Clients that send half a request and then nothing do not block others; the daemon closes their
 * connections after a deadline.
 */
static void half_sent(void)
{
	int fd[3] = {dial(), dial(), dial()};
	char byte;

	send_all(fd[0], "GET /v1/pi", 10);
	send_all(fd[1], "POST /v1/stop HTTP/1.1\r\n" HOST "Content-Length: 100\r\n\r\n{\"pid\"",
		 68);
	for (int i = 0; i < 10; i++)
		free(ctl_ok(&d, "status", NULL));
	close(fd[2]);
	for (int i = 0; i < 2; i++) {
		struct pollfd p = {.fd = fd[i], .events = POLLIN};

		cr_assert(poll(&p, 1, patience_left_ms()) == 1, "it is kept open for ever");
		while (recv(fd[i], &byte, 1, 0) > 0)
			;
		close(fd[i]);
	}
}

/* Many of them: the daemon serves the next client. */
static void hung_up_in_the_middle_of_an_answer(void)
{
	static const char request[] = "GET /v1/snapshot?format=json HTTP/1.1\r\n" HOST "\r\n";
	char buf[64];

	for (int i = 0; i < 50; i++) {
		int fd = dial();

		cr_assert(send_all(fd, request, strlen(request)));
		if (i % 2)
			cr_assert(recv(fd, buf, sizeof(buf), 0) > 0);
		close(fd);
	}
	free(ctl_ok(&d, "ping", NULL));
}

/* Two requests in one write get two responses. */
static void pipelined(void)
{
	static const char request[] = "GET /v1/ping HTTP/1.1\r\n" HOST "\r\n";
	int fd = dial();

	cr_assert(send_all(fd, request, strlen(request)));
	cr_assert_eq(answer_status(fd), 200);
	cr_assert(send_all(fd, request, strlen(request)));
	cr_assert_eq(answer_status(fd), 200);
	close(fd);
}

/* One after the other, so that each finds what the one before has left. */
Test(http, clients_that_violate_the_protocol)
{
	malformed();
	refused_by_status();
	oversized_requests();
	half_sent();
	hung_up_in_the_middle_of_an_answer();
	pipelined();
}

/* --- libcurl --- */

struct body {
	char *text;
	size_t n;
};

static size_t on_body(char *data, size_t size, size_t count, void *userdata)
{
	struct body *b = userdata;
	size_t n = size * count;

	b->text = realloc(b->text, b->n + n + 1);
	cr_assert(b->text);
	memcpy(b->text + b->n, data, n);
	b->n += n;
	b->text[b->n] = '\0';
	return n;
}

static CURL *easy(const char *method, const char *path, struct body *b)
{
	CURL *curl = curl_easy_init();
	char url[256];

	snprintf(url, sizeof(url), "http://localhost%s", path);
	curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, d.sock);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)patience_left_ms());
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, b);
	return curl;
}

/* Returns the HTTP status; stores the body unless ret is NULL. */
static long curl(const char *method, const char *path, struct body *ret)
{
	struct body b = {0};
	CURL *c = easy(method, path, &b);
	CURLcode code = curl_easy_perform(c);
	long status = 0;

	cr_assert(code == CURLE_OK, "%s %s: %s", method, path, curl_easy_strerror(code));
	curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_cleanup(c);
	if (ret)
		*ret = b;
	else
		free(b.text);
	return status;
}

static void curl_gets_every_route(void)
{
	struct body b;
	json_t *root, *route;
	char path[64];
	size_t i;

	cr_assert_eq(curl("GET", "/v1", &b), 200);
	root = json_loads(b.text, 0, NULL);
	json_array_foreach(json_object_get(root, "routes"), i, route)
	{
		const char *method = json_string_value(json_object_get(route, "method"));
		const char *p = json_string_value(json_object_get(route, "path"));

		if (strcmp(p, "/debug/pprof/profile") == 0)
			p = "/debug/pprof/profile?seconds=0.1";
		/* history: only in continuous mode */
		if (strcmp(method, "GET") == 0 && !strchr(p, '{'))
			cr_assert_eq(curl("GET", p, NULL),
				     strncmp(p, "/v1/history", 11) == 0 ? 400 : 200, "%s", p);
	}
	cr_assert(i >= 10);
	json_decref(root);
	free(b.text);
	snprintf(path, sizeof(path), "/v1/targets/%s", pid);
	cr_assert_eq(curl("GET", path, NULL), 200);
	cr_assert_eq(curl("GET", "/metrics", &b), 200);
	cr_assert(strstr(b.text, "# EOF"), "%s", b.text);
	free(b.text);
}

static void curl_controls(void)
{
	json_t *target;

	cr_assert_eq(curl("POST", "/v1/stop", NULL), 200);
	target = ctl_target_at_rest(&d, 0);
	cr_assert_str_eq(json_string_value(json_object_get(target, "state")), "attached");
	json_decref(target);
	cr_assert_eq(curl("POST", "/v1/clear", NULL), 200);
	cr_assert_eq(curl("POST", "/v1/start", NULL), 200);
}

static void errors_are_json(void)
{
	struct body b;
	json_t *root;

	cr_assert_eq(curl("GET", "/v1/targets/1", &b), 404);
	root = json_loads(b.text, 0, NULL);
	cr_assert_eq(json_integer_value(json_object_get(root, "code")), 3, "%s", b.text);
	cr_assert(json_is_string(json_object_get(root, "message")));
	cr_assert(json_is_string(json_object_get(root, "hint")));
	json_decref(root);
	free(b.text);
}

/* Several clients at once, each with its own response. */
static void clients_at_once(void)
{
	enum { N = 8, ROUNDS = 5 };
	CURLM *multi = curl_multi_init();
	struct body b[N];
	CURL *c[N];
	int running;

	for (int round = 0; round < ROUNDS; round++) {
		memset(b, 0, sizeof(b));
		for (int i = 0; i < N; i++) {
			c[i] = easy("GET", i % 2 ? "/v1/snapshot?format=json" : "/v1/status",
				    &b[i]);
			curl_multi_add_handle(multi, c[i]);
		}
		do {
			cr_assert_eq(curl_multi_perform(multi, &running), CURLM_OK);
			curl_multi_poll(multi, NULL, 0, 10 * PATIENCE_STEP_MS, NULL);
		} while (running);
		for (int i = 0; i < N; i++) {
			json_t *root = json_loads(b[i].text ? b[i].text : "", 0, NULL);

			cr_assert(json_object_get(root, i % 2 ? "functions" : "uptime_ns"));
			json_decref(root);
			curl_multi_remove_handle(multi, c[i]);
			curl_easy_cleanup(c[i]);
			free(b[i].text);
		}
	}
	curl_multi_cleanup(multi);
}

Test(http, libcurl)
{
	curl_gets_every_route();
	curl_controls();
	errors_are_json();
	clients_at_once();
}
