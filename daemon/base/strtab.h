/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interned strings: the same bytes are stored once and have one small id. The table owns its bytes;
 * ids count from 0 and stay valid for the table's life. A zeroed table with a limit is empty.
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
	uint64_t limit; /* bytes, terminators included; what is above is refused */
	char *bytes;
	uint64_t size, cap;
	struct strtab_entry *entries;
	uint32_t n, entries_cap;
	struct map by_hash;
};

void strtab_deinit(struct strtab *t);

/* The id of str, added if it is new. -ENOSPC: the limit is reached; -ENOMEM. */
int strtab_add(struct strtab *t, const char *str, uint32_t *ret);

/* The string with this id; valid until the next strtab_add. NULL for STRTAB_NONE. */
const char *strtab_get(const struct strtab *t, uint32_t id);

/* A 64-bit hash of n bytes, continued from seed: also for other tables' keys. */
uint64_t strtab_hash(uint64_t seed, const void *data, size_t n);

#endif
