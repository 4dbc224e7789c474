// SPDX-License-Identifier: BSD-2-Clause
/*
 * Clients that connect and send nothing or very little, or do not read. They do not block others;
 * the daemon closes connections that never complete a request or do not read the response; no user
 * can take other users' connections.
 */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/test.h"
#include "harness/traced.h"

#define IDLE	 64 /* the daemon's limit of connections */
#define FLOOD	 300
#define STRANGER 4711
#define ANOTHER	 4712
#define OWNER	 4713

#define PING "GET /v1/ping HTTP/1.1\r\nHost: x\r\n\r\n"

static struct pyprofd d;
static int fds[FLOOD];

static void setup(void)
{
	signal(SIGPIPE, SIG_IGN);
	pyprofd_start(&d, NULL);
}

static void teardown(void)
{
	pyprofd_shutdown(&d);
}

TestSuite(clients, .init = setup, .fini = teardown);

static int dial(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", d.sock);
	cr_assert(fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	return fd;
}

/*
 * A connection is attributed to the user that connected, even if another user's process uses it
 * later.
 */
static int dial_as(uid_t uid)
{
	int fd;

	assert_ok(seteuid(uid));
	fd = dial();
	assert_ok(seteuid(0));
	return fd;
}

static void dial_all(const char *text)
{
	for (int i = 0; i < IDLE; i++) {
		fds[i] = dial();
		(void)!send(fds[i], text, strlen(text), MSG_NOSIGNAL);
	}
}

static void close_all(void)
{
	for (int i = 0; i < IDLE; i++)
		close(fds[i]);
}

/* The daemon's counter */
static json_int_t dropped(const char *reason)
{
	json_t *root = ctl_status(&d);
	json_t *n = json_object_get(json_object_get(root, "dropped_clients"), reason);
	json_int_t ret = json_integer_value(n);

	cr_assert(n, "it does not count them");
	json_decref(root);
	return ret;
}

/*
 * Returns whether the daemon has closed no connection as late since *late was read, and updates it.
 * On a busy machine, what the test did may have taken longer than a request may take: the test
 * repeats it then.
 */
static bool none_was_late(json_int_t *late)
{
	json_int_t before = *late;

	*late = dropped("late");
	cr_assert(*late == before || !patience_over(), "connections are late each time");
	return *late == before;
}

/* Others are answered before any of these connections is late: no answer waits for that. */
static void shut_nobody_out(const char *text)
{
	json_int_t late = dropped("late");
	bool in_time;

	do {
		dial_all(text);
		for (int i = 0; i < 5; i++)
			free(ctl_ok(&d, "status", NULL));
		in_time = none_was_late(&late);
		close_all();
	} while (!in_time);
}

Test(clients, idle_ones_shut_nobody_out)
{
	shut_nobody_out("");
}

Test(clients, half_sent_requests_shut_nobody_out)
{
	shut_nobody_out("POST /v1/stop HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{");
}

/* Sends single bytes, which do not count as progress. */
static bool is_open(int fd)
{
	char c;

	if (send(fd, "x", 1, MSG_NOSIGNAL) < 0)
		return false;
	return recv(fd, &c, 1, MSG_DONTWAIT) != 0;
}

Test(clients, trickling_ones_are_dropped)
{
	int fd = dial();

	cr_assert(send(fd, "GET /v1/ping HTTP/1.1\r\nX: ", 26, MSG_NOSIGNAL) == 26);
	while (is_open(fd)) {
		cr_assert(!patience_over(), "it is still served");
		patience_pass(PATIENCE_MOMENT_MS);
	}
	close(fd);
}

/* The HTTP status of the response; 0: closed. */
static int answer_on(int fd)
{
	const struct timeval limit = patience_left();
	char text[13] = "";
	ssize_t n;

	assert_ok(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	n = recv(fd, text, sizeof(text) - 1, MSG_WAITALL);
	cr_assert(n >= 0 || errno == ECONNRESET, "no answer: %s", strerror(errno));
	return n > 0 ? (int)strtol(text + strlen("HTTP/1.1 "), NULL, 10) : 0;
}

static int ping_on(int fd)
{
	(void)!send(fd, PING, strlen(PING), MSG_NOSIGNAL);
	return answer_on(fd);
}

static void is_answered(uid_t uid, int expected)
{
	int fd = dial_as(uid), status = ping_on(fd);

	cr_assert(status == expected, "user %u, a new connection: %d", uid, status);
	close(fd);
}

static void flood_as(uid_t uid)
{
	const char half[] = "GET /v1/ping HTTP/1.1\r\nX: ";

	for (int i = 0; i < FLOOD; i++) {
		fds[i] = dial_as(uid);
		(void)!send(fds[i], half, strlen(half), MSG_NOSIGNAL);
	}
}

static void flood_ends(void)
{
	for (int i = 0; i < FLOOD; i++)
		close(fds[i]);
}

/* Returns whether this connection does not answer with this status any more. Closes it. */
static bool lost(int fd, int expected)
{
	int status = ping_on(fd);

	close(fd);
	return status != expected;
}

/* The socket's mode admits everyone, as an administrator may configure it. */
Test(clients, one_user_takes_no_place_of_others)
{
	json_int_t late = dropped("late");
	int root, another;

	assert_ok(chmod(d.sock, 0666));
	do {
		root = dial();
		another = dial_as(ANOTHER);
		flood_as(STRANGER);
		is_answered(0, 200);
		is_answered(ANOTHER, 403);
		is_answered(STRANGER, 403);
		root = lost(root, 200);
		another = lost(another, 403);
		flood_ends();
	} while (!none_was_late(&late));
	cr_expect(!root, "root has lost its connection");
	cr_expect(!another, "another user has lost its connection");
	cr_expect_geq(dropped("crowded"), FLOOD - IDLE);
}

/* Many users with few connections each, as with a range of subordinate user ids. */
Test(clients, many_users_take_no_place_of_root)
{
	json_int_t late = dropped("late");
	int root;

	assert_ok(chmod(d.sock, 0666));
	do {
		root = dial();
		for (uid_t i = 0; i < FLOOD; i++)
			fds[i] = dial_as(STRANGER + i);
		is_answered(0, 200);
		root = lost(root, 200);
		flood_ends();
	} while (!none_was_late(&late));
	cr_expect(!root, "root has lost its connection");
}

/* root and the daemon's user are admitted, and do not take each other's connections. */
Test(clients, root_and_the_daemons_user_leave_room_for_each_other)
{
	json_int_t late;
	int root, owner;

	pyprofd_shutdown(&d);
	pyprofd_init(&d);
	d.uid = OWNER;
	pyprofd_launch(&d, NULL);
	pyprofd_ready(&d);
	late = dropped("late");
	do {
		owner = dial_as(OWNER);
		flood_as(0);
		is_answered(OWNER, 200);
		owner = lost(owner, 200);
		flood_ends();
		root = dial();
		flood_as(OWNER);
		is_answered(0, 200);
		root = lost(root, 200);
		flood_ends();
	} while (!none_was_late(&late));
	cr_expect(!owner, "the daemon's user has lost its connection");
	cr_expect(!root, "root has lost its connection");
}

/* Waits without reading from the connection. */
static void until_closed(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLRDHUP};

	cr_assert(poll(&p, 1, patience_left_ms()) == 1 && p.revents & (POLLRDHUP | POLLHUP),
		  "it is still served");
}

/* A response larger than the kernel's buffer: functions with long names. */
Test(clients, unread_answers_are_dropped)
{
	const char ask[] = "GET /v1/snapshot?format=json HTTP/1.1\r\nHost: x\r\n\r\n";
	struct traced t;
	char pid[16];
	int fd;

	traced_ready(&t, NULL, traced_newest().exe, "long_names.py", "60", "48000", NULL);
	free(ctl_ok(&d, "attach", pid_text(pid, t.pid), NULL));
	traced_go(&t);
	traced_expect(&t, "done");
	fd = dial();
	cr_assert(send(fd, ask, strlen(ask), MSG_NOSIGNAL) > 0);
	until_closed(fd);
	cr_expect_eq(dropped("unread"), 1);
	cr_expect_eq(dropped("late"), 0);
	close(fd);
	traced_stop(&t);
}
