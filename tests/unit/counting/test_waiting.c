// SPDX-License-Identifier: BSD-2-Clause
/*
 * counting/waiting: switches and the stacks of some waits become waiting by context. Every thread's
 * reasons add up to all of its waits, whatever stacks there are.
 */
#include "counting/waiting.h"

#include <math.h>

#include "harness/numbered.h"
#include "harness/test.h"
#include "profile/ended.h"
#include "profile/profile.h"
#include "stats/func.h"

#define SYS_SLEEP  35 /* nanosleep */
#define SYS_RECV   45 /* recvfrom */
#define THRESHOLD  1000u
#define UNWALKED   "(waits not sampled)"
#define MANY_WAITS 4000u

static uint64_t now;

static struct profile *new_profile(void)
{
	struct profile *p = profile_new(NULL, numbered_resolve, NULL);

	cr_assert(p);
	assert_ok(profile_keep_walks(p));
	now = 1000000;
	profile_begin(p, now);
	return p;
}

/* Leaves its CPU for a system call; 0: for lack of one. delay: its time in run queues so far. */
static void out(struct profile *p, uint32_t tid, int32_t syscall, uint64_t delay)
{
	struct event e = {.ts = now, .tid = tid, .type = PYP_REC_SWITCH_OUT};

	e.u.sw = (struct event_switch){
		.wait = syscall ? PYP_WAIT_SYSCALL : PYP_WAIT_CPU,
		.syscall = syscall ? syscall : -1,
		.delay = delay,
	};
	profile_event(p, &e);
}

static void in(struct profile *p, uint32_t tid, uint64_t after)
{
	struct event e = {.ts = now += after, .tid = tid, .type = PYP_REC_SWITCH_IN};

	profile_event(p, &e);
}

/* The stack f0 > f`func`. */
static void stack(struct profile *p, uint32_t tid, unsigned int func, uint16_t flags,
		  uint64_t period)
{
	const uint64_t codes[] = {NUMBERED_CODE(func), NUMBERED_CODE(0)};
	struct event e = {.ts = now, .tid = tid, .type = PYP_REC_SAMPLE};

	e.u.sample = (struct event_sample){
		.period = period,
		.count = 2,
		.flags = PYP_SAMPLE_LAST | flags,
		.offset = PYP_SAMPLE_NO_OFFSET,
		.codes = codes,
	};
	profile_event(p, &e);
}

/* A wait of a thread in a function, whose stack was walked with a threshold; 0: for certain. */
static void wait_in(struct profile *p, uint32_t tid, int32_t syscall, uint64_t ns,
		    unsigned int func, uint64_t threshold)
{
	out(p, tid, syscall, 0);
	in(p, tid, ns);
	stack(p, tid, func, PYP_SAMPLE_WAIT, threshold);
	now += 10;
}

static struct snapshot *take(const struct profile *p)
{
	struct snapshot *s = snapshot_new();

	cr_assert(s);
	s->targets = snapshot_alloc(s, 1, sizeof(*s->targets));
	cr_assert(s->targets);
	s->ntargets = 1;
	s->targets[0].pid = 7;
	s->targets[0].mode = MODE_SAMPLE;
	s->targets[0].estimate.rate = 99;
	s->targets[0].estimate.period_ns = 10101010;
	assert_ok(profile_snapshot(p, now, 7, s, &s->targets[0]));
	cr_assert(snapshot_valid(s));
	return s;
}

/* Of the functions with this name, in all threads; NULL: of all contexts. */
static uint64_t of(const struct snapshot *s, const char *name, int column)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < s->nnodes; i++)
		if (!name || (s->nodes[i].func != SNAPSHOT_NONE &&
			      strcmp(s->funcs[s->nodes[i].func].name, name) == 0))
			ns += snapshot_figure(s, column, i);
	return ns;
}

static double error_of(const struct snapshot *s, const char *name)
{
	for (uint32_t i = 0; i < s->nfuncs; i++)
		if (strcmp(s->funcs[i].name, name) == 0)
			return snapshot_error(&s->funcs[i], SNAPSHOT_TOT_WALL);
	cr_assert_fail("no function %s", name);
	return 0;
}

