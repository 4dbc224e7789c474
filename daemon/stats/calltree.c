// SPDX-License-Identifier: BSD-2-Clause
/* The calling-context tree: see calltree.h. */
#include "stats/calltree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stats/func.h"

#define SCAN_PART 32u

void calltree_init(struct calltree *t, uint32_t limit)
{
	*t = (struct calltree){.limit = limit};
}

void calltree_deinit(struct calltree *t)
{
	free(t->nodes);
	free(t->parents);
	free(t->first_child);
	free(t->sibling);
	free(t->yields);
	for (int c = 0; c < COLUMNS; c++)
		free(t->columns[c]);
	free(t->touched);
	free(t->is_touched);
	map_deinit(&t->children);
	bitset_deinit(&t->free_nodes);
	bitset_deinit(&t->free_roots);
	*t = (struct calltree){0};
}

int calltree_keep(struct calltree *t, uint64_t columns)
{
	for (int c = 0; c < COLUMNS; c++) {
		if (!(columns & ~t->kept & COLUMN_BIT(c)))
			continue;
		t->columns[c] = calloc(t->cap ? t->cap : 1, sizeof(*t->columns[c]));
		if (!t->columns[c])
			return -ENOMEM;
		t->kept |= COLUMN_BIT(c);
	}
	return 0;
}

void calltree_add(struct calltree *t, uint32_t node, int column, uint64_t value)
{
	if (!t->columns[column] && calltree_keep(t, COLUMN_BIT(column)) < 0)
		t->dropped++;
	else
		column_merge(column, &t->columns[column][node], value);
}

int calltree_keep_touched(struct calltree *t)
{
	uint32_t cap = t->cap ? t->cap : 1;

	if (t->touched)
		return 0;
	t->is_touched = calloc(cap, sizeof(*t->is_touched));
	t->touched = t->is_touched ? calloc(cap, sizeof(*t->touched)) : NULL;
	if (!t->touched)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n; i++)
		calltree_add_touched(t, i);
	return 0;
}

/* Each node is added once, so the list has room for it. */
void calltree_add_touched(struct calltree *t, uint32_t node)
{
	t->is_touched[node] = true;
	t->touched[t->ntouched++] = node;
}

