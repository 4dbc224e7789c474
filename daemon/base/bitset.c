// SPDX-License-Identifier: BSD-2-Clause
/* A set of numbers in levels of bitmaps: see bitset.h. */
#include "base/bitset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WORD 64u

/* Number of words in this level for a set of numbers below limit. */
static size_t words(uint32_t limit, int level)
{
	return ((uint64_t)limit >> (6 * (level + 1))) + 1;
}

void bitset_deinit(struct bitset *b)
{
	for (int k = 0; k < BITSET_LEVELS; k++)
		free(b->level[k]);
	*b = (struct bitset){0};
}

void bitset_clear(struct bitset *b)
{
	for (int k = 0; k < BITSET_LEVELS; k++)
		if (b->level[k])
			memset(b->level[k], 0, words(b->limit, k) * sizeof(uint64_t));
}

int bitset_reserve(struct bitset *b, uint32_t limit)
{
	uint64_t *fresh[BITSET_LEVELS] = {0};
	bool all = true;

	if (limit <= b->limit)
		return 0;
	for (int k = 0; k < BITSET_LEVELS; k++) {
		fresh[k] = calloc(words(limit, k), sizeof(uint64_t));
		all = all && fresh[k];
	}
	for (int k = 0; k < BITSET_LEVELS; k++) {
		if (!all) {
			free(fresh[k]);
			continue;
		}
		if (b->level[k])
			memcpy(fresh[k], b->level[k], words(b->limit, k) * sizeof(uint64_t));
		free(b->level[k]);
		b->level[k] = fresh[k];
	}
	if (!all)
		return -ENOMEM;
	b->limit = limit;
	return 0;
}

void bitset_add(struct bitset *b, uint32_t i)
{
	for (int k = 0; k < BITSET_LEVELS; k++) {
		b->level[k][i / WORD] |= UINT64_C(1) << (i % WORD);
		i /= WORD;
	}
}

void bitset_remove(struct bitset *b, uint32_t i)
{
	for (int k = 0; k < BITSET_LEVELS; k++) {
		b->level[k][i / WORD] &= ~(UINT64_C(1) << (i % WORD));
		if (b->level[k][i / WORD])
			return;
		i /= WORD;
	}
}

/* The lowest bit at or above i that is set in this level, looking at one word only. */
static uint32_t next_in_word(const struct bitset *b, int k, uint32_t i)
{
	uint64_t bits;

	if (i / WORD >= words(b->limit, k))
		return BITSET_NONE;
	bits = b->level[k][i / WORD] & (~UINT64_C(0) << (i % WORD));
	return bits ? i / WORD * WORD + (uint32_t)__builtin_ctzll(bits) : BITSET_NONE;
}

uint32_t bitset_next(const struct bitset *b, uint32_t from)
{
	uint32_t i = from, found = BITSET_NONE;
	int k = 0;

	if (from >= b->limit)
		return BITSET_NONE;
	/* Go up until a level has a set bit at or above i ... */
	for (; k < BITSET_LEVELS; k++, i = i / WORD + 1) {
		found = next_in_word(b, k, i);
		if (found != BITSET_NONE)
			break;
	}
	if (found == BITSET_NONE) {
		/* Here i is a word index: search the rest of the top level. */
		for (k = BITSET_LEVELS - 1; i < words(b->limit, k); i++) {
			found = next_in_word(b, k, i * WORD);
			if (found != BITSET_NONE)
				break;
		}
	}
	/* ... and down again: each level below has a bit in the word that was found. */
	for (; found != BITSET_NONE && k > 0; k--)
		found = found * WORD + (uint32_t)__builtin_ctzll(b->level[k - 1][found]);
	return found;
}
