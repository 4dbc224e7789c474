// SPDX-License-Identifier: BSD-2-Clause
/*
 * Scaling counts by marks: of a program that makes calls at a known rate per mark, with probes whose cost
 * is taken for half as much as it is, so that scaling by CPU time is far off.
 */
#include <math.h>

#include "estimate/estimate_priv.h"
#include "estimate/progress.h"
#include "harness/estimate_rig.h"
#include "harness/test.h"

#define CALLS_PER_MARK 40

/* 400 ns per call */
static const struct cost too_cheap = {
	.known = true,
	.before = {[COST_ENTER] = 100, [COST_LEAVE] = 100},
	.after = {[COST_ENTER] = 100, [COST_LEAVE] = 100},
};

/* A window of 1 ms that represents 10 ms. */
static void window(struct estimate_rig *m, unsigned int calls, uint64_t cpu_ns, unsigned int marks)
{
	estimate_gap(&m->e, 9000000);
	estimate_own_cpu(&m->e, 10000000);
	estimate_rig_seen(m, m->f, calls, cpu_ns, 0);
	for (unsigned int k = 0; k < marks; k++)
		estimate_mark(&m->e);
	assert_ok(estimate_fold(&m->e, &m->tree, FUNCS, 1000000, &too_cheap, 1));
}

/*
 * n windows that each represent 10 ms, and show `calls` +- spread calls of 500 ns, to which probes add as
 * much.
 */
static void windows(struct estimate_rig *m, int n, unsigned int calls, unsigned int spread)
{
	for (int i = 0; i < n; i++) {
		unsigned int c = calls + (unsigned int)(i * 7919) % (2 * spread + 1) - spread;

		window(m, c, 1000 * (uint64_t)c, c / CALLS_PER_MARK);
	}
}

static double calls_of(const struct estimate_rig *m, double *ret_error)
{
	struct estimate_result r = estimate_rig_reconcile(m, &too_cheap);
	double calls = (double)estimate_figures(&r, m->f).calls;

	*ret_error = sqrt(estimate_variance(&r, F, SNAPSHOT_CALLS));
	estimate_result_deinit(&r);
	return calls;
}

/* 2,000 calls per ms: 2,000,000 in 100 times 10 ms. */
Test(progress, counts_are_scaled_by_marks)
{
	struct estimate_rig m;
	double calls, error;

	estimate_rig_init(&m);
	estimate_count_marks(&m.e, true, 0);
	windows(&m, 100, 1000, 100);
	estimate_set_marks(&m.e, 2000000 / CALLS_PER_MARK, 0);
	calls = calls_of(&m, &error);
	cr_assert(fabs(calls - 2000000) < 60000, "%f", calls);
	cr_assert(error > 0.01 * calls && error < 0.05 * calls, "%f +- %f", calls, error);
	/* Without marks, the windows' CPU time decides. */
	estimate_set_marks(&m.e, 0, 0);
	calls = calls_of(&m, &error);
	cr_assert(calls < 1800000, "%f", calls);
	estimate_rig_deinit(&m);
	check_no_leaks();
}

/*
 * Windows before marks are counted have none. They represent the time around them, for which probes' cost
 * makes their own time too short by the same factor as later.
 */
Test(progress, windows_without_marks)
{
	struct estimate_rig m;
	double calls, error, common;

	estimate_rig_init(&m);
	windows(&m, 50, 1000, 0);
	estimate_count_marks(&m.e, true, 0);
	cr_assert_eq(m.e.progress.marked.calls, 0);
	cr_assert_eq(m.e.progress.shown_without, 50000);
	windows(&m, 50, 1000, 0);
	/* a fifth of the calls of windows scaled by their time */
	estimate_set_marks(&m.e, 100000 / CALLS_PER_MARK, 0);
	calls = progress_factor(&m.e, &error, &common) * m.e.calls;
	/* Of 500,000 calls, 50,000 were seen; a fifth of the others */
	cr_assert(fabs(calls - (100000 + 50000 + 90000)) < 0.05 * 240000, "%f", calls);
	/* 90,000 calls have an error of half the logarithm of the factor. */
	cr_assert(common > 0.28 && common < 0.35 && error >= common, "%f", common);
	estimate_rig_deinit(&m);
	check_no_leaks();
}

/*
 * While marks were chosen, 100 ms, 0 to 200,000 calls were made: the window before shows as many as those
 * after it, but then there were none for a moment, or not. (In windows, a mark stands for 40.8 calls.)
 */
static double while_chosen(double marks_per_ns, double *ret_error)
{
	struct estimate_rig m;
	double calls;

	estimate_rig_init(&m);
	windows(&m, 1, 1000, 0);
	estimate_gap(&m.e, 100000000);
	estimate_count_marks(&m.e, true, 0);
	windows(&m, 100, 1000, 100);
	estimate_set_marks(&m.e, 2000000 / CALLS_PER_MARK, marks_per_ns);
	calls = calls_of(&m, ret_error);
	estimate_rig_deinit(&m);
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
	struct estimate_rig m;
	double calls, error, common;

	estimate_rig_init(&m);
	estimate_rig_seen(&m, m.f, 50000, 50000000, 0);
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 40000000, &too_cheap, 1));
	estimate_fold_end(&m.e);
	estimate_count_marks(&m.e, true, 0);
	windows(&m, 50, 1000, 100);
	estimate_set_marks(&m.e, 250000 / CALLS_PER_MARK, 0);
	calls = progress_factor(&m.e, &error, &common) * m.e.calls;
	cr_assert(fabs(calls - 300000) < 15000, "%f", calls);
	cr_assert(error < 0.05, "%f", error);
	estimate_rig_deinit(&m);
	check_no_leaks();
}

