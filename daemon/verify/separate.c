// SPDX-License-Identifier: BSD-2-Clause
/* Helper processes: see separate.h. */
#include "verify/separate.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/reaper.h"
#include "target/target.h"

/* How long to wait for the end of a killed helper, or of a helper that has answered, ms */
#define END_MS 20

/* In the helper. -ESRCH: the parent has ended already; else the error of a system call. */
static int begin(const struct verify_opts *o, pid_t parent, int out)
{
	const int keep[] = {out, o->target ? o->target->pidfd : -1};
	sigset_t blocked;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	/* the parent ended before the death signal was set */
	if (getppid() != parent)
		return -ESRCH;
	/* the scratch process may end while it is written to */
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGHUP);
	(void)sigprocmask(SIG_SETMASK, &blocked, NULL);
	return descriptors_close_others(3, keep, sizeof(keep) / sizeof(*keep));
}

int separate_start(struct separate *s, const struct verify_opts *o,
		   void (*work)(const struct verify_opts *o, int out), uint64_t limit_ns)
{
	const pid_t self = getpid();
	int ends[2];

	*s = (struct separate){.from = -1, .deadline_ns = clock_monotonic_ns() + limit_ns};
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	s->from = ends[0];
	s->helper = fork();
	if (s->helper == 0) {
		if (begin(o, self, ends[1]) < 0)
			_exit(1);
		work(o, ends[1]);
		_exit(0);
	}
	if (s->helper < 0) {
		const int err = errno;

		(void)close(ends[1]);
		s->helper = 0;
		return -err;
	}
	(void)close(ends[1]);
	return 0;
}

int separate_receive(struct separate *s, void *answer, size_t size)
{
	while (s->have < size) {
		ssize_t n = read(s->from, (char *)answer + s->have, size - s->have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return clock_monotonic_ns() < s->deadline_ns ? -EINPROGRESS : -ETIMEDOUT;
		if (n <= 0)
			return -EPIPE;
		s->have += (size_t)n;
	}
	return 0;
}

void separate_end(struct separate *s, bool answered)
{
	if (s->helper > 0 && answered) {
		reaper_await(s->helper, END_MS);
	} else if (s->helper > 0) {
		(void)kill(s->helper, SIGKILL);
		reaper_end(s->helper, -1, END_MS);
	}
	s->helper = 0;
	closep(&s->from);
	s->from = -1;
}
