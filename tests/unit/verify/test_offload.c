// SPDX-License-Identifier: BSD-2-Clause
/*
 * verify/offload: the process of a self-test that answers, is killed, sends too little or nonsense,
 * never answers, or is freed early. No process and no descriptor may be left.
 */
#include "verify/offload.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/reaper.h"
#include "harness/patience.h"
#include "harness/test.h"

static struct verify_opts opts;
static struct verify_result sent;

#define NEVER_NS UINT64_C(3600000000000)

static void setup(void)
{
	offload_limit_ns = NEVER_NS;
}

TestSuite(offload, .init = setup);

static unsigned int descriptors(void)
{
	unsigned int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static bool no_child_is_left(void)
{
	(void)reaper_pending();
	return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
}

static void no_child_is_left_soon(void)
{
	while (!no_child_is_left() && !patience_over())
		sched_yield();
}

/* What the helper does instead of a self-test; its result. */
static struct verify_result run(void (*helper)(const struct verify_opts *, int))
{
	struct verify_result v = {.verdict = VERIFY_SKIPPED};
	struct offload *o = NULL;
	unsigned int before = descriptors();

	offload_test_helper = helper;
	assert_ok(offload_start(&opts, &o, NULL));
	while (!offload_poll(o, &v)) {
		struct pollfd p = {.fd = offload_fd(o), .events = POLLIN};

		cr_assert(poll(&p, 1, patience_left_ms()) == 1, "the daemon would wait for ever");
	}
	offload_free(o);
	no_child_is_left_soon();
	cr_assert(no_child_is_left() && descriptors() == before);
	return v;
}

static void send_bytes(int out, const void *data, size_t n)
{
	if (write(out, data, n) != (ssize_t)n)
		_exit(1);
}

/* ---- answers ----------------------------------------------------------------------------- */

static void answer(const struct verify_opts *o, int out)
{
	(void)o;
	send_bytes(out, &sent, sizeof(sent));
}

static void answer_in_pieces(const struct verify_opts *o, int out)
{
	const char *p = (const char *)&sent;

	(void)o;
	for (size_t i = 0; i < sizeof(sent); i += 50) {
		size_t left = sizeof(sent) - i;

		send_bytes(out, p + i, left < 50 ? left : 50);
		sched_yield();
	}
}

static void prepare_answer(void)
{
	memset(&sent, 0, sizeof(sent));
	sent.verdict = VERIFY_WRONG;
	sent.events = 12;
	sent.site_mask = 0xf00000000f;
	sent.cost.known = true;
	sent.cost.before[COST_YIELD] = 345;
	sent.grouped = true;
	snprintf(sent.reason, sizeof(sent.reason), "main was called 2/2 times");
	snprintf(sent.gc_wrong, sizeof(sent.gc_wrong), "generation 1");
}

static void check_answer(const struct verify_result *v)
{
	cr_assert(v->verdict == VERIFY_WRONG && v->events == 12 && v->grouped && !v->cached);
	cr_assert(v->site_mask == 0xf00000000f && v->cost.known);
	cr_assert(v->cost.before[COST_YIELD] == 345);
	cr_assert_str_eq(v->reason, "main was called 2/2 times");
	cr_assert_str_eq(v->gc_wrong, "generation 1");
}

Test(offload, answers)
{
	struct verify_result v;

	prepare_answer();
	v = run(answer);
	check_answer(&v);
	v = run(answer_in_pieces);
	check_answer(&v);
	check_no_leaks();
}

Test(offload, texts_are_cleaned)
{
	struct verify_result v;

	prepare_answer();
	snprintf(sent.reason, sizeof(sent.reason), "a\xff%c", 'b');
	memset(sent.gc_wrong, 'x', sizeof(sent.gc_wrong) - 1);
	v = run(answer);
	cr_assert_str_eq(v.reason, "a?b");
	cr_assert(strlen(v.gc_wrong) == sizeof(v.gc_wrong) - 1);
	check_no_leaks();
}

/* ---- failures ---------------------------------------------------------------------------- */

static void check_not_run(void (*helper)(const struct verify_opts *, int), const char *why)
{
	struct verify_result v = run(helper);

	cr_assert(v.verdict == VERIFY_NOT_RUN && v.events == 0 && !v.cost.known);
	cr_assert(strstr(v.reason, why), "'%s', not '%s'", v.reason, why);
}

static void nothing(const struct verify_opts *o, int out)
{
	(void)o, (void)out;
}

static void be_killed(const struct verify_opts *o, int out)
{
	(void)o, (void)out;
	(void)raise(SIGKILL);
}

static void too_little(const struct verify_opts *o, int out)
{
	(void)o;
	send_bytes(out, &sent, sizeof(sent) - 1);
}

Test(offload, ends_without_an_answer)
{
	prepare_answer();
	check_not_run(nothing, "ended with status 0");
	check_not_run(be_killed, "was killed by SIGKILL");
	check_not_run(too_little, "ended with status 0");
	check_no_leaks();
}

static size_t at;
static unsigned char byte;

static void answer_with_byte(const struct verify_opts *o, int out)
{
	unsigned char copy[sizeof(sent)];

	(void)o;
	memcpy(copy, &sent, sizeof(sent));
	copy[at] = byte;
	send_bytes(out, copy, sizeof(copy));
}

static void reject_byte(size_t where, unsigned char what)
{
	prepare_answer();
	at = where;
	byte = what;
	check_not_run(answer_with_byte, "an invalid answer");
}

Test(offload, nonsense)
{
	const size_t cost = offsetof(struct verify_result, cost);

	reject_byte(offsetof(struct verify_result, verdict), VERIFY_SKIPPED);
	reject_byte(offsetof(struct verify_result, verdict), 200);
	reject_byte(offsetof(struct verify_result, cached), 2);
	reject_byte(offsetof(struct verify_result, grouped), 255);
	reject_byte(cost + offsetof(struct cost, known), 7);
	check_no_leaks();
}

static void unterminated_reason(const struct verify_opts *o, int out)
{
	memset(sent.reason, 'r', sizeof(sent.reason));
	answer(o, out);
}

static void unterminated_collections(const struct verify_opts *o, int out)
{
	memset(sent.gc_wrong, 'g', sizeof(sent.gc_wrong));
	answer(o, out);
}

Test(offload, texts_without_an_end)
{
	prepare_answer();
	check_not_run(unterminated_reason, "an invalid answer");
	check_not_run(unterminated_collections, "an invalid answer");
	check_no_leaks();
}

/* ---- time -------------------------------------------------------------------------------- */

static void stay(const struct verify_opts *o, int out)
{
	(void)o, (void)out;
	for (;;)
		pause();
}

static void answer_half_and_stay(const struct verify_opts *o, int out)
{
	send_bytes(out, &sent, sizeof(sent) / 2);
	stay(o, out);
}

static void free_early(void (*helper)(const struct verify_opts *, int))
{
	unsigned int before = descriptors();
	struct verify_result v;
	struct offload *o = NULL;

	offload_test_helper = helper;
	assert_ok(offload_start(&opts, &o, NULL));
	cr_assert(!offload_poll(o, &v));
	cr_assert(offload_deadline(o) <= clock_monotonic_ns() + offload_limit_ns);
	cr_assert(waitpid(-1, NULL, WNOHANG) == 0, "it runs");
	offload_free(o);
	no_child_is_left_soon();
	cr_assert(no_child_is_left() && descriptors() == before);
}

Test(offload, is_freed_early)
{
	free_early(stay);
	free_early(answer_half_and_stay);
	offload_free(NULL);
	check_no_leaks();
}

Test(offload, never_answers)
{
	struct verify_result v = {.verdict = VERIFY_SKIPPED};
	unsigned int before = descriptors();
	struct offload *o = NULL;
	uint64_t begun;

	offload_test_helper = answer_half_and_stay;
	offload_limit_ns = 50000000;
	begun = clock_monotonic_ns();
	assert_ok(offload_start(&opts, &o, NULL));
	while (!offload_poll(o, &v))
		sched_yield();
	cr_assert(clock_monotonic_ns() >= begun + offload_limit_ns, "it was given up too early");
	cr_assert(v.verdict == VERIFY_NOT_RUN && strstr(v.reason, "did not answer within 0.05 s"),
		  "%s", v.reason);
	offload_free(o);
	no_child_is_left_soon();
	cr_assert(no_child_is_left() && descriptors() == before);
	check_no_leaks();
}

/* ---- the process itself ------------------------------------------------------------------ */

/* What it finds out about itself is in the reason: 'y' or 'n' for each. */
static void examine(const struct verify_opts *o, int out)
{
	int death = 0;
	sigset_t blocked;
	unsigned int others = 0;
	char *p = sent.reason;

	(void)o;
	for (int fd = 3; fd < 256; fd++)
		others += fd != out && fcntl(fd, F_GETFD) >= 0;
	sigemptyset(&blocked);
	(void)sigprocmask(SIG_SETMASK, NULL, &blocked);
	*p++ = others == 0 ? 'y' : 'n';
	*p++ = prctl(PR_GET_PDEATHSIG, &death) == 0 && death == SIGKILL ? 'y' : 'n';
	*p++ = !sigismember(&blocked, SIGUSR1) && sigismember(&blocked, SIGINT) ? 'y' : 'n';
	*p++ = signal(SIGPIPE, SIG_DFL) == SIG_IGN ? 'y' : 'n';
	*p = '\0';
	answer(o, out);
}

/* None of the daemon's descriptors and signal mask, and it ends with the daemon. */
Test(offload, is_separate)
{
	struct verify_result v;
	sigset_t some;
	int fds[2];

	prepare_answer();
	sigemptyset(&some);
	sigaddset(&some, SIGUSR1);
	assert_ok(sigprocmask(SIG_BLOCK, &some, NULL));
	assert_ok(pipe2(fds, 0));
	v = run(examine);
	cr_assert_str_eq(v.reason, "yyyy");
	close(fds[0]);
	close(fds[1]);
	check_no_leaks();
}

/* One that has answered but does not end, because it waits for a process that cannot be killed, is
 * counted: then no more are started. */
static void answer_and_stay(const struct verify_opts *o, int out)
{
	answer(o, out);
	stay(o, out);
}

static void kill_children(void)
{
	char path[64];
	FILE *f;
	pid_t pid;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	f = fopen(path, "re");
	cr_assert(f);
	while (fscanf(f, "%d", &pid) == 1)
		assert_ok(kill(pid, SIGKILL));
	fclose(f);
}

Test(offload, stuck_helpers_are_counted)
{
	struct verify_result v;
	struct offload *o = NULL;

	prepare_answer();
	offload_test_helper = answer_and_stay;
	for (unsigned int i = 0; i < 4; i++) {
		assert_ok(offload_start(&opts, &o, NULL));
		while (!offload_poll(o, &v))
			sched_yield();
		check_answer(&v);
		offload_free(o);
		cr_assert_eq(reaper_pending(), i + 1);
	}
	while (reaper_check(4, NULL) == 0)
		cr_assert(!patience_over());
	assert_err(offload_start(&opts, &o, NULL), -EBUSY);
	kill_children();
	no_child_is_left_soon();
	cr_assert(reaper_pending() == 0 && no_child_is_left());
	check_no_leaks();
}
