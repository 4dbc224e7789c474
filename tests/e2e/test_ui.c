// SPDX-License-Identifier: BSD-2-Clause
/*
 * pyprofctl ui as a process: its server answers the page's requests and no others, is bounded, and
 * survives the daemon's end. The page itself is tested in a browser (tests/browser/test_live.mjs).
 */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <fcntl.h>
#include <jansson.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/test.h"
#include "harness/traced.h"

#define TOKEN_SIZE 33

static struct pyprofd d;
static struct traced t;
static char pid[16];
static pid_t ui;
static int port;
static char token[TOKEN_SIZE];

/* Start `pyprofctl ui`, and read the URL that it prints. */
static void start_ui(void)
{
	const char *argv[] = {"pyprofctl", "--socket", d.sock, "ui", "--no-open", NULL};
	char program[4096], line[256] = "";
	int fds[2];
	FILE *out;

	assert_ok(pipe2(fds, O_CLOEXEC));
	snprintf(program, sizeof(program), "%s/pyprofctl", getenv("PYPROF_BUILD"));
	ui = fork();
	cr_assert(ui >= 0);
	if (ui == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fds[1], STDOUT_FILENO);
		execv(program, (char *const *)argv);
		_exit(127);
	}
	close(fds[1]);
	out = fdopen(fds[0], "r");
	cr_assert(out && fgets(line, sizeof(line), out), "it prints no URL");
	fclose(out);
	cr_assert_eq(sscanf(line, "http://127.0.0.1:%d/?token=%32[0-9a-f]\n", &port, token), 2,
		     "%s", line);
	cr_assert_eq(strlen(token), 32);
}

static void setup(void)
{
	signal(SIGPIPE, SIG_IGN);
	pyprofd_start(&d, NULL);
	start_ui();
}

/* Ctrl-C ends it. */
static void stop_ui(void)
{
	int status;

	kill(ui, SIGINT);
	cr_assert(waitpid(ui, &status, 0) == ui);
	cr_assert_eq(status, 0);
	ui = 0;
}

static void teardown(void)
{
	if (ui)
		stop_ui();
	if (d.pid)
		pyprofd_shutdown(&d);
	traced_stop(&t);
}

TestSuite(ui, .init = setup, .fini = teardown);

/* --- requests --- */

struct asked {
	const char *method, *path;
	const char *token; /* NULL: the right one; "": none */
	const char *header, *body;
};

struct got {
	long status;
	char *body, *headers;
};

static void got_free(struct got *g)
{
	free(g->body);
	free(g->headers);
}

static struct got ask_all(const struct asked *a)
{
	struct curl_slist *headers = NULL;
	CURL *curl = curl_easy_init();
	struct got g = {0};
	char line[256], url[512];
	size_t n, nheaders;
	FILE *body = open_memstream(&g.body, &n), *head = open_memstream(&g.headers, &nheaders);

	snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", port, a->path);
	snprintf(line, sizeof(line), "X-Pyprofd-Token: %s", a->token ? a->token : token);
	if (!a->token || a->token[0])
		headers = curl_slist_append(headers, line);
	if (a->header)
		headers = curl_slist_append(headers, a->header);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, a->method);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)patience_left_ms());
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, body);
	curl_easy_setopt(curl, CURLOPT_HEADERDATA, head);
	if (a->body)
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, a->body);
	curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &g.status);
	fclose(body);
	fclose(head);
	curl_slist_free_all(headers);
	curl_easy_cleanup(curl);
	return g;
}

static long ask(const char *method, const char *path, const char *with, const char *header,
		const char *body)
{
	struct got g = ask_all(&(struct asked){method, path, with, header, body});
	long status = g.status;

	got_free(&g);
	return status;
}

static json_t *ask_json(const char *method, const char *path, const char *body)
{
	struct got g = ask_all(&(struct asked){method, path, NULL, NULL, body});
	json_t *root = json_loads(g.body, 0, NULL);

	cr_assert(g.status >= 200 && g.status < 300, "%s %s: %ld %s", method, path, g.status,
		  g.body);
	cr_assert_not_null(root, "%s", g.body);
	got_free(&g);
	return root;
}

/* --- access --- */

static void only_with_the_token(void)
{
	char path[128];

	snprintf(path, sizeof(path), "/?token=%s", token);
	cr_assert_eq(ask("GET", path, "", NULL, NULL), 200);
	cr_assert_eq(ask("GET", "/", "", NULL, NULL), 403);
	cr_assert_eq(ask("GET", "/", NULL, NULL, NULL), 403);
	path[strlen(path) - 1] ^= 1;
	cr_assert_eq(ask("GET", path, "", NULL, NULL), 403);
	cr_assert_eq(ask("GET", "/v1/status", NULL, NULL, NULL), 200);
	cr_assert_eq(ask("GET", "/v1/status", "", NULL, NULL), 403);
	cr_assert_eq(ask("GET", "/v1/status", "0123456789abcdef0123456789abcdef", NULL, NULL), 403);
	cr_assert_eq(ask("GET", "/v1/nothing", "", NULL, NULL), 403);
	cr_assert_eq(ask("GET", "/v1/nothing", NULL, NULL, NULL), 404);
	cr_assert_eq(ask("POST", "/v1/shutdown", NULL, NULL, "{}"), 404);
	cr_assert_eq(ask("GET", "/metrics", NULL, NULL, NULL), 404);
	cr_assert_eq(ask("GET", "/v1/targets/../shutdown", NULL, NULL, NULL), 404);
	cr_assert_eq(ask("OPTIONS", "/v1/stop", NULL, NULL, NULL), 405);
}

