// SPDX-License-Identifier: BSD-2-Clause
/*
 * Attaching to programs whose threads are in the middle of calls. Functions that are already
 * running are on the initial stack, with no call but with time since the attach; when they return,
 * the returns match that stack.
 */
#include <inttypes.h>

#include "harness/counts.h"
#include "harness/patience.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "stats/view.h"

#define FRAMES	50 /* the same as in deep.py */
#define THREADS 5  /* the same as in blocked.py */

#define MS 1000000ull

/*
 * Returns the view of the thread with this tid, or of all threads if tid is 0. The caller frees it.
 */
static struct view *view_of(const struct snapshot *s, uint32_t tid)
{
	const struct view_filter filter = {.tid = tid};
	struct view *v = NULL;

	assert_ok(view_build(s, &filter, &v));
	return v;
}

/*
 * Checks a function that has been running since before the attach: that many activations on the
 * stack, no calls, some time.
 */
static void check_running(const struct view *v, const char *name, uint32_t times)
{
	struct view_row row = counts_named(v, name);

	cr_assert(row.inflight == times, "%s is in flight %" PRIu32 " times, not %" PRIu32, name,
		  row.inflight, times);
	cr_assert(row.ncalls == 0 && row.pcalls == 0, "%s was called", name);
	cr_assert(row.cum[SNAPSHOT_WALL] > 0, "%s has no time", name);
}

static void check_called(const struct view *v, const char *name, uint64_t ncalls)
{
	struct view_row row = counts_named(v, name);

	cr_assert(row.ncalls == ncalls && row.pcalls == ncalls,
		  "%s: %" PRIu64 "/%" PRIu64 " calls, not %" PRIu64, name, row.ncalls, row.pcalls,
		  ncalls);
	cr_assert(row.inflight == 0, "%s is still running", name);
}

/* Returns whether all time since the attach is each thread's. */
static bool is_accounted_for(const struct snapshot *s)
{
	const uint64_t traced = s->targets[0].traced_ns;

	for (uint32_t i = 0; i < s->nthreads; i++) {
		const uint64_t wall = s->threads[i].total[SNAPSHOT_WALL];

		cr_assert_leq(wall, traced);
		if (traced - wall >= MS)
			return false;
	}
	return true;
}

/*
 * What is missing since the attach is missing in each snapshot; what passes between two readings of
 * the clock, on a busy machine, only in some. Threads that wait use no CPU time but what the
 * process used.
 */
static struct snapshot *attach_idle(struct traced *t)
{
	const double cpu = traced_cpu_seconds(t);
	struct snapshot *s;

	traced_attach(t);
	while (!is_accounted_for(s = traced_snapshot(t))) {
		cr_assert(!patience_over(), "time is missing in each snapshot");
		snapshot_free(s);
	}
	for (uint32_t i = 0; i < s->nthreads; i++)
		cr_assert_leq((double)s->threads[i].total[SNAPSHOT_CPU] / 1e9,
			      traced_cpu_seconds(t) - cpu);
	return s;
}

/* Checks that each level of a recursion is a calling context whose parent is the previous level. */
static void check_levels(const struct snapshot *s, const char *name, uint32_t depth)
{
	uint32_t levels = 0, top = 0;

	for (uint32_t i = 0; i < s->nnodes; i++) {
		const struct snapshot_node *n = &s->nodes[i];

		if (n->func == SNAPSHOT_NONE || strcmp(s->funcs[n->func].name, name) != 0)
			continue;
		cr_assert(n->inflight == 1 && n->calls == 0);
		cr_assert(levels == 0 || n->parent == top);
		top = i;
		levels++;
	}
	cr_assert(levels == depth, "%" PRIu32 " levels of %s", levels, name);
}

static void go_on_and_take(struct traced *t, struct snapshot **s, struct view **v,
			   const char *label)
{
	traced_go(t);
	traced_expect(t, "done");
	*s = traced_snapshot(t);
	*v = view_of(*s, 0);
	cr_assert(traced_is_exact(*s, label));
	cr_assert((*s)->targets[0].unstarted == 0);
}

/* A stack of 50 recursive calls ------------------------------------------------------------ */

static void check_deep_at_once(struct traced *t)
{
	_cleanup_(snapshot_freep) struct snapshot *s = attach_idle(t);
	_cleanup_(view_freep) struct view *v = view_of(s, 0);

	check_running(v, "<module>", 1);
	check_running(v, "main", 1);
	check_running(v, "down", FRAMES);
	check_running(v, "wait", 1);
	check_levels(s, "down", FRAMES);
	cr_assert(counts_named(v, "wait").tot[SNAPSHOT_WALL] > 0, "the innermost has no time");
	cr_assert(s->nthreads == 1);
}

