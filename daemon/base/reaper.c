// SPDX-License-Identifier: BSD-2-Clause
/* Reaping child processes without waiting: see reaper.h. */
#include "base/reaper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"

struct pending {
	pid_t child; /* 0: not a child of this process */
	int pidfd;
	uint64_t since_ns; /* CLOCK_MONOTONIC */
};

/* After a fork, all of this is the parent's. */
static struct {
	pid_t owner;
	struct pending *v;
	uint32_t n, room;
	int epoll; /* has all pidfds; -1: none */
} list = {.epoll = -1};

static void own_list(void)
{
	if (list.owner == getpid())
		return;
	list.owner = getpid();
	list.n = 0;
	list.epoll = -1;
}

static bool has_ended(int pidfd, int ms)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, ms) > 0;
}

static void watch(int pidfd)
{
	struct epoll_event e = {.events = EPOLLIN};

	if (list.epoll >= 0)
		(void)epoll_ctl(list.epoll, EPOLL_CTL_ADD, pidfd, &e);
}

/* Takes ownership of the pidfd. Without memory the child stays a zombie when it has ended. */
static void keep(pid_t child, int pidfd)
{
	struct pending *v;

	(void)reaper_pending();
	v = array_room(list.v, &list.room, list.n + 1, 16, sizeof(*v));
	if (!v) {
		(void)close(pidfd);
		return;
	}
	list.v = v;
	list.v[list.n++] = (struct pending){child, pidfd, clock_monotonic_ns()};
	watch(pidfd);
}

/* Without a pidfd there is no wait with a timeout: kill it and try to reap it once. */
static void end_blind(pid_t child)
{
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, WNOHANG);
}

/* Reap a child, or leave it to later calls if it has not ended. Takes ownership of its pidfd. */
static void reap_or_keep(pid_t child, int pidfd)
{
	if (has_ended(pidfd, 0)) {
		(void)waitpid(child, NULL, 0);
		(void)close(pidfd);
	} else {
		keep(child, pidfd);
	}
}

void reaper_keep(pid_t child)
{
	int fd = (int)syscall(SYS_pidfd_open, child, 0);

	if (fd < 0)
		end_blind(child);
	else
		reap_or_keep(child, fd);
}

void reaper_end(pid_t child, int other, int ms)
{
	int fd = (int)syscall(SYS_pidfd_open, child, 0);

	if (fd < 0) {
		end_blind(child);
	} else {
		if (!has_ended(fd, ms)) {
			(void)kill(child, SIGKILL);
			(void)has_ended(fd, ms);
		}
		reap_or_keep(child, fd);
	}
	if (other >= 0 && !has_ended(other, ms))
		keep(0, other);
	else if (other >= 0)
		(void)close(other);
}

unsigned int reaper_pending(void)
{
	uint32_t left = 0;

	own_list();
	for (uint32_t i = 0; i < list.n; i++) {
		if (!has_ended(list.v[i].pidfd, 0)) {
			list.v[left++] = list.v[i];
			continue;
		}
		if (list.v[i].child)
			(void)waitpid(list.v[i].child, NULL, WNOHANG);
		(void)close(list.v[i].pidfd);
	}
	list.n = left;
	return left;
}

int reaper_fd(void)
{
	own_list();
	if (list.epoll >= 0)
		return list.epoll;
	list.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (list.epoll < 0)
		return -errno;
	for (uint32_t i = 0; i < list.n; i++)
		watch(list.v[i].pidfd);
	return list.epoll;
}

int reaper_check(unsigned int max, struct diag *diag)
{
	const uint64_t now = clock_monotonic_ns();
	unsigned int n = 0;

	(void)reaper_pending();
	for (uint32_t i = 0; i < list.n; i++)
		n += now - list.v[i].since_ns >= REAPER_GRACE_MS * UINT64_C(1000000);
	if (n < max)
		return 0;
	return diag_set(
		diag, -EBUSY, PYP_EXIT_FAILURE, "terminate the servers of these file systems",
		"%u helper processes wait for file systems that do not respond and cannot be "
		"terminated",
		n);
}