static void no_other_host_or_page(void)
{
	char own[64];

	cr_assert_eq(ask("GET", "/v1/status", NULL, "Host: evil.example", NULL), 403);
	snprintf(own, sizeof(own), "Host: evil.example:%d", port);
	cr_assert_eq(ask("GET", "/v1/status", NULL, own, NULL), 403);
	snprintf(own, sizeof(own), "Host: localhost:%d", port);
	cr_assert_eq(ask("GET", "/v1/status", NULL, own, NULL), 200);
	cr_assert_eq(ask("POST", "/v1/stop", NULL, "Origin: http://evil.example", "{}"), 403);
	cr_assert_eq(ask("POST", "/v1/stop", NULL, "Origin: null", "{}"), 403);
	cr_assert_eq(ask("POST", "/v1/stop", NULL, "Sec-Fetch-Site: cross-site", "{}"), 403);
	snprintf(own, sizeof(own), "Origin: http://127.0.0.1:%d", port);
	cr_assert_eq(ask("POST", "/v1/clear", NULL, own, "{}"), 200);
}

/* Nobody else may read answers or frame the page, and only its own script runs. */
static void headers(void)
{
	struct asked a = {"GET", NULL, "", NULL, NULL};
	char path[128];
	struct got g;

	snprintf(path, sizeof(path), "/?token=%s", token);
	a.path = path;
	g = ask_all(&a);
	cr_assert(strstr(g.headers, "default-src 'none'; script-src 'sha256-"), "%s", g.headers);
	cr_assert(strstr(g.headers, "connect-src 'self'") &&
		  strstr(g.headers, "frame-ancestors 'none'"));
	cr_assert(strstr(g.headers, "Cache-Control: no-store"));
	cr_assert(strstr(g.headers, "Referrer-Policy: no-referrer"));
	cr_assert(strstr(g.headers, "X-Content-Type-Options: nosniff"));
	cr_assert(!strstr(g.headers, "Access-Control-"));
	cr_assert(strncmp(g.body, "<!DOCTYPE html>", 15) == 0);
	cr_assert(!strstr(g.body, token));
	got_free(&g);
}

/* Other addresses of this machine are not served. */
static void on_loopback_only(void)
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_port = htons((uint16_t)port),
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert(connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0);
	close(fd);
}

/* --- what it does --- */

static void controls_and_shows_what_the_daemon_has(void)
{
	json_t *processes, *options, *page, *own;
	char body[64], *text;

	traced_ready(&t, pid, traced_newest().exe, "run.py", "busy_empty", "0", "2000", NULL);
	snprintf(body, sizeof(body), "{\"pid\": %s}", pid);
	json_decref(ask_json("POST", "/v1/targets", body));
	traced_go(&t);
	traced_expect(&t, "done");
	snprintf(body, sizeof(body), "{\"pid\": %s}", pid);
	json_decref(ask_json("POST", "/v1/stop", body));
	json_decref(ctl_target_at_rest(&d, 0));

	/* The page's data are those of the command line. */
	page = ask_json("GET", "/v1/snapshot?format=page", NULL);
	text = ctl_ok(&d, "snapshot", "-f", "page", NULL);
	own = json_loads(text, 0, NULL);
	cr_assert(json_equal(json_object_get(page, "nodes"), json_object_get(own, "nodes")));
	cr_assert(
		json_equal(json_object_get(page, "functions"), json_object_get(own, "functions")));
	json_decref(page);
	json_decref(own);
	free(text);

	processes = ask_json("GET", "/ui/processes", NULL);
	cr_assert(json_array_size(json_object_get(processes, "processes")) >= 1);
	json_decref(processes);
	options = ask_json("GET", "/ui/options", NULL);
	cr_assert(json_array_size(json_object_get(options, "options")) >= 9);
	json_decref(options);

	json_decref(ask_json("POST", "/v1/start", body));
	snprintf(body, sizeof(body), "/v1/targets/%s", pid);
	json_decref(ask_json("DELETE", body, NULL));
	own = ctl_status(&d);
	cr_assert_eq(json_array_size(json_object_get(own, "targets")), 0);
	json_decref(own);
	/* The daemon's errors arrive as they are. */
	cr_assert_eq(ask("DELETE", body, NULL, NULL, NULL), 404);
}

