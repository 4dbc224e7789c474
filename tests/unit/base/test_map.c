// SPDX-License-Identifier: BSD-2-Clause
/* The hash map compared with an array, through random insertions and removals. */
#include "base/map.h"

#include "harness/test.h"

#define KEYS 3000

static uint64_t key_of(uint32_t i)
{
	/* Addresses, small numbers and pairs, as used in practice, and 0 */
	switch (i % 3) {
	case 0:
		return UINT64_C(0x7f0000000000) + i * 64;
	case 1:
		return i - 1;
	default:
		return (uint64_t)i << 32 | (i % 7);
	}
}

Test(map, against_an_array)
{
	struct map m = {0};
	uint32_t value[KEYS] = {0}, got, n = 0;

	srandom(1);
	cr_assert(!map_get(&m, 0, &got));
	cr_assert(!map_del(&m, 0));
	for (uint32_t step = 1; step < 200000; step++) {
		uint32_t i = (uint32_t)random() % KEYS;

		if (random() % 2) {
			assert_ok(map_put(&m, key_of(i), step));
			n += !value[i];
			value[i] = step;
		} else {
			cr_assert_eq(map_del(&m, key_of(i)), value[i] != 0);
			n -= value[i] != 0;
			value[i] = 0;
		}
		cr_assert_eq(m.n, n);
		i = (uint32_t)random() % KEYS;
		cr_assert_eq(map_get(&m, key_of(i), &got), value[i] != 0);
		cr_assert(!value[i] || got == value[i]);
	}
	map_clear(&m);
	for (uint32_t i = 0; i < KEYS; i++)
		cr_assert(!map_get(&m, key_of(i), &got));
	map_deinit(&m);
	check_no_leaks();
}
