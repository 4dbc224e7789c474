// SPDX-License-Identifier: BSD-2-Clause
/*
 * Scaling counts by marks: of a program that makes calls at a known rate per mark, with probes whose cost
 * is taken for half as much as it is, so that scaling by CPU time is far off.
 */
#include <math.h>

#include "accuracy/calls.h"
#include "accuracy/evidence_priv.h"
#include "accuracy/progress.h"
#include "harness/evidence_rig.h"
#include "harness/test.h"

#define CALLS_PER_MARK 40

/* 400 ns per call */
static const struct cost too_cheap = {
	.known = true,
	.before = {[COST_ENTER] = 100, [COST_LEAVE] = 100},
	.after = {[COST_ENTER] = 100, [COST_LEAVE] = 100},
};

/* A window of 1 ms that represents 10 ms. */
static void window(struct evidence_rig *m, unsigned int calls, uint64_t cpu_ns, unsigned int marks)
{
	evidence_own_cpu(&m->e, 10000000);
	evidence_rig_seen(m, m->f, calls, cpu_ns);
	for (unsigned int k = 0; k < marks; k++)
		evidence_mark(&m->e, false);
	evidence_rig_fold(m, 9000000, 1000000, &too_cheap, 1);
}

/*
 * n windows that each represent 10 ms, and show `calls` +- spread calls of 500 ns, to which probes add as
 * much.
 */
static void windows(struct evidence_rig *m, int n, unsigned int calls, unsigned int spread)
{
	for (int i = 0; i < n; i++) {
		unsigned int c = calls + (unsigned int)(i * 7919) % (2 * spread + 1) - spread;

		window(m, c, 1000 * (uint64_t)c, c / CALLS_PER_MARK);
	}
}

static double calls_of(const struct evidence_rig *m, double *ret_error)
{
	const struct calls_given none = {.n = 0};
	const struct calls_estimate c = calls_estimate(&m->e, &none);

	*ret_error = sqrt(calls_variance(&m->e, &c, F));
	return c.factor * m->e.nodes[m->f].calls;
}

