// SPDX-License-Identifier: BSD-2-Clause
/* The table of threads, and a thread's stacks: slots, index and limits. */
#include "stack/threads.h"

#include <errno.h>

#include "harness/test.h"
#include "pyprof/bpf_abi.h"

static struct calltree tree;
static struct threads threads;

static void setup(void)
{
	calltree_init(&tree, 100);
	assert_ok(threads_init(&threads, &tree, 3, 1000));
}

static void teardown(void)
{
	threads_deinit(&threads);
	calltree_deinit(&tree);
	check_no_leaks();
}

TestSuite(threads, .init = setup, .fini = teardown);

/* Each thread is where it says, and those that live are found by their tid. */
static void check_table(void)
{
	for (uint32_t i = 0; i < threads.n; i++) {
		const struct thread *th = threads.v[i];

		cr_assert_eq(th->at, i);
		cr_assert(th->room == &threads.room);
		if (th->alive)
			cr_assert_eq(threads_find(&threads, th->tid), th);
	}
}

/* The overflow entry and rows are beside the limit. */
Test(threads, limit)
{
	struct thread *row;

	cr_assert(threads.n == 1 && !threads.v[THREADS_OVERFLOW]->alive);
	cr_assert_str_eq(threads.v[THREADS_OVERFLOW]->name, "(truncated)");
	row = threads_add_row(&threads);
	cr_assert(row && !row->alive && row->tid == 0 && threads.nrows == 1);
	for (uint32_t tid = 1; tid <= 3; tid++) {
		struct thread *th = threads_get(&threads, tid, 10 * tid);

		cr_assert(th && th->alive && th->tid == tid);
		cr_assert(th->start_ns == 10 * tid && th->end_ns == 10 * tid);
		cr_assert_eq(threads_get(&threads, tid, 99), th);
	}
	cr_assert(!threads_get(&threads, 4, 40) && !threads_find(&threads, 4));
	cr_assert_eq(threads.n, 5);
	check_table();
}

Test(threads, more_than_there_is_room_for_at_first)
{
	threads.limit = 100;
	for (uint32_t tid = 1; tid <= 100; tid++)
		cr_assert(threads_get(&threads, tid, 1));
	cr_assert_eq(threads.n, 101);
	check_table();
	for (uint32_t i = 0; i < 101; i++)
		cr_assert(tree.parents[threads.v[i]->root] == NODE_NONE &&
			  (i == 0 || threads.v[i]->root != threads.v[i - 1]->root));
}

/* The last one takes the place of the one that is removed; that may be itself. */
Test(threads, removed)
{
	struct thread *first = threads_get(&threads, 1, 1), *second = threads_get(&threads, 2, 1);
	struct thread *third = threads_get(&threads, 3, 1);

	first->live = first->on_cpu = true;
	threads_retire(&threads, first);
	cr_assert(!first->live && !first->alive && !first->on_cpu && !threads_find(&threads, 1));
	threads_remove(&threads, first);
	cr_assert(threads.n == 3 && threads.v[1] == third && threads.v[2] == second);
	check_table();
	threads_retire(&threads, second);
	threads_remove(&threads, second);
	cr_assert(threads.n == 2 && threads.v[1] == third);
	check_table();
	/* Its tid is that of another thread now. */
	threads_retire(&threads, third);
	cr_assert_neq(threads_get(&threads, 3, 5), third);
	threads_remove(&threads, third);
	cr_assert_eq(threads.n, 2);
	check_table();
}

Test(threads, all_that_ended_are_forgotten)
{
	struct thread *th[4];

	cr_assert(threads_add_row(&threads));
	for (uint32_t i = 1; i <= 3; i++)
		th[i] = threads_get(&threads, i, 1);
	threads_retire(&threads, th[2]);
	threads_forget_dead(&threads);
	cr_assert(threads.n == 3 && threads.nrows == 0);
	cr_assert(threads.v[1] == th[1] && threads.v[2] == th[3]);
	check_table();
	cr_assert(threads_get(&threads, 5, 1) && !threads_get(&threads, 6, 1));
}

