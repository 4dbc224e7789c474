// SPDX-License-Identifier: BSD-2-Clause
/* Calls per call of the caller as text. */
#include "format/calls_text.h"

#include "harness/test.h"

static void expect(double calls, double error, const char *want)
{
	char text[CALLS_TEXT_MAX];
	const struct per_call p = {.calls = calls, .error = error};

	cr_assert_str_eq(calls_text(&p, text), want);
}

Test(calls_text, digits)
{
	expect(-1, 0, "");
	expect(1, 0, "1");
	expect(36.68, 0, "36.7");
	expect(36.68, 0.5234, "36.7 +-0.52");
	expect(36.68, 9.96, "36.7 +-10");
	expect(2. / 3, 0, "0.667");
	expect(123456.7, 123.4, "123457 +-123");
	expect(999.6, 0, "1000");
	expect(0.0001, 0, "<0.001");
	expect(0.01, 0.0000001, "0.01 +-0.001");
}

Test(calls_text, has_room_for_all)
{
	char text[CALLS_TEXT_MAX];
	const struct per_call p = {.calls = 1e30, .error = 1e30};

	calls_text(&p, text);
	cr_assert(strlen(text) < CALLS_TEXT_MAX);
}
