// SPDX-License-Identifier: BSD-2-Clause
/* base/helper: what helper processes have, what they send, and how they end. */
#include "base/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/reaper.h"
#include "harness/patience.h"
#include "harness/test.h"

#define SOON_NS UINT64_C(50000000)

static struct helper h;

static void start(const struct helper_opts *o, helper_fn run)
{
	assert_ok(helper_start(o, run, NULL, &h));
}

/* Waits for a message, or for the error instead of it. */
static int await(void *message, size_t size)
{
	int r;

	while ((r = helper_read(&h, message, size)) == -EINPROGRESS) {
		struct pollfd p = {.fd = h.fd, .events = POLLIN};

		cr_assert(!patience_over());
		(void)poll(&p, 1, PATIENCE_STEP_MS);
	}
	return r;
}

static void end(void)
{
	pid_t pid = h.pid;

	helper_end(&h);
	cr_assert(h.pid == 0 && h.fd == -1);
	while (reaper_pending())
		cr_assert(!patience_over());
	cr_assert(waitpid(pid, NULL, WNOHANG) < 0 && errno == ECHILD, "it was not reaped");
}

/* ---- what a helper has ---- */

struct report {
	unsigned int descriptors; /* open ones above the standard streams */
	bool follows, blocks_term, blocks_all, leads_session, has_stderr;
	char name[16];
	int given;
};

static void report(struct helper_side *s)
{
	struct report r = {.given = s->fds[1]};
	sigset_t mask;
	int death = 0;

	for (int fd = 3; fd < 256; fd++)
		r.descriptors += fcntl(fd, F_GETFD) >= 0;
	sigprocmask(SIG_SETMASK, NULL, &mask);
	r.blocks_term = sigismember(&mask, SIGTERM) && sigismember(&mask, SIGINT);
	r.blocks_all = sigismember(&mask, SIGUSR1);
	prctl(PR_GET_PDEATHSIG, &death);
	r.follows = death == SIGKILL;
	r.leads_session = getsid(0) == getpid();
	prctl(PR_GET_NAME, r.name);
	r.has_stderr = fcntl(STDERR_FILENO, F_GETFD) >= 0;
	if (send(s->chan, &r, sizeof(r), 0) != sizeof(r))
		_exit(1);
}

static struct report report_of(const struct helper_opts *o)
{
	struct report r = {0};

	start(o, report);
	assert_ok(await(&r, sizeof(r)));
	end();
	return r;
}

Test(helper, has_only_what_it_was_given)
{
	_cleanup_close_ int other = open("/dev/null", O_RDONLY);
	_cleanup_close_ int given = open("/dev/null", O_RDONLY);
	const struct report r =
		report_of(&(struct helper_opts){.name = "tested", .fds = {-1, given}, .nfds = 2});

	cr_assert(other >= 0);
	cr_assert_eq(r.descriptors, 2, "its channel and one more, not %u", r.descriptors);
	cr_assert_eq(r.given, given);
	cr_assert_str_eq(r.name, "tested");
	cr_assert(r.follows && r.blocks_term && !r.blocks_all && !r.leads_session && r.has_stderr);
	check_no_leaks();
}

/* The place of a standard stream is filled, whatever was given. */
Test(helper, descriptors_in_the_places_of_standard_streams)
{
	struct report r;

	close(STDIN_FILENO);
	r = report_of(&(struct helper_opts){.fds = {-1, STDERR_FILENO}, .nfds = 2});
	cr_assert_gt(r.given, STDERR_FILENO);
	cr_assert_eq(r.descriptors, 2);
}

Test(helper, in_a_session_of_its_own)
{
	const struct report r =
		report_of(&(struct helper_opts){.flags = HELPER_SESSION | HELPER_STAYS});

	cr_assert(r.leads_session && r.blocks_all && !r.follows);
	check_no_leaks();
}

