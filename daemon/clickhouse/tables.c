// SPDX-License-Identifier: BSD-2-Clause
/* Tables: see tables.h. */
#include "clickhouse/tables.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS	"0123456789"

struct table_column {
	const char *name, *type;
};

const char *const tables_samples[] = {"calls", "cpu", "wall", NULL};
const char *const tables_groups[] = {"service", "version", "mode", "options", NULL};

/* Few columns: ClickHouse writes files for each of them with each insert. */
static const struct table_column profiles[] = {
	{"time", "DateTime"},
	{"service", "String"},
	{"host", "String"},
	{"version", "String"},
	{"pid", "UInt32"},
	{"mode", "String"},
	{"options", "String"},
	{"id", "FixedString(16)"},
	{"start_ns", "UInt64"},
	{"end_ns", "UInt64"},
	{"labels.name", "Array(String)"},
	{"labels.value", "Array(String)"},
	{"samples.stack", "Array(FixedString(16))"},
	{"samples.calls", "Array(UInt64)"},
	{"samples.cpu", "Array(UInt64)"},
	{"samples.wall", "Array(UInt64)"},
	{"details.stack", "Array(FixedString(16))"},
	{"details.name", "Array(String)"},
	{"details.value", "Array(UInt64)"},
	{"figures.function", "Array(UInt64)"},
	{"figures.name", "Array(String)"},
	{"figures.value", "Array(UInt64)"},
	{"figures.variance", "Array(Float64)"},
	{NULL},
};

static const struct table_column functions[] = {
	{"day", "Date"},
	{"service", "String"},
	{"function", "UInt64"},
	{"file", "String"},
	{"line", "Int32"},
	{"name", "String"},
	{"qualname", "String"},
	{"has_qualname", "UInt8"},
	{"variant", "UInt32"},
	{"pseudo", "UInt8"},
	{NULL},
};

static const struct table_column stacks[] = {
	{"day", "Date"},
	{"service", "String"},
	{"stack", "FixedString(16)"},
	{"path", "Array(UInt64)"},
	{NULL},
};

#define SUM(type) "AggregateFunction(sum, " type ")"

static const struct table_column hours[] = {
	{"hour", "UInt32"}, /* since 1970 */
	{"kind", "UInt8"},
	{"service", "String"},
	{"version", "String"},
	{"mode", "String"},
	{"options", "String"},
	{"stack", "FixedString(16)"},
	{"function", "UInt64"},
	{"name", "String"},
	{"calls", SUM("UInt64")},
	{"cpu", SUM("UInt64")},
	{"wall", SUM("UInt64")},
	{"value", SUM("UInt64")},
	{"top", "AggregateFunction(max, UInt64)"},
	{"low", "AggregateFunction(min, UInt64)"},
	{"variance", SUM("Float64")},
	{"first", "AggregateFunction(min, String)"},
	{"last", "AggregateFunction(max, String)"},
	{"intervals", SUM("UInt64")},
	{"hosts", "AggregateFunction(uniqExact, String)"},
	{"processes", "AggregateFunction(uniqExact, String, UInt32)"},
	{"start_ns", "AggregateFunction(min, UInt64)"},
	{"end_ns", "AggregateFunction(max, UInt64)"},
	{"filled", "UInt64"}, /* a random number: differs each time; of kind 1 also `function` */
	{"blocks", "UInt64"}, /* the state of `profiles` that was added up, see rollup.h */
	{"rows", "UInt64"},
	{NULL},
};

bool tables_database_valid(const char *name)
{
	size_t n = strspn(name, LETTERS DIGITS "_");

	return n > 0 && n <= 64 && !name[n] && !(name[0] >= '0' && name[0] <= '9');
}

/* ---- the mark ---- */

void tables_mark_new(uint64_t random, struct tables_mark *ret)
{
	snprintf(ret->name, sizeof(ret->name), TABLES_MARK_PREFIX "%016" PRIx64, random);
}

/* The column id is that of tables of any version. */
void tables_write_find_mark(const char *database, FILE *out)
{
	fputs("SELECT name FROM system.columns WHERE table = 'profiles' AND (name = 'id' OR name "
	      "LIKE 'tables\\\\_%') AND database = ",
	      out);
	if (database)
		fprintf(out, "'%s'", database);
	else
		fputs("currentDatabase()", out);
	fputs(" FORMAT TabSeparated", out);
}

