// SPDX-License-Identifier: BSD-2-Clause
/*
 * Costs from the times between a calibration's events: the sums are correct for any split of a
 * cost.
 */
#include "probe/calibrate.h"

#include "harness/test.h"

Test(calibrate, sums)
{
	const struct calibration_times t = {.enter_leave = 600,
					    .leave_enter = 700,
					    .enter_enter = 640,
					    .enter_yield = 5600,
					    .yield_enter = 5700};
	struct cost c = calibration_cost(&t);

	cr_assert(c.known);
	cr_assert_eq(c.after[COST_ENTER] + c.before[COST_LEAVE], 600);
	cr_assert_eq(c.after[COST_LEAVE] + c.before[COST_ENTER], 700);
	cr_assert_eq(c.after[COST_ENTER] + c.before[COST_ENTER], 640);
	cr_assert_eq(c.after[COST_ENTER] + c.before[COST_YIELD], 5600);
	cr_assert_eq(c.after[COST_YIELD] + c.before[COST_ENTER], 5700);
}

Test(calibrate, nonsense_is_not_negative)
{
	struct cost c = calibration_cost(&(
		struct calibration_times){.enter_leave = 1, .leave_enter = 2, .enter_enter = 900});

	cr_assert(c.known);
	cr_assert_eq(c.before[COST_LEAVE], 0);
	cr_assert_eq(c.after[COST_LEAVE], 0);
	cr_assert_eq(c.before[COST_YIELD], 0);
}

Test(calibrate, too_little_is_not_known)
{
	cr_assert(!calibration_cost(&(struct calibration_times){0}).known);
	cr_assert(!calibration_cost(&(struct calibration_times){.enter_leave = 5}).known);
}
