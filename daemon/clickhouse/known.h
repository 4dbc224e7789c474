/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names (functions and stacks) that a server has acknowledged, so that they need not be inserted
 * again. Bounded, and forgotten after a time: names that were removed from the server, because
 * their partition was dropped, come again. Pure.
 */
#ifndef PYPROF_CLICKHOUSE_KNOWN_H
#define PYPROF_CLICKHOUSE_KNOWN_H

#include "base/map.h"
#include "clickhouse/rows.h"

#define KNOWN_MAX	  (UINT32_C(1) << 18)
#define KNOWN_LIFETIME_NS (UINT64_C(24) * 3600 * 1000000000)

/* Zeroed: empty. */
struct known {
	struct map keys;
	uint64_t until_ns; /* then everything is forgotten; 0: not set yet */
};

void known_deinit(struct known *k);

bool known_has(const struct known *k, uint64_t key);
/*
 * Adds keys. If there are too many, or without memory, everything is forgotten instead, which costs
 * time, but no names.
 */
void known_add(struct known *k, const uint64_t *keys, size_t n);
void known_forget(struct known *k);
/*
 * Forgets everything that is older than a day. Of a random part of the day, so that many senders do
 * not insert everything again at the same time. random: any number.
 */
void known_expire(struct known *k, uint64_t now_ns, uint32_t random);

#endif