static void pass_on(struct helper_side *s)
{
	pid_t pid;

	assert_ok(
		helper_start(&(struct helper_opts){.fds = {s->chan}, .nfds = 1}, s->ctx, NULL, &h));
	pid = h.pid;
	if (write(s->chan, &pid, sizeof(pid)) != sizeof(pid))
		_exit(1);
	for (;;)
		pause();
}

static void stay(struct helper_side *s)
{
	(void)s;
	for (;;)
		pause();
}

static bool is_there(pid_t pid)
{
	char path[64], text[256] = "", *state;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		text[0] = '\0';
	closep(&fd);
	state = strrchr(text, ')');
	return state && state[2] != 'Z';
}

Test(helper, ends_with_its_parent)
{
	pid_t pid;

	assert_ok(helper_start(&(struct helper_opts){.limit_ns = 0}, pass_on, stay, &h));
	assert_ok(await(&pid, sizeof(pid)));
	cr_assert(is_there(pid));
	end();
	while (is_there(pid))
		cr_assert(!patience_over());
}

/* ---- messages ---- */

static void say_twice(struct helper_side *s)
{
	for (uint32_t i = 0; i < 2; i++)
		for (size_t k = 0; k < sizeof(i); k++)
			if (write(s->chan, (char *)&i + k, 1) != 1)
				_exit(1);
	stay(s);
}

Test(helper, messages_in_pieces)
{
	uint32_t number = 7;

	start(&(struct helper_opts){.limit_ns = 0}, say_twice);
	assert_ok(await(&number, sizeof(number)));
	cr_assert_eq(number, 0);
	assert_ok(await(&number, sizeof(number)));
	cr_assert_eq(number, 1);
	assert_err(helper_read(&h, &number, sizeof(number)), -EINPROGRESS);
	end();
	check_no_leaks();
}

static void say_half(struct helper_side *s)
{
	(void)!write(s->chan, "12", 2);
}

Test(helper, half_a_message)
{
	uint32_t number;

	start(&(struct helper_opts){.limit_ns = 0}, say_half);
	assert_err(await(&number, sizeof(number)), -EPIPE);
	end();
	check_no_leaks();
}

/* ---- ends ---- */

static void expect_ending(helper_fn run, int err, const char *text)
{
	const struct helper_opts o = {.limit_ns = err == -ETIMEDOUT ? SOON_NS : 0};
	char ending[HELPER_ENDING];
	uint32_t number;

	start(&o, run);
	assert_err(await(&number, sizeof(number)), err);
	cr_expect_str_eq(helper_ending(&h, ending), text);
	end();
}

static void crash(struct helper_side *s)
{
	(void)s;
	(void)signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
}

static void be_killed(struct helper_side *s)
{
	(void)s;
	raise(SIGKILL);
}

static void use_up_cpu(struct helper_side *s)
{
	(void)s;
	raise(SIGXCPU);
}

static void fail(struct helper_side *s)
{
	(void)s;
	_exit(3);
}

static void be_stopped(struct helper_side *s)
{
	(void)s;
	raise(SIGSTOP);
}

static void close_channel(struct helper_side *s)
{
	close(s->chan);
	stay(s);
}

Test(helper, endings)
{
	expect_ending(crash, -EPIPE, "was killed by SIGSEGV");
	expect_ending(be_killed, -EPIPE, "was killed by SIGKILL");
	expect_ending(use_up_cpu, -EPIPE, "was killed by SIGXCPU: its CPU time reached the limit");
	expect_ending(fail, -EPIPE, "ended with status 3");
	expect_ending(stay, -ETIMEDOUT, "did not answer within 0.05 seconds");
	expect_ending(be_stopped, -ETIMEDOUT, "was stopped by SIGSTOP");
	expect_ending(close_channel, -EPIPE, "closed its channel");
	check_no_leaks();
}

