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
	cr_assert_eq(t.contexts, 3);
	cr_assert_eq(t.nodes[t.first_child[root]].func, 8, "the newest first");
	cr_assert_eq(t.sibling[t.first_child[root]], x);
	cr_assert_eq(t.sibling[x], NODE_NONE, "pseudo children are not listed");
	cr_assert_eq(t.first_child[x], y);
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

/* Columns start with 0 for each node, however late they or the nodes are added. */
Test(calltree, columns)
{
	struct calltree t;
	uint32_t root, x, last = NODE_NONE;

	calltree_init(&t, 2000);
	assert_ok(calltree_keep(&t, COLUMN_BIT(COLUMN_gil)));
	root = calltree_add_root(&t);
	x = calltree_child(&t, root, 7);
	calltree_add(&t, x, COLUMN_gil, 5);
	calltree_add(&t, x, COLUMN_vcsw, 1);
	calltree_add(&t, x, COLUMN_vcsw, 2);
	cr_assert_eq(t.kept, COLUMN_BIT(COLUMN_gil) | COLUMN_BIT(COLUMN_vcsw));
	assert_ok(calltree_keep(&t, COLUMN_BIT(COLUMN_gil) | COLUMN_BIT(COLUMN_io)));
	cr_assert_eq(t.kept,
		     COLUMN_BIT(COLUMN_gil) | COLUMN_BIT(COLUMN_vcsw) | COLUMN_BIT(COLUMN_io));
	cr_assert_null(t.columns[COLUMN_lock]);
	for (uint32_t i = 0; i < 1000; i++)
		last = calltree_child(&t, x, i);
	calltree_add(&t, last, COLUMN_gil, 9);
	cr_assert_eq(t.columns[COLUMN_gil][x], 5);
	cr_assert_eq(t.columns[COLUMN_vcsw][x], 3);
	cr_assert_eq(t.columns[COLUMN_gil][last], 9);
	cr_assert(!t.columns[COLUMN_vcsw][last] && !t.columns[COLUMN_vcsw][root]);
	cr_assert_eq(t.dropped, 0);
	calltree_clear(&t);
	cr_assert_eq(t.contexts, 0);
	root = calltree_add_root(&t);
	x = calltree_child(&t, root, 7);
	cr_assert(!t.columns[COLUMN_gil][x] && !t.columns[COLUMN_vcsw][x]);
	calltree_deinit(&t);
	check_no_leaks();
}

/* Fails unless the list of touched nodes is this one, which ends with NODE_NONE. */
static void expect_touched(const struct calltree *t, const uint32_t *expected)
{
	uint32_t n = 0;

	for (; expected[n] != NODE_NONE; n++) {
		cr_assert_lt(n, calltree_ntouched(t));
		cr_assert_eq(calltree_touched(t, n), expected[n], "%u: %u", n,
			     calltree_touched(t, n));
	}
	cr_assert_eq(calltree_ntouched(t), n);
}

#define TOUCHED(t, ...) expect_touched(t, (const uint32_t[]){__VA_ARGS__, NODE_NONE})

