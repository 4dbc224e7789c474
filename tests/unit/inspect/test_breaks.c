// SPDX-License-Identifier: BSD-2-Clause
/* Breakpoints that are in a process's memory but not in its file, in memory defined by the test. */
#include "inspect/breaks.h"

#include "harness/test.h"

#define BASE UINT64_C(0x7f0000001800)
#define SIZE 9000u

static uint8_t file[SIZE], has[SIZE];

static void setup(void)
{
	for (size_t i = 0; i < SIZE; i++)
		file[i] = (uint8_t)(i % 199);
	file[700] = 0xcc; /* an int3 in the file, as compilers use for padding */
	memcpy(has, file, sizeof(has));
}

TestSuite(breaks, .init = setup);

static const struct plan plan = {
	.nsites = 3,
	.sites =
		{
			{.vaddr = 0x100, .bytes = {0x90}},
			{.vaddr = 0x2100, .bytes = {0x74, 0x05}},
			{.vaddr = 0x900000, .bytes = {0x90}}, /* must not be read */
		},
};

Test(breaks, at_sites)
{
	const struct memory mem = memory_buffer(has, sizeof(has), BASE);
	uint64_t bias = BASE;

	has[0x100] = 0x90;
	has[0x2100] = 0x74;
	cr_assert_eq(breaks_at_sites(&mem, &plan, bias), 0);
	has[0x2100] = 0xcc;
	cr_assert_eq(breaks_at_sites(&mem, &plan, bias), 1);
	/* Any other difference is modified code, not a breakpoint. */
	has[0x100] = 0xe9;
	cr_assert_eq(breaks_at_sites(&mem, &plan, bias), 1);
	cr_assert(breaks_is_site(&plan, bias, BASE + 0x2100));
	cr_assert(!breaks_is_site(&plan, bias, BASE + 0x2101));
}

Test(breaks, in_text)
{
	const struct memory mem = memory_buffer(has, sizeof(has), BASE);
	uint64_t out[2] = {0};

	cr_assert_eq(breaks_in_text(&mem, file, SIZE, BASE, out, 2), 0);
	has[5] = has[4096] = has[SIZE - 1] = 0xcc;
	has[6] = 0x90;
	cr_assert_eq(breaks_in_text(&mem, file, SIZE, BASE, out, 2), 3);
	cr_assert_eq(out[0], BASE + 5);
	cr_assert_eq(out[1], BASE + 4096);
	cr_assert_eq(breaks_in_text(&mem, file, SIZE, BASE, NULL, 0), 3);
}

/* Pages that are not mapped any more are skipped. */
Test(breaks, in_text_that_is_cut)
{
	const struct memory mem = memory_buffer(has + 0x800, 4096, BASE + 0x800);
	uint64_t out[4];

	has[5] = has[0x800] = has[0x17ff] = has[0x1800] = 0xcc;
	cr_assert_eq(breaks_in_text(&mem, file, SIZE, BASE, out, 4), 2);
	cr_assert_eq(out[0], BASE + 0x800);
	cr_assert_eq(out[1], BASE + 0x17ff);
}
