// SPDX-License-Identifier: BSD-2-Clause
/*
 * Windows of a profile whose probes are limited: what goes on after their end changes no figure but calls per
 * call, which are of whole calls; and marks.
 */
#include "harness/limited.h"
#include "harness/numbered.h"
#include "harness/test.h"

/* A window that goes on ------------------------------------------------------------------ */

/*
 * A window of 1 us. f0 began in it and calls f1 twice before its end and twice later; a mark is passed in
 * every call of f1. whole: it goes on. Returns how long it did.
 */
static uint64_t run_over_the_end(struct profile *p, bool whole)
{
	uint64_t tail;

	profile_count_marks(p, true);
	limited_begin(p, 1000, whole);
	limited_enter(p, 1, 100, 0x10, 0, 0);
	for (int i = 0; i < 4; i++) {
		limited_enter(p, 1, i == 2 ? 600 : 100, 0x20, 1, 0x10);
		limited_mark(p, 1, 50);
		limited_leave(p, 1, 50, 0x20);
		cr_assert(i < 2 || profile_window_is_over(p) == !whole, "%d", i);
	}
	cr_assert_eq(profile_window_lasts(p), whole);
	limited_leave(p, 1, 100, 0x10);
	cr_assert(!profile_window_lasts(p));
	limited_enter(p, 1, 100, 0x10, 2, 0);
	limited_leave(p, 1, 100, 0x10);
	cr_assert(profile_window_is_over(p));
	tail = profile_tail_ns(p, limited_now);
	limited_now += 10000;
	cr_assert_eq(limited_end(p), 1000);
	return tail;
}

/* Whether it goes on or not, a window shows the same; but whole calls are seen only if it does. */
Test(windows, whole_windows_show_the_same)
{
	for (int whole = 0; whole <= 1; whole++) {
		struct profile *p = limited_new();
		struct evidence_node f0, f1;
		uint64_t tail = run_over_the_end(p, whole);
		struct snapshot *s;

		/* Its end is at 2000, the last event at 2700. */
		cr_assert_eq(tail, whole ? 700 : 0, "%lu", tail);
		f0 = limited_seen(p, 0);
		f1 = limited_seen(p, 1);
		cr_assert(f0.calls == 1 && f1.calls == 2 && limited_seen(p, 2).calls == 0);
		cr_assert(f1.cpu == 200, "%g", f1.cpu);
		cr_assert(f0.cpu == 1000 - 100 - 200, "up to its end: %g", f0.cpu);
		cr_assert(p->shown == 5 && p->evidence.last.calls == 3);
		cr_assert_eq(p->evidence.last.cpu, 900);
		cr_assert_eq(p->evidence.progress.shown, 2);
		cr_assert_eq(threads_find(&p->threads, 1)->marks, 2);
		s = limited_take(p);
		cr_assert(limited_sums(s, "f0").y == whole && limited_sums(s, "f1").x == 4 * whole);
		snapshot_free(s);
		limited_drop(p);
	}
}

/* A thread that only computes has its time up to the window's end, even if its next event is in the tail. */
Test(windows, time_up_to_the_end_of_whole_windows)
{
	for (int whole = 0; whole <= 1; whole++) {
		struct profile *p = limited_new();

		limited_begin(p, 100, whole);
		limited_enter(p, 2, 5, 0x50, 3, 0);
		limited_enter(p, 1, 5, 0x10, 0, 0);
		limited_enter(p, 1, 200, 0x20, 1, 0x10);
		limited_leave(p, 1, 10, 0x20);
		limited_leave(p, 2, 10, 0x50);
		limited_leave(p, 1, 10, 0x10);
		limited_now += 1000;
		cr_assert_eq(limited_end(p), 100);
		cr_assert_eq(limited_seen(p, 0).cpu, 90);
		cr_assert_eq(limited_seen(p, 3).cpu, 95);
		cr_assert_eq(p->evidence.seen_cpu, 185);
		cr_assert_eq(limited_seen(p, 1).calls, 0);
		limited_drop(p);
	}
}