/* In every context and thread: the reasons add up to wall time minus CPU time. */
static void check_sums(const struct snapshot *s)
{
	uint64_t threads = 0, contexts = 0;

	for (uint32_t i = 0; i < s->nnodes; i++) {
		uint64_t sum = 0;

		for (int c = COLUMN_WAITS_FIRST; c < COLUMN_WAITS_END; c++)
			sum += snapshot_figure(s, c, i);
		cr_assert_eq(sum, s->nodes[i].self[SNAPSHOT_WALL] - s->nodes[i].self[SNAPSHOT_CPU]);
		contexts += s->nodes[i].self[SNAPSHOT_WALL];
	}
	for (uint32_t i = 0; i < s->nthreads; i++)
		threads += s->threads[i].total[SNAPSHOT_WALL];
	cr_assert_eq(threads, contexts);
}

Test(waiting, certain_waits_stay_as_they_are)
{
	struct profile *p = new_profile();
	struct snapshot *s;

	wait_in(p, 1, SYS_SLEEP, 5000, 1, 0);
	wait_in(p, 1, SYS_RECV, 7000, 2, 0);
	stack(p, 1, 1, 0, 100); /* a sample of CPU time */
	s = take(p);
	check_sums(s);
	cr_assert_eq(of(s, "f1", COLUMN_sleep), 5000);
	cr_assert_eq(of(s, "f2", COLUMN_io), 7000);
	cr_assert(s->targets[0].waits.walked && s->targets[0].waits.walks == 2);
	cr_assert_eq(s->threads[0].total[SNAPSHOT_WALL], 12100);
	cr_assert_eq(s->threads[0].total[SNAPSHOT_CPU], 100);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}

/* The stacks of waits shorter than the threshold divide what is left after the certain ones. */
Test(waiting, weights_divide_the_rest_exactly)
{
	struct profile *p = new_profile();
	struct snapshot *s;

	wait_in(p, 1, SYS_SLEEP, 50000, 1, 0);
	wait_in(p, 1, SYS_SLEEP, 100, 1, THRESHOLD);
	wait_in(p, 1, SYS_SLEEP, 100, 2, THRESHOLD);
	wait_in(p, 1, SYS_SLEEP, 100, 2, THRESHOLD);
	for (int i = 0; i < 7; i++) { /* not walked */
		out(p, 1, SYS_SLEEP, 0);
		in(p, 1, 101);
	}
	s = take(p);
	check_sums(s);
	cr_assert_eq(of(s, NULL, COLUMN_sleep), 50000 + 300 + 707);
	cr_assert_eq(of(s, "f1", COLUMN_sleep), 50000 + 1007 / 3);
	cr_assert_eq(of(s, "f2", COLUMN_sleep), 1007 - 1007 / 3);
	/* Two errors: of its own weight, 1000 * 900 before scaling, and of the others', twice that. */
	cr_assert_float_eq(error_of(s, "f1"), 259.747570, 1e-5);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}

Test(waiting, without_any_stack_it_is_not_lost)
{
	struct profile *p = new_profile();
	struct snapshot *s;

	out(p, 1, SYS_SLEEP, 0);
	in(p, 1, 300);
	s = take(p);
	check_sums(s);
	cr_assert_eq(of(s, UNWALKED, COLUMN_sleep), 300);
	snapshot_free(s);
	/* What is known of the reason is the best guess; the guess may be all wrong. */
	wait_in(p, 1, SYS_SLEEP, 5000, 1, 0);
	s = take(p);
	check_sums(s);
	cr_assert_eq(of(s, "f1", COLUMN_sleep), 5300);
	cr_assert_eq(of(s, UNWALKED, COLUMN_sleep), 0);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}

/* What is known is 5 and 15; 400 ns more are distributed like it, each of which may be wrong. */
Test(waiting, known_waits_divide_the_rest)
{
	struct profile *p = new_profile();
	struct snapshot *s;

	wait_in(p, 1, SYS_SLEEP, 5000, 1, 0);
	wait_in(p, 1, SYS_SLEEP, 15000, 2, 0);
	wait_in(p, 1, SYS_RECV, 7000, 2, 0);
	out(p, 1, SYS_SLEEP, 0);
	in(p, 1, 400);
	s = take(p);
	check_sums(s);
	cr_assert_eq(of(s, "f1", COLUMN_sleep), 5100);
	cr_assert_eq(of(s, "f2", COLUMN_sleep), 15300);
	cr_assert_eq(of(s, "f2", COLUMN_io), 7000);
	cr_assert_float_eq(error_of(s, "f1"), sqrt(9 * 100 * 400 / 16.0 + 300 * 400 / 16.0), 1e-9);
	cr_assert_float_eq(error_of(s, "f2"), error_of(s, "f1"), 1e-9);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}

