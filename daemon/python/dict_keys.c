// SPDX-License-Identifier: BSD-2-Clause
/*
 * Keys objects of dicts: see dict_keys.h. Source: Objects/dict-common.h (before 3.11) and
 * Include/internal/pycore_dict.h.
 */
#include "python/dict_keys.h"

#include <string.h>

#define SIZE_MAX_PLAUSIBLE (UINT64_C(1) << 46)

static uint64_t u64_at(const uint8_t *p, size_t at)
{
	uint64_t v;

	memcpy(&v, p + at, sizeof(v));
	return v;
}

static bool keys_by_size(const uint8_t head[40], uint64_t addr, struct dict_keys *k)
{
	uint64_t size = u64_at(head, 8), width;

	if (size < 1 || size > SIZE_MAX_PLAUSIBLE || size & (size - 1))
		return false;
	width = size <= 0xff ? 1 : size <= 0xffff ? 2 : size <= 0xffffffff ? 4 : 8;
	*k = (struct dict_keys){
		.usable = 2 * size / 3, .used = u64_at(head, 32), .entry = 24, .key = 8};
	k->entries = addr + 40 + width * size;
	k->bytes = 40 + width * size + k->usable * k->entry;
	return true;
}

static bool keys_by_log(const uint8_t head[40], uint64_t addr, struct dict_keys *k)
{
	unsigned int log2_size = head[8], log2_index = head[9];

	if (log2_size > 44 || log2_index > 47)
		return false;
	*k = (struct dict_keys){.usable = (UINT64_C(2) << log2_size) / 3, .used = u64_at(head, 24)};
	k->entry = head[10] ? 16 : 24; /* DICT_KEYS_GENERAL */
	k->key = head[10] ? 0 : 8;
	k->entries = addr + 32 + (UINT64_C(1) << log2_index);
	k->bytes = 32 + (UINT64_C(1) << log2_index) + k->usable * k->entry;
	return true;
}

bool dict_keys_read(struct pages *pages, const struct layout *l, uint64_t addr,
		    struct dict_keys *ret)
{
	uint8_t head[40];

	if (pages_read(pages, addr, head, sizeof(head)))
		return false;
	if (!(l->minor >= 11 ? keys_by_log : keys_by_size)(head, addr, ret))
		return false;
	ret->own = u64_at(head, 0) == 1;
	return true;
}
