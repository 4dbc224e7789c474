/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calling-context tree: one node per path of functions from a thread's root. A parent's index is
 * lower than its children's. The tree holds self times only; everything cumulative is derived from
 * it when a view is built.
 *
 * Nodes are removed all at once, or with their root when it is folded into another one. Their places
 * are used again: a root takes the lowest free place, a child the lowest one above its parent, so the
 * order of indices holds. A free place looks like a root without figures.
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

#include "base/bitset.h"
#include "base/column.h"
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
	struct node *nodes; /* aligned to their size */
	uint32_t *parents;  /* by node; NODE_NONE: a root, or a free place */
	uint32_t *first_child,
		*sibling;	    /* by node; NODE_NONE: none. Newest first, no pseudo ones */
	uint64_t *yields;	    /* by node: suspensions */
	uint64_t *columns[COLUMNS]; /* by node: its own figures; NULL: there are none yet */
	uint64_t kept;		    /* the columns that are not NULL */
	uint64_t dropped;	    /* figures for which there was no memory */
	uint32_t *touched; /* nodes with figures since calltree_untouch(); NULL: no list is kept */
	bool *is_touched;  /* by node: it is in the list */
	uint32_t ntouched;
	uint32_t n, cap;
	uint32_t limit; /* nodes besides the roots and their pseudo children */
	uint32_t contexts;
	struct map children; /* (parent, func) → node */
	/* Places of removed nodes below n; of removed roots, whose pseudo children follow them. */
	struct bitset free_nodes, free_roots;
};

void calltree_init(struct calltree *t, uint32_t limit);
void calltree_deinit(struct calltree *t);
void calltree_clear(struct calltree *t); /* no nodes at all, memory kept */

/* Have room for these columns, so that no figure is dropped for want of it. 0 or -ENOMEM. */
int calltree_keep(struct calltree *t, uint64_t columns);
/*
 * Add a figure to a node's own, as the column's merge rule says. A column has room from its first figure
 * on; without memory for that the figure is dropped, and counted in t->dropped.
 */
void calltree_add(struct calltree *t, uint32_t node, int column, uint64_t value);

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

/* Remove a root that nothing is below. */
void calltree_remove_root(struct calltree *t, uint32_t root);

/* The child of parent for func, added if it is new; NODE_NONE: it does not fit. */
uint32_t calltree_child(struct calltree *t, uint32_t parent, uint32_t func);

/*
 * Add the figures of all nodes below and with the root `from` to those of the same paths below the
 * root `to`, and remove the former. moved (may be NULL) is called for each pair of nodes before the
 * first one is removed. What finds no memory is added to the "(truncated)" node of `to`; returns how
 * many nodes that are. Nothing may refer to nodes of `from` any more. O(nodes of `from`).
 */
typedef void (*calltree_moved_fn)(void *ctx, uint32_t from, uint32_t to);
uint32_t calltree_fold(struct calltree *t, uint32_t from, uint32_t to, calltree_moved_fn moved,
		       void *ctx);

#endif
