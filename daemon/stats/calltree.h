/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calling-context tree: one node per path of functions from a thread's root. A parent's index
 * is lower than its children's. The tree holds self times only; views compute everything cumulative
 * from it.
 *
 * Nodes are removed all at once, or together with their root when it is folded into another one.
 * Removed nodes leave free slots: a new root takes the lowest free slot, a new child the lowest one
 * above its parent, which keeps the order of indices. A free slot looks like a root without
 * figures.
 *
 * Every root has two pseudo children, "(truncated)" and "(lost)", for figures without a known
 * context. They are outside the limit, at fixed distances from the root.
 *
 * A tree can keep a list of the nodes whose figures have changed, so that a window costs time in
 * proportion to the nodes it changed, not to the size of the tree.
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
/* The indices of a root's pseudo children. */
#define NODE_TRUNCATED(root) ((root) + 1)
#define NODE_LOST(root)	     ((root) + 2)
#define NODES_PER_ROOT	     3

/* All fields of a context that an event accesses, in one cache line. */
struct node {
	uint32_t func;	     /* index of the function; SNAPSHOT_NONE: a root */
	uint32_t last_child; /* the child entered last; 0 (a root's index): none yet */
	uint64_t calls;
	uint64_t self[SNAPSHOT_CLOCKS];
	uint64_t min[SNAPSHOT_CLOCKS]; /* ns; complete activations; UINT64_MAX if there are none */
	uint64_t max[SNAPSHOT_CLOCKS];
};

_Static_assert(sizeof(struct node) == 64, "a node is a cache line");

struct calltree {
	struct node *nodes; /* aligned to the size of a node */
	uint32_t *parents;  /* per node; NODE_NONE: a root or a free slot */
	uint32_t *first_child,
		*sibling; /* per node; NODE_NONE: none. Newest first, without pseudo children */
	uint64_t *yields; /* per node: number of suspensions */
	uint64_t *columns[COLUMNS]; /* per node: its own figures; NULL: not allocated yet */
	uint64_t kept;		    /* bit mask of the columns that are not NULL */
	uint64_t dropped;	    /* figures dropped because memory was short */
	bool waits_apart;  /* waiting is not booked as time passes: counting/waiting.h does it */
	uint32_t *touched; /* nodes changed since calltree_untouch(); NULL: no list */
	bool *is_touched;  /* per node: whether it is in the list */
	uint32_t ntouched;
	uint32_t n, cap;
	uint32_t limit; /* maximum number of nodes, not counting roots and pseudo children */
	uint32_t contexts;
	struct map children; /* (parent, func) → node */
	/* Slots of removed nodes below n, and of removed roots with their pseudo children. */
	struct bitset free_nodes, free_roots;
};

void calltree_init(struct calltree *t, uint32_t limit);
void calltree_deinit(struct calltree *t);
void calltree_clear(struct calltree *t); /* removes all nodes and keeps the memory */

/*
 * Allocates these columns (a bit mask), so that no figure is dropped later. Returns 0 or -ENOMEM.
 */
int calltree_keep(struct calltree *t, uint64_t columns);
/*
 * Adds a figure to a node by the column's merge rule. The first figure of a column allocates it; if
 * that fails, the figure is dropped and counted in t->dropped.
 */
void calltree_add(struct calltree *t, uint32_t node, int column, uint64_t value);

/*
 * Starts the list of touched nodes. The tree must be empty. Returns 0, or -ENOMEM (then there is no
 * list).
 */
int calltree_keep_touched(struct calltree *t);
void calltree_add_touched(struct calltree *t,
			  uint32_t node); /* the slow path of calltree_touch() */
/* Adds all ancestors of touched nodes to the list and sorts it in ascending order. */
void calltree_close_touched(struct calltree *t);
void calltree_untouch(struct calltree *t); /* empties the list */

/*
 * Adds a node to the list. Call it before the node's calls, self times or yields become nonzero. A
 * node with calls or wall time is in the list already; testing these first is cheaper.
 */
static inline void calltree_touch(struct calltree *t, uint32_t node)
{
	if (t->touched && !t->is_touched[node])
		calltree_add_touched(t, node);
}

/*
 * Enumerates the touched nodes in list order, or all nodes in ascending order if no list is kept.
 */
static inline uint32_t calltree_ntouched(const struct calltree *t)
{
	return t->touched ? t->ntouched : t->n;
}

static inline uint32_t calltree_touched(const struct calltree *t, uint32_t i)
{
	return t->touched ? t->touched[i] : i;
}

/* Adds a root with its pseudo children. Returns its index; NODE_NONE: out of memory. */
uint32_t calltree_add_root(struct calltree *t);

/* Removes a root that has no children besides its pseudo children. */
void calltree_remove_root(struct calltree *t, uint32_t root);

/*
 * Returns the child of parent for func, which is added if it is new; NODE_NONE: limit reached or
 * out of memory.
 */
uint32_t calltree_child(struct calltree *t, uint32_t parent, uint32_t func);

/*
 * Adds the figures of the root `from` and of all nodes below it to the nodes with the same paths
 * below the root `to`, then removes the former. Calls `moved` (may be NULL) for each pair of nodes
 * before the first one is removed. Nodes without memory for a counterpart are added to the
 * "(truncated)" node of `to`; returns their number. Nothing may refer to nodes of `from`
 * afterwards. O(nodes of `from`).
 */
typedef void (*calltree_moved_fn)(void *ctx, uint32_t from, uint32_t to);
uint32_t calltree_fold(struct calltree *t, uint32_t from, uint32_t to, calltree_moved_fn moved,
		       void *ctx);

#endif
