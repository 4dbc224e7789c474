// SPDX-License-Identifier: BSD-2-Clause
/* The hash map: see map.h. */
#include "base/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAP_MIN_BITS 4
#define MAP_MAX_BITS 31

void map_deinit(struct map *m)
{
	free(m->slots);
	*m = (struct map){0};
}

void map_clear(struct map *m)
{
	if (m->slots)
		memset(m->slots, 0, ((size_t)m->mask + 1) * sizeof(*m->slots));
	m->n = 0;
}

/* The slot that holds key, or the free slot for it. At least one slot is always free. */
static struct map_slot *slot_for(const struct map *m, uint64_t key)
{
	uint32_t i = map_hash(m, key);

	while (m->slots[i].used && m->slots[i].key != key)
		i = (i + 1) & m->mask;
	return &m->slots[i];
}

static int map_grow(struct map *m)
{
	uint32_t bits = m->slots ? 64 - m->shift + 1 : MAP_MIN_BITS;
	struct map bigger = {
		.mask = (uint32_t)((UINT64_C(1) << bits) - 1), .shift = 64 - bits, .n = m->n};

	if (bits > MAP_MAX_BITS)
		return -ENOMEM;
	bigger.slots = calloc((size_t)1 << bits, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; m->slots && i <= m->mask; i++)
		if (m->slots[i].used)
			*slot_for(&bigger, m->slots[i].key) = m->slots[i];
	free(m->slots);
	*m = bigger;
	return 0;
}

int map_put(struct map *m, uint64_t key, uint32_t value)
{
	struct map_slot *s;

	/* Grow at two thirds. If out of memory, continue while a free slot remains. */
	if (!m->slots || (uint64_t)m->n * 3 >= (uint64_t)m->mask * 2) {
		int err = map_grow(m);

		if (err && (!m->slots || m->n >= m->mask))
			return err;
	}
	s = slot_for(m, key);
	if (!s->used)
		m->n++;
	*s = (struct map_slot){.key = key, .value = value, .used = 1};
	return 0;
}

bool map_del(struct map *m, uint64_t key)
{
	uint32_t hole, i;

	if (!m->slots)
		return false;
	hole = (uint32_t)(slot_for(m, key) - m->slots);
	if (!m->slots[hole].used)
		return false;
	/* Move back entries that lookups would no longer reach across the hole. */
	for (i = (hole + 1) & m->mask; m->slots[i].used; i = (i + 1) & m->mask) {
		uint32_t home = map_hash(m, m->slots[i].key);

		if (((i - home) & m->mask) >= ((i - hole) & m->mask)) {
			m->slots[hole] = m->slots[i];
			hole = i;
		}
	}
	m->slots[hole] = (struct map_slot){0};
	m->n--;
	return true;
}
