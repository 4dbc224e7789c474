// SPDX-License-Identifier: BSD-2-Clause
/* Large blocks, compared with a table of pages. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/reports.h"
#include "harness/test.h"
#include "profile/blocks.h"

#define PAGES 200u
#define NODES 8u

static uint32_t freed[NODES];

static void on_freed(void *ctx, uint32_t node, uint64_t bytes)
{
	(void)ctx;
	freed[node] += (uint32_t)bytes;
}

static void check(const struct blocks *b, const uint32_t owner[PAGES])
{
	uint64_t sum = 0;
	uint32_t seen[PAGES];

	memset(seen, 0xff, sizeof(seen));
	for (uint32_t i = 0; i < b->n; i++) {
		cr_assert(b->v[i].start < b->v[i].end && (!i || b->v[i - 1].end <= b->v[i].start));
		for (uint64_t k = b->v[i].start; k < b->v[i].end; k++)
			seen[k] = b->v[i].node;
		sum += b->v[i].end - b->v[i].start;
	}
	cr_assert(memcmp(seen, owner, sizeof(seen)) == 0);
	cr_assert_eq(sum, b->bytes);
}

static void take(uint32_t owner[PAGES], uint32_t expected[NODES], uint64_t start, uint64_t size,
		 uint32_t node)
{
	for (uint64_t k = start; k < start + size; k++) {
		if (owner[k] != UINT32_MAX)
			expected[owner[k]]++;
		owner[k] = node;
	}
}

Test(blocks, like_a_table_of_pages)
{
	uint32_t owner[PAGES], expected[NODES] = {0};
	struct blocks b = {0};
	unsigned int seed = 1;

	memset(owner, 0xff, sizeof(owner));
	for (int i = 0; i < 20000; i++) {
		const uint64_t start = random_below(&seed, PAGES - 20);
		const uint64_t size = 1 + random_below(&seed, 20);
		const uint32_t node = random_below(&seed, NODES);

		if (random_below(&seed, 2)) {
			take(owner, expected, start, size, node);
			assert_ok(blocks_add(&b, start, size, node, on_freed, NULL));
		} else {
			take(owner, expected, start, size, UINT32_MAX);
			blocks_remove(&b, start, size, on_freed, NULL);
		}
		check(&b, owner);
		cr_assert(memcmp(expected, freed, sizeof(freed)) == 0);
	}
	blocks_deinit(&b);
	check_no_leaks();
}

Test(blocks, are_limited_and_move)
{
	struct blocks b = {0};

	for (uint32_t i = 0; i < BLOCKS_MAX; i++)
		assert_ok(blocks_add(&b, 10 * i, 5, 1, on_freed, NULL));
	cr_assert_eq(blocks_add(&b, 10 * BLOCKS_MAX, 5, 1, on_freed, NULL), -ENOSPC);
	cr_assert_eq(b.dropped, 1);
	blocks_move(&b, 1, 2);
	blocks_remove(&b, 0, 20, on_freed, NULL);
	cr_assert(freed[1] == 0 && freed[2] == 10);
	cr_assert_eq(b.bytes, 5u * (BLOCKS_MAX - 2));
	blocks_clear(&b);
	cr_assert(!b.n && !b.bytes);
	blocks_deinit(&b);
	check_no_leaks();
}
