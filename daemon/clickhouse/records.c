// SPDX-License-Identifier: BSD-2-Clause
/* Records: see records.h. */
#include "clickhouse/records.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

size_t record_begin(struct rows *r, enum tables_kind kind, uint64_t key)
{
	rows_put_u8(r, (uint8_t)kind);
	rows_put_u64(r, key);
	rows_put_u32(r, 0);
	return r->n;
}

void record_end(struct rows *r, size_t begin)
{
	size_t n = r->n - begin;
	uint32_t v = htole32((uint32_t)n);

	if (r->err)
		return;
	if (n > UINT32_MAX) {
		r->err = -EFBIG;
		return;
	}
	memcpy(r->data + begin - sizeof(v), &v, sizeof(v));
	r->count++;
}

bool record_decode(const uint8_t head[RECORD_HEAD], struct record *ret)
{
	struct cells c = {.p = head, .end = head + RECORD_HEAD};
	uint8_t kind = cells_u8(&c);

	ret->kind = (enum tables_kind)kind;
	ret->key = cells_u64(&c);
	ret->n = cells_u32(&c);
	return kind < TABLES_KINDS;
}

bool record_next(struct cells *c, struct record *ret, const uint8_t **ret_row)
{
	const uint8_t *head = cells_more(c) ? cells_bytes(c, RECORD_HEAD) : NULL;

	if (!head)
		return false;
	if (!record_decode(head, ret)) {
		c->err = -EBADMSG;
		return false;
	}
	*ret_row = cells_bytes(c, ret->n);
	return *ret_row != NULL;
}
