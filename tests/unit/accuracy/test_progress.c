// SPDX-License-Identifier: BSD-2-Clause
/*
 * Scaling counts by marks: of a program that makes calls at a known rate per mark, with probes whose cost
 * is taken for half as much as it is, so that scaling by CPU time is far off.
 */
#include <math.h>

#include "accuracy/calls.h"
#include "accuracy/evidence.h"
#include "harness/evidence_rig.h"
#include "harness/test.h"

/* As if each context had this factor, and samples said nothing. */
static double variance_of(const struct evidence *e, const struct calls_estimate *c, uint32_t func)
{
	return calls_variance(e, c, func, c->factor, 1);
}

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

	*ret_error = sqrt(variance_of(&m->e, &c, F));
	return c.factor * m->e.nodes[m->f].calls;
}

/* 2,000 calls per ms: 2,000,000 in 100 times 10 ms. */
Test(progress, counts_are_scaled_by_marks)
{
	struct evidence_rig m;
	double calls, error;

	evidence_rig_init(&m);
	evidence_count_marks(&m.e, true);
	windows(&m, 100, 1000, 100);
	evidence_set_marks(&m.e, 2000000 / CALLS_PER_MARK);
	calls = calls_of(&m, &error);
	cr_assert(fabs(calls - 2000000) < 60000, "%f", calls);
	cr_assert(error > 0.01 * calls && error < 0.05 * calls, "%f +- %f", calls, error);
	/* Without marks, and without samples, there is nothing to scale them by. */
	evidence_set_marks(&m.e, 0);
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
	evidence_count_marks(&m.e, true);
	for (int i = 0; i < 10; i++) {
		windows(&m, 10, 1000, 100);
		evidence_rig_seen(&m, m.f, 10000, 10000000);
		for (int k = 0; k < 10000 / CALLS_PER_MARK; k++)
			evidence_mark(&m.e, true);
		assert_ok(evidence_keep(&m.e, &m.tree, true));
	}
	evidence_set_marks(&m.e, (2000000 + 100000) / CALLS_PER_MARK);
	calls = calls_of(&m, &error);
	cr_assert(fabs(calls - 2000000) < 60000, "%f", calls);
	cr_assert(error > 0.01 * calls && error < 0.05 * calls, "%f +- %f", calls, error);
	cr_assert_eq(m.e.nodes[m.f].exact.calls, 100000);
	/* Fewer than those in stretches: nothing is known of the others. */
	evidence_set_marks(&m.e, 1000);
	cr_assert_eq(calls_of(&m, &error), 0);
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/*
 * Windows before marks are counted have none. Probes' cost makes their own time too short by the same factor as
 * later: a fifth of the calls that they represent.
 */
Test(progress, windows_without_marks)
{
	struct evidence_rig m;
	double calls, error, common;

	evidence_rig_init(&m);
	windows(&m, 50, 1000, 0);
	evidence_count_marks(&m.e, true);
	cr_assert_eq(m.e.progress.marked.calls.sum, 0);
	windows(&m, 50, 1000, 0);
	evidence_set_marks(&m.e, 100000 / CALLS_PER_MARK);
	calls = calls_factor_by_marks(&m.e, &error, &common) * m.e.calls;
	cr_assert(fabs(calls - 200000) < 10000, "%f", calls);
	cr_assert(common > 0.14 && common < 0.18 && error >= common, "%f", common);
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/* While marks were chosen, 100 ms, the program used no CPU time. */
Test(progress, while_marks_were_chosen)
{
	struct evidence_rig m;
	double calls, error;

	evidence_rig_init(&m);
	windows(&m, 1, 1000, 0);
	evidence_gap(&m.e, 100000000);
	evidence_count_marks(&m.e, true);
	cr_assert_eq(m.e.gap_ns, 0);
	windows(&m, 100, 1000, 100);
	evidence_set_marks(&m.e, 2000000 / CALLS_PER_MARK);
	calls = calls_of(&m, &error);
	cr_assert(fabs(calls - 2020000) < 60000, "%f", calls);
	evidence_rig_deinit(&m);
	/* Windows with marks do not represent it. */
	evidence_rig_init(&m);
	evidence_gap(&m.e, 100000000);
	evidence_count_marks(&m.e, true);
	cr_assert_eq(m.e.gap_ns, 0);
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/* Marks are given up, as the program does something else: only the later ones show how often. */
Test(progress, marks_are_chosen_again)
{
	struct evidence_rig m;
	double error, common, factor;

	evidence_rig_init(&m);
	evidence_count_marks(&m.e, true);
	windows(&m, 50, 1000, 100);
	evidence_set_marks(&m.e, 1000000 / CALLS_PER_MARK);
	evidence_count_marks(&m.e, false);
	cr_assert_eq(calls_factor_by_marks(&m.e, &error, &common), 0);
	evidence_count_marks(&m.e, true);
	for (int i = 0; i < 50; i++)
		window(&m, 1000, 1000000, 4);
	evidence_set_marks(&m.e, 4000);
	factor = calls_factor_by_marks(&m.e, &error, &common);
	cr_assert_float_eq(factor, 4000 / (50 * 4 * 10.0), 0.1, "%f", factor);
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
	evidence_count_marks(&m.e, true);
	for (int i = 0; i < 30; i++)
		window(&m, i % 4 == 3 ? 822 : 0, i % 4 == 3 ? 822000 : 0, i % 4 == 3 ? 4 : 0);
	evidence_set_marks(&m.e, 3080);
	calls = calls_factor_by_marks(&m.e, &error, &common) * m.e.calls;
	cr_assert(fabs(calls - 632940) < 1000, "%f", calls);
	cr_assert(error > 1.0 / 28 && error < 0.08, "%f", error);
	/* One of them says as much as 4 marks. */
	m.e.progress.shown = 8;
	cr_assert(calls_factor_by_marks(&m.e, &error, &common) > 0 && common > 1.0 / 8, "%f",
		  common);
	m.e.progress.shown = 7;
	cr_assert(calls_factor_by_marks(&m.e, &error, &common) == 0, "fewer say nothing");
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/* One window with nearly all marks says little about the others. */
Test(progress, hardly_more_than_one_window)
{
	struct evidence_rig m;
	double error = 0, common;

	evidence_rig_init(&m);
	evidence_count_marks(&m.e, true);
	windows(&m, 10, 8, 0);
	windows(&m, 1, 100000, 0);
	windows(&m, 10, 8, 0);
	evidence_set_marks(&m.e, 5000);
	cr_assert(calls_factor_by_marks(&m.e, &error, &common) > 0);
	cr_assert(error > 0.3, "%f", error);
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/* Calls that do not go with marks make the error large, and scaling by samples remains. */
Test(progress, calls_that_vary)
{
	struct evidence_rig m;
	double error = 0, common;

	evidence_rig_init(&m);
	evidence_count_marks(&m.e, true);
	for (int i = 0; i < 20; i++)
		window(&m, i % 2 ? 100 : 5000, 1000000, i % 2 ? 50 : 5);
	evidence_set_marks(&m.e, 10000);
	cr_assert(calls_factor_by_marks(&m.e, &error, &common) > 0);
	cr_assert(error > 0.2, "%f", error);
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/* What follows is known exactly: figures that are simple enough to compute the results by hand. */

/*
 * 4 calls per mark; 10 times as many were passed as windows show, in three quarters of the CPU time. A third of the
 * windows' calls is without marks.
 */
static struct evidence by_hand(void)
{
	return (struct evidence){
		.calls = 600,
		.own_cpu = 1000,
		.progress = {.shown = 100,
			     .cpu_before = 250,
			     .marked = {.total = 1000,
					.all_marks = 100,
					.all_calls = 400,
					.calls = {300, 4000, 950},
					.marks = 75,
					.marks2 = 250}},
	};
}

Test(progress, by_hand)
{
	struct evidence_func f = {.by_marks = {100, 900, 200}};
	struct evidence e = by_hand();
	double error, common;

	cr_assert_float_eq(calls_factor_by_marks(&e, &error, &common), 10 * 400 / 0.75 / 600, 1e-9);
	cr_assert_float_eq(common, 0.078264351, 1e-8, "%.9g", common);
	cr_assert_float_eq(error, 0.105504661, 1e-8, "%.9g", error);
	e.funcs = &f;
	e.nfuncs = 1;
	e.windows = 2;
	e.size = 1;
	cr_assert_float_eq(variance_of(&e, &(struct calls_estimate){.factor = 1, .by_marks = true},
				       0),
			   913.581293, 1e-5);
}

/* What is missing for it to be known */
Test(progress, nothing_by_hand)
{
	double error, common;
	struct evidence e = by_hand();

	e.progress.marked.total = 0;
	cr_assert_eq(calls_factor_by_marks(&e, &error, &common), 0);
	e = by_hand();
	e.progress.marked.marks2 = 0;
	cr_assert_eq(calls_factor_by_marks(&e, &error, &common), 0);
	e = by_hand();
	e.progress.marked.calls.sum = 0;
	cr_assert_eq(calls_factor_by_marks(&e, &error, &common), 0);
	e = by_hand();
	e.progress.shown = 7;
	cr_assert_eq(calls_factor_by_marks(&e, &error, &common), 0);
	e = by_hand();
	e.progress.cpu_before = 701;
	cr_assert_eq(calls_factor_by_marks(&e, &error, &common), 0, "nearly all of it was before");
	e = by_hand();
	e.calls = 0;
	cr_assert_eq(calls_factor_by_marks(&e, &error, &common), 0);
}