Test(ui, the_daemon_ends_and_comes_back)
{
	struct got g;

	pyprofd_shutdown(&d);
	g = ask_all(&(struct asked){"GET", "/v1/status", NULL, NULL, NULL});
	cr_assert_eq(g.status, 502);
	cr_assert(strstr(g.body, "no daemon at") && strstr(g.body, "start pyprofd"), "%s", g.body);
	got_free(&g);
	cr_assert_eq(ask("GET", "/ui/options", NULL, NULL, NULL), 200);
}

static void *ask_status(void *unused)
{
	(void)unused;
	ask("GET", "/v1/status", NULL, NULL, NULL);
	return NULL;
}

/* Returns whether there is a connection that the daemon has not accepted. */
static bool request_waits(void *unused)
{
	char line[512];
	bool found = false;
	FILE *f = fopen("/proc/net/unix", "re");

	(void)unused;
	cr_assert(f);
	/* Num RefCount Protocol Flags Type St Inode Path; St 02: not accepted */
	while (fgets(line, sizeof(line), f)) {
		unsigned int state = 0;

		if (strstr(line, d.sock) && sscanf(line, "%*s %*s %*s %*s %*s %x", &state) == 1)
			found |= state == 2;
	}
	fclose(f);
	return found;
}

/* Ctrl-C ends it even while the daemon does not answer. */
Test(ui, ends_while_a_request_waits)
{
	pthread_t thread;

	kill(d.pid, SIGSTOP);
	cr_assert_eq(pthread_create(&thread, NULL, ask_status, NULL), 0);
	patience_until(request_waits, NULL, "a request to the daemon");
	stop_ui();
	pthread_join(thread, NULL);
	kill(d.pid, SIGCONT);
}

/* --- bounds --- */

static int dial(void)
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_port = htons((uint16_t)port),
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_ok(connect(fd, (struct sockaddr *)&addr, sizeof(addr)));
	return fd;
}

#define SLOW 500 /* ms between two bytes: sooner than the server's deadline for each of them */

/* The server closes the connection, however slowly the rest of the request arrives. */
static void closed(int fd)
{
	char byte[256];

	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		cr_assert(!patience_over(), "it is kept open for ever");
		if (poll(&p, 1, SLOW) == 1 && recv(fd, byte, sizeof(byte), 0) <= 0)
			break;
		(void)!send(fd, "x", 1, MSG_NOSIGNAL);
	}
	close(fd);
}

static void slow_clients_do_not_block_others(void)
{
	int fd[3] = {dial(), dial(), dial()};

	(void)!send(fd[0], "GET /v1/st", 10, MSG_NOSIGNAL);
	(void)!send(fd[1], "POST /v1/stop HTTP/1.1\r\nContent-Length: 60000\r\n\r\n{", 52,
		    MSG_NOSIGNAL);
	for (int i = 0; i < 10; i++)
		cr_assert_eq(ask("GET", "/v1/status", NULL, NULL, NULL), 200);
	for (int i = 0; i < 3; i++)
		closed(fd[i]);
	cr_assert_eq(ask("GET", "/v1/status", NULL, NULL, NULL), 200);
}

/* Whoever cannot have more connections is refused, and the next one is served again. */
static void many_clients(void)
{
	int fd[100];

	for (size_t i = 0; i < sizeof(fd) / sizeof(fd[0]); i++)
		fd[i] = dial();
	for (size_t i = 0; i < sizeof(fd) / sizeof(fd[0]); i++)
		close(fd[i]);
	while (ask("GET", "/v1/status", NULL, NULL, NULL) != 200) {
		cr_assert(!patience_over());
		patience_step();
	}
}

static void oversized_requests(void)
{
	char *body = malloc(2 << 20), path[481] = "/v1/snapshot?format=";

	memset(body, ' ', 2 << 20);
	body[70000] = '\0';
	cr_assert_eq(ask("POST", "/v1/stop", NULL, "Expect:", body), 413);
	body[70000] = ' ';
	body[(2 << 20) - 1] = '\0';
	cr_assert_neq(ask("POST", "/v1/stop", NULL, "Expect:", body), 200);
	memset(path + strlen(path), 'x', sizeof(path) - 1 - strlen(path));
	cr_assert_eq(ask("GET", path, NULL, NULL, NULL), 400);
	cr_assert_eq(ask("GET", "/v1/status", NULL, NULL, NULL), 200);
	free(body);
}

Test(ui, requests)
{
	only_with_the_token();
	no_other_host_or_page();
	headers();
	on_loopback_only();
	controls_and_shows_what_the_daemon_has();
	slow_clients_do_not_block_others();
	many_clients();
	oversized_requests();
}

Test(ui, command_line)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", port);
	ctl_fails(&d, PYP_EXIT_FAILURE, "cannot listen", "ui", "--port", number, NULL);
	ctl_fails(&d, PYP_EXIT_USAGE, "65536", "ui", "--port", "65536", NULL);
	stop_ui();
}