Test(helper, ends_are_not_waited_for)
{
	struct pollfd p = {.fd = reaper_fd(), .events = POLLIN};
	struct helper_opts o = {.limit_ns = 0};
	pid_t pid;

	cr_assert(p.fd >= 0);
	start(&o, stay);
	pid = h.pid;
	helper_leave(&h);
	cr_assert_eq(reaper_pending(), 1);
	cr_assert_eq(poll(&p, 1, 0), 0, "it has not ended");
	assert_ok(kill(pid, SIGKILL));
	cr_assert_eq(poll(&p, 1, patience_left_ms()), 1);
	cr_assert_eq(reaper_pending(), 0);
	cr_assert_eq(poll(&p, 1, 0), 0);
}

/* ---- executed anew ---- */

struct job {
	uint32_t number;
	uint64_t code; /* address of a function in the test's process */
	char filler[300000];
};

struct anew {
	uint32_t number;
	size_t size;
	pid_t parent;
	bool knows, has_variable, is_elsewhere, given, last_byte;
	unsigned int descriptors;
};

/* A secret of the test's process */
static char known[16];

static void examine(struct helper_side *s)
{
	const struct job *job = s->ctx;
	struct anew a = {.number = job->number,
			 .size = s->size,
			 .parent = getppid(),
			 .knows = known[0],
			 .has_variable = getenv("PYPROF_TEST_SECRET"),
			 .is_elsewhere = (uintptr_t)examine != job->code,
			 .given = s->fds[0] < 0 && fcntl(s->fds[1], F_GETFD) >= 0,
			 .last_byte = job->filler[sizeof(job->filler) - 1] == 'x'};

	for (int fd = 3; fd < 256; fd++)
		a.descriptors += fcntl(fd, F_GETFD) >= 0;
	if (send(s->chan, &a, sizeof(a), 0) != sizeof(a))
		_exit(1);
	stay(s);
}

static struct anew start_anew(void)
{
	static struct job job = {.number = 4711};
	const struct helper_opts o = {.fds = {-1, STDERR_FILENO}, .nfds = 2};
	struct anew a;

	job.code = (uintptr_t)examine;
	job.filler[sizeof(job.filler) - 1] = 'x';
	assert_ok(helper_start_anew(&o, examine, &job, sizeof(job), &h));
	assert_ok(await(&a, sizeof(a)));
	return a;
}

Test(helper, executed_anew_has_a_job_and_nothing_else)
{
	struct anew a;

	memcpy(known, "secret", 7);
	setenv("PYPROF_TEST_SECRET", "secret", 1);
	a = start_anew();
	cr_assert_eq(a.number, 4711);
	cr_assert(a.size == sizeof(struct job) && a.last_byte);
	cr_assert_eq(a.parent, getpid(), "it is a child of this process");
	cr_assert(!a.knows && !a.has_variable && a.is_elsewhere && a.given);
	cr_assert_eq(a.descriptors, 2, "%u", a.descriptors);
	end();
}

/* The only child of this process */
static pid_t child(void)
{
	char path[64];
	int pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	f = fopen(path, "re");
	cr_assert(f && fscanf(f, "%d", &pid) == 1);
	fclose(f);
	return pid;
}

/* A zygote that was killed is replaced, also while it is asked. */
Test(helper, the_zygote_is_replaced)
{
	siginfo_t info;
	pid_t first, second;

	start_anew();
	end();
	first = child();
	assert_ok(kill(first, SIGKILL));
	cr_assert_eq(waitid(P_PID, (id_t)first, &info, WEXITED | WNOWAIT), 0);
	start_anew();
	end();
	second = child();
	cr_assert(second != first);
	check_no_leaks();
}

/* A forked process has a zygote of its own, which ends with it. */
Test(helper, a_forked_process_has_its_own_zygote)
{
	pid_t mine, other, parent = getpid();
	int status = 0;

	start_anew();
	end();
	mine = child();
	other = fork();
	if (other == 0)
		_exit(start_anew().parent == getpid() && getpid() != parent ? 0 : 1);
	cr_assert_eq(waitpid(other, &status, 0), other);
	cr_assert_eq(status, 0);
	cr_assert_eq(child(), mine);
	start_anew();
	end();
}
