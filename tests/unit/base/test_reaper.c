// SPDX-License-Identifier: BSD-2-Clause
/*
 * base/reaper.c: children that end by themselves, that must be killed, and one that cannot be
 * killed yet.
 */
#include "base/reaper.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/patience.h"
#include "harness/test.h"

static pid_t spawn(bool stays)
{
	pid_t pid = fork();

	cr_assert(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (stays)
		pause();
	_exit(0);
}

static bool is_reaped(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) < 0 && errno == ECHILD;
}

Test(reaper, children)
{
	pid_t ends = spawn(false), stays = spawn(true);

	reaper_end(ends, -1, 1000);
	cr_assert(is_reaped(ends));
	reaper_end(stays, -1, 1);
	while (!is_reaped(stays) && reaper_pending())
		sched_yield();
	cr_assert(is_reaped(stays) && reaper_pending() == 0);
	check_no_leaks();
}

/* A process that the test does not kill stands for a process that cannot be killed. */
Test(reaper, what_does_not_end_is_counted)
{
	pid_t child = spawn(false), other = spawn(true);
	int pidfd = (int)syscall(SYS_pidfd_open, other, 0);

	reaper_end(child, pidfd, 10);
	cr_assert_eq(reaper_pending(), 1);
	cr_assert(kill(other, 0) == 0);
	assert_ok(kill(other, SIGKILL));
	cr_assert_eq(waitpid(other, NULL, 0), other);
	cr_assert_eq(reaper_pending(), 0);
	cr_assert(fcntl(pidfd, F_GETFD) < 0 && errno == EBADF);
	check_no_leaks();
}

/* A child that ends by itself is counted until then, after a grace, and not killed. */
Test(reaper, is_kept)
{
	pid_t stays = spawn(true);

	reaper_keep(stays);
	cr_assert_eq(reaper_pending(), 1);
	while (reaper_check(1, NULL) == 0)
		cr_assert(!patience_over());
	assert_err(reaper_check(1, NULL), -EBUSY);
	assert_ok(reaper_check(2, NULL));
	cr_assert(kill(stays, 0) == 0);
	assert_ok(kill(stays, SIGKILL));
	while (reaper_pending())
		sched_yield();
	cr_assert(is_reaped(stays));
	assert_ok(reaper_check(1, NULL));
	check_no_leaks();
}

/* After a fork, the list is the parent's. */
Test(reaper, of_another_process)
{
	pid_t stays = spawn(true), other;
	int status = 0;

	reaper_keep(stays);
	other = fork();
	if (other == 0)
		_exit(reaper_pending() ? 1 : 0);
	cr_assert_eq(waitpid(other, &status, 0), other);
	cr_assert_eq(status, 0);
	assert_ok(kill(stays, SIGKILL));
	while (reaper_pending())
		sched_yield();
}
