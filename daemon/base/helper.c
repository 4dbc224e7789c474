// SPDX-License-Identifier: BSD-2-Clause
/* Helper processes: see helper.h. */
#include "base/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/reaper.h"
#include "base/zygote.h"

/* How long to wait for the end of a helper that has closed its channel, ms */
#define ENDING_MS 20

/* ---- start ------------------------------------------------------------------------------- */

static void forget(struct helper *h)
{
	closep(&h->fd);
	*h = HELPER_NONE;
}

/* Our end is in *ret, which has no process yet. */
static int open_channel(unsigned int flags, struct helper *ret, int *ret_theirs)
{
	const int type = flags & HELPER_PACKETS ? SOCK_SEQPACKET : SOCK_STREAM;
	int ends[2], err;

	*ret = HELPER_NONE;
	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	ret->fd = ends[0];
	*ret_theirs = ends[1];
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0)
		return 0;
	err = -errno;
	forget(ret);
	return err;
}

/* pid: of the new process, or a negative errno */
static int started(struct helper *h, pid_t pid, uint64_t limit_ns)
{
	if (pid < 0) {
		forget(h);
		return pid;
	}
	h->pid = pid;
	h->limit_ns = limit_ns;
	h->deadline_ns = limit_ns ? clock_monotonic_ns() + limit_ns : UINT64_MAX;
	return 0;
}

int helper_start(const struct helper_opts *o, helper_fn run, void *ctx, struct helper *ret)
{
	_cleanup_close_ int theirs = -1;
	struct helper_side side = {.ctx = ctx};
	int r = open_channel(o->flags, ret, &theirs);

	if (r < 0)
		return r;
	side.chan = theirs;
	for (size_t i = 0; i < HELPER_FDS; i++)
		side.fds[i] = i < o->nfds ? o->fds[i] : -1;
	return started(ret, helper_side_fork(o, &side, run), o->limit_ns);
}

/* A file in memory: no limit of a socket's buffer applies, and the zygote need not read it. */
static int write_job(const void *job, size_t size)
{
	_cleanup_close_ int fd = memfd_create("job", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	for (size_t n = 0; n < size;) {
		ssize_t put = write(fd, (const char *)job + n, size - n);

		if (put <= 0)
			return put < 0 ? -errno : -EIO;
		n += (size_t)put;
	}
	return TAKE_FD(fd);
}

int helper_start_anew(const struct helper_opts *o, helper_fn run, const void *job, size_t size,
		      struct helper *ret)
{
	_cleanup_close_ int theirs = -1, file = -1;
	int r = open_channel(o->flags, ret, &theirs);

	if (r < 0)
		return r;
	file = write_job(job, size);
	return started(ret, file < 0 ? file : zygote_fork(o, run, theirs, file, size), o->limit_ns);
}

void helper_prepare(void)
{
	(void)zygote_start();
}

uintptr_t helper_number_of(void (*function)(void))
{
	return zygote_number_of(function);
}

void (*helper_function_of(uintptr_t number))(void)
{
	return zygote_function_of(number);
}

/* ---- answers ----------------------------------------------------------------------------- */

int helper_read(struct helper *h, void *message, size_t size)
{
	while (h->have < size) {
		ssize_t n = recv(h->fd, (char *)message + h->have, size - h->have, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return clock_monotonic_ns() < h->deadline_ns ? -EINPROGRESS : -ETIMEDOUT;
		if (n <= 0)
			return -EPIPE;
		h->have += (size_t)n;
	}
	h->have = 0;
	return 0;
}

/* ---- end --------------------------------------------------------------------------------- */

void helper_end(struct helper *h)
{
	if (h->pid > 0) {
		(void)kill(h->pid, SIGKILL);
		reaper_keep(h->pid);
	}
	forget(h);
}

void helper_leave(struct helper *h)
{
	if (h->pid > 0)
		reaper_keep(h->pid);
	forget(h);
}

static const struct {
	int number;
	const char *name, *limit;
} signals[] = {
	{SIGKILL, "SIGKILL", ""},
	{SIGTERM, "SIGTERM", ""},
	{SIGSTOP, "SIGSTOP", ""},
	{SIGSEGV, "SIGSEGV", ""},
	{SIGBUS, "SIGBUS", ""},
	{SIGABRT, "SIGABRT", ""},
	{SIGILL, "SIGILL", ""},
	{SIGFPE, "SIGFPE", ""},
	{SIGSYS, "SIGSYS", ": it made a system call of another instruction set"},
	{SIGXCPU, "SIGXCPU", ": its CPU time reached the limit"},
	{SIGXFSZ, "SIGXFSZ", ": a file reached the limit"},
};

/* "was killed by SIGSEGV" */
static const char *describe_signal(const char *what, int number, char out[HELPER_ENDING])
{
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		if (signals[i].number != number)
			continue;
		snprintf(out, HELPER_ENDING, "%s %s%s", what, signals[i].name, signals[i].limit);
		return out;
	}
	snprintf(out, HELPER_ENDING, "%s signal %d", what, number);
	return out;
}

/* Its end follows the end of its channel, unless it is the kernel that it waits for. */
static bool has_changed(const struct helper *h, siginfo_t *info)
{
	const uint64_t until = clock_monotonic_ns() + ENDING_MS * UINT64_C(1000000);

	do {
		info->si_pid = 0;
		if (waitid(P_PID, (id_t)h->pid, info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) < 0)
			return false;
		if (info->si_pid)
			return true;
		(void)poll(NULL, 0, 1);
	} while (clock_monotonic_ns() < h->deadline_ns && clock_monotonic_ns() < until);
	return false;
}

int helper_killed_by(const struct helper *h)
{
	siginfo_t info = {0};
	const bool killed = h->pid > 0 && has_changed(h, &info) &&
			    (info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED);

	return killed ? info.si_status : 0;
}

const char *helper_ending(const struct helper *h, char out[HELPER_ENDING])
{
	siginfo_t info = {0};

	if (h->pid > 0 && has_changed(h, &info)) {
		if (info.si_code == CLD_EXITED)
			snprintf(out, HELPER_ENDING, "ended with status %d", info.si_status);
		else
			describe_signal(info.si_code == CLD_STOPPED ? "was stopped by"
								    : "was killed by",
					info.si_status, out);
	} else if (clock_monotonic_ns() >= h->deadline_ns) {
		snprintf(out, HELPER_ENDING, "did not answer within %g seconds",
			 (double)h->limit_ns / 1e9);
	} else {
		snprintf(out, HELPER_ENDING, "closed its channel");
	}
	return out;
}
