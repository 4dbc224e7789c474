/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows in ClickHouse's binary format RowBinary: integers in little-endian order, strings and arrays
 * after their length as a varint. Writing them for inserts, and reading answers, which are
 * untrusted. Pure.
 */
#ifndef PYPROF_CLICKHOUSE_ROWS_H
#define PYPROF_CLICKHOUSE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: empty. The first error is kept in err; later calls do nothing. */
struct rows {
	uint8_t *data; /* owned */
	size_t n, cap;
	uint64_t count; /* of rows; counted by the callers */
	int err;	/* 0 or -ENOMEM */
};

void rows_deinit(struct rows *r);

void rows_put_bytes(struct rows *r, const void *data, size_t n);
void rows_put_u8(struct rows *r, uint8_t v);
void rows_put_u16(struct rows *r, uint16_t v);
void rows_put_u32(struct rows *r, uint32_t v);
void rows_put_u64(struct rows *r, uint64_t v);
void rows_put_double(struct rows *r, double v);
void rows_put_varint(struct rows *r, uint64_t v);
/* NULL is written as "". */
void rows_put_str(struct rows *r, const char *s);

/*
 * An answer that is read from the start. Each function returns 0, NULL or 0.0 after an error, which
 * stays in err, so that callers may check once at the end of a row.
 */
struct cells {
	const uint8_t *p, *end; /* borrowed */
	int err;		/* 0, or -EBADMSG: truncated, or a length is impossible */
};

/* Returns whether there is another row. */
bool cells_more(const struct cells *c);
const uint8_t *cells_bytes(struct cells *c, size_t n);
uint8_t cells_u8(struct cells *c);
uint32_t cells_u32(struct cells *c);
uint64_t cells_u64(struct cells *c);
double cells_double(struct cells *c);
uint64_t cells_varint(struct cells *c);
/* Returns the string's bytes, not NUL-terminated, and its length. */
const char *cells_str(struct cells *c, size_t *ret_n);

#endif
