/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last window, and sums over windows (private to accuracy/). The last window also represents half
 * of the gap after it, whose length is known only when the next window begins. So its figures are
 * kept, and its weight in the sums can be raised.
 */
#ifndef PYPROF_ACCURACY_EVIDENCE_PRIV_H
#define PYPROF_ACCURACY_EVIDENCE_PRIV_H

#include "accuracy/evidence.h"

/* Sums of a function's calls over windows in which marks were counted */
struct evidence_func_marked {
	double calls, c2, cm;
};

/* Sums of a function's calls c over windows: of c, c^2 and c M, see evidence.c */
struct evidence_func {
	bool touched;
	double now; /* in the current window */
	double sum, square, product;
	struct evidence_func_marked marked;
};

/* Figures of a window. Lists contain only nodes and functions with figures, without duplicates. */
struct evidence_last_node {
	uint32_t node;
	double calls, yields, cpu, taken;
};

struct evidence_last_func {
	uint32_t func;
	double calls;
};

/* Make room for nodes and functions. -ENOMEM: the lists are unchanged. */
int last_reserve(struct evidence_last *last, uint32_t nodes, uint32_t funcs);
void last_deinit(struct evidence_last *last);
/* Reset to "no window". */
void last_clear(struct evidence_last *last);
/* Add a node or function, in order. There must be room. */
void last_add_node(struct evidence *e, const struct evidence_last_node *seen);
void last_add_func(struct evidence_last *last, uint32_t func, double calls);

/* The window represents ns more: raise its weight in the sums. Does nothing if ns <= 0. */
void last_raise(struct evidence *e, double ns);

/*
 * The number of windows that contribute as much as these do, by their sums of (w - 1) x, of w x, and of
 * w (w - 1) x^2, with weights w.
 */
static inline double evidence_effective(double x, double all, double x2)
{
	return x2 > 0 ? x * all / x2 : 0;
}

/* Move a node's figures to another node. */
void last_move(struct evidence *e, uint32_t from, uint32_t to);

#endif
