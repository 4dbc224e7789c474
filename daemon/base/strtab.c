// SPDX-License-Identifier: BSD-2-Clause
/* Interned strings: see strtab.h. */
#include "base/strtab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void strtab_deinit(struct strtab *t)
{
	free(t->bytes);
	free(t->entries);
	map_deinit(&t->by_hash);
	*t = (struct strtab){.limit = t->limit};
}

/* FNV-1a with a final mix. Names are short, and hashed only when a code object is first seen. */
uint64_t strtab_hash(uint64_t seed, const void *data, size_t n)
{
	const unsigned char *p = data;
	uint64_t h = seed ^ UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * UINT64_C(0x100000001b3);
	h ^= h >> 29;
	h *= UINT64_C(0xbf58476d1ce4e5b9);
	return h ^ (h >> 32);
}

static int reserve_bytes(struct strtab *t, size_t n)
{
	uint64_t cap = t->cap ? t->cap : 4096;
	char *bytes;

	if (n > t->limit || t->size > t->limit - n)
		return -ENOSPC;
	if (t->size + n <= t->cap)
		return 0;
	while (cap < t->size + n)
		cap *= 2;
	bytes = realloc(t->bytes, cap);
	if (!bytes)
		return -ENOMEM;
	t->bytes = bytes;
	t->cap = cap;
	return 0;
}

static int reserve_entry(struct strtab *t)
{
	uint32_t cap = t->entries_cap ? t->entries_cap * 2 : 64;
	struct strtab_entry *entries;

	if (t->n < t->entries_cap)
		return 0;
	if (t->n > UINT32_MAX / 4)
		return -ENOSPC;
	entries = reallocarray(t->entries, cap, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	t->entries = entries;
	t->entries_cap = cap;
	return 0;
}

int strtab_add(struct strtab *t, const char *str, uint32_t *ret)
{
	size_t size = strlen(str) + 1;
	uint64_t hash = strtab_hash(0, str, size);
	uint32_t first = STRTAB_NONE;
	int err;

	map_get(&t->by_hash, hash, &first);
	for (uint32_t id = first; id != STRTAB_NONE; id = t->entries[id].next) {
		if (strcmp(t->bytes + t->entries[id].offset, str) == 0) {
			*ret = id;
			return 0;
		}
	}
	err = reserve_bytes(t, size);
	if (!err)
		err = reserve_entry(t);
	if (!err)
		err = map_put(&t->by_hash, hash, t->n);
	if (err)
		return err;
	memcpy(t->bytes + t->size, str, size);
	t->entries[t->n] = (struct strtab_entry){.offset = t->size, .next = first};
	t->size += size;
	*ret = t->n++;
	return 0;
}

const char *strtab_get(const struct strtab *t, uint32_t id)
{
	return id < t->n ? t->bytes + t->entries[id].offset : NULL;
}
