/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An open-addressing hash map from 64-bit keys to 32-bit values: addresses to indices, pairs of
 * indices to indices. Linear probing, removal by shifting back, so there are no tombstones and a
 * lookup stays short whatever came and went. A zeroed struct map is an empty map.
 *
 * The map owns its slots. Growth doubles; nothing else allocates.
 */
#ifndef PYPROF_BASE_MAP_H
#define PYPROF_BASE_MAP_H

#include <stdbool.h>
#include <stdint.h>

struct map_slot {
	uint64_t key;
	uint32_t value;
	uint32_t used;
};

struct map {
	struct map_slot *slots; /* NULL: nothing was ever put */
	uint32_t mask;		/* number of slots - 1; the number is a power of two */
	uint32_t shift;		/* 64 - log2(number of slots) */
	uint32_t n;
};

void map_deinit(struct map *m); /* empty again; its memory is freed */
void map_clear(struct map *m);	/* empty again; its memory is kept */

/* Insert or replace. 0 or -ENOMEM (the map is unchanged). */
int map_put(struct map *m, uint64_t key, uint32_t value);
/* Remove; false: it was not there. */
bool map_del(struct map *m, uint64_t key);

/* Multiplication spreads to the high bits; folding first lets the high half of the key count. */
static inline uint32_t map_hash(const struct map *m, uint64_t key)
{
	return (uint32_t)(((key ^ (key >> 32)) * UINT64_C(0x9e3779b97f4a7c15)) >> m->shift);
}

/* Inline, against the house rule: several lookups happen per event. *ret is set when found. */
static inline bool map_get(const struct map *m, uint64_t key, uint32_t *ret)
{
	if (!m->slots)
		return false;
	for (uint32_t i = map_hash(m, key); m->slots[i].used; i = (i + 1) & m->mask) {
		if (m->slots[i].key == key) {
			*ret = m->slots[i].value;
			return true;
		}
	}
	return false;
}

#endif