/* 2,000 calls per ms: 2,000,000 in 100 times 10 ms. */
Test(progress, counts_are_scaled_by_marks)
{
	struct evidence_rig m;
	double calls, error;

	evidence_rig_init(&m);
	evidence_count_marks(&m.e, true, 0);
	windows(&m, 100, 1000, 100);
	evidence_set_marks(&m.e, 2000000 / CALLS_PER_MARK, 0);
	calls = calls_of(&m, &error);
	cr_assert(fabs(calls - 2000000) < 60000, "%f", calls);
	cr_assert(error > 0.01 * calls && error < 0.05 * calls, "%f +- %f", calls, error);
	/* Without marks, and without samples, there is nothing to scale them by. */
	evidence_set_marks(&m.e, 0, 0);
	cr_assert_eq(calls_of(&m, &error), 0);
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/* As above, with stretches between windows, each with as many calls: they are counted, and so are not predicted. */
Test(progress, marks_in_stretches)
{
	struct evidence_rig m;
	double calls, error;

	evidence_rig_init(&m);
	evidence_count_marks(&m.e, true, 0);
	for (int i = 0; i < 10; i++) {
		windows(&m, 10, 1000, 100);
		evidence_rig_seen(&m, m.f, 10000, 10000000);
		for (int k = 0; k < 10000 / CALLS_PER_MARK; k++)
			evidence_mark(&m.e, true);
		assert_ok(evidence_keep(&m.e, &m.tree, true));
	}
	evidence_set_marks(&m.e, (2000000 + 100000) / CALLS_PER_MARK, 0);
	calls = calls_of(&m, &error);
	cr_assert(fabs(calls - 2000000) < 60000, "%f", calls);
	cr_assert(error > 0.01 * calls && error < 0.05 * calls, "%f +- %f", calls, error);
	cr_assert_eq(m.e.nodes[m.f].exact.calls, 100000);
	/* Fewer than those in stretches: nothing is known of the others. */
	evidence_set_marks(&m.e, 1000, 0);
	cr_assert_eq(calls_of(&m, &error), 0);
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/*
 * Windows before marks are counted have none. They represent the time around them, for which probes' cost
 * makes their own time too short by the same factor as later.
 */
Test(progress, windows_without_marks)
{
	struct evidence_rig m;
	double calls, error, common;

	evidence_rig_init(&m);
	windows(&m, 50, 1000, 0);
	evidence_count_marks(&m.e, true, 0);
	cr_assert_eq(m.e.progress.marked.calls, 0);
	cr_assert_eq(m.e.progress.shown_without, 50000);
	windows(&m, 50, 1000, 0);
	/* a fifth of the calls of windows scaled by their time */
	evidence_set_marks(&m.e, 100000 / CALLS_PER_MARK, 0);
	calls = progress_factor(&m.e, &error, &common) * m.e.calls;
	/* Of 500,000 calls, 50,000 were seen; a fifth of the others */
	cr_assert(fabs(calls - (100000 + 50000 + 90000)) < 0.05 * 240000, "%f", calls);
	/* 90,000 calls have an error of half the logarithm of the factor. */
	cr_assert(common > 0.28 && common < 0.35 && error >= common, "%f", common);
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/*
 * While marks were chosen, 100 ms, 0 to 200,000 calls were made: the window before shows as many as those
 * after it, but then there were none for a moment, or not. (In windows, a mark stands for 40.8 calls.)
 */
static double while_chosen(double marks_per_ns, double *ret_error)
{
	struct evidence_rig m;
	double calls;

	evidence_rig_init(&m);
	windows(&m, 1, 1000, 0);
	evidence_gap(&m.e, 100000000);
	evidence_count_marks(&m.e, true, 0);
	windows(&m, 100, 1000, 100);
	evidence_set_marks(&m.e, 2000000 / CALLS_PER_MARK, marks_per_ns);
	calls = calls_of(&m, ret_error);
	evidence_rig_deinit(&m);
	return calls;
}

Test(progress, while_marks_were_chosen)
{
	double error, of_alike, calls = while_chosen(0, &error);

	cr_assert(fabs(calls - 2160000) < 20000, "%f", calls);
	cr_assert(error > 70000 && error < 100000, "%f", error);
	calls = while_chosen(2e-3 / CALLS_PER_MARK, &of_alike);
	cr_assert(fabs(calls - 2262000) < 20000, "%f", calls);
	cr_assert(of_alike > 60000 && of_alike < 100000, "%f: not as sure as by marks", of_alike);
	check_no_leaks();
}

/* A window that shows everything, without a gap: its calls are certain. */
Test(progress, all_is_seen_before)
{
	struct evidence_rig m;
	double calls, error, common;

	evidence_rig_init(&m);
	evidence_rig_seen(&m, m.f, 50000, 50000000);
	evidence_rig_fold(&m, 0, 40000000, &too_cheap, 1);
	evidence_count_marks(&m.e, true, 0);
	windows(&m, 50, 1000, 100);
	evidence_set_marks(&m.e, 250000 / CALLS_PER_MARK, 0);
	calls = progress_factor(&m.e, &error, &common) * m.e.calls;
	cr_assert(fabs(calls - 300000) < 15000, "%f", calls);
	cr_assert(error < 0.05, "%f", error);
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/* Marks are given up, and others chosen later: there are calls before, between and after that. */
Test(progress, marks_are_chosen_again)
{
	struct evidence_rig m;
	double calls, error, common;

	evidence_rig_init(&m);
	evidence_count_marks(&m.e, true, 0);
	windows(&m, 50, 1000, 100);
	/* Marks as often as later, in a fiftieth of the windows' time */
	evidence_gap(&m.e, 9000000 + 5000000);
	evidence_set_marks(&m.e, 1000000 / CALLS_PER_MARK, 0);
	evidence_count_marks(&m.e, false, 5000000);
	evidence_gap(&m.e, 15000000);
	evidence_count_marks(&m.e, true, 0);
	cr_assert_float_eq(m.e.progress.marked.lost, 20000000, 1);
	for (int i = 0; i < 50; i++)
		window(&m, 1000, 1000000, 4);
	/* 250 calls per mark */
	evidence_set_marks(&m.e, 4000, 4000 / 500e6);
	calls = progress_factor(&m.e, &error, &common) * m.e.calls;
	cr_assert(fabs(calls - 1.02 * 2000000) < 50000, "%f", calls);
	cr_assert(common > 0.3 * 0.02 && error < 0.05, "%f %f", common, error);
	calls = calls_of(&m, &error);
	cr_assert(fabs(calls - 1.02 * 2000000) < 50000, "%f", calls);
	cr_assert(error > 0.01 * calls && error < 0.05 * calls, "%f +- %f", calls, error);
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/*
 * A program waits for most of the time. Seven of 30 windows show 822 calls and 4 marks, the others
 * nothing. There were 3,080 marks, of 632,940 calls.
 */
Test(progress, few_marks_in_bursts)
{
	struct evidence_rig m;
	double calls, error, common;

	evidence_rig_init(&m);
	evidence_count_marks(&m.e, true, 0);
	for (int i = 0; i < 30; i++)
		window(&m, i % 4 == 3 ? 822 : 0, i % 4 == 3 ? 822000 : 0, i % 4 == 3 ? 4 : 0);
	evidence_set_marks(&m.e, 3080, 0);
	calls = progress_factor(&m.e, &error, &common) * m.e.calls;
	cr_assert(fabs(calls - 632940) < 1000, "%f", calls);
	cr_assert(error > 1.0 / 28 && error < 0.08, "%f", error);
	/* One of them says as much as 4 marks. */
	m.e.progress.shown = 8;
	cr_assert(progress_factor(&m.e, &error, &common) > 0 && common > 1.0 / 8, "%f", common);
	m.e.progress.shown = 7;
	cr_assert(progress_factor(&m.e, &error, &common) == 0, "fewer say nothing");
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/* Too few of the earlier marks were in windows, so their windows are like others. */
Test(progress, earlier_marks_of_no_use)
{
	struct evidence_rig m;

	evidence_rig_init(&m);
	evidence_count_marks(&m.e, true, 0);
	windows(&m, 3, 100, 0);
	evidence_set_marks(&m.e, 1000, 0);
	evidence_count_marks(&m.e, false, 0);
	cr_assert_eq(m.e.progress.done.total, 0);
	cr_assert_eq(m.e.progress.shown_without, 300);
	/* Time for which there are no marks is like the rest. */
	evidence_gap(&m.e, 5000000);
	evidence_count_marks(&m.e, true, 0);
	evidence_count_marks(&m.e, false, 0);
	cr_assert_eq(m.e.progress.lost, 5000000);
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/* One window with nearly all marks says little about the others. */
Test(progress, hardly_more_than_one_window)
{
	struct evidence_rig m;
	double error = 0, common;

	evidence_rig_init(&m);
	evidence_count_marks(&m.e, true, 0);
	windows(&m, 10, 8, 0);
	windows(&m, 1, 100000, 0);
	windows(&m, 10, 8, 0);
	evidence_set_marks(&m.e, 5000, 0);
	cr_assert(progress_factor(&m.e, &error, &common) > 0);
	cr_assert(error > 0.3, "%f", error);
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/* Calls that do not go with marks make the error large, and scaling by CPU time remains. */
Test(progress, calls_that_vary)
{
	struct evidence_rig m;
	double error = 0, common;

	evidence_rig_init(&m);
	evidence_count_marks(&m.e, true, 0);
	for (int i = 0; i < 20; i++)
		window(&m, i % 2 ? 100 : 5000, 1000000, i % 2 ? 50 : 5);
	evidence_set_marks(&m.e, 10000, 0);
	cr_assert(progress_factor(&m.e, &error, &common) > 0);
	cr_assert(error > 0.2, "%f", error);
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/* What follows is known exactly: figures that are simple enough to compute the results by hand. */

/* 4 calls per mark; 10 times as many were passed as windows show. */
static const struct evidence_marked shown = {
	.lost = 20,
	.guessed = 3,
	.had_window = true,
	.before = 1.6,
	.total = 1000,
	.all_marks = 100,
	.all_calls = 400,
	.calls = 300,
	.marks = 75,
	.c2 = 4000,
	.m2 = 250,
	.cm = 950,
	.cpu = 600,
	.cpu2 = 16000,
	.c_cpu = 7000,
};

/* The same, in calls instead of marks. */
static const struct evidence_marked settled = {
	.lost = 20,
	.guessed = 12,
	.had_window = true,
	.before = 1.6,
	.between = 12,
	.total = 4000,
	.all_marks = 400,
	.all_calls = 400,
	.calls = 300,
	.marks = 300,
	.c2 = 4000,
	.m2 = 4000,
	.cm = 3800,
	.cpu = 600,
	.cpu2 = 16000,
	.c_cpu = 7000,
};

/* Windows without marks show 50 calls, and represent 150 more. */
static struct evidence by_hand(void)
{
	return (struct evidence){
		.calls = 600,
		.all_ns = 1000,
		.gap_ns = 100,
		.progress = {.shown = 100,
			     .shown_with = 33,
			     .shown_without = 50,
			     .lost = 40,
			     .marked = shown},
	};
}

static void expect_factor(const struct evidence *e, double calls, double error, double common)
{
	double got_error = 0, got_common = 0, factor = progress_factor(e, &got_error, &got_common);

	cr_assert_float_eq(factor * e->calls, calls, 1e-6, "%.9g", factor * e->calls);
	cr_assert_float_eq(got_error, error, 1e-7, "%.9g", got_error);
	cr_assert_float_eq(got_common, common, 1e-7, "%.9g", got_common);
}

/*
 * 4000 calls by marks, 50 that were seen, 10 times the 150 that windows represent, and 14 while marks were
 * chosen: the mean of 12, and of 10 times 1.6. Time without any of these, 4 % of that of all windows, is like
 * the rest.
 */
Test(progress, calls_by_hand)
{
	struct evidence e = by_hand();

	expect_factor(&e, (4000 + 50 + 1500 + 14) * 1.04, 0.35338415, 0.346228873);
	/* All that windows without marks represent was seen. */
	e.calls = 420;
	expect_factor(&e, (4000 + 20 + 14) * 1.04, 0.0884424805, 0.0530673861);
	e = by_hand();
	e.all_ns = e.gap_ns = 0;
	expect_factor(&e, 4000 + 50 + 1500 + 14, 0.321942415, 0.314071638);
	/* Without a window before, all of the 12 calls are those that marks show. */
	e = by_hand();
	e.progress.marked.had_window = false;
	e.progress.marked.before = 0;
	expect_factor(&e, (4000 + 50 + 1500 + 12) * 1.04, 0.353238115, 0.346079819);
	e.calls = 450;
	e.progress.lost = 0;
	expect_factor(&e, 4000 + 50 + 12, 0.0757089771, 0.0269429827);
	/* Windows that represent little more than themselves are few. */
	e = by_hand();
	e.progress.marked.m2 = 4000;
	expect_factor(&e, (4000 + 50 + 1500 + 14) * 1.04, 2.00699132, 0.374301061);
}

/* Where windows show nearly all marks, what they do not show has an error all the same. */
Test(progress, nearly_all_marks_by_hand)
{
	struct evidence e = by_hand();

	e.progress.marked.total = 110;
	expect_factor(&e, (440 + 50 + 165 + 6.88) * 1.04, 0.114008808, 0.0893984529);
}

Test(progress, earlier_marks_by_hand)
{
	struct evidence_func f = {.marked = {.calls = 100, .c2 = 900, .cm = 200}};
	struct evidence e = by_hand();

	cr_assert_float_eq(progress_cpu_error(&e), 0.111869622, 1e-8);
	cr_assert_float_eq(progress_variance(&e, &f), 913.581293, 1e-5);
	/* Twice as many, half of them by earlier marks */
	e.calls = 1000;
	e.progress.done = settled;
	e.progress.shown_before = 100;
	f.done = (struct evidence_func_marked){.calls = 100, .c2 = 900, .cm = 800};
	expect_factor(&e, (8000 + 50 + 1500 + 28) * 1.04, 0.227091524, 0.221844741);
	cr_assert_float_eq(progress_cpu_error(&e), 0.0767377208, 1e-8);
	cr_assert_float_eq(progress_variance(&e, &f), 1719.49391, 1e-5);
	/* The present ones are of no use: their windows have no marks, and the time before is like the rest. */
	e.calls = 600;
	e.progress.shown = 7;
	e.progress.shown_without = 17;
	e.progress.marked.lost = 5;
	expect_factor(&e, (4000 + 50 + 1500 + 14) * 1.045, 0.357154551, 0.350076347);
	cr_assert_float_eq(progress_variance(&e, &f), 913.581293, 1e-5);
}

/* What is missing for it to be known */
Test(progress, nothing_by_hand)
{
	double error, common;
	struct evidence e = by_hand();

	e.progress.marked.total = 0;
	cr_assert_eq(progress_factor(&e, &error, &common), 0);
	e = by_hand();
	e.progress.marked.all_marks = 0;
	cr_assert_eq(progress_factor(&e, &error, &common), 0);
	e = by_hand();
	e.progress.marked.all_calls = 0;
	cr_assert_eq(progress_factor(&e, &error, &common), 0);
	progress_settle(&e);
	cr_assert(e.progress.lost == 60 && e.progress.done.lost == 0);
	e = by_hand();
	e.progress.marked.m2 = 0;
	cr_assert_eq(progress_factor(&e, &error, &common), 0);
	e = by_hand();
	e.progress.marked.calls = 0;
	cr_assert_eq(progress_factor(&e, &error, &common), 0);
	cr_assert_eq(progress_cpu_error(&e), -1);
	e = by_hand();
	e.calls = 0;
	cr_assert_eq(progress_factor(&e, &error, &common), 0);
	e.progress.marked.cpu = 0;
	cr_assert_eq(progress_cpu_error(&e), -1);
	/* Exactly two windows are enough. */
	e = by_hand();
	e.progress.marked.c2 = 60000;
	cr_assert_gt(progress_cpu_error(&e), 0);
	e.progress.marked.c2 = 60001;
	cr_assert_eq(progress_cpu_error(&e), -1);
	/* Calls that are proportional to marks have no error by windows. */
	e = by_hand();
	e.progress.marked.c2 = e.progress.marked.cm * 4;
	e.progress.marked.m2 = e.progress.marked.cm / 4;
	cr_assert(progress_factor(&e, &error, &common) > 0 && error == common, "%g",
		  error - common);
}

static void expect_marked(const struct evidence_marked *m, const struct evidence_marked *want,
			  double times)
{
	cr_assert(m->lost == times * want->lost && m->guessed == times * want->guessed &&
		  m->had_window == want->had_window && m->before == times * want->before &&
		  m->between == times * want->between && m->total == times * want->total);
	cr_assert(m->all_marks == times * want->all_marks &&
		  m->all_calls == times * want->all_calls && m->calls == times * want->calls &&
		  m->marks == times * want->marks);
	cr_assert(m->c2 == times * want->c2 && m->m2 == times * want->m2 &&
		  m->cm == times * want->cm && m->cpu == times * want->cpu &&
		  m->cpu2 == times * want->cpu2 && m->c_cpu == times * want->c_cpu);
}

/* Twice the same marks, then too few; each time there are two functions. */
Test(progress, settled_by_hand)
{
	const struct evidence_func_marked none = {0}, of_f = {.calls = 100, .c2 = 900, .cm = 200};
	struct evidence_func funcs[2] = {{.touched = false}};
	struct evidence e = by_hand();

	e.funcs = funcs;
	e.nfuncs = 2;
	for (int times = 1; times <= 3; times++) {
		const int used = times < 3 ? times : 2;

		e.progress.marked = shown;
		e.progress.marked.had_window = times == 1;
		if (times > 1)
			e.progress.marked.guessed = 0;
		e.progress.shown = times < 3 ? 8 : 7;
		e.progress.shown_with = 33;
		e.progress.now = 1;
		funcs[0].marked = funcs[1].marked = of_f;
		progress_settle(&e);
		cr_assert_eq(funcs[1].done.calls, 100 * used);
		cr_assert_eq(funcs[1].done.c2, 900 * used);
		cr_assert_eq(funcs[1].done.cm, 800 * used);
		cr_assert(memcmp(&funcs[0].marked, &none, sizeof(none)) == 0);
		cr_assert(memcmp(&funcs[0].done, &funcs[1].done, sizeof(none)) == 0);
		cr_assert_eq(e.progress.shown_before, 8 * used);
		cr_assert_eq(e.progress.shown_without, times < 3 ? 50 : 83);
		cr_assert_eq(e.progress.lost, times < 3 ? 40 : 60);
		cr_assert(!e.progress.marked.total && !e.progress.shown && !e.progress.shown_with &&
			  !e.progress.now);
	}
	cr_assert(e.progress.done.guessed == 12 && e.progress.done.between == 12);
	e.progress.done.guessed = e.progress.done.between = 24;
	expect_marked(&e.progress.done, &settled, 2);
}

/* A window of 10 ns with 30 calls and 5 marks, if they are counted */
Test(progress, windows_by_hand)
{
	struct evidence e = {.last = {.length = 10, .calls = 30},
			     .progress = {.on = true, .now = 5}};

	progress_add_window(&e);
	cr_assert(e.progress.has_rate && e.progress.rate == 3);
	cr_assert(e.last.marked && e.last.marks == 5 && e.progress.now == 0);
	cr_assert(e.progress.shown == 5 && e.progress.shown_with == 30 &&
		  !e.progress.shown_without);
	e.progress.on = false;
	progress_add_window(&e);
	cr_assert(!e.last.marked && e.last.marks == 0);
	cr_assert(e.progress.shown == 5 && e.progress.shown_with == 30 &&
		  e.progress.shown_without == 30);
}

static void fold_marked(struct evidence_rig *m, uint64_t gap_ns, unsigned int marks)
{
	for (unsigned int i = 0; i < marks; i++)
		evidence_mark(&m->e, false);
	evidence_rig_fold(m, gap_ns, 1000, NULL, 1);
}

/* The first window has a weight of 2 and, after the next gap, of 3; the second one of 2. */
Test(progress, sums_by_hand)
{
	struct evidence_rig m;
	const struct evidence_marked *s = &m.e.progress.marked;

	evidence_rig_init(&m);
	evidence_count_marks(&m.e, true, 0);
	evidence_rig_seen(&m, m.f, 4, 30);
	evidence_rig_seen(&m, m.g, 1, 0);
	fold_marked(&m, 1000, 2);
	evidence_rig_seen(&m, m.f, 5, 10);
	fold_marked(&m, 2000, 1);
	cr_assert(s->all_calls == 25 && s->all_marks == 8);
	cr_assert(s->calls == 25 && s->marks == 8 && s->cpu == 110);
	cr_assert(s->c2 == 200 && s->m2 == 26 && s->cm == 70);
	cr_assert(s->cpu2 == 5600 && s->c_cpu == 1000);
	cr_assert(m.e.funcs[F].marked.calls == 22 && m.e.funcs[F].marked.c2 == 146);
	cr_assert(m.e.funcs[F].marked.cm == 58 && m.e.funcs[G].marked.cm == 6 * 2);
	/* Other windows have none. */
	evidence_count_marks(&m.e, false, 0);
	evidence_rig_seen(&m, m.f, 5, 10);
	fold_marked(&m, 2000, 1);
	cr_assert(s->all_calls == 0 && s->calls == 0 && s->c2 == 0);
	cr_assert(m.e.funcs[F].marked.calls == 0 && m.e.calls == 25 + 3 * 5);
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/* Of a gap of 100 ns the last 30 are unlike the window before, of which 70 remain. */
Test(progress, gaps_by_hand)
{
	struct evidence_rig m;

	for (int on = 0; on <= 1; on++) {
		evidence_rig_init(&m);
		evidence_gap(&m.e, 100);
		evidence_count_marks(&m.e, false, 30);
		cr_assert(m.e.windows == 0 && m.e.all_ns == 0 && m.e.gap_ns == 30,
			  "no window before");
		m.e.gap_ns = 0;
		evidence_rig_seen(&m, m.f, 30, 5);
		evidence_rig_fold(&m, 0, 10, NULL, 1);
		evidence_gap(&m.e, 100);
		evidence_count_marks(&m.e, on, 30);
		cr_assert_eq(m.e.progress.on, on);
		cr_assert_eq(m.e.gap_ns, on ? 0 : 30);
		cr_assert_eq(m.e.nodes[m.f].calls, on ? 30 : 240);
		cr_assert_eq(m.e.all_ns, on ? 10 : 80);
		cr_assert_eq(m.e.last.length, 0);
		cr_assert_eq(m.e.progress.marked.lost, on ? 100 : 0);
		cr_assert_eq(m.e.progress.marked.had_window, on);
		cr_assert_eq(m.e.progress.marked.before, on ? 300 : 0);
		evidence_set_marks(&m.e, 7, 0.25);
		cr_assert_eq(m.e.progress.marked.total, 7);
		cr_assert_eq(m.e.progress.marked.guessed, on ? 25 : 0);
		/* A gap that is all unlike */
		evidence_count_marks(&m.e, false, 0);
		m.e.gap_ns = 20;
		evidence_count_marks(&m.e, false, 30);
		cr_assert_eq(m.e.gap_ns, 20);
		evidence_rig_deinit(&m);
	}
	check_no_leaks();
}

/* After clear, only what follows counts; marks go on. */
Test(progress, cleared)
{
	struct evidence_rig m;

	evidence_rig_init(&m);
	evidence_count_marks(&m.e, true, 0);
	windows(&m, 3, 1000, 10);
	evidence_clear(&m.e);
	cr_assert(m.e.progress.on);
	cr_assert_eq(m.e.progress.marked.marks, 0);
	cr_assert_eq(m.e.progress.marked.total, 0);
	evidence_rig_deinit(&m);
	check_no_leaks();
}
