// SPDX-License-Identifier: BSD-2-Clause
/* Ending child processes without unbounded waits: see reaper.h. */
#include "base/reaper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Callers stop starting children long before. Beyond this, an ended child stays a zombie. */
#define PENDING_MAX 64u

static struct pending {
	pid_t child; /* 0: not a child of this process */
	int pidfd;
} pending[PENDING_MAX];
static unsigned int npending;
static pid_t owner; /* after a fork, the list belongs to the parent */

static bool has_ended(int pidfd, int ms)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, ms) > 0;
}

static void keep(pid_t child, int pidfd)
{
	(void)reaper_pending();
	owner = getpid();
	if (npending < PENDING_MAX)
		pending[npending++] = (struct pending){child, pidfd};
	else
		(void)close(pidfd);
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

void reaper_await(pid_t child, int ms)
{
	int fd = (int)syscall(SYS_pidfd_open, child, 0);

	if (fd < 0) {
		end_blind(child);
		return;
	}
	(void)has_ended(fd, ms);
	reap_or_keep(child, fd);
}

unsigned int reaper_pending(void)
{
	unsigned int left = 0;

	if (owner != getpid())
		npending = 0;
	for (unsigned int i = 0; i < npending; i++) {
		if (!has_ended(pending[i].pidfd, 0)) {
			pending[left++] = pending[i];
			continue;
		}
		if (pending[i].child)
			(void)waitpid(pending[i].child, NULL, WNOHANG);
		(void)close(pending[i].pidfd);
	}
	npending = left;
	return left;
}

int reaper_check(unsigned int max, struct diag *diag)
{
	const unsigned int n = reaper_pending();

	if (n < max)
		return 0;
	return diag_set(
		diag, -EBUSY, PYP_EXIT_FAILURE, "terminate the servers of these file systems",
		"%u helper processes wait for file systems that do not respond and cannot be "
		"terminated",
		n);
}
