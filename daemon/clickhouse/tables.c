// SPDX-License-Identifier: BSD-2-Clause
/* Tables: see tables.h. */
#include "clickhouse/tables.h"

#include <string.h>

#include "base/column.h"

struct table_column {
	const char *name, *type;
};

const struct tables_figure tables_figures[] = {
	{"calls", "sum"},    {"yields", "sum"},
	{"inflight", "sum"}, {"cpu", "sum"},
	{"wall", "sum"},     {"min_cpu", "min"},
	{"min_wall", "min"}, {"max_cpu", "max"},
	{"max_wall", "max"}, {NULL},
};

/* The groups of columns, in the order of a row of `inbox`. */
static const struct table_column labels[] = {
	{"day", "Date"},
	{"time", "DateTime"},
	{"service", "String"},
	{"host", "String"},
	{"version", "String"},
	{"pid", "UInt32"},
	{"python", "String"},
	{"mode", "String"},
	{"options", "String"},
	{"rate", "UInt32"},
	{"period_ns", "UInt64"},
	{"max_overhead", "UInt32"},
	{"clock", "String"},
	{"kernel", "String"},
	{"program", "String"},
	{"command", "String"},
	{"id", "FixedString(16)"},
	{"start_ns", "UInt64"},
	{"end_ns", "UInt64"},
	{"labels.name", "Array(String)"},
	{"labels.value", "Array(String)"},
	{NULL},
};

static const struct table_column figures[] = {
	{"figures.function", "Array(UInt64)"},
	{"figures.name", "Array(String)"},
	{"figures.value", "Array(UInt64)"},
	{"figures.variance", "Array(Float64)"},
	{NULL},
};

/* Of the tables functions and stacks, besides day and service */
static const struct table_column functions[] = {
	{"function", "UInt64"}, {"file", "String"},	{"line", "Int32"},
	{"name", "String"},	{"qualname", "String"}, {"has_qualname", "UInt8"},
	{"variant", "UInt32"},	{"pseudo", "UInt8"},	{NULL},
};

static const struct table_column stacks[] = {
	{"stack", "FixedString(16)"},
	{"path", "Array(UInt64)"},
	{NULL},
};

static const struct table_column hours[] = {
	{"hour", "UInt32"},	{"service", "String"}, {"version", "String"},
	{"mode", "String"},	{"options", "String"}, {"stack", "FixedString(16)"},
	{"function", "UInt64"}, {"name", "String"},    {NULL},
};

bool tables_database_valid(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

	return n > 0 && n <= 64 && !name[n] && !(name[0] >= '0' && name[0] <= '9');
}

const char *tables_column_merge(int column)
{
	return column_table[column].merge == COLUMN_SUM ? "sum" : "max";
}

/* ---- lists of columns ---- */

struct list {
	FILE *out;
	bool types;
	const char *comma;
};

#define ARRAY "Array"

static void put_type(const char *wrap, const char *type, FILE *out)
{
	if (!wrap)
		fprintf(out, " %s", type);
	else if (strcmp(wrap, ARRAY) == 0)
		fprintf(out, " Array(%s)", type);
	else
		fprintf(out, " AggregateFunction(%s, %s)", wrap, type);
}

/* group: NULL, or the name before the dot; wrap: NULL, ARRAY, or an aggregate function. */
static void put_column(struct list *l, const char *group, const char *name, const char *wrap,
		       const char *type)
{
	fprintf(l->out, "%s`%s%s%s`", l->comma, group ? group : "", group ? "." : "", name);
	l->comma = ", ";
	if (l->types)
		put_type(wrap, type, l->out);
}

static void put_columns(struct list *l, const struct table_column *c)
{
	for (; c->name; c++)
		put_column(l, NULL, c->name, NULL, c->type);
}

static void put_samples(struct list *l)
{
	char key[COLUMN_KEY_MAX];

	put_column(l, "samples", "stack", ARRAY, "FixedString(16)");
	for (const struct tables_figure *f = tables_figures; f->name; f++)
		put_column(l, "samples", f->name, ARRAY, "UInt64");
	for (int c = 0; c < COLUMNS; c++)
		put_column(l, "samples", column_key(c, key), ARRAY, "UInt64");
}

static void put_profile(struct list *l)
{
	put_columns(l, labels);
	put_samples(l);
	put_columns(l, figures);
}

static void put_inbox(struct list *l)
{
	put_column(l, NULL, "kind", NULL, "UInt8");
	put_profile(l);
	put_columns(l, functions);
	put_columns(l, stacks);
}