/* Marks are given up, and others chosen later: there are calls before, between and after that. */
Test(progress, marks_are_chosen_again)
{
	struct estimate_rig m;
	double calls, error, common;

	estimate_rig_init(&m);
	estimate_count_marks(&m.e, true, 0);
	windows(&m, 50, 1000, 100);
	/* Marks as often as later, in a fiftieth of the windows' time */
	estimate_gap(&m.e, 9000000 + 5000000);
	estimate_set_marks(&m.e, 1000000 / CALLS_PER_MARK, 0);
	estimate_count_marks(&m.e, false, 5000000);
	estimate_gap(&m.e, 15000000);
	estimate_count_marks(&m.e, true, 0);
	cr_assert_float_eq(m.e.progress.marked.lost, 20000000, 1);
	for (int i = 0; i < 50; i++)
		window(&m, 1000, 1000000, 4);
	/* 250 calls per mark */
	estimate_set_marks(&m.e, 4000, 4000 / 500e6);
	calls = progress_factor(&m.e, &error, &common) * m.e.calls;
	cr_assert(fabs(calls - 1.02 * 2000000) < 50000, "%f", calls);
	cr_assert(common > 0.3 * 0.02 && error < 0.05, "%f %f", common, error);
	calls = calls_of(&m, &error);
	cr_assert(fabs(calls - 1.02 * 2000000) < 50000, "%f", calls);
	cr_assert(error > 0.01 * calls && error < 0.05 * calls, "%f +- %f", calls, error);
	estimate_rig_deinit(&m);
	check_no_leaks();
}

/*
 * A program waits for most of the time. Seven of 30 windows show 822 calls and 4 marks, the others
 * nothing. There were 3,080 marks, of 632,940 calls.
 */
Test(progress, few_marks_in_bursts)
{
	struct estimate_rig m;
	double calls, error, common;

	estimate_rig_init(&m);
	estimate_count_marks(&m.e, true, 0);
	for (int i = 0; i < 30; i++)
		window(&m, i % 4 == 3 ? 822 : 0, i % 4 == 3 ? 822000 : 0, i % 4 == 3 ? 4 : 0);
	estimate_set_marks(&m.e, 3080, 0);
	calls = progress_factor(&m.e, &error, &common) * m.e.calls;
	cr_assert(fabs(calls - 632940) < 1000, "%f", calls);
	cr_assert(error > 1.0 / 28 && error < 0.08, "%f", error);
	/* One of them says as much as 4 marks. */
	m.e.progress.shown = 8;
	cr_assert(progress_factor(&m.e, &error, &common) > 0 && common > 1.0 / 8, "%f", common);
	m.e.progress.shown = 7;
	cr_assert(progress_factor(&m.e, &error, &common) == 0, "fewer say nothing");
	estimate_rig_deinit(&m);
	check_no_leaks();
}

/* Too few of the earlier marks were in windows, so their windows are like others. */
Test(progress, earlier_marks_of_no_use)
{
	struct estimate_rig m;

	estimate_rig_init(&m);
	estimate_count_marks(&m.e, true, 0);
	windows(&m, 3, 100, 0);
	estimate_set_marks(&m.e, 1000, 0);
	estimate_count_marks(&m.e, false, 0);
	cr_assert_eq(m.e.progress.done.total, 0);
	cr_assert_eq(m.e.progress.shown_without, 300);
	/* Time for which there are no marks is like the rest. */
	estimate_gap(&m.e, 5000000);
	estimate_count_marks(&m.e, true, 0);
	estimate_count_marks(&m.e, false, 0);
	cr_assert_eq(m.e.progress.lost, 5000000);
	estimate_rig_deinit(&m);
	check_no_leaks();
}

/* One window with nearly all marks says little about the others. */
Test(progress, hardly_more_than_one_window)
{
	struct estimate_rig m;
	double error = 0, common;

	estimate_rig_init(&m);
	estimate_count_marks(&m.e, true, 0);
	windows(&m, 10, 8, 0);
	windows(&m, 1, 100000, 0);
	windows(&m, 10, 8, 0);
	estimate_set_marks(&m.e, 5000, 0);
	cr_assert(progress_factor(&m.e, &error, &common) > 0);
	cr_assert(error > 0.3, "%f", error);
	estimate_rig_deinit(&m);
	check_no_leaks();
}

/* Calls that do not go with marks make the error large, and scaling by CPU time remains. */
Test(progress, calls_that_vary)
{
	struct estimate_rig m;
	double error = 0, common;

	estimate_rig_init(&m);
	estimate_count_marks(&m.e, true, 0);
	for (int i = 0; i < 20; i++)
		window(&m, i % 2 ? 100 : 5000, 1000000, i % 2 ? 50 : 5);
	estimate_set_marks(&m.e, 10000, 0);
	cr_assert(progress_factor(&m.e, &error, &common) > 0);
	cr_assert(error > 0.2, "%f", error);
	estimate_rig_deinit(&m);
	check_no_leaks();
}

/* After clear, only what follows counts; marks go on. */
Test(progress, cleared)
{
	struct estimate_rig m;

	estimate_rig_init(&m);
	estimate_count_marks(&m.e, true, 0);
	windows(&m, 3, 1000, 10);
	estimate_clear(&m.e);
	cr_assert(m.e.progress.on);
	cr_assert_eq(m.e.progress.marked.marks, 0);
	cr_assert_eq(m.e.progress.marked.total, 0);
	estimate_rig_deinit(&m);
	check_no_leaks();
}
