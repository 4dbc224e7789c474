// SPDX-License-Identifier: BSD-2-Clause
/* Acknowledged names: see known.h. */
#include "clickhouse/known.h"

void known_deinit(struct known *k)
{
	map_deinit(&k->keys);
	*k = (struct known){0};
}

bool known_has(const struct known *k, uint64_t key)
{
	uint32_t unused;

	return key && map_get(&k->keys, key, &unused);
}

void known_add(struct known *k, const uint64_t *keys, size_t n)
{
	bool ok = n <= KNOWN_MAX && k->keys.n <= KNOWN_MAX - n;

	for (size_t i = 0; i < n && ok; i++)
		ok = !keys[i] || map_put(&k->keys, keys[i], 1) == 0;
	if (!ok)
		known_forget(k);
}

void known_forget(struct known *k)
{
	map_clear(&k->keys);
}

void known_expire(struct known *k, uint64_t now_ns, uint32_t random)
{
	const uint64_t half = KNOWN_LIFETIME_NS / 2;

	if (k->until_ns && now_ns < k->until_ns)
		return;
	known_forget(k);
	k->until_ns = now_ns + half + half / UINT32_MAX * random;
}
