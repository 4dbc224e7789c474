// SPDX-License-Identifier: BSD-2-Clause
/*
 * pyprofctl and servers other than the daemon: another user's server receives nothing, and no
 * server's response can control the terminal.
 */
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sockpath.h"
#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/reports.h"
#include "harness/test.h"

#define STRANGER 65534

/* Title, colour, C1, direction override, invalid UTF-8 */
#define EVIL                                                                                       \
	"\033]0;EVIL\007\033[31m\xc2\x9b"                                                          \
	"31m\xe2\x80\xae\xff\b\r"
#define EVIL_JSON "\\u001b]0;EVIL\\u0007\\u001b[31m\\u009b31m\\u202e\\b\\r"

static struct pyprofd d; /* never started: provides a directory and a socket path */
static pid_t server;
static int received[2]; /* pipe: the server writes the number of bytes that it received */
static char *rows;

static void setup(void)
{
	struct snapshot *s;
	const struct format_opts o = {0};

	if (geteuid() != 0)
		cr_skip_test("needs root");
	s = snapshot_hostile();
	rows = report_new("rows", s, &o, NULL);
	snapshot_free(s);
	pyprofd_init(&d);
	assert_ok(chmod(d.dir, 01777));
	assert_ok(pipe(received));
}

static void end_server(void)
{
	if (server > 0) {
		kill(server, SIGKILL);
		waitpid(server, NULL, 0);
	}
	server = 0;
	unlink(d.sock);
}

static void teardown(void)
{
	end_server();
	if (d.dir[0])
		pyprofd_deinit(&d);
	free(rows);
}

TestSuite(client, .init = setup, .fini = teardown);

/* ---- the server ---- */

static const char *body_for(const char *request, int *status)
{
	*status = 200;
	if (strstr(request, "format=rows"))
		return rows;
	if (strstr(request, "/v1/snapshot"))
		return EVIL "a snapshot\n";
	if (strstr(request, "/v1/status"))
		return "{\"targets\": [{\"pid\": 1, \"state\": \"" EVIL_JSON
		       "\", \"cmdline\": \"" EVIL_JSON "\", \"warning\": \"" EVIL_JSON
		       "\", \"end_reason\": \"" EVIL_JSON "\"}]}";
	*status = 500;
	return "{\"code\": 1, \"message\": \"" EVIL_JSON "\", \"hint\": \"" EVIL_JSON "\"}";
}

static void answer(int fd)
{
	char request[8192] = "";
	size_t n = 0;
	ssize_t r = 1;

	while (r > 0 && !strstr(request, "\r\n\r\n") && n + 1 < sizeof(request)) {
		r = read(fd, request + n, sizeof(request) - 1 - n);
		n += r > 0 ? (size_t)r : 0;
		request[n] = '\0';
	}
	(void)!write(received[1], &n, sizeof(n));
	if (n) {
		int status;
		const char *body = body_for(request, &status);

		dprintf(fd, "HTTP/1.1 %d X\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
			status, strlen(body), body);
	}
	close(fd);
}

static int listen_as(uid_t uid)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un addr;

	if (uid && (setgid(uid) < 0 || setuid(uid) < 0))
		_exit(1);
	if (sockpath_addr(d.sock, &addr, NULL) < 0 ||
	    bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, 16) < 0)
		_exit(1);
	chmod(d.sock, 0777);
	return fd;
}

/* Serve as this user; if first_as_root, serve one connection as root before. */
static void start_server(uid_t uid, bool first_as_root)
{
	int ready[2];
	char c;

	assert_ok(pipe(ready));
	server = fork();
	if (server == 0) {
		int fd = listen_as(first_as_root ? 0 : uid), client;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ready[0]);
		(void)!write(ready[1], "x", 1);
		if (first_as_root) {
			client = accept(fd, NULL, NULL);
			close(fd);
			unlink(d.sock);
			fd = listen_as(uid);
			answer(client);
		}
		while ((client = accept(fd, NULL, NULL)) >= 0)
			answer(client);
		_exit(0);
	}
	close(ready[1]);
	cr_assert(server > 0 && read(ready[0], &c, 1) == 1, "the server did not start");
	close(ready[0]);
}

/* The number of bytes that the server got on its next connection. */
static size_t bytes_received(void)
{
	struct pollfd p = {.fd = received[0], .events = POLLIN};
	size_t n;

	cr_assert(poll(&p, 1, patience_left_ms()) == 1, "no connection came");
	cr_assert(read(received[0], &n, sizeof(n)) == sizeof(n));
	return n;
}

/* ---- the terminal ---- */

