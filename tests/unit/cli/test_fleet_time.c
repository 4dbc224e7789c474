// SPDX-License-Identifier: BSD-2-Clause
/* Points in time as people write them. */
#include "fleet_time.h"

#include <errno.h>
#include <time.h>

#include "harness/test.h"

#define NOW UINT64_C(1764132000) /* 2025-11-26T04:40:00Z */

static uint64_t parse(const char *text)
{
	struct diag diag = {0};
	uint64_t ret = 0;

	assert_diag_ok(fleet_time_parse(text, NOW, "from", &ret, &diag), &diag);
	return ret;
}

Test(fleet_time, forms)
{
	cr_assert(setenv("TZ", "UTC", 1) == 0);
	tzset();
	cr_assert_eq(parse("now"), NOW);
	cr_assert_eq(parse("-15m"), NOW - 900);
	cr_assert_eq(parse("2025-11-26T04:40:00Z"), NOW);
	cr_assert_eq(parse("2025-11-26 04:40"), NOW);
	cr_assert_eq(parse("2025-11-26"), NOW - 4 * 3600 - 40 * 60);
	cr_assert_eq(parse("04:39"), NOW - 60);
	cr_assert(setenv("TZ", "UTC-2", 1) == 0);
	tzset();
	cr_assert_eq(parse("2025-11-26T06:40"), NOW);
	cr_assert_eq(parse("2025-11-26T04:40Z"), NOW);
	cr_assert_eq(parse("06:40:00"), NOW);
}

Test(fleet_time, invalid_ones)
{
	static const char *const bad[] = {"",	    "yesterday",   "-",
					  "-x",	    "25:00",	   "2025-13-01",
					  "04:39x", "1969-01-01Z", "2300-01-01Z"};
	uint64_t ret = 1;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct diag diag = {0};

		assert_err(fleet_time_parse(bad[i], NOW, "from", &ret, &diag), -EINVAL);
		cr_assert_eq(diag.exit, PYP_EXIT_USAGE);
	}
	cr_assert_eq(ret, 1);
}
