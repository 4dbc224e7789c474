/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tree inside a slow call, from the daemon's JSON: cumulative figures, and the rows to show in
 * their order. Pure. The JSON may be hostile: nothing recurses, and all indices are checked.
 */
#ifndef PYPROFCTL_SLOW_TREE_H
#define PYPROFCTL_SLOW_TREE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/wait.h"

/* The ids of WAIT_TABLE, as in the JSON */
extern const char *const slow_reasons[WAITS];

/* Sums of hostile numbers may wrap. */
struct slow_figures {
	uint64_t calls, wall, cpu; /* nanoseconds */
	uint64_t waits[WAITS];
};

struct slow_node {
	uint32_t function;	 /* an index that may be invalid */
	uint32_t parent;	 /* below its own index; of node 0: 0 */
	uint32_t next, end;	 /* range of slow_tree.children that have no row yet */
	struct slow_figures all; /* including callees; calls: its own */
};

struct slow_child {
	uint32_t parent, node;
	uint64_t time; /* by the chosen clock, including callees */
};

/* A row: a node, or the children of a node that are folded */
struct slow_row {
	uint32_t node;	  /* or the first of the folded children, as an index of children */
	uint32_t nothers; /* number of folded children; 0: it is a node */
	uint32_t depth;
};

struct slow_tree {
	size_t n;
	struct slow_node *nodes;     /* node 0 is the call itself */
	struct slow_child *children; /* n - 1: by parent, then by time, longest first */
	size_t nrows;
	struct slow_row *rows; /* depth first */
	bool measured;	       /* the reasons for waiting are known */
};

/*
 * nodes: the member of a call; NULL or anything but an array: no nodes. cpu: sort by CPU time.
 * Children with less than 1 % of the call's time are folded. -ENOMEM: out of memory. ret must be
 * zeroed, and slow_tree_deinit() is called in any case.
 */
int slow_tree_build(const json_t *nodes, bool cpu, struct slow_tree *ret);
void slow_tree_deinit(struct slow_tree *t);

/* The figures of a row */
void slow_tree_figures(const struct slow_tree *t, const struct slow_row *row,
		       struct slow_figures *ret);

#endif
