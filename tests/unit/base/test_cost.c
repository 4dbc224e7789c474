// SPDX-License-Identifier: BSD-2-Clause
/* Costs at another time than that of their measurement, when the machine is slower or faster. */
#include "base/cost.h"

#include "harness/test.h"

static const struct cost known = {
	.known = true, .before = {400, 300, 0}, .after = {500, 200, 5000}, .latency_ps = 120000};

Test(cost, goes_with_the_latency)
{
	struct cost c = cost_scaled(&known, cost_scale(&known, 1000 * 150, 1000));

	cr_assert_eq(c.before[COST_ENTER], 500);
	cr_assert_eq(c.after[COST_LEAVE], 250);
	cr_assert_eq(c.before[COST_YIELD], 0);
	cr_assert_eq(c.after[COST_YIELD], 6250);
	cr_assert_eq(c.latency_ps, known.latency_ps, "it is still what they are measured by");
}

Test(cost, stays_where_nothing_is_known)
{
	struct cost no_latency = known, nothing = {.latency_ps = 1};

	no_latency.latency_ps = 0;
	cr_assert_eq(cost_scale(&no_latency, 1000 * 150, 1000), 1);
	cr_assert_eq(cost_scale(&nothing, 1000 * 150, 1000), 1);
	cr_assert_eq(cost_scale(&known, 150 * (COST_LATENCIES - 1), COST_LATENCIES - 1), 1,
		     "too few");
	cr_assert_neq(cost_scale(&known, 150 * COST_LATENCIES, COST_LATENCIES), 1);
}

Test(cost, has_its_limits)
{
	struct cost expensive = {.known = true, .before = {UINT32_MAX}, .latency_ps = 1};

	cr_assert_eq(cost_scale(&known, 1000 * 8000, 1000), 4);
	cr_assert_eq(cost_scale(&known, 1000, 1000), 0.25);
	cr_assert_eq(cost_scaled(&expensive, 4).before[COST_ENTER], UINT32_MAX);
}

Test(cost, learns_in_latencies)
{
	/*
	 * The machine was half as fast; relative to the probe-latency reference, costs were a tenth
	 * higher than the known ones.
	 */
	struct cost now = {.known = true,
			   .before = {880, 660, 0},
			   .after = {1100, 440, 11000},
			   .latency_ps = 240000};
	struct cost c = cost_learn(&known, &now, 0.25);

	cr_assert(c.known);
	cr_assert_eq(c.latency_ps, 240000);
	cr_assert_eq(c.before[COST_ENTER], 820, "a quarter of the way from 800 to 880");
	cr_assert_eq(c.after[COST_YIELD], 10250);
	for (int i = 0; i < 30; i++)
		c = cost_learn(&c, &now, 0.25);
	cr_assert(c.before[COST_ENTER] >= 878 && c.before[COST_ENTER] <= 880, "%u",
		  c.before[COST_ENTER]);
}

Test(cost, learns_from_what_is_known_only)
{
	struct cost none = {0}, no_latency = known, c;

	no_latency.latency_ps = 0;
	no_latency.before[COST_ENTER] = 7;
	c = cost_learn(&none, &known, 0.25);
	assert_bytes_eq(&c, &known, sizeof(c));
	c = cost_learn(&known, &none, 0.25);
	assert_bytes_eq(&c, &known, sizeof(c));
	c = cost_learn(&no_latency, &known, 0.25);
	assert_bytes_eq(&c, &known, sizeof(c));
	c = cost_learn(&known, &no_latency, 0.25);
	cr_assert_eq(c.before[COST_ENTER], 7, "the newest, where they cannot be compared");
}

/* By what a hit takes as far as known, such as where traps are slow. */
Test(cost, guesses)
{
	const struct cost usual = cost_guess(0), slow = cost_guess(6001);

	cr_assert(usual.known && slow.known && usual.latency_ps == 0);
	for (int k = 0; k < COST_KINDS; k++) {
		cr_assert_eq(cost_hit(&usual, (enum cost_kind)k), 600);
		cr_assert_eq(cost_hit(&slow, (enum cost_kind)k), 6001);
	}
	cr_assert_eq(usual.before[COST_LEAVE], usual.after[COST_LEAVE]);
}

/* Converts the length of intervals without hits to the length after hits, and back. */
Test(cost, undisturbed)
{
	const double without[] = {0.01, 20, 70, 120, 170, 600, 5000, 1e6};
	const double cold = cost_cold(800), n = 1000;

	for (size_t i = 0; i < sizeof(without) / sizeof(*without); i++)
		for (double times = 0; times < 3; times += 0.5) {
			double ns = n * without[i];
			double with = ns + times * cost_cold_slowdown(cold, n, ns);

			cr_assert_float_eq(cost_undisturbed(cold, n, with, times), ns, 0.01 * ns,
					   "%.2f ns, %.1f", without[i], times);
		}
	cr_assert_float_eq(cost_cold_slowdown(cold, n, 1e12), n * cold, 1, "no more than D each");
	cr_assert_eq(cost_cold_slowdown(cold, 0, 5), 0);
	cr_assert_eq(cost_undisturbed(cold, 0, 5, 1), 5, "nothing was hit");
	cr_assert_eq(cost_undisturbed(0, 7, 5, 1), 5);
}

/* A mark's program does less than a site's. It is slower afterwards, too. */
Test(cost, of_marks)
{
	const struct cost fast = {.known = true, .before = {200}, .after = {200}},
			  usual = {.known = true, .before = {303}, .after = {303}},
			  shared = {.known = true, .before = {500}, .after = {500}},
			  slow = {.known = true, .before = {3800}, .after = {3800}};

	cr_assert_float_eq(cost_mark(&fast), 280 * 1.18, 1e-9);
	cr_assert_float_eq(cost_mark(&usual), 391 * 1.18, 1e-9);
	cr_assert_float_eq(cost_mark(&shared), 410 * 1.18, 1e-9);
	cr_assert_float_eq(cost_mark(&slow), 7385 * 1.18, 1e-9);
}

/* On a machine that others use, usual traps are now and then measured as longer. */
Test(cost, of_a_mark_does_not_jump)
{
	struct cost c = {.known = true, .before = {500}, .after = {500}};
	double last = cost_mark(&c);

	for (; c.after[0] < 2500; c.after[0] += 10) {
		double mark = cost_mark(&c);

		cr_assert(mark >= last && mark < last + 40, "%u: %f", c.after[0], mark);
		last = mark;
	}
	cr_assert_float_eq(last, 2775 * 1.18, 1e-9);
}

/* Usual traps do not lengthen all intervals alike. */
Test(cost, of_each_interval)
{
	cr_assert_eq(cost_each(0), 0);
	cr_assert_eq(cost_each(800), 0);
	cr_assert_float_eq(cost_each(6000), 350, 1e-9);
}
