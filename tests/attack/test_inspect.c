// SPDX-License-Identifier: BSD-2-Clause
/*
 * An inspector that a target has taken over: it crashes, hangs, sends invalid answers, or tries
 * forbidden operations. Only the attach fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "inspect/answer.h"
#include "inspect/helper.h"
#include "inspect/inspect.h"
#include "target/proc.h"

static struct traced t;

#define NEVER_NS UINT64_C(3600000000000)
#define SOON_NS                                                                                    \
	UINT64_C(200000000) /* for a helper that does not answer: it uses a CPU until then */

static void setup(void)
{
	traced_ready(&t, NULL, traced_newest().exe, "run.py", "busy_empty", "60", NULL);
	inspect_limit_ns = NEVER_NS;
}

static void teardown(void)
{
	inspect_test_helper = NULL;
	traced_stop(&t);
}

TestSuite(inspect, .init = setup, .fini = teardown);

/* The message says whether the time limit has passed. */
static void attach_fails(void (*helper)(int chan), int exit, const char *what)
{
	struct diag diag = {0};

	inspect_test_helper = helper;
	cr_assert(traced_try_attach(&t, &diag) < 0, "it was attached");
	cr_assert_eq((int)diag.exit, exit, "%s", diag.msg);
	cr_assert(strstr(diag.msg, what), "%s", diag.msg);
}

static void crash(int chan)
{
	(void)chan;
	abort();
}

static void hang(int chan)
{
	(void)chan;
	for (;;)
		;
}

static void say_anything(int chan)
{
	static const char noise[65536] = {1, 2, 3};

	(void)channel_write(chan, noise, sizeof(noise));
	hang(chan);
}

/* Send a header that announces more data than is allowed. */
static void promise(int chan)
{
	const struct answer_head h = {.question = QUESTION_FIND, .size = UINT32_MAX};

	(void)channel_write(chan, &h, sizeof(h));
	hang(chan);
}

static void lie(int chan)
{
	struct answer_head h = {.question = QUESTION_FIND};
	size_t size = answer_max(QUESTION_FIND);
	char *data = calloc(1, size);

	h.size = (uint32_t)size;
	(void)channel_write(chan, &h, sizeof(h));
	(void)channel_write(chan, data, size);
	hang(chan);
}

static void half(int chan)
{
	const struct answer_head h = {.question = QUESTION_FIND,
				      .size = (uint32_t)answer_max(QUESTION_FIND)};

	(void)channel_write(chan, &h, sizeof(h));
	hang(chan);
}

Test(inspect, crashes)
{
	attach_fails(crash, 5, "was killed by SIGSEGV");
}

/* The process ends after its stacks were read: nothing is left that could be freed again. */
Test(inspect, ended_after_the_answer)
{
	_cleanup_(inspect_result_deinit) struct inspect_result found = {0};
	_cleanup_(target_freep) struct target *target = NULL;
	_cleanup_(inspect_freep) struct inspect *in = NULL;
	struct python_stack *stacks = NULL;
	struct diag diag = {0};
	size_t n = 0;

	assert_diag_ok(target_open(t.pid, &target, &diag), &diag);
	assert_diag_ok(inspect_open(&(struct inspect_opts){.target = target}, &in, &found, &diag),
		       &diag);
	cr_assert_lt(inspect_stacks(in, INT32_MAX, &stacks, &n), 0);
	cr_assert(!stacks && !n);
	assert_ok(inspect_stacks(in, t.pid, &stacks, &n));
	cr_assert_geq(n, 1);
	python_stacks_free(stacks, n);
}

Test(inspect, hangs)
{
	inspect_limit_ns = SOON_NS;
	attach_fails(hang, 1, "took more than");
}

Test(inspect, answers_by_half)
{
	inspect_limit_ns = SOON_NS;
	attach_fails(half, 1, "took more than");
}