int tables_mark_parse(const void *data, size_t n, struct tables_mark *ret)
{
	const char *p = data, *end = p + n;

	if (!n)
		return -ENOENT;
	for (; p < end; p++) {
		const char *line = memchr(p, '\n', (size_t)(end - p));
		size_t len = line ? (size_t)(line - p) : (size_t)(end - p);

		if (len > strlen(TABLES_MARK_PREFIX) && len < sizeof(ret->name) &&
		    memcmp(p, TABLES_MARK_PREFIX, strlen(TABLES_MARK_PREFIX)) == 0) {
			memcpy(ret->name, p, len);
			ret->name[len] = '\0';
			return tables_database_valid(ret->name) ? 0 : -EPROTO;
		}
		p += len;
	}
	return -EPROTO;
}

const char *tables_mark_error(int err, const char **ret_hint)
{
	if (err == -ENOENT) {
		*ret_hint = "`pyprofctl fleet init` creates them";
		return "the tables are missing";
	}
	*ret_hint = "use another database, and `pyprofctl fleet init`, or the version of pyprof "
		    "that created them";
	return "the tables are of another version";
}

/* ---- lists of columns ---- */

static void put_columns(const struct table_column *c, bool types, FILE *out)
{
	for (const char *comma = ""; c->name; c++, comma = ", ") {
		fprintf(out, "%s`%s`", comma, c->name);
		if (types)
			fprintf(out, " %s", c->type);
	}
}

/* ---- statements ---- */

static void create_database(const char *database, const struct tables_mark *mark, FILE *out)
{
	(void)mark;
	fprintf(out, "CREATE DATABASE IF NOT EXISTS %s", database);
}

static void begin_table(const char *database, const char *name, const struct table_column *columns,
			FILE *out)
{
	fprintf(out, "CREATE TABLE IF NOT EXISTS %s.%s (", database, name);
	put_columns(columns, true, out);
}

/* Partitions are hours, so that the state of an hour can be compared (rollup.h). */
static void create_profiles(const char *database, const struct tables_mark *mark, FILE *out)
{
	begin_table(database, "profiles", profiles, out);
	fprintf(out,
		", `%s` UInt8) ENGINE = ReplacingMergeTree() PARTITION BY intDiv(toUInt32(time), "
		"3600) ORDER BY (service, time, host, id) SETTINGS index_granularity = 256",
		mark->name);
}

static void create_functions(const char *database, const struct tables_mark *mark, FILE *out)
{
	(void)mark;
	begin_table(database, "functions", functions, out);
	fputs(") ENGINE = ReplacingMergeTree() PARTITION BY toYYYYMM(day)"
	      " ORDER BY (service, function)",
	      out);
}

static void create_stacks(const char *database, const struct tables_mark *mark, FILE *out)
{
	(void)mark;
	begin_table(database, "stacks", stacks, out);
	fputs(") ENGINE = ReplacingMergeTree() PARTITION BY toYYYYMM(day)"
	      " ORDER BY (service, stack)",
	      out);
}

void tables_write_like_hours(const char *database, const char *name, FILE *out)
{
	begin_table(database, name, hours, out);
	fputs(") ENGINE = AggregatingMergeTree() PARTITION BY hour ORDER BY (kind, service, "
	      "version, mode, options, stack, function, name)",
	      out);
}

static void create_hours(const char *database, const struct tables_mark *mark, FILE *out)
{
	(void)mark;
	tables_write_like_hours(database, "hours", out);
}

/* The table with the mark is the last one: if it exists, all do. */
bool tables_write_create(unsigned int i, const char *database, const struct tables_mark *mark,
			 FILE *out)
{
	static void (*const statements[])(const char *database, const struct tables_mark *mark,
					  FILE *out) = {
		create_database, create_functions, create_stacks, create_hours, create_profiles,
	};

	if (i >= sizeof(statements) / sizeof(statements[0]))
		return false;
	statements[i](database, mark, out);
	return true;
}

void tables_write_insert(enum tables_kind kind, const char *database,
			 const struct tables_mark *mark, FILE *out)
{
	static const struct {
		const char *name;
		const struct table_column *columns;
	} tables[TABLES_KINDS] = {
		[TABLES_FUNCTIONS] = {"functions", functions},
		[TABLES_STACKS] = {"stacks", stacks},
		[TABLES_PROFILES] = {"profiles", profiles},
	};

	fprintf(out, "INSERT INTO %s%s%s (", database ? database : "", database ? "." : "",
		tables[kind].name);
	put_columns(tables[kind].columns, false, out);
	if (kind == TABLES_PROFILES)
		fprintf(out, ", `%s`", mark->name);
	fputs(") FORMAT RowBinary", out);
}
