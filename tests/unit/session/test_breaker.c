// SPDX-License-Identifier: BSD-2-Clause
/* --stop-above: only after 10 seconds in one go, once, and it reports when and why. */
#include "session/breaker.h"

#include "harness/test.h"

#define S UINT64_C(1000000000)
/* 2026-11-23T13:00:00Z */
#define UNIX_S UINT64_C(1795438800)

static struct breaker b;

static bool at(uint64_t second, double probes, double own)
{
	return breaker_trips(&b, 25, probes, own, (100 + second) * S, (UNIX_S + second) * S);
}

Test(breaker, after_ten_seconds)
{
	breaker_reset(&b);
	for (uint64_t s = 0; s < 10; s++)
		cr_assert(!at(s, 30, 100), "%d", (int)s);
	cr_assert_str_eq(b.text, "");
	cr_assert(at(10, 183, 100));
	cr_assert_str_eq(b.text,
			 "stopped at 2026-11-23T13:00:10Z: probes took more than 25 % of its "
			 "own CPU time for 10 seconds, at last 183 % (--stop-above)");
	cr_assert(!at(11, 183, 100), "once");
	breaker_reset(&b);
	cr_assert_str_eq(b.text, "");
	cr_assert(!at(12, 30, 100), "from the beginning");
}

Test(breaker, a_second_below_begins_anew)
{
	breaker_reset(&b);
	for (uint64_t s = 0; s < 60; s++)
		cr_assert(!at(s, s % 9 == 8 ? 25 : 26, 100));
	for (uint64_t s = 60; s < 90; s++)
		cr_assert(!at(s, 0, 0), "idle");
}

/* According to the clock, probes have taken all of it, or more. */
Test(breaker, nothing_left)
{
	breaker_reset(&b);
	for (uint64_t s = 0; s < 10; s++)
		cr_assert(!at(s, 100, -3));
	cr_assert(at(10, 100, 0));
	cr_assert(strstr(b.text, "at last all ("));
}

Test(breaker, no_limit)
{
	breaker_reset(&b);
	for (uint64_t s = 0; s < 60; s++)
		cr_assert(!breaker_trips(&b, 0, 1e9, 1, s * S, 0));
}
