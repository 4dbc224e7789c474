/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interned strings: equal strings are stored once and share a small id. The table owns the bytes.
 * Ids count from 0 and are valid as long as the table. A zeroed table with a limit is empty.
 */
#ifndef PYPROF_BASE_STRTAB_H
#define PYPROF_BASE_STRTAB_H

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

#define STRTAB_NONE UINT32_MAX

struct strtab_entry {
	uint64_t offset;
	uint32_t next; /* another string with the same hash, or STRTAB_NONE */
};

struct strtab {
	uint64_t limit; /* maximum bytes, terminators included; strtab_add() fails beyond */
	char *bytes;
	uint64_t size, cap;
	struct strtab_entry *entries;
	uint32_t n, entries_cap;
	struct map by_hash;
};

void strtab_deinit(struct strtab *t);

/* Get the id of str, adding it if it is new. -ENOSPC: limit reached; -ENOMEM. */
int strtab_add(struct strtab *t, const char *str, uint32_t *ret);

/* The string with this id, valid until the next strtab_add(). NULL for STRTAB_NONE. */
const char *strtab_get(const struct strtab *t, uint32_t id);

/* A 64-bit hash of n bytes, continued from seed. Other tables use it for their keys, too. */
uint64_t strtab_hash(uint64_t seed, const void *data, size_t n);

#endif
