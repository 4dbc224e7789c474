/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of a fleet's profiles in ClickHouse, as packaging/doc/fleet.md describes them. Only
 * SQL that ClickHouse 18.16 (Debian) and current releases both accept. Pure.
 *
 * Everything is inserted into `inbox`, which stores nothing: three views distribute its rows, by
 * their kind, to `profiles` (one row per interval, with arrays of figures), `functions` and
 * `stacks`. A row is stored completely or not at all, and each of these tables keeps one of several
 * equal rows, so inserting an interval again changes nothing; queries count one row per id even
 * before the engine has merged
 * equal rows. `hours` has the sums of an hour, see rollup.h.
 */
#ifndef PYPROF_CLICKHOUSE_TABLES_H
#define PYPROF_CLICKHOUSE_TABLES_H

#include <stdbool.h>
#include <stdio.h>

/* Kinds of rows of `inbox`; the columns of other kinds are empty. */
enum tables_kind { TABLES_PROFILE = 1, TABLES_FUNCTION = 2, TABLES_STACK = 3 };

/* The database's name if none is given */
#define TABLES_DATABASE "pyprof"

/* Returns whether a name needs no quotes as a database's: letters, digits, '_'. */
bool tables_database_valid(const char *name);

/*
 * Writes the i-th of the statements that create everything that does not exist yet, in order.
 * Returns false if there is none of this number.
 */
bool tables_write_create(unsigned int i, const char *database, FILE *out);

/*
 * Writes "INSERT INTO … FORMAT RowBinary" for rows of interval_rows.h. database NULL: that of the
 * connection.
 */
void tables_write_insert(const char *database, FILE *out);

/* Writes the statement that creates an empty table like `hours` with another name. */
void tables_write_like_hours(const char *database, const char *name, FILE *out);

/* The figures of samples besides those of base/column.h: calls, cpu, …; ends with NULL. */
struct tables_figure {
	const char *name;
	const char *merge; /* how figures of several rows are combined: sum, min, max */
};
extern const struct tables_figure tables_figures[];
/* The same for a column of base/column.h */
const char *tables_column_merge(int column);

#endif
