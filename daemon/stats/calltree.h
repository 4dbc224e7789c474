/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calling-context tree: one node per path of functions from a thread's root. Nodes are never
 * removed but all at once, and a parent's index is lower than its children's. The tree holds self
 * times only; everything cumulative is derived from it when a view is built.
 *
 * Every root comes with two children for what cannot be placed, outside the cap and at fixed
 * distances: "(truncated)" and "(lost)".
 *
 * A tree can keep a list of the nodes whose figures have changed, so that a window costs what it
 * touched, however large the tree is.
 */
#ifndef PYPROF_STATS_CALLTREE_H
#define PYPROF_STATS_CALLTREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "snapshot/snapshot.h"

#define NODE_NONE UINT32_MAX
/* From a root's index to those of its pseudo children. */
#define NODE_TRUNCATED(root) ((root) + 1)
#define NODE_LOST(root)	     ((root) + 2)
#define NODES_PER_ROOT	     3

/* One cache line: all that an event touches of a context. */
struct node {
	uint32_t func;	     /* SNAPSHOT_NONE: a root */
	uint32_t last_child; /* the child entered last; 0 (a root, nobody's child): none yet */
	uint64_t calls;
	uint64_t self[SNAPSHOT_CLOCKS];
	uint64_t min[SNAPSHOT_CLOCKS]; /* complete activations; UINT64_MAX while there is none */
	uint64_t max[SNAPSHOT_CLOCKS];
};

_Static_assert(sizeof(struct node) == 64, "a node is a cache line");

struct calltree {
	struct node *nodes;		  /* aligned to their size */
	uint32_t *parents;		  /* by node; NODE_NONE: a root */
	uint64_t *yields;		  /* by node: suspensions */
	uint64_t (*metrics)[PYP_METRICS]; /* by node: its own share of resources; NULL: not asked */
	uint32_t *touched; /* nodes with figures since calltree_untouch(); NULL: no list is kept */
	bool *is_touched;  /* by node: it is in the list */
	uint32_t ntouched;
	uint32_t n, cap;
	uint32_t limit; /* nodes besides the roots and their pseudo children */
	uint32_t contexts;
	struct map children; /* (parent, func) → node */
};

void calltree_init(struct calltree *t, uint32_t limit);
void calltree_deinit(struct calltree *t);
void calltree_clear(struct calltree *t); /* no nodes at all, memory kept */

/* Keep resource counters by node from now on. 0 or -ENOMEM. */
int calltree_keep_metrics(struct calltree *t);

/* Keep the list of touched nodes from now on: the tree is empty. 0 or -ENOMEM (then no list). */
int calltree_keep_touched(struct calltree *t);
void calltree_add_touched(struct calltree *t, uint32_t node); /* for calltree_touch() */
/* Add all callers of touched nodes, and put the list into ascending order. */
void calltree_close_touched(struct calltree *t);
void calltree_untouch(struct calltree *t); /* the list is empty again */

/*
 * The node's calls, self times or yields become other than 0: to be called before they do. A node
 * that has calls, or wall time, is in the list already, which is cheaper to check first.
 */
static inline void calltree_touch(struct calltree *t, uint32_t node)
{
	if (t->touched && !t->is_touched[node])
		calltree_add_touched(t, node);
}

/* The touched nodes in the order of the list; all nodes, in ascending order, where no list is kept. */
static inline uint32_t calltree_ntouched(const struct calltree *t)
{
	return t->touched ? t->ntouched : t->n;
}

static inline uint32_t calltree_touched(const struct calltree *t, uint32_t i)
{
	return t->touched ? t->touched[i] : i;
}

/* A new root with its pseudo children; NODE_NONE: out of memory. */
uint32_t calltree_add_root(struct calltree *t);

/* The child of parent for func, added if it is new; NODE_NONE: it does not fit. */
uint32_t calltree_child(struct calltree *t, uint32_t parent, uint32_t func);

#endif
