// SPDX-License-Identifier: BSD-2-Clause
/*
 * Clients that connect and say nothing, or very little at a time: they shut nobody out, and those
 * that never finish a request are dropped.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "harness/daemon.h"
#include "harness/test.h"
#include "harness/traced.h"

#define IDLE	   64 /* as many as the daemon serves at a time */
#define DEADLINE_S 20.0

static struct pyprofd d;
static int fds[IDLE];

static void setup(void)
{
	signal(SIGPIPE, SIG_IGN);
	pyprofd_start(&d, NULL);
}

static void teardown(void)
{
	pyprofd_shutdown(&d);
}

TestSuite(clients, .init = setup, .fini = teardown, .timeout = 120);

static int dial(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", d.sock);
	cr_assert(fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
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

static void is_answered_soon(void)
{
	double start = traced_seconds(), took;

	free(ctl_ok(&d, "status", NULL));
	took = traced_seconds() - start;
	fprintf(stderr, "  status %.3f s\n", took);
	cr_assert(took < 3.0, "status took %.3f s", took);
}

Test(clients, idle_ones_shut_nobody_out)
{
	dial_all("");
	for (int i = 0; i < 5; i++)
		is_answered_soon();
	close_all();
}

Test(clients, half_sent_requests_shut_nobody_out)
{
	dial_all("POST /v1/stop HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{");
	for (int i = 0; i < 5; i++)
		is_answered_soon();
	close_all();
}

/* A byte now and then is no progress. */
static bool is_open(int fd)
{
	char c;

	if (send(fd, "x", 1, MSG_NOSIGNAL) < 0)
		return false;
	return recv(fd, &c, 1, MSG_DONTWAIT) != 0;
}

Test(clients, trickling_ones_are_dropped)
{
	double end = traced_seconds() + DEADLINE_S;
	int fd = dial();

	cr_assert(send(fd, "GET /v1/ping HTTP/1.1\r\nX: ", 26, MSG_NOSIGNAL) == 26);
	while (is_open(fd)) {
		cr_assert(traced_seconds() < end, "it is still served");
		poll(NULL, 0, 500);
	}
	close(fd);
}