/* The daemon ends it before the calls have ended: what is cut leaves nothing. */
Test(windows, whole_windows_that_take_too_long)
{
	struct profile *p = limited_new();
	struct snapshot *s;

	limited_begin(p, 100, true);
	limited_enter(p, 1, 10, 0x10, 0, 0);
	limited_enter(p, 2, 0, 0x50, 3, 0);
	limited_enter(p, 1, 10, 0x20, 1, 0x10);
	limited_leave(p, 1, 100, 0x20);
	limited_leave(p, 2, 10, 0x50);
	limited_enter(p, 1, 10, 0x20, 1, 0x10);
	cr_assert(profile_window_lasts(p) && !profile_window_is_over(p));
	limited_now += 500;
	/* The first event after its end, at 1100, came at 1120. */
	cr_assert_eq(profile_tail_ns(p, limited_now), 1000 + 20 + 100 + 20 + 500 - 1100);
	cr_assert_eq(limited_end(p), 100);
	cr_assert_eq(profile_tail_ns(p, limited_now), 0);
	s = limited_take(p);
	cr_assert(limited_sums(s, "f0").y == 0 && limited_sums(s, "f1").x == 0);
	cr_assert_eq(limited_sums(s, "f3").y, 1);
	cr_assert(limited_seen(p, 0).calls == 1 && limited_seen(p, 1).calls == 1);
	snapshot_free(s);
	/* Nothing is left of it in the next one. */
	limited_begin(p, 100, true);
	limited_leave(p, 1, 10, 0x20);
	limited_leave(p, 1, 10, 0x10);
	limited_end(p);
	s = limited_take(p);
	cr_assert(limited_sums(s, "f0").y == 0 && limited_sums(s, "f1").y == 0);
	snapshot_free(s);
	limited_drop(p);
}

/* Calls that began after the end of a window are not waited for. */
Test(windows, no_call_begins_after_the_end)
{
	struct profile *p = limited_new();
	struct snapshot *s;

	limited_begin(p, 100, true);
	limited_enter(p, 1, 10, 0x10, 0, 0);
	limited_enter(p, 2, 200, 0x50, 3, 0);
	limited_leave(p, 1, 10, 0x10);
	cr_assert(!profile_window_lasts(p));
	limited_leave(p, 2, 10, 0x50);
	cr_assert(profile_window_is_over(p));
	limited_end(p);
	s = limited_take(p);
	cr_assert(limited_sums(s, "f0").y == 1 && limited_sums(s, "f3").y == 0);
	snapshot_free(s);
	limited_drop(p);
}

/* Threads that end in the tail are merged with others only after it. */
Test(windows, threads_that_end_in_the_tail)
{
	struct profile *p = limited_new();
	struct event e = {.type = PYP_REC_THREAD_EXIT};
	const uint32_t n = ENDED_APART + 5;
	double calls = 0;

	limited_begin(p, 1000, true);
	for (uint32_t tid = 1; tid <= n; tid++) {
		limited_enter(p, tid, 10, 0x10 * tid, 0, 0);
		limited_enter(p, tid, 10, 0x1000 + tid, 1, 0x10 * tid);
	}
	limited_now += 1000;
	limited_enter(p, n + 1, 0, 0x9000, 2, 0);
	for (e.tid = 1; e.tid < n; e.tid++) {
		limited_leave(p, e.tid, 1, 0x1000 + e.tid);
		limited_leave(p, e.tid, 1, 0x10 * e.tid);
		e.ts = ++limited_now;
		profile_event(p, &e);
	}
	cr_assert(profile_window_lasts(p) && p->threads.n >= n);
	limited_end(p);
	cr_assert_leq(p->threads.n, ENDED_APART + 5);
	cr_assert(limited_seen(p, 0).calls == n && limited_seen(p, 1).calls == n, "%g, %g",
		  limited_seen(p, 0).calls, limited_seen(p, 1).calls);
	for (uint32_t i = 0; i < p->evidence.n; i++)
		calls += p->evidence.nodes[i].calls;
	cr_assert_eq(calls, 2 * n);
	limited_drop(p);
}

