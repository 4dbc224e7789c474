// SPDX-License-Identifier: BSD-2-Clause
/* The tree inside a slow call: see slow_tree.h. */
#include "slow_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX (UINT32_MAX / 4) /* far above the daemon's limit */

const char *const slow_reasons[WAITS] = {
#define REASON(id, text) [WAIT_##id] = #id,
	WAIT_TABLE(REASON)
#undef REASON
};

static uint64_t count(const json_t *value)
{
	json_int_t v = json_integer_value(value);

	return v < 0 ? 0 : (uint64_t)v;
}

static uint64_t count_of(const json_t *object, const char *key)
{
	return count(json_object_get(object, key));
}

/* Reasons that this program does not know are "other". */
static enum wait_reason reason_of(const char *id)
{
	for (int w = 0; w < WAITS; w++)
		if (strcmp(slow_reasons[w], id) == 0)
			return (enum wait_reason)w;
	return WAIT_other;
}

/* An invalid parent is replaced by the call itself, so that all times remain in the tree. */
static uint32_t parent_of(const json_t *node, size_t index)
{
	json_int_t parent = json_integer_value(json_object_get(node, "parent"));

	return parent < 0 || (uint64_t)parent >= index ? 0 : (uint32_t)parent;
}

static void load_node(struct slow_tree *t, const json_t *node, size_t index)
{
	const json_t *function = json_object_get(node, "function");
	json_t *waits = json_object_get(node, "waits");
	struct slow_node *n = &t->nodes[index];
	json_int_t number = json_integer_value(function);
	const char *id;
	json_t *ns;

	n->function = json_is_integer(function) && number >= 0 && number < UINT32_MAX
			      ? (uint32_t)number
			      : UINT32_MAX;
	n->parent = parent_of(node, index);
	n->all.calls = count_of(node, "calls");
	n->all.wall = count_of(node, "wall_ns");
	n->all.cpu = count_of(node, "cpu_ns");
	t->measured |= json_is_object(waits);
	json_object_foreach(waits, id, ns) n->all.waits[reason_of(id)] += count(ns);
}

static void add_times(struct slow_figures *into, const struct slow_figures *f)
{
	into->wall += f->wall;
	into->cpu += f->cpu;
	for (int w = 0; w < WAITS; w++)
		into->waits[w] += f->waits[w];
}

static int compare(const void *a, const void *b)
{
	const struct slow_child *x = a, *y = b;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	if (x->time != y->time)
		return x->time > y->time ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

static uint64_t time_of(const struct slow_node *n, bool cpu)
{
	return cpu ? n->all.cpu : n->all.wall;
}

static void sort_children(struct slow_tree *t, bool cpu)
{
	const size_t n = t->n - 1;

	for (size_t i = 0; i < n; i++)
		t->children[i] = (struct slow_child){.parent = t->nodes[i + 1].parent,
						     .node = (uint32_t)i + 1,
						     .time = time_of(&t->nodes[i + 1], cpu)};
	qsort(t->children, n, sizeof(*t->children), compare);
	for (size_t i = 0; i < n; i++) {
		struct slow_node *parent = &t->nodes[t->children[i].parent];

		if (!parent->end)
			parent->next = (uint32_t)i;
		parent->end = (uint32_t)i + 1;
	}
}

static void add_row(struct slow_tree *t, uint32_t node, uint32_t nothers, uint32_t depth)
{
	t->rows[t->nrows++] = (struct slow_row){.node = node, .nothers = nothers, .depth = depth};
}

/* Depth first. A node's `next` is its next child that has no row. */
static void make_rows(struct slow_tree *t, bool cpu)
{
	const uint64_t least = time_of(&t->nodes[0], cpu) / 100;
	uint32_t at = 0, depth = 0;

	add_row(t, 0, 0, 0);
	for (;;) {
		struct slow_node *n = &t->nodes[at];

		if (n->next < n->end && t->children[n->next].time >= least) {
			at = t->children[n->next++].node;
			add_row(t, at, 0, ++depth);
			continue;
		}
		if (n->next < n->end)
			add_row(t, n->next, n->end - n->next, depth + 1);
		n->next = n->end;
		if (!at)
			return;
		at = n->parent;
		depth--;
	}
}

int slow_tree_build(const json_t *nodes, bool cpu, struct slow_tree *ret)
{
	const size_t n = json_array_size(nodes);
	const json_t *node;
	size_t i;

	if (!n)
		return 0;
	/* At most one row per node, and one of folded children. */
	ret->nodes = n < NODES_MAX ? calloc(n, sizeof(*ret->nodes)) : NULL;
	ret->children = ret->nodes ? calloc(n, sizeof(*ret->children)) : NULL;
	ret->rows = ret->children ? calloc(2 * n, sizeof(*ret->rows)) : NULL;
	if (!ret->rows)
		return -ENOMEM;
	ret->n = n;
	json_array_foreach(nodes, i, node) load_node(ret, node, i);
	for (i = n - 1; i > 0; i--)
		add_times(&ret->nodes[ret->nodes[i].parent].all, &ret->nodes[i].all);
	sort_children(ret, cpu);
	make_rows(ret, cpu);
	return 0;
}

void slow_tree_deinit(struct slow_tree *t)
{
	free(t->nodes);
	free(t->children);
	free(t->rows);
	*t = (struct slow_tree){0};
}

void slow_tree_figures(const struct slow_tree *t, const struct slow_row *row,
		       struct slow_figures *ret)
{
	*ret = (struct slow_figures){0};
	if (!row->nothers) {
		*ret = t->nodes[row->node].all;
		return;
	}
	for (uint32_t i = row->node; i < row->node + row->nothers; i++) {
		const struct slow_figures *f = &t->nodes[t->children[i].node].all;

		add_times(ret, f);
		ret->calls += f->calls;
	}
}
