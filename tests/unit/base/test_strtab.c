// SPDX-License-Identifier: BSD-2-Clause
/* Interned strings. */
#include "base/strtab.h"

#include <errno.h>

#include "harness/test.h"

Test(strtab, interns)
{
	struct strtab t = {.limit = 1000000};
	char str[16];
	uint32_t id, again;

	for (uint32_t i = 0; i < 10000; i++) {
		snprintf(str, sizeof(str), "s%u", i);
		assert_ok(strtab_add(&t, str, &id));
		cr_assert_eq(id, i);
		assert_ok(strtab_add(&t, str, &again));
		cr_assert_eq(again, id);
	}
	cr_assert_str_eq(strtab_get(&t, 77), "s77");
	cr_assert_null(strtab_get(&t, STRTAB_NONE));
	strtab_deinit(&t);
	check_no_leaks();
}

Test(strtab, limit)
{
	struct strtab t = {.limit = 8};
	uint32_t id = 99;

	assert_ok(strtab_add(&t, "abcd", &id));
	assert_err(strtab_add(&t, "efg", &id), -ENOSPC);
	cr_assert_eq(id, 0);
	assert_ok(strtab_add(&t, "ef", &id));
	assert_ok(strtab_add(&t, "abcd", &id));
	cr_assert_eq(id, 0);
	strtab_deinit(&t);
	check_no_leaks();
}
