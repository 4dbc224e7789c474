// SPDX-License-Identifier: BSD-2-Clause
/* How long somebody is waited for who may be blocked. */
#include "base/patience.h"
#include "harness/test.h"

#define MS UINT64_C(1000000)

Test(patience, ends_with_a_row_of_blocked_looks)
{
	struct patience p = patience_new(1000 * MS, 300, 10000);

	for (int i = 1; i <= PATIENCE_LOOKS; i++) {
		cr_assert_eq(p.next_ns, (1000 + 50 * (uint64_t)i) * MS);
		cr_assert_eq(patience_ends(&p, p.next_ns, false), i == PATIENCE_LOOKS);
	}
}

Test(patience, begins_anew_when_it_runs)
{
	struct patience p = patience_new(0, 300, 10000);

	for (int i = 0; i < 10; i++) {
		for (int j = 1; j < PATIENCE_LOOKS; j++)
			cr_assert_not(patience_ends(&p, p.next_ns, false));
		cr_assert_not(patience_ends(&p, p.next_ns, true));
	}
}

Test(patience, has_a_limit_for_one_that_runs)
{
	struct patience p = patience_new(0, 300, 1000);
	int looks = 0;

	do
		looks++;
	while (!patience_ends(&p, p.next_ns, true));
	cr_assert_eq(looks, 20);
}

/* However long the machine stood still, that was one look. */
Test(patience, a_standstill_is_one_look)
{
	struct patience p = patience_new(0, 300, 1000);
	uint64_t now = 5000 * MS;

	cr_assert_not(patience_ends(&p, now, false));
	cr_assert_eq(p.next_ns, now + 50 * MS);
	for (int i = 2; i < PATIENCE_LOOKS; i++)
		cr_assert_not(patience_ends(&p, p.next_ns, false));
	cr_assert(patience_ends(&p, p.next_ns, false));
}
