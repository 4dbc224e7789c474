// SPDX-License-Identifier: BSD-2-Clause
/* The probes' costs from measured loops: built from known costs, these must come back. */
#include "verify/measure.h"

#include "harness/test.h"

/* An interpreter with these costs, seen as measure.c sees it. */
static struct measure_means means_of(const struct cost *c)
{
	const double call = 40, loop = 10, body = 150, level = 100, down = 73, item = 28;

	return (struct measure_means){
		.loop = loop,
		.body = loop + body,
		.untraced = {loop + body + call, level, item},
		.between[ENTER_LEAVE] = c->after[COST_ENTER] + body + c->before[COST_LEAVE],
		.between[LEAVE_ENTER] = c->after[COST_LEAVE] + loop + call + c->before[COST_ENTER],
		.between[ENTER_ENTER] = c->after[COST_ENTER] + down + c->before[COST_ENTER],
		.between[LEAVE_LEAVE] = c->after[COST_LEAVE] + level - down + c->before[COST_LEAVE],
		.between[ENTER_YIELD] = c->after[COST_ENTER] + item / 2 + c->before[COST_YIELD],
		.between[YIELD_ENTER] = c->after[COST_YIELD] + item / 2 + c->before[COST_ENTER],
	};
}

Test(measure, known_costs_come_back)
{
	const struct cost want = {
		.known = true, .before = {420, 350, 5350}, .after = {420, 200, 5200}};
	struct measure_means m = means_of(&want);
	struct cost got = measure_costs_of(&m);

	cr_assert(got.known);
	for (int k = 0; k < COST_KINDS; k++) {
		cr_assert_eq(got.before[k], want.before[k], "before, kind %d: %u", k,
			     got.before[k]);
		cr_assert_eq(got.after[k], want.after[k], "after, kind %d: %u", k, got.after[k]);
	}
}

Test(measure, plain_calls_are_believed_where_the_loops_differ)
{
	const struct cost want = {.known = true, .before = {420, 350, 0}, .after = {420, 200, 0}};
	struct measure_means m = means_of(&want);
	struct cost got;

	m.between[ENTER_ENTER] += 50; /* nested calls are more expensive */
	m.between[LEAVE_LEAVE] += 50;
	got = measure_costs_of(&m);
	cr_assert_eq(got.after[COST_ENTER] + got.before[COST_LEAVE], 770);
	cr_assert_eq(got.after[COST_LEAVE] + got.before[COST_ENTER], 620);
}

Test(measure, nonsense_is_not_known)
{
	struct measure_means m =
		means_of(&(struct cost){.before = {400, 300, 0}, .after = {400, 200}});

	m.between[ENTER_LEAVE] = 0;
	cr_assert(!measure_costs_of(&m).known, "nothing was seen");
	cr_assert(!measure_costs_of(&(struct measure_means){0}).known);
}

/* An entry that costs more than the whole of an interval leaves nothing to the end of the call. */
Test(measure, costs_are_not_negative)
{
	struct measure_means m =
		means_of(&(struct cost){.before = {600, 1, 0}, .after = {600, 1, 0}});
	struct cost got;

	m.between[ENTER_ENTER] += 1000;
	m.between[LEAVE_LEAVE] = 30;
	got = measure_costs_of(&m);
	cr_assert(got.known);
	cr_assert_eq(got.before[COST_LEAVE], 0);
	cr_assert_eq(got.after[COST_LEAVE], 0);
	cr_assert_eq(got.before[COST_YIELD], 0);
}

Test(measure, versions_without_yields_have_no_cost_of_them)
{
	struct measure_means m =
		means_of(&(struct cost){.before = {400, 300, 0}, .after = {400, 200}});
	struct cost got;

	m.between[ENTER_YIELD] = m.between[YIELD_ENTER] = 0;
	got = measure_costs_of(&m);
	cr_assert(got.known);
	cr_assert_eq(got.before[COST_YIELD], 0);
	cr_assert_eq(got.after[COST_YIELD], 0);
}

/* Rounds at the machine's different speeds, some of them disturbed. */
Test(measure, what_is_usual_is_in_latencies)
{
	struct cost rounds[MEASURE_ROUNDS], c;
	const uint32_t n = MEASURE_ROUNDS;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t latency = 100 + i % 2 * 60; /* ns */

		rounds[i] = (struct cost){.known = true,
					  .before = {4 * latency, 3 * latency, 40 * latency},
					  .after = {5 * latency, 2 * latency, 50 * latency},
					  .latency_ps = 1000 * latency};
		if (i % 7 == 0)
			rounds[i].before[COST_ENTER] *= 3;
	}
	c = measure_typical(rounds, n);
	cr_assert(c.known);
	cr_assert_eq(c.latency_ps, 130000);
	cr_assert_eq(c.before[COST_ENTER], 520);
	cr_assert_eq(c.after[COST_LEAVE], 260);
	cr_assert_eq(c.after[COST_YIELD], 6500);
	cr_assert(!measure_typical(rounds, n / 2 - 1).known, "too few");
}