/* Waits that are as long as the threshold are certain; shorter ones stand for one of that length. */
Test(waiting, as_long_as_the_threshold)
{
	struct profile *p = new_profile();
	struct snapshot *s;

	wait_in(p, 1, SYS_SLEEP, THRESHOLD, 1, THRESHOLD);
	wait_in(p, 1, SYS_SLEEP, THRESHOLD - 1, 2, THRESHOLD);
	out(p, 1, SYS_SLEEP, 0);
	in(p, 1, 501);
	s = take(p);
	check_sums(s);
	cr_assert_eq(of(s, "f1", COLUMN_sleep), THRESHOLD);
	cr_assert_eq(of(s, "f2", COLUMN_sleep), THRESHOLD - 1 + 501);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}

/* Before any wait, in one, or another stack of the same wait */
Test(waiting, stacks_without_a_wait)
{
	struct profile *p = new_profile();
	struct snapshot *s;

	stack(p, 1, 2, PYP_SAMPLE_WAIT, 0);
	wait_in(p, 1, SYS_SLEEP, 5000, 1, 0);
	stack(p, 1, 2, PYP_SAMPLE_WAIT, 0);
	out(p, 1, SYS_SLEEP, 0);
	stack(p, 1, 2, PYP_SAMPLE_WAIT, 0);
	in(p, 1, 100);
	s = take(p);
	check_sums(s);
	cr_assert_eq(of(s, "f1", COLUMN_sleep), 5100);
	cr_assert_eq(of(s, NULL, COLUMN_sleep), 5100);
	cr_assert_eq(s->targets[0].waits.walks, 4);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}

/* The next switch-out says how much of the wait was spent in a run queue. */
Test(waiting, time_in_run_queues_moves_to_its_reason)
{
	struct profile *p = new_profile();
	struct snapshot *s;

	out(p, 1, SYS_SLEEP, 1000);
	in(p, 1, 5000);
	stack(p, 1, 1, PYP_SAMPLE_WAIT, 0);
	out(p, 1, SYS_SLEEP, 1800);
	in(p, 1, 100);
	stack(p, 1, 1, PYP_SAMPLE_WAIT, THRESHOLD);
	out(p, 1, SYS_SLEEP, 1825);
	s = take(p);
	check_sums(s);
	cr_assert_eq(of(s, "f1", COLUMN_sleep), 4200 + 75);
	cr_assert_eq(of(s, "f1", COLUMN_runnable), 800 + 25);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}

/* The kernel has measured all of the first wait as time in a run queue. */
Test(waiting, delays_that_are_wrong)
{
	struct event e = {.tid = 1, .type = PYP_REC_DELAY};
	struct profile *p = new_profile();
	struct snapshot *s;

	out(p, 1, SYS_SLEEP, 1000);
	e.ts = now += 40;
	profile_event(p, &e);
	in(p, 1, 60);
	stack(p, 1, 1, PYP_SAMPLE_WAIT, 0);
	out(p, 1, SYS_SLEEP, 1100);
	in(p, 1, 50);
	stack(p, 1, 1, PYP_SAMPLE_WAIT, 0);
	out(p, 1, SYS_SLEEP, 1120);
	s = take(p);
	check_sums(s);
	cr_assert(of(s, "f1", COLUMN_sleep) == 130 && of(s, "f1", COLUMN_runnable) == 20);
	cr_assert_eq(s->targets[0].unsplit_waits, 1);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}

/* What happened before tracing began, or after it has ended */
Test(waiting, outside_of_the_trace)
{
	const struct pyp_chain_frame frames[] = {{1, NUMBERED_CODE(3)}};
	struct initial_stack initial = {
		.tid = 9, .name = "nine", .frames = frames, .n = 1, .running = true};
	struct profile *p = new_profile();
	struct snapshot *s;

	now--;
	out(p, 1, SYS_SLEEP, 0);
	now += 1000;
	profile_add_initial(p, now, &initial); /* it runs, so it does not wait */
	s = take(p);
	cr_assert_eq(of(s, NULL, COLUMN_sleep) + of(s, NULL, COLUMN_other), 0);
	cr_assert(!profile_waits_since(p, now));
	snapshot_free(s);
	profile_end(p, now);
	out(p, 1, SYS_SLEEP, 0);
	in(p, 1, 100);
	s = take(p);
	cr_assert_eq(of(s, NULL, COLUMN_sleep), 0);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}

