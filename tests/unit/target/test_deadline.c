// SPDX-License-Identifier: BSD-2-Clause
/* Calls with a deadline. A blocking call waits for the end of a pipe. */
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness/test.h"
#include "target/deadline.h"
#include "target/target.h"

struct job {
	int answer, wait_for; /* a descriptor; -1: do not wait */
	int released;	      /* pipe that reports the release; -1: none */
};

static void *job_new(int answer, int wait_for, int released)
{
	struct job *j = malloc(sizeof(*j));

	*j = (struct job){answer, wait_for, released};
	return j;
}

static int work(void *job)
{
	struct job *j = job;
	char c;

	if (j->wait_for >= 0)
		(void)!read(j->wait_for, &c, 1);
	return j->answer;
}

static void job_release(void *job)
{
	struct job *j = job;

	if (j->released >= 0)
		(void)!write(j->released, "r", 1);
	free(j);
}

/* A call that returns in time: the job still belongs to the caller. */
static int call(pid_t pid, int answer)
{
	void *job = job_new(answer, -1, -1);
	int r = deadline_run(pid, work, &job, job_release);

	cr_assert_not_null(job);
	job_release(job);
	return r;
}

/* A call that blocks until the writing end of the pipe is closed. */
static void get_stuck(pid_t pid, const int block[2], int released)
{
	void *job = job_new(0, block[0], released);

	assert_err(deadline_run(pid, work, &job, job_release), -ETIMEDOUT);
	cr_assert_null(job);
}

/* Wait for n releases; an abandoned worker is removed from the list before it releases its job. */
static void wait_for_releases(int fd, int n)
{
	char c;

	while (n--)
		cr_assert_eq(read(fd, &c, 1), 1);
	cr_assert_eq(deadline_counts().stuck, 0);
}

/* How often this process has waited */
static long waits(void)
{
	struct rusage usage;

	assert_ok(getrusage(RUSAGE_SELF, &usage));
	return usage.ru_nvcsw;
}

#define CALLS 1000

Test(deadline, answers_pass_through)
{
	for (int i = 0; i < 100; i++)
		cr_assert_eq(call(1, i - 50), i - 50);
	cr_assert_eq(deadline_counts().late, 0);
	check_no_leaks();
}

Test(deadline, a_stuck_thread_holds_up_no_other)
{
	int block[2], released[2];
	void *job;
	long before;

	cr_assert(pipe(block) == 0 && pipe(released) == 0);
	get_stuck(7, block, released[1]);
	cr_assert(deadline_counts().late == 1 && deadline_counts().stuck == 1);
	before = waits();
	for (int i = 0; i < CALLS; i++) {
		job = job_new(0, -1, -1);
		assert_err(deadline_run(7, work, &job, job_release), -ETIMEDOUT);
		cr_assert_not_null(job); /* the call was not started */
		job_release(job);
	}
	cr_assert_lt(waits() - before, CALLS / 10);
	cr_assert_eq(call(8, 42), 42);
	close(block[1]);
	wait_for_releases(released[0], 1);
	cr_assert_eq(call(7, 43), 43);
	cr_assert_eq(deadline_counts().late, 1);
	close(block[0]);
	close(released[0]);
	close(released[1]);
	check_no_leaks();
}

Test(deadline, no_more_than_so_many_are_stuck)
{
	int block[2], released[2];
	void *job;

	cr_assert(pipe(block) == 0 && pipe(released) == 0);
	for (int i = 0; i < DEADLINE_MAX; i++)
		get_stuck(100 + i, block, released[1]);
	job = job_new(0, -1, -1);
	assert_err(deadline_run(99, work, &job, job_release), -EBUSY);
	job_release(job);
	cr_assert_eq(deadline_counts().stuck, DEADLINE_MAX);
	close(block[1]);
	wait_for_releases(released[0], DEADLINE_MAX);
	cr_assert_eq(call(99, 1), 1);
	close(block[0]);
	close(released[0]);
	close(released[1]);
	check_no_leaks();
}

static uint64_t ms_since(uint64_t begun)
{
	return (clock_monotonic_ns() - begun) / 1000000;
}

/* A call that computes for long is not stuck, as the machine may be slow. */
static int compute(void *job)
{
	const uint64_t begun = clock_monotonic_ns();

	while (ms_since(begun) <= 2 * DEADLINE_MS)
		;
	return ((struct job *)job)->answer;
}

Test(deadline, a_computing_thread_is_waited_for)
{
	void *job = job_new(5, -1, -1);

	cr_assert_eq(deadline_run(3, compute, &job, job_release), 5);
	job_release(job);
	check_no_leaks();
}

/* A forked child has none of the worker threads: it runs the call itself. */
Test(deadline, in_a_child)
{
	int block[2], released[2], status;
	pid_t child;

	cr_assert_eq(call(1, 2), 2);
	cr_assert(pipe(block) == 0 && pipe(released) == 0);
	get_stuck(7, block, released[1]);
	child = fork();
	if (child == 0) {
		struct target *t = NULL;
		int r = call(7, 3) == 3 ? target_open(getpid(), &t, NULL) : -1;

		target_free(t);
		deadline_here();
		_exit(r == 0 && call(7, 4) == 4 ? 0 : 1);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	close(block[1]);
	wait_for_releases(released[0], 1);
	close(block[0]);
	close(released[0]);
	close(released[1]);
	check_no_leaks();
}

Test(deadline, words)
{
	struct diag diag = {0};

	assert_err(deadline_diag(&diag, -ETIMEDOUT, 12), -ETIMEDOUT);
	cr_assert(diag.exit == PYP_EXIT_FAILURE && strstr(diag.msg, "process 12") && diag.hint[0]);
	diag_clear(&diag);
	assert_err(deadline_diag(&diag, -EBUSY, 12), -EBUSY);
	cr_assert(diag.exit == PYP_EXIT_FAILURE && strstr(diag.msg, "64 other processes"));
	cr_assert(deadline_missed(-EBUSY) && deadline_missed(-ETIMEDOUT));
	cr_assert(!deadline_missed(-EAGAIN) && !deadline_missed(0));
}
