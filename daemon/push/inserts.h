/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bodies of the inserts that an interval, or several, become: one per table, without the names
 * that the server has. Pure.
 */
#ifndef PYPROF_PUSH_INSERTS_H
#define PYPROF_PUSH_INSERTS_H

#include "clickhouse/known.h"
#include "clickhouse/tables.h"
#include "push/gzip.h"

struct inserts {
	struct {
		struct push_zip body;
		uint64_t rows; /* 0: there is nothing to insert, and no body */
	} of[TABLES_KINDS];
	uint64_t *keys; /* of the names among them; owned */
	size_t nkeys, cap;
	struct map seen; /* these keys */
};

/*
 * Reads compressed records (clickhouse/records.h), which may consist of several gzip streams. Needs
 * little memory besides that of the result. Returns 0, -EBADMSG (damaged) or -ENOMEM;
 * inserts_deinit() in all cases.
 */
int inserts_read(struct inserts *in, const uint8_t *zipped, size_t n, const struct known *known);
void inserts_deinit(struct inserts *in);

#endif