/* Everything before a clear is forgotten, also of calls that are open and of a window that goes on. */
Test(windows, cleared_in_a_whole_window)
{
	for (int tail = 0; tail <= 1; tail++) {
		struct profile *p = limited_new();
		struct snapshot *s;

		/* A window before, so that only contexts of the next one are in its list */
		limited_begin(p, 100, true);
		limited_enter(p, 1, 90, 0x10, 0, 0);
		limited_leave(p, 1, 5, 0x10);
		limited_now += 5;
		limited_end(p);
		limited_begin(p, 100, true);
		limited_enter(p, 1, 10, 0x10, 0, 0);
		limited_enter(p, 2, 0, 0x50, 4, 0);
		limited_enter(p, 1, 10, 0x20, 1, 0x10);
		limited_leave(p, 1, tail ? 100 : 10, 0x20);
		profile_clear(p, limited_now);
		limited_enter(p, 1, 10, 0x30, 2, 0x10);
		limited_enter(p, 1, 10, 0x40, 3, 0x30);
		limited_leave(p, 1, 10, 0x40);
		limited_leave(p, 1, 10, 0x30);
		limited_leave(p, 1, 10, 0x10);
		limited_now += 1000;
		limited_end(p);
		cr_assert(limited_seen(p, 0).calls == 0 && limited_seen(p, 1).calls == 0);
		cr_assert_eq(limited_seen(p, 2).calls, tail ? 0 : 1);
		cr_assert_eq(limited_seen(p, 4).calls, 0);
		cr_assert_eq(p->evidence.last.calls, tail ? 0 : 2);
		cr_assert(!tail || p->evidence.last.cpu == 0);
		s = limited_take(p);
		cr_assert(limited_sums(s, "f0").y == 0 && limited_sums(s, "f1").y == 0);
		cr_assert(limited_sums(s, "f2").y == !tail && limited_sums(s, "f3").x == !tail,
			  "%d", tail);
		snapshot_free(s);
		limited_drop(p);
	}
}

/* Whole calls --------------------------------------------------------------------------- */

/* Calls were lost: the stack is read anew, and the call that was open is not whole. */
Test(windows, lost_calls)
{
	const struct pyp_chain_frame frames[] = {{0x20, NUMBERED_CODE(1)},
						 {0x10, NUMBERED_CODE(0)}};
	struct profile *p = limited_new();
	struct event e = {.tid = 1, .type = PYP_REC_CHAIN};
	struct snapshot *s;

	limited_begin(p, 10000, true);
	limited_enter(p, 1, 10, 0x10, 0, 0);
	limited_enter(p, 1, 10, 0x20, 1, 0x10);
	limited_leave(p, 1, 10, 0x20);
	e.ts = limited_now += 10;
	e.u.chain = (struct event_chain){
		.count = 2, .flags = PYP_CHAIN_RESYNC | PYP_CHAIN_LAST, .frames = frames};
	profile_event(p, &e);
	limited_leave(p, 1, 10, 0x20);
	limited_enter(p, 1, 10, 0x30, 2, 0x10);
	limited_leave(p, 1, 10, 0x30);
	limited_leave(p, 1, 10, 0x10);
	limited_now += 10;
	limited_end(p);
	s = limited_take(p);
	cr_assert(limited_sums(s, "f0").y == 0 && limited_sums(s, "f1").x == 0 &&
		  limited_sums(s, "f2").y == 1);
	snapshot_free(s);
	limited_drop(p);
}

/* A thread switches to another stack, as greenlets do: no call that was open then is known to be whole. */
Test(windows, other_stacks)
{
	struct profile *p = limited_new();
	struct snapshot *s;

	limited_begin(p, 10000, true);
	limited_enter(p, 1, 10, 0x10, 0, 0);
	limited_enter(p, 1, 10, 0x20, 1, 0x10);
	/* f2, on another stack, is as deep as f0 */
	limited_enter(p, 1, 10, 0x50, 2, 0);
	limited_leave(p, 1, 10, 0x50);
	limited_leave(p, 1, 10, 0x20);
	limited_leave(p, 1, 10, 0x10);
	limited_now += 10;
	cr_assert_gt(p->rb.stack_switches, 1);
	limited_end(p);
	s = limited_take(p);
	for (unsigned int f = 0; f <= 2; f++) {
		char name[8];

		snprintf(name, sizeof(name), "f%u", f);
		cr_assert(limited_sums(s, name).x == 0 && limited_sums(s, name).y == 0, "%s", name);
	}
	snapshot_free(s);
	limited_drop(p);
}

