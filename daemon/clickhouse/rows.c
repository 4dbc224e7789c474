// SPDX-License-Identifier: BSD-2-Clause
/* RowBinary: see rows.h. */
#include "clickhouse/rows.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAP ((size_t)4096)

void rows_deinit(struct rows *r)
{
	free(r->data);
	*r = (struct rows){0};
}

/* ---- writing ---- */

static bool make_room(struct rows *r, size_t n)
{
	size_t cap = r->cap ? r->cap : FIRST_CAP;
	uint8_t *data;

	if (r->err)
		return false;
	while (cap - r->n < n && cap <= SIZE_MAX / 4)
		cap *= 2;
	if (cap == r->cap)
		return true;
	data = realloc(r->data, cap);
	if (!data) {
		r->err = -ENOMEM;
		return false;
	}
	r->data = data;
	r->cap = cap;
	return true;
}

void rows_put_bytes(struct rows *r, const void *data, size_t n)
{
	if (!n || !make_room(r, n))
		return;
	memcpy(r->data + r->n, data, n);
	r->n += n;
}

void rows_put_u8(struct rows *r, uint8_t v)
{
	rows_put_bytes(r, &v, sizeof(v));
}

void rows_put_u16(struct rows *r, uint16_t v)
{
	v = htole16(v);
	rows_put_bytes(r, &v, sizeof(v));
}

void rows_put_u32(struct rows *r, uint32_t v)
{
	v = htole32(v);
	rows_put_bytes(r, &v, sizeof(v));
}

void rows_put_u64(struct rows *r, uint64_t v)
{
	v = htole64(v);
	rows_put_bytes(r, &v, sizeof(v));
}

void rows_put_double(struct rows *r, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	rows_put_u64(r, bits);
}

void rows_put_varint(struct rows *r, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		rows_put_u8(r, (uint8_t)(v | 0x80));
	rows_put_u8(r, (uint8_t)v);
}

void rows_put_str(struct rows *r, const char *s)
{
	size_t n = s ? strlen(s) : 0;

	rows_put_varint(r, n);
	rows_put_bytes(r, s, n);
}

/* ---- reading ---- */

bool cells_more(const struct cells *c)
{
	return !c->err && c->p < c->end;
}

const uint8_t *cells_bytes(struct cells *c, size_t n)
{
	const uint8_t *p = c->p;

	if (c->err || (size_t)(c->end - c->p) < n) {
		c->err = -EBADMSG;
		return NULL;
	}
	c->p += n;
	return p;
}

uint8_t cells_u8(struct cells *c)
{
	const uint8_t *p = cells_bytes(c, 1);

	return p ? *p : 0;
}

uint32_t cells_u32(struct cells *c)
{
	const uint8_t *p = cells_bytes(c, sizeof(uint32_t));
	uint32_t v = 0;

	if (p)
		memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

uint64_t cells_u64(struct cells *c)
{
	const uint8_t *p = cells_bytes(c, sizeof(uint64_t));
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

double cells_double(struct cells *c)
{
	uint64_t bits = cells_u64(c);
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

uint64_t cells_varint(struct cells *c)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		uint8_t byte = cells_u8(c);

		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return c->err ? 0 : v;
	}
	c->err = -EBADMSG;
	return 0;
}

const char *cells_str(struct cells *c, size_t *ret_n)
{
	uint64_t n = cells_varint(c);
	const uint8_t *p = cells_bytes(c, n);

	*ret_n = p ? n : 0;
	return (const char *)p;
}
