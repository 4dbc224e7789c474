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

/* Sums of several instances; those that are not there any more are not counted as seen after a clear. */
Test(coro, several)
{
	static const uint64_t lengths[] = {50, 20, 70, 40};
	struct coros cs;

	coros_init(&cs);
	for (uint64_t i = 0; i < 4; i++) {
		coro_enter(&cs, 0x10 * (i + 1), FUNC, 100, true);
		coro_leave(&cs, 0x10 * (i + 1), FUNC, 100 + lengths[i], run_1_2, false);
	}
	cr_assert(sum(&cs).lifetimes == 4 && sum(&cs).total == 180);
	cr_assert(sum(&cs).min == 20 && sum(&cs).max == 70);
	cr_assert_eq(cs.n, 1, "the same entry for all of them");
	/* Time that goes back is none, but the instance has ended. */
	coro_enter(&cs, 0x50, FUNC, 100, true);
	coro_leave(&cs, 0x50, FUNC, 100, run_1_2, true);
	coro_enter(&cs, 0x50, FUNC, 90, false);
	coro_leave(&cs, 0x50, FUNC, 90, run_1_2, false);
	cr_assert(sum(&cs).suspended == 0 && sum(&cs).min == 0 && sum(&cs).ended == 5);
	coro_enter(&cs, 0x60, FUNC, 100, true);
	coro_enter(&cs, 0x70, FUNC, 100, true);
	coro_leave(&cs, 0x60, FUNC, 110, run_1_2, false);
	coros_clear(&cs, 500);
	cr_assert(sum(&cs).partial == 1 && sum(&cs).total == 0);
	/* It is one that still runs, so the time of its suspension begins later. */
	coro_leave(&cs, 0x70, FUNC, 510, run_1_2, true);
	coro_enter(&cs, 0x70, FUNC, 530, false);
	cr_assert(sum(&cs).suspended == 20 && sum(&cs).partial == 1);
	coro_leave(&cs, 0x70, FUNC, 540, run_1_2, false);
	cr_assert(sum(&cs).lifetimes == 0 && sum(&cs).ended == 1);
	coros_deinit(&cs);
	check_no_leaks();
}

/* Suspended for 90, running, and ended; after that, all of them are new. */
Test(coro, stopped)
{
	struct coros cs;

	coros_init(&cs);
	for (uint64_t i = 1; i <= 3; i++)
		coro_enter(&cs, 0x10 * i, FUNC, 100, true);
	coro_leave(&cs, 0x10, FUNC, 110, run_1_2, true);
	coro_leave(&cs, 0x30, FUNC, 110, run_1_2, false);
	coros_stop(&cs, 200);
	cr_assert_eq(sum(&cs).suspended, 90);
	cr_assert(!coro_is_suspended(&cs, 0x10) && cs.n == 0);
	for (uint64_t i = 1; i <= 3; i++)
		coro_enter(&cs, 0x10 * i, FUNC, 300, false);
	cr_assert(sum(&cs).partial == 3 && sum(&cs).suspended == 90 && cs.n == 3);
	coros_deinit(&cs);
	check_no_leaks();
}

/* A function's sums are zero at first, and stay when there are more functions. */
Test(coro, sums_of_more_functions)
{
	static const uint32_t funcs[] = {0, 63, 64, 128, 1000};
	struct coro_sums sums = {NULL, 0};

	for (uint32_t i = 0; i < 5; i++) {
		cr_assert_eq(coro_sum(&sums, funcs[i])->steps, 0);
		coro_sum(&sums, funcs[i])->steps = 10 + i;
		cr_assert(sums.n > funcs[i] && sums.n <= 64 + 2 * funcs[i]);
	}
	for (uint32_t i = 0; i < 5; i++)
		cr_assert_eq(coro_sum(&sums, funcs[i])->steps, 10 + i);
	free(sums.v);
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
	/* One from the middle, the oldest and the newest continue and are suspended again, so the next is dropped. */
	coro_enter(&cs, 8, FUNC, 1000001, true);
	coro_enter(&cs, 8 * 14, FUNC, 1000001, false);
	coro_enter(&cs, 8 * 12, FUNC, 1000001, false);
	coro_enter(&cs, 8 * (CORO_LIMIT + 10), FUNC, 1000001, false);
	coro_leave(&cs, 8 * 14, FUNC, 1000002, none, true);
	coro_leave(&cs, 8 * 12, FUNC, 1000002, none, true);
	coro_leave(&cs, 8 * (CORO_LIMIT + 10), FUNC, 1000002, none, true);
	for (uint64_t i = 1; i <= 2; i++)
		coro_enter(&cs, 8 * CORO_LIMIT * 2 + 8 * i, FUNC, 1000003, true);
	cr_assert(!coro_is_suspended(&cs, 8 * 13) && !coro_is_suspended(&cs, 8 * 15));
	cr_assert(coro_is_suspended(&cs, 8 * 12) && coro_is_suspended(&cs, 8 * 14));
	cr_assert(coro_is_suspended(&cs, 8 * 16) && coro_is_suspended(&cs, 8 * (CORO_LIMIT + 10)));
	cr_assert_eq(cs.forgotten, 12);
	coros_deinit(&cs);
	check_no_leaks();
}
