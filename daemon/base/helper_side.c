// SPDX-License-Identifier: BSD-2-Clause
/* The beginning of a helper process: see helper_side.h. */
#include "base/helper_side.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/descriptors.h"

/* Is there still somebody at the other end of the channel? */
static bool is_connected(int chan)
{
	struct pollfd p = {.fd = chan};

	return poll(&p, 1, 0) == 0;
}

/*
 * The death signal comes only if the parent ends from now on. A process whose parent is in another
 * pid namespace sees 0 as its parent's pid, with and without a parent.
 */
static int follow_parent(const struct helper_side *s)
{
	pid_t parent;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	parent = getppid();
	return parent == s->parent || (parent == 0 && is_connected(s->chan)) ? 0 : -ESRCH;
}

/*
 * The daemon ends its helpers itself, so signals of the terminal and of a service manager to the
 * whole group are not for them. A helper is told by an error that its reader has gone.
 */
static void set_signals(unsigned int flags)
{
	sigset_t mask;

	sigemptyset(&mask);
	if (!(flags & HELPER_EXECS)) {
		sigaddset(&mask, SIGINT);
		sigaddset(&mask, SIGTERM);
		sigaddset(&mask, SIGHUP);
	}
	(void)signal(SIGPIPE, SIG_IGN);
	if (!(flags & HELPER_SESSION))
		(void)sigprocmask(SIG_SETMASK, &mask, NULL);
}

/* Moves it above the standard streams, whose places are to be filled. */
static int lift(int *fd)
{
	if (*fd >= 0 && *fd <= STDERR_FILENO)
		*fd = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return *fd;
}

static int fill_stdio(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (null < 0 || dup2(null, fd) < 0)
			return -errno;
	if (null > STDERR_FILENO)
		(void)close(null);
	return 0;
}

/* What stays open could keep a pipe from reaching its end, or probes attached. */
static int close_others(const struct helper_opts *o, struct helper_side *s)
{
	int keep[HELPER_FDS + 1], r;

	for (size_t i = 0; i < o->nfds; i++)
		if (s->fds[i] >= 0 && lift(&s->fds[i]) < 0)
			return -errno;
	if (lift(&s->chan) < 0)
		return -errno;
	memcpy(keep, s->fds, sizeof(s->fds));
	keep[HELPER_FDS] = s->chan;
	r = descriptors_close_others(STDERR_FILENO + 1, keep, HELPER_FDS + 1);
	return r == 0 && !(o->flags & HELPER_STDIO) ? fill_stdio() : r;
}

_Noreturn void helper_side_run(const struct helper_opts *o, struct helper_side *s, helper_fn run)
{
	if (!(o->flags & HELPER_STAYS) && follow_parent(s) < 0)
		_exit(1);
	if (o->flags & HELPER_SESSION)
		(void)setsid();
	set_signals(o->flags);
	if (!(o->flags & HELPER_EXECS) && close_others(o, s) < 0)
		_exit(1);
	if (o->name[0])
		(void)prctl(PR_SET_NAME, o->name);
	run(s);
	_exit(0);
}

pid_t helper_side_fork(const struct helper_opts *o, struct helper_side *s, helper_fn run)
{
	sigset_t all, before;
	pid_t pid;

	s->parent = getpid();
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0)
		helper_side_run(o, s, run);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pid < 0 ? -errno : pid;
}
