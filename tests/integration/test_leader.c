// SPDX-License-Identifier: BSD-2-Clause
/*
 * A process whose main thread has ended while others continue. The kernel then sees no memory map
 * in the main thread, to which a uprobe link for a process belongs. The main thread ends before the
 * attach, while the process is traced, or while tracing is stopped: no call is missed.
 */
#include "harness/counts.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "stats/view.h"

#define WARNING_MAX 512

static struct traced t;
static uint64_t all;

static void start(const char *exe)
{
	fprintf(stderr, "with %s\n", exe);
	traced_start(&t, exe, "leader.py", NULL);
	traced_expect(&t, "ready");
	all = 0;
}

static void say(const char *order, const char *answer)
{
	traced_say(&t, order);
	traced_expect(&t, answer);
}

/* exact: whether the snapshot must be exact */
static void check_work(unsigned int n, bool exact)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	_cleanup_(view_freep) struct view *v = NULL;
	char line[64];

	snprintf(line, sizeof(line), "work %u", n);
	say(line, "worked");
	all += n;
	s = traced_snapshot(&t);
	cr_assert_eq(snapshot_exact(s), exact);
	cr_assert(!exact || traced_is_exact(s, "leader"));
	assert_ok(view_build(s, NULL, &v));
	cr_assert_eq(counts_named(v, "work").ncalls, all);
	cr_assert_eq(traced_status(&t).state, SESSION_TRACING);
}

static void expect_work(unsigned int n)
{
	check_work(n, true);
}

static void finish(void)
{
	traced_say(&t, "stop");
	traced_finish(&t);
}

static bool by_an_event(struct traced *traced, void *ctx)
{
	(void)ctx;
	return strcmp(traced_status(traced).mechanism, "tracefs") == 0;
}

/*
 * After a fork, the kernel looks at every process again to remove the child's breakpoints; the
 * target's must be kept, because a live thread owns them.
 */
static void while_traced(const char *exe)
{
	start(exe);
	traced_attach(&t);
	expect_work(10);
	say("leave", "left");
	expect_work(20);
	traced_until(&t, by_an_event, NULL, "probes that do not need the main thread");
	expect_work(30);
	say("fork", "forked");
	expect_work(40);
	assert_ok(sessions_stop(t.sessions, 0, NULL));
	say("work 7", "worked");
	assert_ok(sessions_start(t.sessions, 0, NULL));
	expect_work(50);
	finish();
}

static void everywhere(void (*test)(const char *exe))
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_few(v);

	for (size_t i = 0; i < n; i++)
		test(v[i].exe);
	check_no_leaks();
}

Test(leader, ends_while_traced)
{
	everywhere(while_traced);
}

/* When another target's probes on the same file are removed, the kernel looks at every process. */
static void sweep(void)
{
	struct traced other;

	traced_start(&other, traced_newest().exe, "leader.py", NULL);
	traced_expect(&other, "ready");
	traced_attach(&other);
	assert_ok(sessions_stop(other.sessions, 0, NULL));
	traced_stop(&other);
}

Test(leader, ended_before)
{
	start(traced_newest().exe);
	say("leave", "left");
	traced_attach(&t);
	expect_work(10);
	sweep();
	say("fork", "forked");
	expect_work(20);
	finish();
}

static bool is_held_again(struct traced *traced, void *ctx)
{
	_cleanup_(snapshot_freep) struct snapshot *s = traced_snapshot(traced);
	const char *warnings = s->targets[0].warnings;
	char *last = ctx;

	if (!strstr(warnings, "owned the probes") || strcmp(warnings, last) == 0)
		return false;
	snprintf(last, WARNING_MAX, "%s", warnings);
	return true;
}

/*
 * The thread that took over the probes also ends, three times. The snapshot has a warning about
 * calls that may be missing.
 */
Test(leader, and_the_next_one)
{
	char last[WARNING_MAX] = "";

	start(traced_newest().exe);
	say("leave", "left");
	traced_attach(&t);
	expect_work(10);
	for (int i = 0; i < 3; i++) {
		say("move", "moved");
		traced_until(&t, is_held_again, last, "another thread's probes");
	}
	check_work(20, false);
	finish();
}

static bool has_ended(struct traced *traced, void *ctx)
{
	(void)ctx;
	return traced_status(traced).state == SESSION_ENDED;
}

/* Windows need a uprobe link, which only the main thread can own, so the trace ends with it. */
Test(leader, ends_while_watched_in_windows)
{
	start(traced_newest().exe);
	t.max_overhead = 5;
	traced_attach(&t);
	say("leave", "left");
	traced_until(&t, has_ended, NULL, "its end");
	cr_assert_str_eq(traced_status(&t).end_reason, "its main thread has ended");
	finish();
}

Test(leader, ends_while_stopped)
{
	start(traced_newest().exe);
	traced_attach(&t);
	expect_work(10);
	assert_ok(sessions_stop(t.sessions, 0, NULL));
	say("leave", "left");
	assert_ok(sessions_start(t.sessions, 0, NULL));
	expect_work(20);
	finish();
}