/* ---- stacks ---- */

static struct thread *new_thread(void)
{
	return threads_get(&threads, 1, 1);
}

static void push(struct thread *th, uint64_t frame)
{
	cr_assert(thread_reserve(th, 1000));
	th->cur.acts[th->cur.depth++] =
		(struct activation){.frame = frame, .node = (uint32_t)(frame & 0xff)};
}

static void expect_place(struct thread *th, uint64_t frame, enum thread_place place, uint32_t slot)
{
	uint32_t got = STACK_NO_SLOT;

	cr_assert_eq(thread_find(th, frame, &got), place, "%lx", frame);
	cr_assert_eq(got, place == PLACE_PARKED ? slot : STACK_NO_SLOT, "%lx", frame);
}

/* Three stacks are parked, the second continues, ends, and its slot is used again. */
Test(threads, parked_stacks)
{
	struct thread *th = new_thread();

	for (uint64_t k = 0; k < 3; k++) {
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
			th->total[c] = 100 * k + (uint64_t)c;
		th->probes = 10 * k;
		push(th, 0x100 * k + 1);
		push(th, 0x100 * k + 2);
		assert_ok(thread_park(th));
	}
	cr_assert(th->nparked == 3 && th->greenlets && th->node == th->root && !th->cur.depth);
	cr_assert(th->oldest == 0 && th->newest == 2 && th->nslots == 3);
	for (uint32_t k = 0; k < 3; k++) {
		cr_assert(th->parked[k].parked);
		cr_assert_eq(th->parked[k].stack.clock[1], 100 * k + 1);
		cr_assert_eq(th->parked[k].stack.probes, 10 * k);
		expect_place(th, 0x100 * k + 1, PLACE_PARKED, k);
		expect_place(th, 0x100 * k + 2, PLACE_PARKED, k);
	}
	expect_place(th, 0x300, PLACE_NOWHERE, 0);
	th->total[1] = 1000;
	th->probes = 50;
	thread_unpark(th, 1);
	cr_assert(th->nparked == 2 && th->cur.slot == 1 && th->node == 2);
	cr_assert(thread_clock(th, 1) == 101 && thread_probes(th) == 10);
	cr_assert(th->parked[0].newer == 2 && th->parked[2].older == 0);
	expect_place(th, 0x102, PLACE_CURRENT, 0);
	expect_place(th, 0x202, PLACE_PARKED, 2);
	/* Popped, its frames are nowhere, and the slot is free when another stack continues. */
	th->cur.depth--;
	thread_unindex(th, &th->cur, 0x102);
	expect_place(th, 0x102, PLACE_NOWHERE, 0);
	cr_assert_eq(th->cur.indexed, 1);
	th->cur.depth--;
	thread_unindex(th, &th->cur, 0x101);
	thread_unpark(th, 0);
	cr_assert(th->nparked == 1 && th->oldest == 2 && th->newest == 2 && th->free_slot == 1);
	assert_ok(thread_park(th));
	cr_assert(th->oldest == 2 && th->newest == 0 && th->nslots == 3);
	push(th, 0x401);
	assert_ok(thread_park(th));
	expect_place(th, 0x401, PLACE_PARKED, 1);
	cr_assert(th->newest == 1 && th->nslots == 3 && th->nparked == 3);
	/* The oldest, the newest, and the last one are dropped. */
	thread_drop_parked(th, 2);
	expect_place(th, 0x201, PLACE_NOWHERE, 0);
	expect_place(th, 0x202, PLACE_NOWHERE, 0);
	cr_assert(th->oldest == 0 && th->nparked == 2);
	thread_drop_parked(th, 1);
	cr_assert(th->oldest == 0 && th->newest == 0 && th->nparked == 1);
	thread_drop_parked(th, 0);
	cr_assert(th->oldest == STACK_NO_SLOT && th->newest == STACK_NO_SLOT && !th->nparked);
	cr_assert_eq(threads.room.used, 0);
}