/* A quarter of each of two waits was in a run queue, and of what these stand for. */
Test(waiting, weights_in_run_queues)
{
	struct profile *p = new_profile();
	struct snapshot *s;

	out(p, 1, SYS_SLEEP, 1000);
	in(p, 1, 100);
	stack(p, 1, 1, PYP_SAMPLE_WAIT, THRESHOLD);
	out(p, 1, SYS_SLEEP, 1025);
	in(p, 1, 200);
	stack(p, 1, 2, PYP_SAMPLE_WAIT, THRESHOLD);
	out(p, 1, SYS_SLEEP, 1075);
	s = take(p);
	check_sums(s);
	cr_assert(of(s, "f1", COLUMN_runnable) == 37 && of(s, "f2", COLUMN_runnable) == 38);
	cr_assert(of(s, "f1", COLUMN_sleep) == 112 && of(s, "f2", COLUMN_sleep) == 113);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}

/* Not more than the wait took, not less than nothing, and only if it was known before, too. */
Test(waiting, times_in_run_queues_that_are_odd)
{
	static const struct {
		int32_t syscall;
		uint64_t delay, ns;
	} waits[] = {{SYS_SLEEP, 1000, 500}, {SYS_SLEEP, 1900, 200},
		     {SYS_SLEEP, 100, 300},  {0, 0, 400},
		     {SYS_SLEEP, 50, 600},   {0, 80, 10},
		     {SYS_SLEEP, 85, 0}};
	struct profile *p = new_profile();
	struct snapshot *s;

	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		out(p, 1, waits[i].syscall, waits[i].delay);
		in(p, 1, waits[i].ns);
		stack(p, 1, 1, PYP_SAMPLE_WAIT, 0);
	}
	s = take(p);
	check_sums(s);
	cr_assert_eq(of(s, "f1", COLUMN_sleep), 200 + 300 + 570);
	cr_assert_eq(of(s, "f1", COLUMN_runnable), 500 + 400 + 30 + 10);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}

/* A wait goes on over the end of a period; weights are of one. */
Test(waiting, cleared_in_a_wait)
{
	struct profile *p = new_profile();
	struct snapshot *s;

	wait_in(p, 1, SYS_SLEEP, 100, 1, THRESHOLD);
	wait_in(p, 1, SYS_SLEEP, 5000, 1, 0);
	out(p, 1, SYS_SLEEP, 0);
	now += 50;
	profile_clear(p, now);
	s = take(p);
	check_sums(s);
	cr_assert(of(s, NULL, COLUMN_sleep) == 0 && s->targets[0].waits.walks == 0);
	snapshot_free(s);
	in(p, 1, 70);
	stack(p, 1, 2, PYP_SAMPLE_WAIT, THRESHOLD);
	s = take(p);
	check_sums(s);
	cr_assert_eq(of(s, "f2", COLUMN_sleep), 70);
	cr_assert_eq(of(s, NULL, COLUMN_sleep), 70);
	cr_assert_float_eq(error_of(s, "f2"), 0, 1e-9, "all of it is in one function");
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}

Test(waiting, in_progress_counts_until_now)
{
	const struct pyp_chain_frame frames[] = {{1, NUMBERED_CODE(3)}, {2, NUMBERED_CODE(0)}};
	struct initial_stack initial = {.tid = 9, .name = "nine", .frames = frames, .n = 2};
	struct profile *p = new_profile();
	struct snapshot *s;
	uint64_t begin = now;

	profile_add_initial(p, now + 10, &initial);
	now += 4000;
	s = take(p);
	check_sums(s);
	cr_assert_eq(of(s, "f3", COLUMN_other), 4000);
	snapshot_free(s);
	in(p, 9, 1000);
	out(p, 9, SYS_SLEEP, 0);
	cr_assert(profile_waits_since(p, now + 1) && !profile_waits_since(p, now));
	/* Asked for when it began, it may be of the time before. */
	initial.asked_ns = now;
	now += 700;
	profile_add_initial(p, now - 1, &initial);
	cr_assert(profile_waits_since(p, now));
	initial.asked_ns++;
	profile_add_initial(p, now - 1, &initial);
	cr_assert(!profile_waits_since(p, now));
	s = take(p);
	check_sums(s);
	cr_assert_eq(of(s, "f3", COLUMN_other), 5000);
	cr_assert_eq(of(s, "f3", COLUMN_sleep), 700);
	cr_assert_eq(of(s, NULL, COLUMN_other) + of(s, NULL, COLUMN_sleep), now - begin);
	snapshot_free(s);
	/* Stopped: it is part of the data, and does not grow any more. */
	profile_end(p, now);
	now += 5000;
	s = take(p);
	check_sums(s);
	cr_assert_eq(of(s, "f3", COLUMN_sleep), 700);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}