/* Returns the output of pyprofctl on a terminal, with these keys typed. To be freed. */
static char *on_terminal(const char *keys, const char *const *args)
{
	const char *build = getenv("PYPROF_BUILD"), *argv[16] = {"pyprofctl", "--socket", d.sock};
	struct winsize ws = {.ws_row = 24, .ws_col = 80};
	char program[4096], *text = calloc(1, 1 << 20);
	size_t n = 0;
	ssize_t r;
	pid_t pid;
	int tty;

	for (size_t i = 0; args[i]; i++)
		argv[3 + i] = args[i];
	snprintf(program, sizeof(program), "%s/pyprofctl", build ? build : "build");
	pid = forkpty(&tty, NULL, NULL, &ws);
	cr_assert(text && pid >= 0);
	if (pid == 0) {
		setenv("TERM", "xterm", 1);
		setenv("LC_ALL", "C.UTF-8", 1);
		execv(program, (char *const *)argv);
		_exit(127);
	}
	(void)!write(tty, keys, strlen(keys));
	while (n < (1 << 20) - 1 && (r = read(tty, text + n, (1 << 20) - 1 - n)) > 0)
		n += (size_t)r;
	close(tty);
	cr_assert(waitpid(pid, NULL, 0) == pid);
	cr_assert(n > 0 && strlen(text) == n);
	return text;
}

#define ON_TERMINAL(keys, ...) on_terminal(keys, (const char *const[]){__VA_ARGS__, NULL})

/* Terminals turn \n to \r\n; reports may use bold. */
static void assert_harmless(char *text)
{
	static const char *const fine[] = {"\r\n", "\033[0m", "\033[1m", "\033[2m"};
	char *to = text;

	for (char *p = text; *p;) {
		size_t skip = 0;

		for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
			if (strncmp(p, fine[i], strlen(fine[i])) == 0)
				skip = strlen(fine[i]);
		p += skip;
		if (!skip)
			*to++ = *p++;
	}
	*to = '\0';
	cr_assert(report_harmless(text, strlen(text)), "%s", text);
	for (char *p = text; *p; p++)
		cr_assert(*p != 0x7f && *p != '\r' && *p != '\b');
	free(text);
}

/* ---- tests ---- */

Test(client, strangers_server_is_sent_nothing)
{
	static const char *const commands[] = {"status", "snapshot", "stop", "shutdown", "ping"};

	start_server(STRANGER, false);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		ctl_fails(&d, PYP_EXIT_PERMISSION, "another user (uid 65534)", commands[i], NULL);
		cr_assert(bytes_received() == 0, "%s was sent", commands[i]);
	}
	/* record does not start a private daemon either */
	ctl_fails(&d, PYP_EXIT_PERMISSION, "another user (uid 65534)", "record", "--pid", "1",
		  NULL);
	cr_assert(bytes_received() == 0);
}

/* A command's second request reaches a different server than the first. */
Test(client, each_connection_is_checked)
{
	start_server(STRANGER, true);
	ctl_fails(&d, PYP_EXIT_PERMISSION, "another user (uid 65534)", "watch", "-n", "1", NULL);
	cr_assert(bytes_received() > 0);
	cr_assert(bytes_received() == 0, "the stranger's server was sent a request");
}

Test(client, users_own_server_is_trusted)
{
	d.uid = STRANGER;
	start_server(STRANGER, false);
	free(ctl_ok(&d, "status", NULL));
	cr_assert(bytes_received() > 0);
	/* root's server is accepted */
	end_server();
	start_server(0, false);
	free(ctl_ok(&d, "status", NULL));
	d.uid = 0;
}

Test(client, terminal_gets_no_escape_sequences)
{
	start_server(0, false);
	assert_harmless(ON_TERMINAL("", "status"));
	assert_harmless(ON_TERMINAL("", "status", "--json"));
	assert_harmless(ON_TERMINAL("", "snapshot"));
	assert_harmless(ON_TERMINAL("", "snapshot", "-f", "pstats"));
	assert_harmless(ON_TERMINAL("", "ping"));
	assert_harmless(ON_TERMINAL("", "attach", "1"));
	assert_harmless(ON_TERMINAL("", "watch", "-n", "1", "-i", "0.05"));
	assert_harmless(ON_TERMINAL("", "timeline"));
}

/* ncurses writes its own escape sequences. */
Test(client, full_screen_gets_no_escape_sequences)
{
	char *text;

	start_server(0, false);
	text = ON_TERMINAL("tw<zyq", "top", "-i", "0.05");
	cr_assert(strstr(text, "FUNCTION"), "%s", text);
	cr_assert(!strstr(text, "\033]"), "%s", text);
	cr_assert(!strstr(text, "\xe2\x80\xae") && !strstr(text, "\xc2\x9b"), "%s", text);
	free(text);
}

/* Files and pipes get the exact bytes. */
Test(client, pipes_get_all_bytes)
{
	char *text;

	start_server(0, false);
	text = ctl_ok(&d, "snapshot", NULL);
	cr_assert_str_eq(text, EVIL "a snapshot\n");
	free(text);
}
