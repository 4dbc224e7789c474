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

Test(calls_text, certainty)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cr_assert_eq(calls_certainty(0, 0), CALLS_CERTAIN);
	cr_assert_eq(calls_certainty(8, 2 * 2), CALLS_CERTAIN);
	cr_assert_eq(calls_certainty(8, 2.1 * 2.1), CALLS_ROUGH);
	cr_assert_eq(calls_certainty(8, 8 * 8), CALLS_ROUGH);
	cr_assert_eq(calls_certainty(8, 8.1 * 8.1), CALLS_UNKNOWN);
	cr_assert_eq(calls_certainty(8, -1), CALLS_UNKNOWN);
	calls_print_legend(false, false, out);
	calls_print_legend(false, true, out);
	calls_print_legend(true, false, out);
	fclose(out);
	cr_assert_str_eq(text,
			 "\n   ? stands for numbers of calls of which windows have shown too little"
			 "\n   ~ marks figures with a standard error of more than 25%");
}

Test(calls_text, has_room_for_all)
{
	char text[CALLS_TEXT_MAX];
	const struct per_call p = {.calls = 1e30, .error = 1e30};

	calls_text(&p, text);
	cr_assert(strlen(text) < CALLS_TEXT_MAX);
}