/* Two in a large tree are sorted, many in a small one are found by their flags. */
Test(calltree, touched_nodes_and_their_ancestors)
{
	struct calltree t;
	uint32_t root, x, y, z;

	calltree_init(&t, 2000);
	calltree_close_touched(&t);
	root = calltree_add_root(&t);
	cr_assert_eq(calltree_ntouched(&t), 3, "without a list, all are");
	cr_assert_eq(calltree_touched(&t, 2), 2);
	assert_ok(calltree_keep_touched(&t));
	TOUCHED(&t, 0, 1, 2);
	assert_ok(calltree_keep_touched(&t));
	TOUCHED(&t, 0, 1, 2);
	calltree_untouch(&t);
	cr_assert_eq(calltree_ntouched(&t), 0);
	x = calltree_child(&t, root, 7);
	y = calltree_child(&t, x, 7);
	z = calltree_child(&t, x, 8);
	calltree_touch(&t, z);
	calltree_touch(&t, y);
	calltree_touch(&t, z);
	TOUCHED(&t, z, y);
	calltree_close_touched(&t);
	TOUCHED(&t, root, x, y, z);
	calltree_untouch(&t);
	calltree_touch(&t, NODE_LOST(root));
	calltree_close_touched(&t);
	TOUCHED(&t, root, NODE_LOST(root));
	calltree_untouch(&t);
	for (uint32_t i = 0; i < 1000; i++)
		calltree_child(&t, z, i);
	calltree_touch(&t, t.n - 1);
	calltree_touch(&t, t.n - 3);
	calltree_close_touched(&t);
	TOUCHED(&t, root, x, z, t.n - 3, t.n - 1);
	calltree_clear(&t);
	cr_assert_eq(calltree_ntouched(&t), 0);
	root = calltree_add_root(&t);
	calltree_touch(&t, root);
	TOUCHED(&t, root);
	calltree_deinit(&t);
	check_no_leaks();
}

/* A list that is kept before there are nodes grows with them. */
Test(calltree, touched_nodes_of_an_empty_tree)
{
	struct calltree t;
	uint32_t root;

	calltree_init(&t, 2000);
	assert_ok(calltree_keep_touched(&t));
	root = calltree_add_root(&t);
	calltree_touch(&t, root);
	for (uint32_t i = 0; i < 1000; i++)
		calltree_touch(&t, calltree_child(&t, root, i));
	cr_assert_eq(calltree_ntouched(&t), 1001);
	cr_assert_eq(calltree_touched(&t, 0), root);
	cr_assert_eq(calltree_touched(&t, 1000), NODES_PER_ROOT + 999);
	calltree_deinit(&t);
	check_no_leaks();
}

struct moves {
	char text[128];
};

static void moved(void *ctx, uint32_t from, uint32_t to)
{
	struct moves *m = ctx;

	snprintf(m->text + strlen(m->text), sizeof(m->text) - strlen(m->text), "%u>%u ", from, to);
}

static void set(struct calltree *t, uint32_t i, uint64_t n)
{
	t->nodes[i].calls = t->yields[i] = n;
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
		t->nodes[i].self[c] = 10 * n + (uint64_t)c;
		t->nodes[i].min[c] = t->nodes[i].max[c] = 100 * n + (uint64_t)c;
	}
	calltree_add(t, i, COLUMN_vcsw, 1000 * n);
}

/* Whether a node has the sum of the figures of two that were set, the smaller one first; 0: one. */
static bool has(const struct calltree *t, uint32_t i, uint64_t small, uint64_t large)
{
	const struct node *n = &t->nodes[i];
	const uint64_t both = small + large, count = small ? 2 : 1;
	bool ret = n->calls == both && t->yields[i] == both &&
		   t->columns[COLUMN_vcsw][i] == 1000 * both;

	for (uint64_t c = 0; c < SNAPSHOT_CLOCKS; c++)
		ret = ret && n->self[c] == 10 * both + count * c &&
		      n->min[c] == 100 * (small ? small : large) + c &&
		      n->max[c] == 100 * large + c;
	return ret;
}

/*
 * Root 0 has f (6), which calls g (7); root 3 has f (8) and h (9). f is added to f, g gets a node
 * (10), although the limit is reached.
 */