/* An index of a deep stack is made when a frame is searched, and follows what is popped. */
Test(threads, deep_stacks)
{
	struct thread *th = new_thread();

	for (uint64_t i = 1; i <= 32; i++)
		push(th, i);
	expect_place(th, 1, PLACE_CURRENT, 0);
	cr_assert(th->cur.indexed == 0 && th->cur.slot == STACK_NO_SLOT, "searched, not indexed");
	push(th, 33);
	expect_place(th, 33, PLACE_CURRENT, 0);
	cr_assert(th->cur.indexed == 33 && th->cur.slot == 0);
	expect_place(th, 34, PLACE_NOWHERE, 0);
	push(th, 34);
	expect_place(th, 34, PLACE_CURRENT, 0);
	cr_assert_eq(th->cur.indexed, 33);
	th->cur.depth = 30;
	thread_unindex(th, &th->cur, 31);
	cr_assert_eq(th->cur.indexed, 30);
	expect_place(th, 31, PLACE_NOWHERE, 0);
	expect_place(th, 30, PLACE_CURRENT, 0);
}

/* Of 1,000 activations of all threads; of a maximum depth */
Test(threads, room_of_stacks)
{
	struct thread *th = new_thread(), *other = threads_get(&threads, 2, 1);

	for (uint64_t i = 0; i < 40; i++)
		push(th, i);
	cr_assert(th->cur.cap == 64 && threads.room.used == 64);
	cr_assert(thread_reserve(th, 64) && th->cur.cap == 64, "there is room for 24 more");
	while (th->cur.depth < 64)
		push(th, th->cur.depth);
	cr_assert(!thread_reserve(th, 64) && th->cur.cap == 64);
	cr_assert(thread_reserve(th, 65) && th->cur.cap == 65 && threads.room.used == 65);
	threads.room.limit = 65 + 15;
	cr_assert(!thread_reserve(other, 1000) && !other->cur.cap);
	threads.room.limit = 65 + 16;
	cr_assert(thread_reserve(other, 1000) && other->cur.cap == 16);
	cr_assert_eq(threads.room.used, 65 + 16);
	thread_drop_stacks(th);
	cr_assert(threads.room.used == 16 && !th->cur.depth && !th->nparked && !th->nslots);
}

/* Parts of a chain: the next one, one whose predecessor is missing, and more than there may be. */
Test(threads, chains_in_parts)
{
	struct thread *th = new_thread();

	th->chain_flags = 7;
	cr_assert(thread_chain_reserve(th, 0, 3, 3) && th->chain_flags == 0);
	cr_assert_eq(th->chain_cap, PYP_CHAIN_FRAMES);
	th->chain_n = 3;
	cr_assert(thread_chain_reserve(th, 3, 2 * PYP_CHAIN_FRAMES, 2 * PYP_CHAIN_FRAMES));
	cr_assert(th->chain_n == 3 && th->chain_cap == 4 * PYP_CHAIN_FRAMES);
	cr_assert(!thread_chain_reserve(th, 4, 1, 3) && th->chain_n == 0);
	cr_assert(!thread_chain_reserve(th, 0, 4, 3));
	th->chain_n = PYP_CHAIN_MAX_DEPTH - 1;
	cr_assert(thread_chain_reserve(th, PYP_CHAIN_MAX_DEPTH - 1, 1, 3));
	th->chain_n = PYP_CHAIN_MAX_DEPTH - 1;
	cr_assert(!thread_chain_reserve(th, PYP_CHAIN_MAX_DEPTH - 1, 2, 3));
	/* A first part begins anew, whatever there was. */
	th->chain_n = 5;
	cr_assert(thread_chain_reserve(th, 0, 1, 3) && th->chain_n == 0);
	thread_drop_chain(th);
	cr_assert(!th->chain && !th->chain_n && !th->chain_cap);
}

/* A fiftieth of all calls is enough. */
Test(threads, that_make_calls)
{
	struct thread *th = new_thread();

	th->shown = 2;
	cr_assert(thread_makes_calls(th, 100) && !thread_makes_calls(th, 101));
}
