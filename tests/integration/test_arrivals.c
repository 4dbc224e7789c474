// SPDX-License-Identifier: BSD-2-Clause
/* probe/arrivals: the kernel's reports of processes. Other processes of the machine are reported, too. */
#include "probe/arrivals.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/caps.h"
#include "harness/patience.h"
#include "harness/test.h"

static struct arrivals *a;

struct seen {
	pid_t pid;
	unsigned int exec, fork, exit;
	struct pyp_arrival_file file;
};

static void setup(void)
{
	struct diag diag = {0};

	caps_require_bpf();
	assert_diag_ok(arrivals_open(&a, &diag), &diag);
}

static void note(void *ctx, const struct pyp_arrival *r)
{
	struct seen *s = ctx;

	if ((pid_t)r->pid != s->pid)
		return;
	s->exec += r->type == PYP_ARRIVAL_EXEC;
	s->fork += r->type == PYP_ARRIVAL_FORK;
	s->exit += r->type == PYP_ARRIVAL_EXIT;
	if (r->type == PYP_ARRIVAL_EXEC)
		s->file = r->file;
}

/* Everything about a process up to now. */
static struct seen seen_of(pid_t pid)
{
	struct seen s = {.pid = pid};

	cr_assert_geq(arrivals_read(a, note, &s), 0);
	return s;
}

static pid_t run(const char *path)
{
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (!pid) {
		execl(path, path, NULL);
		_exit(127);
	}
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	return pid;
}

TestSuite(arrivals, .init = setup);

Test(arrivals, exec_and_exit)
{
	struct seen s = seen_of(run("/bin/true"));

	cr_assert_eq(s.exec, 1);
	cr_assert_eq(s.exit, 1);
	cr_assert_gt(s.file.ino, 0);
	arrivals_free(a);
	check_no_leaks();
}

Test(arrivals, a_file_that_is_ignored)
{
	struct seen s = seen_of(run("/bin/true"));

	arrivals_ignore(a, &s.file);
	s = seen_of(run("/bin/true"));
	cr_assert_eq(s.exec + s.exit + s.fork, 0);
	s = seen_of(run("/bin/false"));
	cr_assert_eq(s.exec, 1);
	arrivals_free(a);
	check_no_leaks();
}

/* Returns whether the end of a process is reported. */
static unsigned int ends_of_child(bool watched, bool forgotten)
{
	pid_t child = fork();

	cr_assert_geq(child, 0);
	if (!child) {
		raise(SIGSTOP);
		_exit(0);
	}
	cr_assert_eq(waitpid(child, NULL, WUNTRACED), child);
	if (watched)
		arrivals_watch(a, child);
	if (forgotten)
		arrivals_forget(a, child);
	kill(child, SIGCONT);
	waitpid(child, NULL, 0);
	return seen_of(child).exit;
}

Test(arrivals, only_watched_processes)
{
	cr_assert_eq(ends_of_child(false, false), 0);
	cr_assert_eq(ends_of_child(true, false), 1);
	cr_assert_eq(ends_of_child(true, true), 0);
	arrivals_free(a);
	check_no_leaks();
}

struct forks {
	unsigned int n;
};

static void count_forks(void *ctx, const struct pyp_arrival *r)
{
	((struct forks *)ctx)->n += r->type == PYP_ARRIVAL_FORK;
}

Test(arrivals, forks_of_a_watched_process)
{
	struct forks forks = {0};

	arrivals_watch(a, getpid());
	for (int i = 0; i < 5; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
	cr_assert_geq(arrivals_read(a, count_forks, &forks), 0);
	cr_assert_geq(forks.n, 5);
	arrivals_free(a);
	check_no_leaks();
}

/* What does not fit is counted. */
Test(arrivals, losses_are_counted)
{
	arrivals_watch(a, getpid());
	while (!arrivals_lost(a)) {
		pid_t pid;

		cr_assert(!patience_over(), "waited for a loss");
		pid = fork();

		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
	arrivals_free(a);
	check_no_leaks();
}