Test(calltree, folded)
{
	struct moves m = {""};
	struct calltree t;
	uint32_t a, b, f;

	calltree_init(&t, 4);
	assert_ok(calltree_keep_touched(&t));
	a = calltree_add_root(&t);
	b = calltree_add_root(&t);
	f = calltree_child(&t, a, 17);
	cr_assert_eq(calltree_child(&t, f, 18), 7);
	cr_assert_eq(calltree_child(&t, b, 17), 8);
	cr_assert_eq(calltree_child(&t, b, 19), 9);
	set(&t, f, 2);
	set(&t, 7, 4);
	set(&t, 8, 3);
	set(&t, 9, 7);
	set(&t, NODE_LOST(a), 5);
	set(&t, NODE_TRUNCATED(a), 1);
	set(&t, NODE_TRUNCATED(b), 8);
	cr_assert_eq(calltree_fold(&t, a, b, moved, &m), 0);
	cr_assert_str_eq(m.text, "0>3 6>8 7>10 1>4 2>5 ");
	TOUCHED(&t, 8, 10, NODE_TRUNCATED(b), NODE_LOST(b));
	cr_assert(has(&t, 8, 2, 3) && has(&t, 10, 0, 4) && has(&t, 9, 0, 7));
	cr_assert(has(&t, NODE_TRUNCATED(b), 1, 8) && has(&t, NODE_LOST(b), 0, 5));
	cr_assert_eq(t.contexts, 3);
	cr_assert(t.parents[10] == 8 && t.first_child[8] == 10 && t.nodes[10].func == 18);

	/* what was removed looks like roots without figures */
	for (uint32_t i = 0; i < 8; i += i == 2 ? 4 : 1)
		cr_assert(t.parents[i] == NODE_NONE && t.nodes[i].func == SNAPSHOT_NONE &&
			  !t.nodes[i].calls && !t.nodes[i].self[SNAPSHOT_WALL] && !t.yields[i] &&
			  t.nodes[i].min[SNAPSHOT_CPU] == UINT64_MAX && !t.nodes[i].max[0] &&
			  !t.columns[COLUMN_vcsw][i]);
	calltree_deinit(&t);
	check_no_leaks();
}

/* Places are used again: a root's by a root, a node's by one whose parent is before it. */
Test(calltree, free_places)
{
	struct calltree t;
	uint32_t a, b, x;

	calltree_init(&t, 100);
	a = calltree_add_root(&t);
	b = calltree_add_root(&t);
	x = calltree_child(&t, a, 17); /* 6 */
	calltree_child(&t, x, 18);     /* 7 */
	calltree_child(&t, b, 17);     /* 8 */
	calltree_fold(&t, a, b, NULL, NULL);
	cr_assert_eq(t.n, 10);
	cr_assert_eq(calltree_child(&t, 8, 20), 10, "6 and 7 are before 8");
	cr_assert_eq(calltree_child(&t, b, 20), 6);
	cr_assert_eq(calltree_child(&t, 6, 20), 7);
	cr_assert_eq(calltree_child(&t, b, 21), 11);
	cr_assert_eq(calltree_add_root(&t), a);
	cr_assert(t.parents[NODE_LOST(a)] == a && t.nodes[NODE_LOST(a)].func == FUNC_LOST);
	cr_assert_eq(calltree_child(&t, a, 17), 12, "the removed one is not found");
	cr_assert_eq(calltree_add_root(&t), 13);

	calltree_remove_root(&t, 13);
	calltree_fold(&t, a, b, NULL, NULL);
	calltree_clear(&t);
	cr_assert_eq(calltree_add_root(&t), 0);
	cr_assert_eq(t.n, NODES_PER_ROOT);
	cr_assert_eq(calltree_child(&t, 0, 17), NODES_PER_ROOT);
	calltree_deinit(&t);
	check_no_leaks();
}

/* What has no figures does not touch what it is added to; each kind of figure does. */
Test(calltree, folding_touches_what_changes)
{
	struct calltree t;
	uint32_t from, to;

	calltree_init(&t, 100);
	assert_ok(calltree_keep_touched(&t));
	to = calltree_add_root(&t);
	for (int i = 0; i < 5; i++) {
		struct node *n;

		from = calltree_add_root(&t);
		n = &t.nodes[from];
		n->calls = i == 0;
		n->self[SNAPSHOT_CPU] = i == 1;
		n->self[SNAPSHOT_WALL] = i == 2;
		t.yields[from] = i == 3;
		calltree_fold(&t, from, to, NULL, NULL);
		cr_assert_eq(calltree_ntouched(&t), i < 4 ? 1u : 0u, "%d", i);
		calltree_untouch(&t);
	}
	calltree_deinit(&t);
	check_no_leaks();
}