/* Stacks sent when waits begin: each stands for `period` waits of its own length. */
Test(waiting, stacks_that_are_ahead)
{
	struct profile *p = new_profile();
	struct snapshot *s;

	stack(p, 1, 1, PYP_SAMPLE_WAIT | PYP_SAMPLE_AHEAD, 1);
	out(p, 1, SYS_SLEEP, 0);
	in(p, 1, 3000);
	for (unsigned int i = 0; i < 4; i++) {
		if (i % 2 == 0)
			stack(p, 1, 2, PYP_SAMPLE_WAIT | PYP_SAMPLE_AHEAD, 2);
		out(p, 1, SYS_RECV, 0);
		in(p, 1, 100);
	}
	s = take(p);
	check_sums(s);
	cr_assert_eq(of(s, "f1", COLUMN_sleep), 3000);
	cr_assert_eq(of(s, "f2", COLUMN_io_socket), 400);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}

/* One that stands for itself is certain; one that stands for two waits, and all without a stack, are not. */
Test(waiting, stacks_that_are_ahead_for_certain)
{
	struct profile *p = new_profile();
	struct snapshot *s;

	stack(p, 1, 1, PYP_SAMPLE_WAIT | PYP_SAMPLE_AHEAD, 1);
	out(p, 1, SYS_SLEEP, 0);
	in(p, 1, 3000);
	stack(p, 1, 2, PYP_SAMPLE_WAIT | PYP_SAMPLE_AHEAD, 2);
	out(p, 1, SYS_SLEEP, 0);
	in(p, 1, 100);
	out(p, 1, SYS_SLEEP, 0);
	in(p, 1, 500);
	s = take(p);
	check_sums(s);
	cr_assert(of(s, "f1", COLUMN_sleep) == 3000 && of(s, "f2", COLUMN_sleep) == 600);
	snapshot_free(s);
	/* In progress, the first kind is where it is, and the other is shared. */
	stack(p, 1, 1, PYP_SAMPLE_WAIT | PYP_SAMPLE_AHEAD, 1);
	out(p, 1, SYS_SLEEP, 0);
	now += 70;
	s = take(p);
	cr_assert(of(s, "f1", COLUMN_sleep) == 3070 && of(s, "f2", COLUMN_sleep) == 600);
	snapshot_free(s);
	in(p, 1, 0);
	stack(p, 1, 1, PYP_SAMPLE_WAIT | PYP_SAMPLE_AHEAD, 2);
	out(p, 1, SYS_SLEEP, 0);
	now += 80;
	s = take(p);
	cr_assert(of(s, "f1", COLUMN_sleep) == 3070 && of(s, "f2", COLUMN_sleep) == 680);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}

/* The stack belongs to the wait that begins, even if the end of the one before was not reported. */
Test(waiting, ahead_after_an_end_that_was_not_reported)
{
	struct profile *p = new_profile();
	struct snapshot *s;

	stack(p, 1, 1, PYP_SAMPLE_WAIT | PYP_SAMPLE_AHEAD, 1);
	out(p, 1, SYS_SLEEP, 0);
	now += 1000;
	stack(p, 1, 2, PYP_SAMPLE_WAIT | PYP_SAMPLE_AHEAD, 1);
	out(p, 1, SYS_SLEEP, 0);
	in(p, 1, 300);
	s = take(p);
	check_sums(s);
	cr_assert_eq(of(s, "f1", COLUMN_sleep), 1000);
	cr_assert_eq(of(s, "f2", COLUMN_sleep), 300);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}

