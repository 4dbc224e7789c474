/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A set of 32-bit numbers with a fast "lowest member at or above N": a bitmap, and above it bitmaps
 * that record which words of the level below are not zero. All operations are O(1) except on the
 * top level, which has one word per 2^24 numbers. A zeroed struct bitset is an empty set.
 */
#ifndef PYPROF_BASE_BITSET_H
#define PYPROF_BASE_BITSET_H

#include <stdbool.h>
#include <stdint.h>

#define BITSET_LEVELS 4
#define BITSET_NONE   UINT32_MAX

struct bitset {
	uint64_t *level[BITSET_LEVELS];
	uint32_t limit; /* capacity: members must be below this */
};

void bitset_deinit(struct bitset *b); /* empty again; its memory is freed */
void bitset_clear(struct bitset *b);  /* empty again; its memory is kept */

/* Make room for numbers below limit. Returns 0 or -ENOMEM (the set is then unchanged). */
int bitset_reserve(struct bitset *b, uint32_t limit);

/* i must be below the capacity. */
void bitset_add(struct bitset *b, uint32_t i);
void bitset_remove(struct bitset *b, uint32_t i);

/* The lowest member at or above from, or BITSET_NONE. */
uint32_t bitset_next(const struct bitset *b, uint32_t from);

#endif
