/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of a fleet's profiles in ClickHouse, as packaging/doc/fleet.md describes them. Only
 * SQL that ClickHouse 18.16 (Debian) and current releases both accept. Pure.
 *
 * `profiles` has one row per interval, with arrays of figures, which refer to `functions` and
 * `stacks`. A row is stored completely or not at all, and each of these tables keeps one of several
 * equal rows, so inserting an interval again changes nothing; queries count one row per id even
 * before the engine has merged equal rows. `hours` has the sums of complete hours, see rollup.h.
 *
 * The tables have a mark: the name of a column, random for each database, and with the version of
 * the tables. Inserts name it, so an insert into tables that were created anew fails, instead of
 * relying on names that were inserted into the old ones.
 */
#ifndef PYPROF_CLICKHOUSE_TABLES_H
#define PYPROF_CLICKHOUSE_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/diag.h"

/* In the order of inserts: a profile is stored after the names it refers to. */
enum tables_kind { TABLES_FUNCTIONS, TABLES_STACKS, TABLES_PROFILES, TABLES_KINDS };

/* The database's name if none is given */
#define TABLES_DATABASE "pyprof"

/* Returns whether a name needs no quotes as a database's: letters, digits, '_'. */
bool tables_database_valid(const char *name);

#define TABLES_MARK_PREFIX "tables_2_" /* with the version */
#define TABLES_MARK_MAX	   32

struct tables_mark {
	char name[TABLES_MARK_MAX];
};

/* random: a number that no other database has. */
void tables_mark_new(uint64_t random, struct tables_mark *ret);
/* Writes the question for the mark. database NULL: that of the connection. */
void tables_write_find_mark(const char *database, FILE *out);
/*
 * Reads the answer, which is untrusted. Returns 0, -ENOENT (there are no tables), or -EPROTO (the
 * tables are of another version, or it is no answer to the question).
 */
int tables_mark_parse(const void *data, size_t n, struct tables_mark *ret);
/* Texts for these errors; *ret_hint: what to do. */
const char *tables_mark_error(int err, const char **ret_hint);

/*
 * Writes the i-th of the statements that create everything that does not exist yet, in order.
 * Returns false if there is none of this number.
 */
bool tables_write_create(unsigned int i, const char *database, const struct tables_mark *mark,
			 FILE *out);

/*
 * Writes "INSERT INTO … FORMAT RowBinary" for rows of this kind. database NULL: that of the
 * connection.
 */
void tables_write_insert(enum tables_kind kind, const char *database,
			 const struct tables_mark *mark, FILE *out);

/* Writes the statement that creates an empty table like `hours` with another name. */
void tables_write_like_hours(const char *database, const char *name, FILE *out);

/* Columns of `profiles` by which `hours` is grouped as well */
extern const char *const tables_groups[];

/* Kinds of rows of `hours`; the columns of other kinds are empty. */
enum tables_hours_kind {
	HOURS_INFO = 1,	  /* one per group: how many intervals, hosts, processes; when filled */
	HOURS_SAMPLE = 2, /* stack: calls, cpu, wall */
	HOURS_DETAIL = 3, /* stack, name: value, top, low */
	HOURS_FIGURE = 4, /* function, name: value, top, variance */
	HOURS_LABEL = 5,  /* name: first, last */
};

/* Figures in arrays of their own: calls, cpu, wall; ends with NULL. */
extern const char *const tables_samples[];

#endif
