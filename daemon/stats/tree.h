/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A snapshot's calling-context tree in traversable form: lists of children, cumulative times and a
 * depth-first walk. Nothing here recurses, because trees can be as deep as a stack.
 */
#ifndef PYPROF_STATS_TREE_H
#define PYPROF_STATS_TREE_H

#include "snapshot/snapshot.h"

struct tree_node {
	uint32_t first_child, next_sibling; /* in the snapshot's order; SNAPSHOT_NONE: none */
	uint64_t cum[SNAPSHOT_CLOCKS];	    /* self time plus all descendants', ns */
};

struct tree {
	const struct snapshot *snapshot; /* borrowed */
	struct tree_node *nodes;	 /* one per node of the snapshot */
};

/* *ret belongs to the caller; s must outlive it. Returns 0 or -ENOMEM. */
int tree_build(const struct snapshot *s, struct tree **ret);
void tree_free(struct tree *t);
DEFINE_FREEP(struct tree, tree_free)

/*
 * Callbacks of a depth-first walk that includes the root: enter runs before a node's children,
 * leave after them. A negative value of enter ends the walk, which returns it.
 */
struct tree_visitor {
	int (*enter)(void *ctx, uint32_t node);
	void (*leave)(void *ctx, uint32_t node); /* may be NULL */
	void *ctx;
};

int tree_walk(const struct tree *t, uint32_t root, const struct tree_visitor *visitor);

#endif
