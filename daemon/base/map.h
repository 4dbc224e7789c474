/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An open-addressing hash map from 64-bit keys to 32-bit values: addresses to indices, pairs of
 * indices to indices. Linear probing; removal shifts entries back, so there are no tombstones and
 * lookups stay short. A zeroed struct map is an empty map.
 *
 * The map owns its slots. Only growth, which doubles them, allocates.
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
	struct map_slot *slots; /* NULL: never used */
	uint32_t mask;		/* number of slots - 1; the number is a power of two */
	uint32_t shift;		/* 64 - log2(number of slots) */
	uint32_t n;
};

void map_deinit(struct map *m); /* empty again; its memory is freed */
void map_clear(struct map *m);	/* empty again; its memory is kept */

/* Insert or replace. Returns 0 or -ENOMEM (the map is then unchanged). */
int map_put(struct map *m, uint64_t key, uint32_t value);
/* Remove key. Returns false if it was not there. */
bool map_del(struct map *m, uint64_t key);

/* The multiplication mixes towards the high bits, so fold the key's high half into the low one
 * first. */
static inline uint32_t map_hash(const struct map *m, uint64_t key)
{
	return (uint32_t)(((key ^ (key >> 32)) * UINT64_C(0x9e3779b97f4a7c15)) >> m->shift);
}

/* Inline, because each event takes several lookups. *ret is set only if key is found. */
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
