// SPDX-License-Identifier: BSD-2-Clause
/* The calling-context tree: contexts are found again, limits hold, pseudo children are in place. */
#include "stats/calltree.h"

#include "harness/test.h"
#include "stats/func.h"

Test(calltree, roots_have_pseudo_children)
{
	struct calltree t;
	uint32_t a, b;

	calltree_init(&t, 10);
	a = calltree_add_root(&t);
	b = calltree_add_root(&t);
	cr_assert_neq(a, b);
	cr_assert_eq(t.parents[b], NODE_NONE);
	cr_assert_eq(t.nodes[b].func, SNAPSHOT_NONE);
	cr_assert_eq(t.parents[NODE_TRUNCATED(b)], b);
	cr_assert_eq(t.nodes[NODE_TRUNCATED(b)].func, FUNC_TRUNCATED);
	cr_assert_eq(t.nodes[NODE_LOST(b)].func, FUNC_LOST);
	cr_assert_eq(t.contexts, 0);
	calltree_deinit(&t);
	check_no_leaks();
}

Test(calltree, children)
{
	struct calltree t;
	uint32_t root, x, y;

	calltree_init(&t, 3);
	root = calltree_add_root(&t);
	x = calltree_child(&t, root, 7);
	cr_assert_eq(calltree_child(&t, root, 7), x);
	y = calltree_child(&t, x, 7);
	cr_assert_neq(x, y);
	cr_assert_eq(t.parents[y], x);
	cr_assert_eq(t.nodes[y].min[SNAPSHOT_CPU], UINT64_MAX);
	cr_assert_neq(calltree_child(&t, root, 8), NODE_NONE);
	cr_assert_eq(calltree_child(&t, root, 9), NODE_NONE, "the cap");
	cr_assert_eq(calltree_child(&t, x, 7), y, "what is there is found");
	cr_assert_neq(calltree_add_root(&t), NODE_NONE, "roots are outside the cap");
	calltree_clear(&t);
	cr_assert_eq(t.n, 0);
	root = calltree_add_root(&t);
	cr_assert_eq(calltree_child(&t, root, 7), NODES_PER_ROOT, "nothing is left");
	calltree_deinit(&t);
	check_no_leaks();
}

/* Parents have lower indices than children in any order of insertion, and growth moves no node. */
Test(calltree, grows)
{
	struct calltree t;
	uint32_t root;

	calltree_init(&t, 100000);
	root = calltree_add_root(&t);
	for (uint32_t i = 0; i < 50000; i++) {
		uint32_t n = calltree_child(&t, i % 3 ? t.n - 1 : root, i);

		cr_assert_lt(t.parents[n], n);
		t.nodes[n].calls = i;
	}
	for (uint32_t i = 0; i < 50000; i++)
		cr_assert_eq(t.nodes[root + NODES_PER_ROOT + i].calls, i);
	cr_assert_eq((uintptr_t)t.nodes % sizeof(struct node), 0);
	calltree_deinit(&t);
	check_no_leaks();
}
