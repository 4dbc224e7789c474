/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Large blocks of memory that are mapped, and the context that mapped each: for what is live, by
 * context. Pure. Blocks do not overlap. Their number is limited; blocks beyond it are not followed.
 */
#ifndef PYPROF_PROFILE_BLOCKS_H
#define PYPROF_PROFILE_BLOCKS_H

#include <stdint.h>

#define BLOCKS_MAX 65536u

struct block {
	uint64_t start, end;
	uint32_t node;
};

struct blocks {
	struct block *v; /* by address */
	uint32_t n, cap;
	uint64_t bytes;	  /* sum of all blocks */
	uint64_t dropped; /* blocks that are not followed */
};

void blocks_deinit(struct blocks *b);
void blocks_clear(struct blocks *b);

/* Called with the context of each block, or part of one, that is removed, and its size in bytes. */
typedef void (*blocks_freed_fn)(void *ctx, uint32_t node, uint64_t bytes);

/*
 * Adds a block; what it overlaps is removed first. Returns 0, or -ENOMEM or -ENOSPC: it is not
 * followed.
 */
int blocks_add(struct blocks *b, uint64_t start, uint64_t size, uint32_t node,
	       blocks_freed_fn freed, void *ctx);
/* Removes all blocks and parts of blocks in this range. */
void blocks_remove(struct blocks *b, uint64_t start, uint64_t size, blocks_freed_fn freed,
		   void *ctx);
/* The context `from` is now `to`. O(blocks). */
void blocks_move(struct blocks *b, uint32_t from, uint32_t to);

#endif
