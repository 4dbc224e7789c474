/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calling contexts of a snapshot, added up over threads: what is stored of it. Contexts without
 * any figure are left out if their callees imply them. Pure.
 */
#ifndef PYPROF_CLICKHOUSE_CONTEXTS_H
#define PYPROF_CLICKHOUSE_CONTEXTS_H

#include "base/map.h"
#include "clickhouse/ids.h"

struct context {
	struct stack_id id;
	uint32_t node; /* one of its nodes */
	uint64_t calls, yields, inflight;
	uint64_t self[SNAPSHOT_CLOCKS], min[SNAPSHOT_CLOCKS], max[SNAPSHOT_CLOCKS];
	uint64_t columns[COLUMNS];
};

struct contexts {
	const struct snapshot *snapshot; /* borrowed */
	struct context *list;
	uint32_t n, cap;
	struct map by_key;	/* first bits of the id → context */
	uint64_t *functions;	/* ids, per function of the snapshot */
	bool *used;		/* per function: it is on a stack of a context */
	struct stack_id *stack; /* per node */
	bool *inner;		/* per node: it has callees */
};

/* Returns 0 or -ENOMEM; contexts_deinit() in both cases. */
int contexts_collect(struct contexts *c, const struct snapshot *s);
void contexts_deinit(struct contexts *c);

/* Returns the number of functions on the stack of a node. */
uint32_t context_depth(const struct snapshot *s, uint32_t node);

#endif
