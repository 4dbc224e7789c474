// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "base/bitset.h"
#include "harness/test.h"

Test(bitset, empty_has_none)
{
	struct bitset b = {0};

	cr_expect_eq(bitset_next(&b, 0), BITSET_NONE);
	cr_assert_eq(bitset_reserve(&b, 1000), 0);
	cr_expect_eq(bitset_next(&b, 0), BITSET_NONE);
	cr_expect_eq(bitset_next(&b, 2000), BITSET_NONE);
	bitset_deinit(&b);
	check_no_leaks();
}

Test(bitset, finds_the_next_at_any_distance)
{
	static const uint32_t far[] = {0,      63,     64,	 4095,	   4096,
				       262143, 262144, 16777215, 16777216, 100000000};
	struct bitset b = {0};

	cr_assert_eq(bitset_reserve(&b, 100000001), 0);
	for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
		bitset_add(&b, far[i]);
		cr_expect_eq(bitset_next(&b, 0), far[i]);
		cr_expect_eq(bitset_next(&b, far[i]), far[i]);
		cr_expect_eq(bitset_next(&b, far[i] + 1), BITSET_NONE);
		bitset_remove(&b, far[i]);
		cr_expect_eq(bitset_next(&b, 0), BITSET_NONE);
	}
	bitset_deinit(&b);
	check_no_leaks();
}

Test(bitset, agrees_with_an_array)
{
	enum { N = 20000 };
	bool *in = calloc(N, sizeof(*in));
	struct bitset b = {0};

	cr_assert(in);
	srandom(1);
	for (int step = 0; step < 200000; step++) {
		uint32_t i = (uint32_t)random() % N, want;

		/* The set grows meanwhile. */
		cr_assert_eq(bitset_reserve(&b, step < 100 ? N / 2 : N), 0);
		if (i >= b.limit)
			continue;
		in[i] = random() % 64 == 0;
		if (in[i])
			bitset_add(&b, i);
		else
			bitset_remove(&b, i);
		if (step % 16)
			continue;
		i = (uint32_t)random() % N;
		for (want = i; want < N && !in[want]; want++)
			;
		cr_assert_eq(bitset_next(&b, i), want < N ? want : BITSET_NONE, "from %u", i);
	}
	bitset_clear(&b);
	cr_expect_eq(bitset_next(&b, 0), BITSET_NONE);
	bitset_deinit(&b);
	free(in);
	check_no_leaks();
}