static int by_index(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* If many nodes are touched, scanning all flags is cheaper than sorting. */
static void sort_touched(struct calltree *t)
{
	if (t->ntouched < t->n / SCAN_PART) {
		qsort(t->touched, t->ntouched, sizeof(*t->touched), by_index);
		return;
	}
	t->ntouched = 0;
	for (uint32_t i = 0; i < t->n; i++)
		if (t->is_touched[i])
			t->touched[t->ntouched++] = i;
}

void calltree_close_touched(struct calltree *t)
{
	if (!t->touched)
		return;
	for (uint32_t i = 0; i < t->ntouched; i++) {
		uint32_t parent = t->parents[t->touched[i]];

		if (parent != NODE_NONE)
			calltree_touch(t, parent);
	}
	sort_touched(t);
}

void calltree_untouch(struct calltree *t)
{
	if (!t->touched)
		return;
	for (uint32_t i = 0; i < t->ntouched; i++)
		t->is_touched[t->touched[i]] = false;
	t->ntouched = 0;
}

void calltree_clear(struct calltree *t)
{
	calltree_untouch(t);
	map_clear(&t->children);
	bitset_clear(&t->free_nodes);
	bitset_clear(&t->free_roots);
	t->n = 0;
	t->contexts = 0;
	t->dropped = 0;
}

static int reserve_touched(struct calltree *t, uint32_t cap)
{
	uint32_t *touched;
	bool *is_touched;

	if (!t->touched)
		return 0;
	touched = reallocarray(t->touched, cap, sizeof(*touched));
	if (!touched)
		return -ENOMEM;
	t->touched = touched;
	is_touched = reallocarray(t->is_touched, cap, sizeof(*is_touched));
	if (!is_touched)
		return -ENOMEM;
	t->is_touched = is_touched;
	return 0;
}

static int grow_links(uint32_t **links, uint32_t cap)
{
	uint32_t *grown = reallocarray(*links, cap, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	*links = grown;
	return 0;
}

static int reserve_columns(struct calltree *t, uint32_t cap)
{
	for (int c = 0; c < COLUMNS; c++) {
		uint64_t *grown;

		if (!t->columns[c])
			continue;
		grown = reallocarray(t->columns[c], cap, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		t->columns[c] = grown;
	}
	return 0;
}

static int reserve(struct calltree *t, uint32_t n)
{
	uint32_t cap = t->cap ? t->cap : 256;
	uint64_t *yields;
	struct node *nodes;

	if (t->n + n <= t->cap)
		return 0;
	while (cap < t->n + n) {
		if (cap > UINT32_MAX / 2)
			return -ENOMEM;
		cap *= 2;
	}
	if (grow_links(&t->parents, cap) || grow_links(&t->first_child, cap) ||
	    grow_links(&t->sibling, cap))
		return -ENOMEM;
	yields = reallocarray(t->yields, cap, sizeof(*yields));
	if (!yields)
		return -ENOMEM;
	t->yields = yields;
	if (reserve_columns(t, cap) || reserve_touched(t, cap))
		return -ENOMEM;
	/* realloc would not keep the alignment. */
	nodes = aligned_alloc(sizeof(*nodes), (size_t)cap * sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	if (t->n)
		memcpy(nodes, t->nodes, t->n * sizeof(*nodes));
	free(t->nodes);
	t->nodes = nodes;
	t->cap = cap;
	return 0;
}

/* The next slot that was never used. A reused slot could still be in the list of touched nodes. */
static uint32_t fresh_place(struct calltree *t)
{
	if (t->touched)
		t->is_touched[t->n] = false;
	return t->n++;
}

static void set_node(struct calltree *t, uint32_t i, uint32_t parent, uint32_t func)
{
	t->parents[i] = parent;
	t->first_child[i] = t->sibling[i] = NODE_NONE;
	t->yields[i] = 0;
	for (uint64_t left = t->kept; left; left &= left - 1)
		t->columns[__builtin_ctzll(left)][i] = 0;
	t->nodes[i] = (struct node){
		.func = func,
		.min = {UINT64_MAX, UINT64_MAX},
	};
}

uint32_t calltree_add_root(struct calltree *t)
{
	uint32_t root = bitset_next(&t->free_roots, 0);

	if (root != BITSET_NONE) {
		bitset_remove(&t->free_roots, root);
	} else {
		if (reserve(t, NODES_PER_ROOT))
			return NODE_NONE;
		root = fresh_place(t);
		fresh_place(t);
		fresh_place(t);
	}
	set_node(t, root, NODE_NONE, SNAPSHOT_NONE);
	set_node(t, NODE_TRUNCATED(root), root, FUNC_TRUNCATED);
	set_node(t, NODE_LOST(root), root, FUNC_LOST);
	return root;
}

/* Returns a slot for a child without taking it; NODE_NONE: out of memory. */
static uint32_t child_place(struct calltree *t, uint32_t parent)
{
	uint32_t place = bitset_next(&t->free_nodes, parent + 1);

	if (place != BITSET_NONE)
		return place;
	return reserve(t, 1) ? NODE_NONE : t->n;
}

uint32_t calltree_child(struct calltree *t, uint32_t parent, uint32_t func)
{
	uint64_t key = (uint64_t)parent << 32 | func;
	uint32_t node;

	if (map_get(&t->children, key, &node))
		return node;
	if (t->contexts >= t->limit)
		return NODE_NONE;
	node = child_place(t, parent);
	if (node == NODE_NONE || map_put(&t->children, key, node))
		return NODE_NONE;
	if (node == t->n)
		fresh_place(t);
	else
		bitset_remove(&t->free_nodes, node);
	t->contexts++;
	set_node(t, node, parent, func);
	t->sibling[node] = t->first_child[parent];
	t->first_child[parent] = node;
	return node;
}

/* Folding ---------------------------------------------------------------------------------- */

struct folding {
	struct calltree *t;
	uint32_t root; /* the destination */
	calltree_moved_fn moved;
	void *ctx;
	uint32_t truncated;
};

/* Stores the destination in the source's last_child, which is unused now. */
static void move_figures(const struct folding *f, uint32_t from, uint32_t to)
{
	struct calltree *t = f->t;
	struct node *a = &t->nodes[to], *b = &t->nodes[from];

	if (b->calls || b->self[SNAPSHOT_CPU] || b->self[SNAPSHOT_WALL] || t->yields[from])
		calltree_touch(t, to);
	a->calls += b->calls;
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
		a->self[c] += b->self[c];
		a->min[c] = b->min[c] < a->min[c] ? b->min[c] : a->min[c];
		a->max[c] = b->max[c] > a->max[c] ? b->max[c] : a->max[c];
	}
	t->yields[to] += t->yields[from];
	for (uint64_t left = t->kept; left; left &= left - 1) {
		int c = __builtin_ctzll(left);

		column_merge(c, &t->columns[c][to], t->columns[c][from]);
	}
	if (f->moved)
		f->moved(f->ctx, from, to);
	b->last_child = to;
}

/*
 * Returns the node of the same path, created if necessary. It replaces a node that is no longer
 * counted, so the limit permits it.
 */
static uint32_t fold_child(struct folding *f, uint32_t parent, uint32_t func)
{
	uint32_t to;

	f->t->contexts--;
	to = calltree_child(f->t, parent, func);
	if (to != NODE_NONE)
		return to;
	f->truncated++;
	return NODE_TRUNCATED(f->root);
}

/* If memory is short, the slot stays unused until the tree is cleared. */
static void add_free(struct calltree *t, struct bitset *places, uint32_t i)
{
	if (bitset_reserve(places, t->cap) == 0)
		bitset_add(places, i);
}

static void remove_node(struct calltree *t, uint32_t i)
{
	map_del(&t->children, (uint64_t)t->parents[i] << 32 | t->nodes[i].func);
	set_node(t, i, NODE_NONE, SNAPSHOT_NONE);
	add_free(t, &t->free_nodes, i);
}

/* Walks depth first without recursion; consumes the lists of children on the way. */
static void fold_below(struct folding *f, uint32_t top, uint32_t to)
{
	struct calltree *t = f->t;
	uint32_t i = top;

	move_figures(f, top, to);
	for (;;) {
		uint32_t child = t->first_child[i], parent;

		if (child != NODE_NONE) {
			t->first_child[i] = t->sibling[child];
			to = fold_child(f, t->nodes[i].last_child, t->nodes[child].func);
			move_figures(f, child, to);
			i = child;
			continue;
		}
		if (i == top)
			return;
		parent = t->parents[i];
		remove_node(t, i);
		i = parent;
	}
}

void calltree_remove_root(struct calltree *t, uint32_t root)
{
	for (uint32_t k = 0; k < NODES_PER_ROOT; k++)
		set_node(t, root + k, NODE_NONE, SNAPSHOT_NONE);
	add_free(t, &t->free_roots, root);
}

uint32_t calltree_fold(struct calltree *t, uint32_t from, uint32_t to, calltree_moved_fn moved,
		       void *ctx)
{
	struct folding f = {.t = t, .root = to, .moved = moved, .ctx = ctx};

	for (uint32_t k = 0; k < NODES_PER_ROOT; k++)
		fold_below(&f, from + k, to + k);
	calltree_remove_root(t, from);
	return f.truncated;
}
