/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records: rows for several tables in one sequence of bytes, each after its table and the key by
 * which a sender remembers that it was inserted. Pure.
 */
#ifndef PYPROF_CLICKHOUSE_RECORDS_H
#define PYPROF_CLICKHOUSE_RECORDS_H

#include "clickhouse/rows.h"
#include "clickhouse/tables.h"

#define RECORD_HEAD 13 /* bytes before the row */

struct record {
	enum tables_kind kind;
	uint64_t key; /* 0: not remembered */
	size_t n;     /* bytes of the row */
};

/* Begins a record; the row follows. Returns what record_end() needs. */
size_t record_begin(struct rows *r, enum tables_kind kind, uint64_t key);
/* A row of 4 GiB or more is an error: r->err is -EFBIG. */
void record_end(struct rows *r, size_t begin);

/* Decodes a head. Returns false if it is not valid. */
bool record_decode(const uint8_t head[RECORD_HEAD], struct record *ret);
/* The next record; *ret_row: borrowed. Returns false at the end, and on errors, which are in c->err. */
bool record_next(struct cells *c, struct record *ret, const uint8_t **ret_row);

#endif
