/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calling-context tree of a snapshot, made walkable: children as lists, cumulative times, and a
 * depth-first walk. Trees can be as deep as a stack, so nothing here recurses.
 */
#ifndef PYPROF_STATS_TREE_H
#define PYPROF_STATS_TREE_H

#include "snapshot/snapshot.h"

struct tree_node {
	uint32_t first_child, next_sibling; /* SNAPSHOT_NONE: none; in the snapshot's order */
	uint64_t cum[SNAPSHOT_CLOCKS];	    /* self and all below */
};

struct tree {
	const struct snapshot *snapshot; /* borrowed */
	struct tree_node *nodes;	 /* one per node of the snapshot */
};

/* 0 or -ENOMEM. */
int tree_build(const struct snapshot *s, struct tree **ret);
void tree_free(struct tree *t);
DEFINE_FREEP(struct tree, tree_free)

/*
 * Depth first from root, root included: enter before a node's children, leave behind them. A
 * negative value of enter ends the walk and is returned.
 */
struct tree_visitor {
	int (*enter)(void *ctx, uint32_t node);
	void (*leave)(void *ctx, uint32_t node); /* may be NULL */
	void *ctx;
};

int tree_walk(const struct tree *t, uint32_t root, const struct tree_visitor *visitor);

#endif