static void deep(const char *exe)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	_cleanup_(view_freep) struct view *v = NULL;
	struct traced t;

	traced_start(&t, exe, "deep.py", NULL);
	traced_expect(&t, "ready");
	check_deep_at_once(&t);
	go_on_and_take(&t, &s, &v, exe);
	check_called(v, "down", 0);
	check_called(v, "up", FRAMES - 1);
	check_running(v, "main", 1);
	traced_finish(&t);
}

/* A thread that waits in read() ------------------------------------------------------------ */

static void blocked_read(const char *exe)
{
	_cleanup_(snapshot_freep) struct snapshot *before = NULL, *s = NULL;
	_cleanup_(view_freep) struct view *first = NULL, *v = NULL;
	struct traced t;

	traced_start(&t, exe, "blocked.py", "read", NULL);
	traced_expect(&t, "ready");
	before = attach_idle(&t);
	first = view_of(before, 0);
	check_running(first, "main", 1);
	check_running(first, "read", 1);
	check_running(first, "middle", 1);
	check_running(first, "blocked_read", 1);
	go_on_and_take(&t, &s, &v, exe);
	check_called(v, "blocked_read", 0);
	check_called(v, "middle", 0);
	check_called(v, "after", 1);
	traced_finish(&t);
}

/* A loop that calls nothing ---------------------------------------------------------------- */

static void spinning(const char *exe)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	_cleanup_(view_freep) struct view *v = NULL;
	double least, most, cpu;
	struct traced t;

	traced_start(&t, exe, "blocked.py", "spin", NULL);
	traced_expect(&t, "ready");
	most = traced_cpu_seconds(&t);
	traced_attach(&t);
	least = traced_cpu_seconds(&t);
	traced_work(&t, PATIENCE_MOMENT_MS);
	least = traced_cpu_seconds(&t) - least;
	s = traced_snapshot(&t);
	most = traced_cpu_seconds(&t) - most;
	v = view_of(s, 0);
	check_running(v, "spinning", 1);
	cpu = (double)counts_named(v, "spinning").tot[SNAPSHOT_CPU] / 1e9;
	fprintf(stderr, "%s: spinning: %.3f s of CPU, between %.3f and %.3f\n", exe, cpu, least,
		most);
	/*
	 * The kernel's run time of a thread that is never switched is only updated by the timer
	 * tick.
	 */
	cr_assert(cpu > least * 0.97 - 0.012 && cpu < most * 1.03 + 0.002,
		  "%s: %.3f s of CPU are not between %.3f and %.3f", exe, cpu, least, most);
	cr_assert(traced_is_exact(s, exe));
	traced_stop(&t);
}

/* Threads that wait for locks -------------------------------------------------------------- */

static uint32_t check_waiters(const struct snapshot *s, uint32_t pid)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->nthreads; i++) {
		_cleanup_(view_freep) struct view *v = view_of(s, s->threads[i].tid);

		if (s->threads[i].tid == pid)
			continue;
		check_running(v, "blocked_on_lock", 1);
		check_running(v, "waiter", 1);
		n++;
	}
	return n;
}

static void blocked_on_locks(const char *exe)
{
	_cleanup_(snapshot_freep) struct snapshot *before = NULL, *s = NULL;
	_cleanup_(view_freep) struct view *v = NULL;
	struct traced t;

	traced_start(&t, exe, "blocked.py", "locks", NULL);
	traced_expect(&t, "ready");
	before = attach_idle(&t);
	cr_assert(check_waiters(before, (uint32_t)t.pid) == THREADS);
	go_on_and_take(&t, &s, &v, exe);
	check_called(v, "after", THREADS);
	check_called(v, "blocked_on_lock", 0);
	traced_finish(&t);
}

static void check(const struct interpreter *v, size_t n, void (*test)(const char *exe))
{
	for (size_t i = 0; i < n; i++) {
		fprintf(stderr, "with %s\n", v[i].exe);
		test(v[i].exe);
	}
	check_no_leaks();
}

static void in_turn(unsigned int turn, void (*test)(const char *exe))
{
	struct interpreter v[INTERPRETERS_MAX];

	check(v, traced_in_turn(v, turn), test);
}

/* The stack is read in the same way whatever attaches the probes. */
Test(attach, fifty_frames_deep)
{
	struct interpreter v[INTERPRETERS_MAX];

	check(v, getenv("PYPROFD_ATTACH") ? traced_few(v) : traced_interpreters(v), deep);
}

Test(attach, waiting_in_a_read)
{
	in_turn(1, blocked_read);
}

Test(attach, spinning_without_a_call)
{
	in_turn(2, spinning);
}

Test(attach, threads_waiting_for_locks)
{
	in_turn(3, blocked_on_locks);
}