static void put_hours(struct list *l)
{
	char key[COLUMN_KEY_MAX];

	put_columns(l, hours);
	put_column(l, NULL, "value", "sum", "UInt64");
	put_column(l, NULL, "top", "max", "UInt64");
	put_column(l, NULL, "variance", "sum", "Float64");
	put_column(l, NULL, "intervals", "sum", "UInt64");
	for (const struct tables_figure *f = tables_figures; f->name; f++)
		put_column(l, NULL, f->name, f->merge, "UInt64");
	for (int c = 0; c < COLUMNS; c++)
		put_column(l, NULL, column_key(c, key), tables_column_merge(c), "UInt64");
}

/* ---- statements ---- */

static void create_database(const char *database, FILE *out)
{
	fprintf(out, "CREATE DATABASE IF NOT EXISTS %s", database);
}

static void begin_table(const char *database, const char *name, FILE *out)
{
	fprintf(out, "CREATE TABLE IF NOT EXISTS %s.%s (", database, name);
}

static void create_profiles(const char *database, FILE *out)
{
	begin_table(database, "profiles", out);
	put_profile(&(struct list){out, true, ""});
	fputs(") ENGINE = ReplacingMergeTree() PARTITION BY day ORDER BY (service, time, host, id)"
	      " SETTINGS index_granularity = 256",
	      out);
}

static void create_functions(const char *database, FILE *out)
{
	begin_table(database, "functions", out);
	fputs("`day` Date, `service` String, ", out);
	put_columns(&(struct list){out, true, ""}, functions);
	fputs(") ENGINE = ReplacingMergeTree() PARTITION BY toYYYYMM(day)"
	      " ORDER BY (service, function)",
	      out);
}

static void create_stacks(const char *database, FILE *out)
{
	begin_table(database, "stacks", out);
	fputs("`day` Date, `service` String, ", out);
	put_columns(&(struct list){out, true, ""}, stacks);
	fputs(") ENGINE = ReplacingMergeTree() PARTITION BY toYYYYMM(day) ORDER BY (service, "
	      "stack)",
	      out);
}

static void create_inbox(const char *database, FILE *out)
{
	begin_table(database, "inbox", out);
	put_inbox(&(struct list){out, true, ""});
	fputs(") ENGINE = Null", out);
}

static void begin_view(const char *database, const char *to, FILE *out)
{
	fprintf(out, "CREATE MATERIALIZED VIEW IF NOT EXISTS %s.to_%s TO %s.%s AS SELECT ",
		database, to, database, to);
}

static void end_view(const char *database, enum tables_kind kind, FILE *out)
{
	fprintf(out, " FROM %s.inbox WHERE kind = %d", database, kind);
}

static void create_view_of_functions(const char *database, FILE *out)
{
	begin_view(database, "functions", out);
	fputs("`day`, `service`, ", out);
	put_columns(&(struct list){out, false, ""}, functions);
	end_view(database, TABLES_FUNCTION, out);
}

static void create_view_of_stacks(const char *database, FILE *out)
{
	begin_view(database, "stacks", out);
	fputs("`day`, `service`, ", out);
	put_columns(&(struct list){out, false, ""}, stacks);
	end_view(database, TABLES_STACK, out);
}

static void create_view_of_profiles(const char *database, FILE *out)
{
	begin_view(database, "profiles", out);
	put_profile(&(struct list){out, false, ""});
	end_view(database, TABLES_PROFILE, out);
}

void tables_write_like_hours(const char *database, const char *name, FILE *out)
{
	begin_table(database, name, out);
	put_hours(&(struct list){out, true, ""});
	fputs(") ENGINE = AggregatingMergeTree() PARTITION BY hour"
	      " ORDER BY (service, stack, function, name, version, mode, options)",
	      out);
}

static void create_hours(const char *database, FILE *out)
{
	tables_write_like_hours(database, "hours", out);
}

bool tables_write_create(unsigned int i, const char *database, FILE *out)
{
	static void (*const statements[])(const char *database, FILE *out) = {
		create_database,
		create_profiles,
		create_functions,
		create_stacks,
		create_hours,
		create_inbox,
		create_view_of_functions,
		create_view_of_stacks,
		create_view_of_profiles,
	};

	if (i >= sizeof(statements) / sizeof(statements[0]))
		return false;
	statements[i](database, out);
	return true;
}

void tables_write_insert(const char *database, FILE *out)
{
	fprintf(out, "INSERT INTO %s%sinbox (", database ? database : "", database ? "." : "");
	put_inbox(&(struct list){out, false, ""});
	fputs(") FORMAT RowBinary", out);
}