/* Calls of C functions are between Python functions; only a correction of the stack is a reason to drop a call. */
Test(windows, whole_calls_and_c_functions)
{
	for (int lost = 0; lost <= 1; lost++) {
		struct profile *p = limited_new();
		struct snapshot *s;

		limited_begin(p, 10000, true);
		limited_enter(p, 1, 10, 0x10, 0, 0);
		limited_c_call(p, PYP_REC_C_ENTER, 0x10);
		limited_enter(p, 1, 10, 0x20, 1, 0x10);
		if (!lost)
			limited_leave(p, 1, 10, 0x20);
		limited_c_call(p, PYP_REC_C_LEAVE, 0x10);
		limited_c_call(p, PYP_REC_C_INSTANT, 0x10);
		limited_leave(p, 1, 10, 0x10);
		limited_now += 10;
		limited_end(p);
		s = limited_take(p);
		cr_assert(limited_sums(s, "f0").y == !lost && limited_sums(s, "f1").x == !lost,
			  "%d", lost);
		snapshot_free(s);
		limited_drop(p);
	}
}

/* A stretch is like a window for them. */
Test(windows, whole_calls_of_stretches)
{
	struct profile *p = limited_new();
	struct snapshot *s;

	limited_begin(p, 0, false);
	for (int i = 0; i < 3; i++) {
		limited_enter(p, 1, 10, 0x10, 0, 0);
		limited_enter(p, 1, 10, 0x20, 1, 0x10);
		limited_leave(p, 1, 10, 0x20);
		limited_leave(p, 1, 10, 0x10);
	}
	cr_assert(!profile_window_lasts(p));
	limited_enter(p, 1, 10, 0x10, 0, 0);
	cr_assert(!profile_window_lasts(p), "it has no end to be waited for");
	limited_keep(p, true);
	s = limited_take(p);
	cr_assert(limited_sums(s, "f0").y == 3 && limited_sums(s, "f1").x == 3);
	snapshot_free(s);
	limited_drop(p);
}

/* Marks --------------------------------------------------------------------------------- */

/* Two threads make 3 and 1 of 4 calls in so many windows, and pass these numbers of marks. */
static double usable_marks(unsigned int first, unsigned int second, double windows)
{
	_cleanup_(profile_freep) struct profile *p = profile_new(NULL, NULL, NULL);
	const unsigned int calls[] = {300, 100}, marks[] = {first, second};
	struct event e = {.ts = 1000};

	profile_in_windows(p, 1000);
	profile_count_marks(p, true);
	profile_begin(p, 1000);
	profile_limit(p, &(struct profile_limit){UINT64_MAX, &limited_unknown_cost, false});
	for (e.tid = 1; e.tid <= 2; e.tid++) {
		e.u.call.frame = e.u.call.code = 0x10;
		for (unsigned int i = 0; i < calls[e.tid - 1]; i++, e.ts++) {
			e.type = i % 2 ? PYP_REC_LEAVE : PYP_REC_ENTER;
			profile_event(p, &e);
		}
	}
	e.type = PYP_REC_MARK;
	for (e.tid = 1; e.tid <= 2; e.tid++)
		for (unsigned int i = 0; i < marks[e.tid - 1]; i++, e.ts++)
			profile_event(p, &e);
	p->evidence.progress.marked.marks = p->evidence.progress.marked.all_marks = 1;
	p->evidence.progress.marked.marks2 = windows > 0 ? 1 / windows : 0;
	profile_set_marks(p, 5000);
	return p->evidence.progress.marked.total;
}

/* Marks do not scale the calls of other threads than those that pass them. */
Test(windows, marks_of_other_threads)
{
	cr_assert_eq(usable_marks(30, 10, 1000), 5000);
	cr_assert_eq(usable_marks(28, 12, 1000), 5000);
	cr_assert_eq(usable_marks(24, 16, 1000), 0);
	cr_assert_eq(usable_marks(36, 4, 1000), 0);
	cr_assert_eq(usable_marks(0, 40, 1000), 0);
	cr_assert_eq(usable_marks(0, 0, 1000), 0);
	check_no_leaks();
}

/* Threads of a pool are in windows by chance, so few windows show no difference between them. */
Test(windows, marks_of_a_pool)
{
	cr_assert_eq(usable_marks(24, 16, 30), 5000);
	cr_assert_eq(usable_marks(36, 4, 30), 5000);
	cr_assert_eq(usable_marks(16, 24, 30), 0);
	cr_assert_eq(usable_marks(0, 40, 10), 0);
	cr_assert_eq(usable_marks(24, 16, 0), 0);
	check_no_leaks();
}
