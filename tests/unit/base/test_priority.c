// SPDX-License-Identifier: BSD-2-Clause
/* The precedence of a thread: raised and lowered, as often as one likes. */
#include "base/priority.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/test.h"

static int niceness(void)
{
	return getpriority(PRIO_PROCESS, 0);
}

static bool may_raise(void)
{
	const struct rlimit none = {0};
	struct rlimit limit = none;

	(void)getrlimit(RLIMIT_NICE, &limit);
	return geteuid() == 0 || limit.rlim_cur >= 30;
}

/* Tests may run with another policy, such as in idle time, in which nothing is raised. */
static void as_usual(void)
{
	(void)sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
}

TestSuite(priority, .init = as_usual);

Test(priority, raised_and_lowered)
{
	const int before = niceness(), policy = sched_getscheduler(0);

	if (!may_raise())
		cr_skip_test("needs CAP_SYS_NICE");
	for (int i = 0; i < 3; i++) {
		priority_raise();
		cr_assert_eq(niceness(), -10, "%d: %d", i, niceness());
		priority_lower();
		cr_assert_eq(niceness(), before, "%d: %d", i, niceness());
		cr_assert_eq(sched_getscheduler(0), policy);
	}
}

/* Of two windows, the one that is closed first does not end it for the other. */
Test(priority, has_several_users)
{
	const int before = niceness();

	if (!may_raise())
		cr_skip_test("needs CAP_SYS_NICE");
	priority_raise();
	priority_raise();
	priority_lower();
	cr_assert_eq(niceness(), -10);
	priority_lower();
	cr_assert_eq(niceness(), before);
	priority_lower();
	cr_assert_eq(niceness(), before);
}

Test(priority, is_not_inherited)
{
	const int before = niceness();
	int status;
	pid_t pid;

	if (!may_raise())
		cr_skip_test("needs CAP_SYS_NICE");
	priority_raise();
	pid = fork();
	if (!pid)
		_exit(niceness() == (before < 0 ? 0 : before) || niceness() == 0 ? 0 : 1);
	priority_lower();
	cr_assert(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status));
}

/* Where somebody has preferred it already, nothing changes. */
Test(priority, stays_as_it_is)
{
	if (!may_raise() || setpriority(PRIO_PROCESS, 0, -15) < 0)
		cr_skip_test("needs CAP_SYS_NICE");
	priority_raise();
	cr_assert_eq(niceness(), -15);
	priority_lower();
	cr_assert_eq(niceness(), -15);
}
