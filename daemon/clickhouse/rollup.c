// SPDX-License-Identifier: BSD-2-Clause
/* Sums of hours: see rollup.h. */
#include "clickhouse/rollup.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "clickhouse/rows.h"
#include "clickhouse/tables.h"

#define S_PER_HOUR UINT64_C(3600)
#define S_PER_DAY  UINT64_C(86400)
#define HOURS_MAX  (UINT32_C(1) << 20)
#define RANGES_MAX 256u
#define NAME	   "hours_of_"

void hours_list_deinit(struct hours_list *l)
{
	free(l->list);
	*l = (struct hours_list){.n = 0};
}

/* ---- the list ---- */

/*
 * Hour 0 is no hour, but whether `profiles` is a table that stores rows. An hour that was replaced twice at
 * the same time may have the sums of both. It is not filled then; `function`, by which rows are sorted,
 * keeps theirs apart.
 */
void rollup_write_list(const char *database, uint32_t first, uint32_t end, FILE *out)
{
	fprintf(out,
		"SELECT h, max(f), max(fb), max(fr), max(b), max(r) FROM ("
		"SELECT hour AS h, if(uniqExact(function) > 1, 0, any(filled)) AS f, "
		"any(blocks) AS fb, any(rows) AS fr, toUInt64(0) AS b, toUInt64(0) AS r FROM "
		"%s.hours WHERE kind = %d AND hour >= "
		"%" PRIu32 " AND hour < %" PRIu32 " GROUP BY hour",
		database, HOURS_INFO, first, end);
	fprintf(out,
		" UNION ALL SELECT toUInt32OrZero(partition) AS h, toUInt64(0) AS f, toUInt64(0) "
		"AS fb, toUInt64(0) AS fr, toUInt64(max(max_block_number)) AS b, "
		"toUInt64(sum(rows)) AS r FROM system.parts WHERE database = '%s' AND table = "
		"'profiles' AND active AND toUInt32OrZero(partition) >= %" PRIu32
		" AND toUInt32OrZero(partition) < %" PRIu32 " GROUP BY partition",
		database, first ? first : 1, end);
	fprintf(out,
		" UNION ALL SELECT toUInt32(0) AS h, toUInt64(0) AS f, toUInt64(0) AS fb, "
		"toUInt64(0) AS fr, toUInt64(0) AS b, toUInt64(engine LIKE '%%MergeTree') AS r "
		"FROM system.tables WHERE database = '%s' AND name = 'profiles'",
		database);
	fputs(") GROUP BY h ORDER BY h FORMAT RowBinary", out);
}

int rollup_read_list(const void *data, size_t n, struct hours_list *ret, struct diag *diag)
{
	const size_t size = sizeof(uint32_t) + 5 * sizeof(uint64_t);
	struct cells c = {.p = data, .end = (const uint8_t *)data + n};
	struct hours_entry e, *list;

	*ret = (struct hours_list){.n = 0};
	if (n % size || n / size > HOURS_MAX)
		return diag_set(diag, -EBADMSG, PYP_EXIT_FAILURE,
				"check that the address is ClickHouse's HTTP interface",
				"the database's answer is damaged");
	list = calloc(n / size + 1, sizeof(*list));
	if (!list)
		return diag_errno(diag, ENOMEM, "cannot read the answer");
	while (cells_more(&c)) {
		e.hour = cells_u32(&c);
		e.filled = cells_u64(&c);
		e.of.blocks = cells_u64(&c);
		e.of.rows = cells_u64(&c);
		e.there.blocks = cells_u64(&c);
		e.there.rows = cells_u64(&c);
		if (e.hour)
			list[ret->n++] = e;
		else
			ret->local = e.there.rows != 0;
	}
	ret->list = list;
	return 0;
}

bool rollup_is_current(const struct hours_entry *e)
{
	return e->filled &&
	       (!e->there.rows || (e->there.blocks == e->of.blocks && e->there.rows == e->of.rows));
}

bool rollup_is_due(const struct hours_entry *e, uint64_t now_s, uint64_t wait_s)
{
	return e->there.rows && !rollup_is_current(e) &&
	       (e->hour + 1) * S_PER_HOUR + wait_s <= now_s;
}

static bool fits(const struct hours_entry *e, const struct question *q)
{
	return rollup_is_current(e) && e->hour * S_PER_HOUR >= q->from_s &&
	       (e->hour + UINT64_C(1)) * S_PER_HOUR <= q->until_s;
}

int rollup_ranges(const struct hours_list *l, const struct question *q, struct question_hours **ret,
		  unsigned int *ret_n, uint64_t *ret_used)
{
	struct question_hours *list = calloc(RANGES_MAX, sizeof(*list));
	unsigned int n = 0;

	*ret = NULL;
	*ret_n = 0;
	*ret_used = 0;
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < l->n && l->local; i++) {
		const struct hours_entry *e = &l->list[i];

		if (!fits(e, q))
			continue;
		if (n && list[n - 1].end == e->hour)
			list[n - 1].end++;
		else if (n < RANGES_MAX)
			list[n++] = (struct question_hours){e->hour, e->hour + 1};
		else
			break;
		*ret_used = *ret_used * UINT64_C(0x9e3779b97f4a7c15) + e->filled;
	}
	if (n)
		*ret = list;
	else
		free(list);
	*ret_n = n;
	return 0;
}

/* ---- tables ---- */

void rollup_name(uint64_t now_s, uint32_t random, char buf[ROLLUP_NAME_MAX])
{
	snprintf(buf, ROLLUP_NAME_MAX, NAME "%" PRIu64 "_%08" PRIx32, now_s, random);
}

