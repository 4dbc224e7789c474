/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The window that was taken over last (private to estimate/). Half of the gap before it is its, and
 * half of the gap after it, which is not known before the next one begins: so what it shows is kept,
 * and its weight in the estimate's sums can be raised.
 */
#ifndef PYPROF_ESTIMATE_LAST_H
#define PYPROF_ESTIMATE_LAST_H

#include "estimate/estimate.h"

/* Sums over windows, of what a function's figure z is in each (wall: waiting and CPU time). */
struct estimate_func {
	bool touched;
	double now[SNAPSHOT_FIGURES]; /* in the window at hand; wall: waiting */
	double sum[SNAPSHOT_FIGURES]; /* of z, z^2, and z M: see estimate.c */
	double square[SNAPSHOT_FIGURES];
	double product[SNAPSHOT_FIGURES];
};

/* What a window shows. Lists are of what has figures in it, and nothing twice. */
struct estimate_last_node {
	uint32_t node;
	struct estimate_node seen;
};

struct estimate_last_func {
	uint32_t func;
	double z[SNAPSHOT_FIGURES];
};

/* Room for so many contexts and functions. -ENOMEM: what is there stays. */
int last_reserve(struct estimate_last *last, uint32_t nodes, uint32_t funcs);
void last_deinit(struct estimate_last *last);
/* There is none. */
void last_clear(struct estimate_last *last);

/* Another window; it has no weight yet. CPU time and waiting of all threads, without the probes'. */
void last_begin(struct estimate_last *last, double length_ns, double cpu, double wait);
/* For each context in turn; there is room. */
void last_add_node(struct estimate *e, uint32_t node, const struct estimate_node *seen);
void last_add_func(struct estimate_last *last, uint32_t func, const double z[SNAPSHOT_FIGURES]);

/* It stands for so many ns more: the sums follow. 0 or less: nothing changes. */
void last_raise(struct estimate *e, double ns);

/* A context's figures now belong to another one. */
void last_move(struct estimate *e, uint32_t from, uint32_t to);

#endif
