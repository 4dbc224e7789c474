/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last window, and sums over windows (private to estimate/). The last window also represents half
 * of the gap after it, whose length is known only when the next window begins. So its figures are
 * kept, and its weight in the estimate's sums can be raised.
 */
#ifndef PYPROF_ESTIMATE_ESTIMATE_PRIV_H
#define PYPROF_ESTIMATE_ESTIMATE_PRIV_H

#include "estimate/estimate.h"

/* Sums of a function's calls over windows in which marks were counted */
struct estimate_func_marked {
	double calls, c2, cm;
};

/* Sums of a function's figures z over windows; wall: CPU time plus waiting */
struct estimate_func {
	bool touched;
	double now[SNAPSHOT_FIGURES]; /* in the current window; wall: waiting only */
	double sum[SNAPSHOT_FIGURES]; /* sums of z, z^2 and z M: see estimate.c */
	double square[SNAPSHOT_FIGURES];
	double product[SNAPSHOT_FIGURES];
	struct estimate_func_marked marked, done; /* as in struct estimate_progress */
};

/* Figures of a window. Lists contain only nodes and functions with figures, without duplicates. */
struct estimate_last_node {
	uint32_t node;
	struct estimate_node seen;
};

struct estimate_last_func {
	uint32_t func;
	double z[SNAPSHOT_FIGURES];
};

/*
 * The relative error of 1 / x, from that of x, such that two errors reach as far as two errors of x do. Large
 * ones occur only where traps are slow.
 */
double estimate_inverse_widened(double error);

/* Make room for nodes and functions. -ENOMEM: the lists are unchanged. */
int last_reserve(struct estimate_last *last, uint32_t nodes, uint32_t funcs);
void last_deinit(struct estimate_last *last);
/* Reset to "no window". */
void last_clear(struct estimate_last *last);

/* Begin a window with weight 0. cpu, wait: ns of all threads, without the probes' time. */
void last_begin(struct estimate_last *last, double length_ns, double cpu, double wait);
/* Add a node or function, in order. There must be room. */
void last_add_node(struct estimate *e, uint32_t node, const struct estimate_node *seen);
void last_add_func(struct estimate_last *last, uint32_t func, const double z[SNAPSHOT_FIGURES]);

/* The window represents ns more: raise its weight in the sums. Does nothing if ns <= 0. */
void last_raise(struct estimate *e, double ns);

/* Move a node's figures to another node. */
void last_move(struct estimate *e, uint32_t from, uint32_t to);

/* Marks (progress.c): the last window has ended, with its calls. */
void progress_add_window(struct estimate *e);
/* The marks so far are no longer counted. */
void progress_settle(struct estimate *e);

#endif
