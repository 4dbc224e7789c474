// SPDX-License-Identifier: BSD-2-Clause
/* Lifetimes of coroutine instances, from entries and leaves. */
#include "stack/coro.h"

#include "harness/test.h"

#define FUNC 5

static const uint64_t run_1_2[SNAPSHOT_CLOCKS] = {1, 2};

static struct coro_sum sum(struct coros *cs)
{
	return *coro_sum(&cs->sums, FUNC);
}

Test(coro, life)
{
	struct coros cs;

	coros_init(&cs);
	coro_enter(&cs, 0x10, FUNC, 100, true);
	coro_leave(&cs, 0x10, FUNC, 102, run_1_2, true);
	cr_assert(coro_is_suspended(&cs, 0x10) && !coro_is_suspended(&cs, 0x20));
	coro_enter(&cs, 0x10, FUNC, 150, false);
	cr_assert(!coro_is_suspended(&cs, 0x10));
	coro_leave(&cs, 0x10, FUNC, 152, run_1_2, false);
	cr_assert(!coro_is_suspended(&cs, 0x10));
	cr_assert(sum(&cs).started == 1 && sum(&cs).ended == 1 && sum(&cs).steps == 2);
	cr_assert(sum(&cs).running[SNAPSHOT_CPU] == 2 && sum(&cs).running[SNAPSHOT_WALL] == 4);
	cr_assert(sum(&cs).suspended == 48 && sum(&cs).lifetimes == 1);
	cr_assert(sum(&cs).total == 52 && sum(&cs).min == 52 && sum(&cs).max == 52);
	coros_deinit(&cs);
	check_no_leaks();
}

/* A new instance starts in the memory of a suspended one: the old one has ended, unobserved. */
Test(coro, memory_used_again)
{
	struct coros cs;

	coros_init(&cs);
	coro_enter(&cs, 0x10, FUNC, 100, true);
	coro_leave(&cs, 0x10, FUNC, 110, run_1_2, true);
	coro_enter(&cs, 0x10, FUNC, 1000, true);
	cr_assert(sum(&cs).started == 2 && sum(&cs).ended == 1);
	cr_assert(sum(&cs).total == 10 && sum(&cs).suspended == 0);
	/*
	 * an instance of another function also ends the old one, even if it is first observed when
	 * it resumes
	 */
	coro_leave(&cs, 0x10, FUNC, 1001, run_1_2, true);
	coro_enter(&cs, 0x10, FUNC + 1, 2000, false);
	cr_assert(sum(&cs).ended == 2 && coro_sum(&cs.sums, FUNC + 1)->partial == 1);
	coros_deinit(&cs);
	check_no_leaks();
}

Test(coro, first_seen_in_the_middle)
{
	struct coros cs;

	coros_init(&cs);
	coro_enter(&cs, 0x10, FUNC, 100, false);
	coro_leave(&cs, 0x10, FUNC, 110, run_1_2, false);
	cr_assert(sum(&cs).partial == 1 && sum(&cs).started == 0 && sum(&cs).ended == 1);
	cr_assert(sum(&cs).lifetimes == 0 && sum(&cs).total == 0);
	/* a leave without an observed entry */
	coro_leave(&cs, 0x20, FUNC, 120, run_1_2, true);
	cr_assert(sum(&cs).ended == 1 && !coro_is_suspended(&cs, 0x20));
	coros_deinit(&cs);
	check_no_leaks();
}

Test(coro, hidden_ends)
{
	struct coros cs;

	coros_init(&cs);
	cs.ends_hidden = true;
	coro_enter(&cs, 0x10, FUNC, 100, true);
	coro_leave(&cs, 0x10, FUNC, 110, run_1_2, false);
	cr_assert(coro_is_suspended(&cs, 0x10) && sum(&cs).ended == 0);
	coro_enter(&cs, 0x10, FUNC, 200, false);
	coro_leave(&cs, 0x10, FUNC, 210, run_1_2, false);
	coros_stop(&cs, 1000);
	cr_assert(sum(&cs).suspended == 90 && !coro_is_suspended(&cs, 0x10));
	coros_deinit(&cs);
	check_no_leaks();
}

Test(coro, cleared)
{
	struct coros cs;

	coros_init(&cs);
	coro_enter(&cs, 0x10, FUNC, 100, true);
	coro_leave(&cs, 0x10, FUNC, 110, run_1_2, true);
	coros_clear(&cs, 500);
	cr_assert(sum(&cs).started == 0 && sum(&cs).partial == 1);
	coro_enter(&cs, 0x10, FUNC, 600, false);
	cr_assert(sum(&cs).suspended == 100);
	coros_deinit(&cs);
	check_no_leaks();
}

/* The instance that has been suspended longest is dropped; running ones are kept. */
Test(coro, too_many)
{
	const uint64_t none[SNAPSHOT_CLOCKS] = {0};
	struct coros cs;

	coros_init(&cs);
	coro_enter(&cs, 8, FUNC, 1, true);
	for (uint64_t i = 2; i <= CORO_LIMIT + 10; i++) {
		coro_enter(&cs, i * 8, FUNC, i, true);
		coro_leave(&cs, i * 8, FUNC, i, none, true);
	}
	cr_assert_eq(cs.n, CORO_LIMIT);
	cr_assert_eq(cs.forgotten, 10);
	cr_assert(!coro_is_suspended(&cs, 16) && !coro_is_suspended(&cs, 8 * 11));
	cr_assert(coro_is_suspended(&cs, 8 * 12));
	coro_leave(&cs, 8, FUNC, 1000000, none, false);
	cr_assert_eq(sum(&cs).lifetimes, 1);
	coros_deinit(&cs);
	check_no_leaks();
}
