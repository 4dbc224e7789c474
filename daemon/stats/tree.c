// SPDX-License-Identifier: BSD-2-Clause
/* Traversable calling-context trees: see tree.h. */
#include "stats/tree.h"

#include <errno.h>
#include <stdlib.h>

/* Parents precede children, so a backward loop visits every node after its children. */
static void link_nodes(struct tree *t)
{
	const struct snapshot *s = t->snapshot;

	for (uint32_t i = 0; i < s->nnodes; i++) {
		t->nodes[i].first_child = SNAPSHOT_NONE;
		t->nodes[i].next_sibling = SNAPSHOT_NONE;
	}
	for (uint32_t i = s->nnodes; i-- > 0;) {
		const struct snapshot_node *n = &s->nodes[i];
		struct tree_node *node = &t->nodes[i], *parent;

		for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
			node->cum[c] += n->self[c];
		if (n->parent == SNAPSHOT_NONE)
			continue;
		parent = &t->nodes[n->parent];
		node->next_sibling = parent->first_child;
		parent->first_child = i;
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
			parent->cum[c] += node->cum[c];
	}
}

int tree_build(const struct snapshot *s, struct tree **ret)
{
	_cleanup_(tree_freep) struct tree *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	/* calloc(0) may return NULL, so allocate one more. */
	t->nodes = calloc((size_t)s->nnodes + 1, sizeof(*t->nodes));
	if (!t->nodes)
		return -ENOMEM;
	t->snapshot = s;
	link_nodes(t);
	*ret = TAKE_PTR(t);
	return 0;
}

void tree_free(struct tree *t)
{
	if (!t)
		return;
	free(t->nodes);
	free(t);
}

static void leave(const struct tree_visitor *visitor, uint32_t node)
{
	if (visitor->leave)
		visitor->leave(visitor->ctx, node);
}

int tree_walk(const struct tree *t, uint32_t root, const struct tree_visitor *visitor)
{
	uint32_t i = root;

	for (;;) {
		int err = visitor->enter(visitor->ctx, i);

		if (err < 0)
			return err;
		if (t->nodes[i].first_child != SNAPSHOT_NONE) {
			i = t->nodes[i].first_child;
			continue;
		}
		leave(visitor, i);
		while (i != root && t->nodes[i].next_sibling == SNAPSHOT_NONE) {
			i = t->snapshot->nodes[i].parent;
			leave(visitor, i);
		}
		if (i == root)
			return 0;
		i = t->nodes[i].next_sibling;
	}
}
