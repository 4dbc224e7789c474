// SPDX-License-Identifier: BSD-2-Clause
/* C functions by address: one lookup per range, limits, and names that are safe to print. */
#include <errno.h>
#include <stdio.h>

#include "harness/test.h"
#include "stack/natives.h"

struct asked {
	unsigned int n;
	int err;
	struct native_code answer;
};

static int answer(void *ctx, uint64_t address, struct native_code *ret)
{
	struct asked *a = ctx;

	(void)address;
	a->n++;
	if (!a->err)
		*ret = a->answer;
	return a->err;
}

static struct funcs funcs;
static struct asked asked;
static struct natives natives;

static void setup(void)
{
	assert_ok(funcs_init(&funcs, 1000, 1 << 20));
	asked = (struct asked){.answer = {.start = 0x10000, .end = 0x20000, .file = "libz.so.1"}};
	natives = (struct natives){.find = answer, .ctx = &asked};
}

static void teardown(void)
{
	natives_deinit(&natives);
	funcs_deinit(&funcs);
	check_no_leaks();
}

TestSuite(natives, .init = setup, .fini = teardown);

static const char *name_at(uint64_t address)
{
	return funcs_identity(&funcs, natives_func(&natives, &funcs, address)).name;
}

Test(natives, one_question_per_range)
{
	for (uint64_t at = 0x10000; at < 0x20000; at += 0x100)
		cr_assert_str_eq(name_at(at), "<native code in libz.so.1>");
	cr_assert_eq(asked.n, 1);
	asked.answer = (struct native_code){.start = 0x20000, .end = 0x21000, .file = ""};
	cr_assert_str_eq(name_at(0x20000), "<native code>");
	cr_assert_str_eq(name_at(0x1ffff), "<native code in libz.so.1>");
	cr_assert_eq(asked.n, 2);
}

/* Other mappings of the same file have the same row. */
Test(natives, ranges_that_overlap)
{
	uint32_t a = natives_func(&natives, &funcs, 0x18000);

	asked.answer = (struct native_code){.start = 0x8000, .end = 0x30000, .file = "libz.so.1"};
	cr_assert_eq(natives_func(&natives, &funcs, 0x8000), a);
	cr_assert_eq(natives_func(&natives, &funcs, 0x10000), a);
	cr_assert_eq(asked.n, 2);
	cr_assert(natives.v[0].end <= natives.v[1].start);
}

/* Between two others, of which it would cover a part each */
Test(natives, range_between_two)
{
	name_at(0x10000);
	asked.answer = (struct native_code){.start = 0x40000, .end = 0x50000, .file = "b"};
	name_at(0x4ffff);
	asked.answer = (struct native_code){.start = 0x18000, .end = 0x48000, .file = "c"};
	cr_assert_str_eq(name_at(0x30000), "<native code in c>");
	cr_assert(natives.n == 3 && natives.v[1].start == 0x20000 && natives.v[1].end == 0x40000);
	cr_assert_str_eq(name_at(0x20000), "<native code in c>");
	cr_assert_str_eq(name_at(0x1ffff), "<native code in libz.so.1>");
	cr_assert_str_eq(name_at(0x40000), "<native code in b>");
	cr_assert_eq(asked.n, 3);
}

/* It stands for the whole page. */
Test(natives, no_answer_for_a_page)
{
	asked.err = -EIO;
	name_at(0x1234);
	cr_assert(natives.n == 1 && natives.v[0].start == 0x1000 && natives.v[0].end == 0x2000);
	name_at(0x1000);
	name_at(0x1fff);
	cr_assert_eq(asked.n, 1);
	name_at(0x2000);
	cr_assert(asked.n == 2 && natives.failures == 2);
}

Test(natives, no_answer)
{
	asked.err = -EIO;
	for (uint64_t i = 0; i < 100; i++)
		cr_assert_str_eq(name_at(i << 16), "<native code>");
	cr_assert_eq(asked.n, NATIVES_FAILURES);
	cr_assert_str_eq(name_at(0), "<native code>");
	natives_forget(&natives);
	asked.err = 0;
	cr_assert_str_eq(name_at(0x10000), "<native code in libz.so.1>");
}

Test(natives, more_than_there_is_room_for)
{
	for (uint64_t i = 0; i < 2 * NATIVES_MAX; i++) {
		asked.answer.start = i << 16;
		asked.answer.end = asked.answer.start + 0x1000;
		name_at(i << 16);
	}
	cr_assert_eq(asked.n, NATIVES_MAX);
	cr_assert_eq(natives.n, NATIVES_MAX);
}

Test(natives, nobody_to_ask)
{
	natives = (struct natives){0};
	cr_assert_str_eq(name_at(0x1234), "<native code>");
}

Test(natives, names_of_hostile_files)
{
	snprintf(asked.answer.file, sizeof(asked.answer.file), "a\xff>b");
	cr_assert_str_eq(name_at(0x10000), "<native code in a?>b>");
}
