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
	free(t->yields);
	free(t->metrics);
	free(t->touched);
	free(t->is_touched);
	map_deinit(&t->children);
	*t = (struct calltree){0};
}

int calltree_keep_metrics(struct calltree *t)
{
	if (!t->metrics)
		t->metrics = calloc(t->cap ? t->cap : 1, sizeof(*t->metrics));
	return t->metrics ? 0 : -ENOMEM;
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

/* Each node once, so that there is room for it. */
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

/* A walk over all marks is cheaper than sorting where many are set. */
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
	t->n = 0;
	t->contexts = 0;
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

static int reserve(struct calltree *t, uint32_t n)
{
	uint32_t cap = t->cap ? t->cap : 256;
	uint32_t *parents;
	uint64_t *yields;
	struct node *nodes;

	if (t->n + n <= t->cap)
		return 0;
	while (cap < t->n + n) {
		if (cap > UINT32_MAX / 2)
			return -ENOMEM;
		cap *= 2;
	}
	parents = reallocarray(t->parents, cap, sizeof(*parents));
	if (!parents)
		return -ENOMEM;
	t->parents = parents;
	yields = reallocarray(t->yields, cap, sizeof(*yields));
	if (!yields)
		return -ENOMEM;
	t->yields = yields;
	if (t->metrics) {
		uint64_t(*metrics)[PYP_METRICS] = reallocarray(t->metrics, cap, sizeof(*metrics));

		if (!metrics)
			return -ENOMEM;
		t->metrics = metrics;
	}
	if (reserve_touched(t, cap))
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

static uint32_t add_node(struct calltree *t, uint32_t parent, uint32_t func)
{
	t->parents[t->n] = parent;
	t->yields[t->n] = 0;
	if (t->touched)
		t->is_touched[t->n] = false;
	if (t->metrics)
		memset(t->metrics[t->n], 0, sizeof(t->metrics[t->n]));
	t->nodes[t->n] = (struct node){
		.func = func,
		.min = {UINT64_MAX, UINT64_MAX},
	};
	return t->n++;
}

uint32_t calltree_add_root(struct calltree *t)
{
	uint32_t root;

	if (reserve(t, NODES_PER_ROOT))
		return NODE_NONE;
	root = add_node(t, NODE_NONE, SNAPSHOT_NONE);
	add_node(t, root, FUNC_TRUNCATED);
	add_node(t, root, FUNC_LOST);
	return root;
}

uint32_t calltree_child(struct calltree *t, uint32_t parent, uint32_t func)
{
	uint64_t key = (uint64_t)parent << 32 | func;
	uint32_t node;

	if (map_get(&t->children, key, &node))
		return node;
	if (t->contexts >= t->limit || reserve(t, 1) || map_put(&t->children, key, t->n))
		return NODE_NONE;
	t->contexts++;
	return add_node(t, parent, func);
}