Test(inspect, lies)
{
	attach_fails(say_anything, 5, "invalid answer");
	attach_fails(promise, 5, "invalid answer");
	attach_fails(lie, 5, "invalid answer");
	inspect_test_helper = NULL;
	traced_attach(&t); /* the failed attach has no lasting effect */
}

static bool opens(void)
{
	return open("/dev/null", O_RDONLY) >= 0;
}

static bool connects(void)
{
	return socket(AF_UNIX, SOCK_STREAM, 0) >= 0;
}

static bool forks(void)
{
	return fork() >= 0;
}

static bool signals(void)
{
	return kill(getppid(), 0) == 0;
}

static bool makes_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
	       MAP_FAILED;
}

static bool takes_memory(void)
{
	return mmap(NULL, (size_t)4 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0) != MAP_FAILED;
}

static bool becomes_root(void)
{
	return setuid(0) == 0;
}

static bool unlinks(void)
{
	return unlink("/nonexistent") == 0 || errno != ENOSYS;
}

static bool executes(void)
{
	return execl("/bin/true", "true", NULL) == 0 || errno != ENOSYS;
}

static bool (*const attempts[])(void) = {opens,	       connects,     forks,   signals, makes_code,
					 takes_memory, becomes_root, unlinks, executes};

/* Try forbidden operations. Each that succeeds sets a bit, sent in a message that no valid
 * inspector sends. */
static void try_all(int chan)
{
	uint32_t done = 0;
	struct diag diag = {0};
	struct inspect_result r = {0};
	char *data;
	size_t size;
	struct answer_head h = {.question = QUESTION_FIND, .err = -EBADMSG};

	for (unsigned int i = 0; i < sizeof(attempts) / sizeof(*attempts); i++)
		done |= attempts[i]() ? 1u << i : 0;
	diag_set(&diag, -EBADMSG, PYP_EXIT_FAILURE, "", "possible: %x", done);
	data = answer_encode_find(&r, &(struct answer_via){0}, -EBADMSG, &diag, &size);
	h.size = (uint32_t)size;
	(void)channel_write(chan, &h, sizeof(h));
	(void)channel_write(chan, data, size);
	hang(chan);
}

Test(inspect, may_do_nothing_else)
{
	attach_fails(try_all, 1, "possible: 0");
}

/* A process's capabilities in /proc as a number. */
static uint64_t capabilities(pid_t pid, const char *which)
{
	_cleanup_free_ char *status = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	assert_ok(proc_read(AT_FDCWD, path, 65536, &status, NULL));
	return strtoull(proc_field(status, which), NULL, 16);
}

/* A compromised opener can open files, but nothing else. */
Test(inspect, opener_keeps_three_capabilities)
{
	const uint64_t may = UINT64_C(1) << CAP_SYS_PTRACE | UINT64_C(1) << CAP_DAC_READ_SEARCH |
			     UINT64_C(1) << CAP_CHECKPOINT_RESTORE;
	pid_t parent = getpid(), child;
	char c = 0;
	int said[2];

	if (!(capabilities(parent, "CapEff") >> CAP_CHECKPOINT_RESTORE & 1))
		cr_skip_test("needs CAP_CHECKPOINT_RESTORE");
	assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, said));
	child = fork();
	if (child == 0) {
		struct iovec iov = {&c, 1};
		struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

		c = confine_opener(parent) == 0;
		(void)sendmsg(said[1], &msg, 0);
		(void)recvmsg(said[1], &msg, 0);
		_exit(0);
	}
	cr_assert(read(said[0], &c, 1) == 1 && c == 1);
	cr_assert_eq(capabilities(child, "CapEff") & ~may, 0);
	cr_assert_eq(capabilities(child, "CapPrm") & ~may, 0);
	cr_assert_eq(capabilities(child, "CapInh"), 0);
	cr_assert_eq(write(said[0], &c, 1), 1);
	cr_assert_eq(waitpid(child, NULL, 0), child);
	(void)close(said[0]);
	(void)close(said[1]);
}