bool rollup_name_is_old(const char *name, size_t n, uint64_t now_s)
{
	char text[ROLLUP_NAME_MAX];
	uint64_t made;

	if (n >= sizeof(text) || n < strlen(NAME) || memcmp(name, NAME, strlen(NAME)) != 0)
		return false;
	memcpy(text, name, n);
	text[n] = '\0';
	if (!tables_database_valid(text))
		return false;
	text[strlen(NAME) + strspn(text + strlen(NAME), "0123456789")] = '\0';
	return parse_u64(text + strlen(NAME), 0, UINT64_MAX - S_PER_DAY, &made) == 0 &&
	       made + S_PER_DAY < now_s;
}

void rollup_write_names(const char *database, FILE *out)
{
	fprintf(out,
		"SELECT name FROM system.tables WHERE database = '%s' AND name LIKE "
		"'hours\\\\_of\\\\_%%' FORMAT TabSeparated",
		database);
}

/* ---- filling ---- */

#define GROUPS "service, version, mode, options"

static void begin(const struct rollup *r, const char *columns, FILE *out)
{
	fprintf(out,
		"INSERT INTO %s.%s (hour, kind, " GROUPS ", %s) SELECT toUInt32(%" PRIu32
		"), toUInt8(",
		r->database, r->table, columns, r->hour);
}

/* The profiles of the hour, each once */
static void from(const struct rollup *r, const char *columns, FILE *out)
{
	fprintf(out,
		" FROM (SELECT " GROUPS ", %s FROM %s.profiles WHERE time >= toDateTime(%" PRIu64
		") AND time < toDateTime(%" PRIu64 ") LIMIT 1 BY id)",
		columns, r->database, r->hour * S_PER_HOUR, (r->hour + UINT64_C(1)) * S_PER_HOUR);
}

static void fill_info(const struct rollup *r, FILE *out)
{
	begin(r,
	      "function, filled, blocks, rows, intervals, hosts, processes, start_ns, end_ns, "
	      "calls, cpu, wall",
	      out);
	fprintf(out,
		"%d), " GROUPS ", toUInt64(%" PRIu64 "), toUInt64(%" PRIu64 "), toUInt64(%" PRIu64
		"), toUInt64(%" PRIu64
		"), sumState(toUInt64(1)), uniqExactState(host), uniqExactState(host, pid), "
		"minState(start_ns), maxState(end_ns), sumState(n), sumState(c), sumState(w)",
		HOURS_INFO, r->filled, r->filled, r->of.blocks, r->of.rows);
	from(r,
	     "id, host, pid, start_ns, end_ns, toUInt64(arraySum(`samples.calls`)) AS n, "
	     "toUInt64(arraySum(`samples.cpu`)) AS c, toUInt64(arraySum(`samples.wall`)) AS w",
	     out);
	fputs(" GROUP BY " GROUPS, out);
}

static void fill_samples(const struct rollup *r, FILE *out)
{
	begin(r, "stack, calls, cpu, wall", out);
	fprintf(out, "%d), " GROUPS ", s, sumState(x), sumState(y), sumState(z)", HOURS_SAMPLE);
	from(r,
	     "`samples.stack` AS ss, `samples.calls` AS xs, `samples.cpu` AS ys, `samples.wall` AS "
	     "zs",
	     out);
	fputs(" ARRAY JOIN ss AS s, xs AS x, ys AS y, zs AS z GROUP BY " GROUPS ", s", out);
}

static void fill_details(const struct rollup *r, FILE *out)
{
	begin(r, "stack, name, value, top, low", out);
	fprintf(out, "%d), " GROUPS ", s, n, sumState(x), maxState(x), minState(x)", HOURS_DETAIL);
	from(r, "`details.stack` AS ss, `details.name` AS ns, `details.value` AS xs", out);
	fputs(" ARRAY JOIN ss AS s, ns AS n, xs AS x GROUP BY " GROUPS ", s, n", out);
}

static void fill_figures(const struct rollup *r, FILE *out)
{
	begin(r, "function, name, value, top, variance", out);
	fprintf(out, "%d), " GROUPS ", f, n, sumState(x), maxState(x), sumState(y)", HOURS_FIGURE);
	from(r,
	     "`figures.function` AS fs, `figures.name` AS ns, `figures.value` AS xs, "
	     "`figures.variance` AS ys",
	     out);
	fputs(" ARRAY JOIN fs AS f, ns AS n, xs AS x, ys AS y GROUP BY " GROUPS ", f, n", out);
}

static void fill_labels(const struct rollup *r, FILE *out)
{
	begin(r, "name, first, last", out);
	fprintf(out, "%d), " GROUPS ", k, minState(v), maxState(v)", HOURS_LABEL);
	from(r, QUESTION_LABEL_NAMES " AS ks, " QUESTION_LABEL_VALUES " AS vs", out);
	fputs(" ARRAY JOIN ks AS k, vs AS v GROUP BY " GROUPS ", k", out);
}

static void fill_create(const struct rollup *r, FILE *out)
{
	tables_write_like_hours(r->database, r->table, out);
}

bool rollup_write_fill(unsigned int i, const struct rollup *r, FILE *out)
{
	static void (*const statements[])(const struct rollup *r, FILE *out) = {
		fill_create, fill_info, fill_samples, fill_details, fill_figures, fill_labels,
	};

	if (i >= sizeof(statements) / sizeof(statements[0]))
		return false;
	statements[i](r, out);
	return true;
}

void rollup_write_replace(const struct rollup *r, FILE *out)
{
	fprintf(out, "ALTER TABLE %s.hours REPLACE PARTITION %" PRIu32 " FROM %s.%s", r->database,
		r->hour, r->database, r->table);
}

void rollup_write_drop(const char *database, const char *table, size_t n, FILE *out)
{
	fprintf(out, "DROP TABLE IF EXISTS %s.%.*s", database, (int)n, table);
}
