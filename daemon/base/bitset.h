/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A set of 32-bit numbers with a fast "the lowest one from here on": a bitmap, and bitmaps that say
 * which words of the one below are not empty. O(1) for all but the top level, which has a word per
 * 2^24 numbers. A zeroed struct bitset is an empty set.
 */
#ifndef PYPROF_BASE_BITSET_H
#define PYPROF_BASE_BITSET_H

#include <stdbool.h>
#include <stdint.h>

#define BITSET_LEVELS 4
#define BITSET_NONE   UINT32_MAX

struct bitset {
	uint64_t *level[BITSET_LEVELS];
	uint32_t limit; /* numbers from here on have no room */
};

void bitset_deinit(struct bitset *b); /* empty again; its memory is freed */
void bitset_clear(struct bitset *b);  /* empty again; its memory is kept */

/* Room for the numbers below limit. 0 or -ENOMEM (then the set is unchanged). */
int bitset_reserve(struct bitset *b, uint32_t limit);

/* There must be room for i. */
void bitset_add(struct bitset *b, uint32_t i);
void bitset_remove(struct bitset *b, uint32_t i);

/* The lowest number in the set that is not below from; BITSET_NONE: there is none. */
uint32_t bitset_next(const struct bitset *b, uint32_t from);

#endif
