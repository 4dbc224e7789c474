// SPDX-License-Identifier: BSD-2-Clause
/* The calling-context tree: see calltree.h. */
#include "stats/calltree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stats/func.h"

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
	map_deinit(&t->children);
	*t = (struct calltree){0};
}

int calltree_keep_metrics(struct calltree *t)
{
	if (!t->metrics)
		t->metrics = calloc(t->cap ? t->cap : 1, sizeof(*t->metrics));
	return t->metrics ? 0 : -ENOMEM;
}

void calltree_clear(struct calltree *t)
{
	map_clear(&t->children);
	t->n = 0;
	t->contexts = 0;
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