/* The scheduler's run time says how long a wait was whose end was not reported. */
Test(waiting, switch_in_not_reported)
{
	struct event e = {.tid = 1, .type = PYP_REC_SWITCH_OUT};
	struct profile *p = new_profile();
	struct snapshot *s;

	e.u.sw = (struct event_switch){
		.wait = PYP_WAIT_SYSCALL, .syscall = SYS_SLEEP, .runtime = 500};
	e.ts = now;
	profile_event(p, &e);
	e.ts = now += 1000;
	e.u.sw.runtime = 800;
	profile_event(p, &e);
	s = take(p);
	check_sums(s);
	cr_assert_eq(of(s, NULL, COLUMN_sleep), 700);
	cr_assert_eq(s->targets[0].missed_switches, 1);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}

/* Threads that ended are merged, with their weights. */
Test(waiting, ended_threads_keep_their_figures)
{
	const uint32_t n = 3 * ENDED_APART;
	struct profile *p = new_profile();
	struct snapshot *s;

	for (uint32_t tid = 1; tid <= n; tid++) {
		struct event e = {.tid = tid, .type = PYP_REC_THREAD_EXIT};

		wait_in(p, tid, SYS_SLEEP, 5000, 1, 0);
		wait_in(p, tid, SYS_SLEEP, 100, 2, THRESHOLD);
		out(p, tid, SYS_SLEEP, 0);
		in(p, tid, 50);
		e.ts = now;
		profile_event(p, &e);
	}
	s = take(p);
	check_sums(s);
	cr_assert_lt(s->nthreads, n);
	cr_assert_eq(of(s, "f1", COLUMN_sleep), 5000 * n);
	cr_assert_eq(of(s, "f2", COLUMN_sleep), 150 * n);
	snapshot_free(s);
	profile_clear(p, now);
	wait_in(p, 1, SYS_SLEEP, 5000, 1, 0);
	s = take(p);
	check_sums(s);
	cr_assert_eq(of(s, NULL, COLUMN_sleep), 5000);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}

/* No stack of theirs is known, nor one of the row that they are merged into. */
Test(waiting, ended_threads_without_stacks)
{
	const uint32_t n = 2 * ENDED_APART;
	struct profile *p = new_profile();
	struct snapshot *s;

	for (uint32_t tid = 1; tid <= n; tid++) {
		struct event e = {.tid = tid, .type = PYP_REC_THREAD_EXIT};

		out(p, tid, SYS_SLEEP, 0);
		in(p, tid, 50);
		e.ts = now;
		profile_event(p, &e);
	}
	s = take(p);
	check_sums(s);
	cr_assert_lt(s->nthreads, n);
	cr_assert_eq(of(s, UNWALKED, COLUMN_sleep), 50 * n);
	snapshot_free(s);
	profile_free(p);
	check_no_leaks();
}

static uint32_t seed = 12345;

static double uniform(void)
{
	seed = seed * 1664525 + 1013904223;
	return (double)seed / 4294967296.0;
}

/*
 * Waits of two functions with very different lengths, chosen as the BPF program chooses them. The
 * estimate is within its errors, and close to the truth.
 */
Test(waiting, estimate_and_its_error)
{
	unsigned int inside = 0, runs = 200;
	double worst = 0, bias = 0;

	for (unsigned int run = 0; run < runs; run++) {
		struct profile *p = new_profile();
		uint64_t truth = 0, found;
		struct snapshot *s;
		double error;

		for (unsigned int i = 0; i < MANY_WAITS; i++) {
			unsigned int func = 1 + i % 2;
			uint64_t ns = (uint64_t)(func == 1 ? 40 + 100 * uniform()
							   : 20 / (uniform() + 0.01));

			truth += func == 1 ? ns : 0;
			out(p, 1, SYS_SLEEP, 0);
			in(p, 1, ns);
			if (ns >= THRESHOLD || uniform() * THRESHOLD < (double)ns)
				stack(p, 1, func, PYP_SAMPLE_WAIT, ns < THRESHOLD ? THRESHOLD : 0);
		}
		s = take(p);
		found = of(s, "f1", COLUMN_sleep);
		error = error_of(s, "f1");
		inside += fabs((double)found - (double)truth) < 1.96 * error;
		worst = fmax(worst, fabs((double)found / (double)truth - 1));
		bias += ((double)found / (double)truth - 1) / runs;
		snapshot_free(s);
		profile_free(p);
	}
	fprintf(stderr, "%u of %u inside, worst %.3f, bias %+.4f\n", inside, runs, worst, bias);
	cr_assert(inside >= runs * 90 / 100 && inside < runs);
	cr_assert(worst < 0.25 && fabs(bias) < 0.02);
	check_no_leaks();
}
