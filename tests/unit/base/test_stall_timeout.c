// SPDX-License-Identifier: BSD-2-Clause
/* The time to wait for a thread or process that may be blocked. */
#include "base/stall_timeout.h"
#include "harness/test.h"

#define MS UINT64_C(1000000)

Test(stall_timeout, ends_with_a_row_of_blocked_looks)
{
	struct stall_timeout p = stall_timeout_new(1000 * MS, 300, 10000);

	for (int i = 1; i <= STALL_TIMEOUT_POLLS; i++) {
		cr_assert_eq(p.next_ns, (1000 + 50 * (uint64_t)i) * MS);
		cr_assert_eq(stall_timeout_expired(&p, p.next_ns, false), i == STALL_TIMEOUT_POLLS);
	}
}

Test(stall_timeout, begins_anew_when_it_runs)
{
	struct stall_timeout p = stall_timeout_new(0, 300, 10000);

	for (int i = 0; i < 10; i++) {
		for (int j = 1; j < STALL_TIMEOUT_POLLS; j++)
			cr_assert_not(stall_timeout_expired(&p, p.next_ns, false));
		cr_assert_not(stall_timeout_expired(&p, p.next_ns, true));
	}
}

Test(stall_timeout, has_a_limit_for_one_that_runs)
{
	struct stall_timeout p = stall_timeout_new(0, 300, 1000);
	int looks = 0;

	do
		looks++;
	while (!stall_timeout_expired(&p, p.next_ns, true));
	cr_assert_eq(looks, 20);
}

/* A standstill of the machine counts as one check, however long it lasts. */
Test(stall_timeout, a_standstill_is_one_look)
{
	struct stall_timeout p = stall_timeout_new(0, 300, 1000);
	uint64_t now = 5000 * MS;

	cr_assert_not(stall_timeout_expired(&p, now, false));
	cr_assert_eq(p.next_ns, now + 50 * MS);
	for (int i = 2; i < STALL_TIMEOUT_POLLS; i++)
		cr_assert_not(stall_timeout_expired(&p, p.next_ns, false));
	cr_assert(stall_timeout_expired(&p, p.next_ns, false));
}
