// SPDX-License-Identifier: BSD-2-Clause
/* base/parse: only strings that are numbers as a whole are accepted. */
#include "base/parse.h"

#include <errno.h>

#include "harness/test.h"

Test(parse, u64)
{
	uint64_t v = 7;

	assert_ok(parse_u64("0", 0, 10, &v));
	cr_assert(v == 0);
	assert_ok(parse_u64("18446744073709551615", 0, UINT64_MAX, &v));
	cr_assert(v == UINT64_MAX);
	assert_err(parse_u64("18446744073709551616", 0, UINT64_MAX, &v), -ERANGE);
	assert_err(parse_u64("11", 0, 10, &v), -ERANGE);
	assert_err(parse_u64("1", 2, 10, &v), -ERANGE);
	cr_assert(v == UINT64_MAX, "a failure must leave the result alone");
}

Test(parse, u64_is_strict)
{
	const char *bad[] = {"", " 1", "1 ", "+1", "-1", "0x10", "1.0", "1e3", "\xd9\xa1", "1\n"};
	uint64_t v;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_err(parse_u64(bad[i], 0, UINT64_MAX, &v), -EINVAL);
}

Test(parse, pid)
{
	pid_t pid = 0;

	assert_ok(parse_pid("4194304", &pid));
	cr_assert(pid == 4194304);
	assert_err(parse_pid("0", &pid), -ERANGE);
	assert_err(parse_pid("4194305", &pid), -ERANGE);
	assert_err(parse_pid("99999999999999999999", &pid), -ERANGE);
	assert_err(parse_pid("-5", &pid), -EINVAL);
}

Test(parse, duration)
{
	static const struct {
		const char *s;
		uint64_t ns;
	} good[] = {
		{"10", 10000000000ull},
		{"1.5", 1500000000},
		{"250ms", 250000000},
		{"90s", 90000000000ull},
		{"2m", 120000000000ull},
		{"1.5h", 5400000000000ull},
		{"0.000000001", 1},
		{"5us", 5000},
		{"8760h", 31536000000000000ull},
		{"1.0000000009", 1000000000},
	};
	uint64_t ns;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_ok(parse_duration(good[i].s, &ns));
		cr_assert(ns == good[i].ns, "%s is %lu", good[i].s, ns);
	}
}

Test(parse, duration_refuses)
{
	const char *invalid[] = {"",   "s",   ".5",   "1.",    "1.x", "-1",
				 "1d", "1 s", "1ms2", "1.5.2", "inf"};
	const char *range[] = {"0",
			       "0.0",
			       "0.0000000001",
			       "8761h",
			       "99999999999999999999",
			       "18446744073709551615h"};
	uint64_t ns;

	for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++)
		assert_err(parse_duration(invalid[i], &ns), -EINVAL);
	for (size_t i = 0; i < sizeof(range) / sizeof(range[0]); i++)
		assert_err(parse_duration(range[i], &ns), -ERANGE);
}

Test(parse, size)
{
	uint64_t v;

	assert_ok(parse_size("4096", &v));
	cr_assert(v == 4096);
	assert_ok(parse_size("64K", &v));
	cr_assert(v == 65536);
	assert_ok(parse_size("1G", &v));
	cr_assert(v == 1073741824);
	assert_err(parse_size("1k", &v), -EINVAL);
	assert_err(parse_size("1KB", &v), -EINVAL);
	assert_err(parse_size("K", &v), -EINVAL);
	assert_err(parse_size("18446744073709551615K", &v), -ERANGE);
}

Test(parse, percent)
{
	static const char *const bad[] = {"",	 "x",	  "-1",	 "+1",	"1.",	     ".5",
					  "1e1", "100.1", "101", "0x1", "1.0000001", " 1"};
	double v = -1;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert(parse_percent(bad[i], &v) < 0 && v == -1, "%s", bad[i]);
	assert_ok(parse_percent("0", &v));
	cr_assert(v == 0);
	assert_ok(parse_percent("12.5", &v));
	cr_assert(v == 12.5);
	assert_ok(parse_percent("100", &v));
	cr_assert(v == 100);
}
