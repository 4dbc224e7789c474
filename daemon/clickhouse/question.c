// SPDX-License-Identifier: BSD-2-Clause
/* Questions: see question.h. */
#include "clickhouse/question.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "clickhouse/tables.h"

#define S_PER_HOUR UINT64_C(3600)

/* ---- filters ---- */

static int bad_filter(const char *text, struct diag *diag)
{
	return diag_set(diag, -EINVAL, PYP_EXIT_USAGE,
			"use LABEL=VALUE, LABEL!=VALUE or LABEL~REGEX, such as service=web",
			"'%.100s' is not a condition", text);
}

int question_filter_add(struct question *q, const char *text, struct diag *diag)
{
	struct question_filter *f = &q->filters[q->nfilters];
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz_0123456789");

	if (q->nfilters == QUESTION_FILTERS_MAX)
		return diag_set(diag, -E2BIG, PYP_EXIT_USAGE, "", "too many conditions");
	if (!n || n > INTERVAL_LABEL_NAME_MAX)
		return bad_filter(text, diag);
	if (text[n] == '=')
		*f = (struct question_filter){.op = FILTER_IS, .value = text + n + 1};
	else if (text[n] == '!' && text[n + 1] == '=')
		*f = (struct question_filter){.op = FILTER_IS_NOT, .value = text + n + 2};
	else if (text[n] == '~')
		*f = (struct question_filter){.op = FILTER_MATCHES, .value = text + n + 1};
	else
		return bad_filter(text, diag);
	memcpy(f->name, text, n);
	q->nfilters++;
	return 0;
}

void question_filter_remove(struct question *q, const char *name)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < q->nfilters; i++)
		if (strcmp(q->filters[i].name, name) != 0)
			q->filters[n++] = q->filters[i];
	q->nfilters = n;
}

/* ---- conditions ---- */

/* The other bytes, also those of invalid UTF-8, stand for themselves. */
void question_write_string(const char *s, FILE *out)
{
	fputc('\'', out);
	for (; *s; s++) {
		if (*s == '\'' || *s == '\\')
			fputc('\\', out);
		fputc(*s, out);
	}
	fputc('\'', out);
}

/* Labels with a column of their own; all others are in arrays. */
static void write_label(const char *name, FILE *out)
{
	static const char *const columns[] = {"service", "host",    "version",
					      "mode",	 "options", NULL};

	for (const char *const *c = columns; *c; c++)
		if (strcmp(*c, name) == 0) {
			fprintf(out, "`%s`", name);
			return;
		}
	if (strcmp(name, INTERVAL_PID) == 0) {
		fputs("toString(`pid`)", out);
		return;
	}
	fputs("`labels.value`[indexOf(`labels.name`, ", out);
	question_write_string(name, out);
	fputs(")]", out);
}

static void write_filter(const struct question_filter *f, FILE *out)
{
	fputs(" AND ", out);
	if (f->op == FILTER_MATCHES) {
		fputs("match(", out);
		write_label(f->name, out);
		fputs(", ", out);
		question_write_string(f->value, out);
		fputc(')', out);
		return;
	}
	write_label(f->name, out);
	fputs(f->op == FILTER_IS ? " = " : " != ", out);
	question_write_string(f->value, out);
}

static void write_filters(const struct question *q, FILE *out)
{
	for (unsigned int i = 0; i < q->nfilters; i++)
		write_filter(&q->filters[i], out);
}

/* The profiles outside the hours that are taken from `hours` */
static void write_from(const struct question *q, FILE *out)
{
	fprintf(out,
		" FROM %s.profiles WHERE time >= toDateTime(%" PRIu64
		") AND time < toDateTime(%" PRIu64 ")",
		q->database, q->from_s, q->until_s);
	for (unsigned int i = 0; i < q->nhours; i++)
		fprintf(out,
			" AND (time < toDateTime(%" PRIu64 ") OR time >= toDateTime(%" PRIu64 "))",
			q->hours[i].first * S_PER_HOUR, q->hours[i].end * S_PER_HOUR);
	write_filters(q, out);
}

/* Equal rows that the engine has not merged yet count once. */
static void write_from_once(const struct question *q, FILE *out)
{
	write_from(q, out);
	fputs(" LIMIT 1 BY id)", out);
}

static void write_from_hours(const struct question *q, enum tables_hours_kind kind, FILE *out)
{
	fprintf(out, " FROM %s.hours WHERE kind = %d AND (", q->database, kind);
	for (unsigned int i = 0; i < q->nhours; i++)
		fprintf(out, "%shour >= %" PRIu32 " AND hour < %" PRIu32, i ? " OR " : "",
			q->hours[i].first, q->hours[i].end);
	fputc(')', out);
	write_filters(q, out);
}

/* The services' conditions, for the tables of functions and stacks */
static void write_services(const struct question *q, FILE *out)
{
	for (unsigned int i = 0; i < q->nfilters; i++)
		if (strcmp(q->filters[i].name, INTERVAL_SERVICE) == 0)
			write_filter(&q->filters[i], out);
}

bool question_label_in_hours(const char *label)
{
	for (const char *const *g = tables_groups; *g; g++)
		if (strcmp(*g, label) == 0)
			return true;
	return false;
}

bool question_fits_hours(const struct question *q)
{
	for (unsigned int i = 0; i < q->nfilters; i++)
		if (!question_label_in_hours(q->filters[i].name))
			return false;
	return true;
}

#define FORMAT " FORMAT RowBinary"

/* ---- questions ---- */

void question_write_summary(const struct question *q, FILE *out)
{
	fputs("SELECT sum(n), uniqExactMerge(h), uniqExactMerge(p), min(a), max(b) FROM (SELECT "
	      "toUInt64(uniqExact(id)) AS n, uniqExactState(host) AS h, uniqExactState(host, pid) "
	      "AS p, min(start_ns) AS a, max(end_ns) AS b",
	      out);
	write_from(q, out);
	fputs(" HAVING n > 0", out);
	if (q->nhours) {
		fputs(" UNION ALL SELECT sumMerge(intervals) AS n, uniqExactMergeState(hosts) AS "
		      "h, uniqExactMergeState(processes) AS p, minMerge(start_ns) AS a, "
		      "maxMerge(end_ns) AS b",
		      out);
		write_from_hours(q, HOURS_INFO, out);
		fputs(" HAVING n > 0", out);
	}
	fputs(")" FORMAT, out);
}

void question_write_labels(const struct question *q, FILE *out)
{
	fputs("SELECT k, min(a), max(b) FROM (SELECT k, min(v) AS a, max(v) AS b FROM "
	      "(SELECT " QUESTION_LABEL_NAMES " AS ks, " QUESTION_LABEL_VALUES " AS vs",
	      out);
	write_from(q, out);
	fputs(") ARRAY JOIN ks AS k, vs AS v GROUP BY k", out);
	if (q->nhours) {
		fputs(" UNION ALL SELECT name AS k, minMerge(first) AS a, maxMerge(last) AS b",
		      out);
		write_from_hours(q, HOURS_LABEL, out);
		fputs(" GROUP BY name", out);
	}
	fputs(") GROUP BY k" FORMAT, out);
}

void question_write_figures(const struct question *q, FILE *out)
{
	fputs("SELECT f, n, sum(v), max(m), sum(e) FROM (SELECT f, n, sum(x) AS v, max(x) AS m, "
	      "sum(y) AS e FROM (SELECT `figures.function` AS fs, `figures.name` AS ns, "
	      "`figures.value` AS xs, `figures.variance` AS ys",
	      out);
	write_from_once(q, out);
	fputs(" ARRAY JOIN fs AS f, ns AS n, xs AS x, ys AS y GROUP BY f, n", out);
	if (q->nhours) {
		fputs(" UNION ALL SELECT function AS f, name AS n, sumMerge(value) AS v, "
		      "maxMerge(top) AS m, sumMerge(variance) AS e",
		      out);
		write_from_hours(q, HOURS_FIGURE, out);
		fputs(" GROUP BY function, name", out);
	}
	fputs(") GROUP BY f, n" FORMAT, out);
}

void question_write_samples(const struct question *q, FILE *out)
{
	fputs("SELECT s, sum(a), sum(b), sum(c) FROM (SELECT s, sum(x) AS a, sum(y) AS b, sum(z) "
	      "AS c FROM (SELECT `samples.stack` AS ss, `samples.calls` AS xs, `samples.cpu` AS "
	      "ys, `samples.wall` AS zs",
	      out);
	write_from_once(q, out);
	fputs(" ARRAY JOIN ss AS s, xs AS x, ys AS y, zs AS z GROUP BY s", out);
	if (q->nhours) {
		fputs(" UNION ALL SELECT stack AS s, sumMerge(calls) AS a, sumMerge(cpu) AS b, "
		      "sumMerge(wall) AS c",
		      out);
		write_from_hours(q, HOURS_SAMPLE, out);
		fputs(" GROUP BY stack", out);
	}
	fputs(") GROUP BY s" FORMAT, out);
}

void question_write_details(const struct question *q, FILE *out)
{
	fputs("SELECT s, n, sum(v), max(m), min(l) FROM (SELECT s, n, sum(x) AS v, max(x) AS m, "
	      "min(x) AS l FROM (SELECT `details.stack` AS ss, `details.name` AS ns, "
	      "`details.value` AS xs",
	      out);
	write_from_once(q, out);
	fputs(" ARRAY JOIN ss AS s, ns AS n, xs AS x GROUP BY s, n", out);
	if (q->nhours) {
		fputs(" UNION ALL SELECT stack AS s, name AS n, sumMerge(value) AS v, "
		      "maxMerge(top) AS m, minMerge(low) AS l",
		      out);
		write_from_hours(q, HOURS_DETAIL, out);
		fputs(" GROUP BY stack, name", out);
	}
	fputs(") GROUP BY s, n" FORMAT, out);
}

static void write_stacks_of_samples(const struct question *q, FILE *out)
{
	fputs("(stack IN (SELECT arrayJoin(`samples.stack`)", out);
	write_from(q, out);
	fputc(')', out);
	if (q->nhours) {
		fputs(" OR stack IN (SELECT stack", out);
		write_from_hours(q, HOURS_SAMPLE, out);
		fputc(')', out);
	}
	fputc(')', out);
	write_services(q, out);
}

void question_write_stacks(const struct question *q, FILE *out)
{
	fprintf(out, "SELECT stack, any(path) FROM %s.stacks WHERE ", q->database);
	write_stacks_of_samples(q, out);
	fputs(" GROUP BY stack" FORMAT, out);
}

void question_write_functions(const struct question *q, FILE *out)
{
	fprintf(out,
		"SELECT function, any(file), any(line), any(name), any(qualname), "
		"any(has_qualname), any(variant), any(pseudo) FROM %s.functions WHERE function IN "
		"(SELECT arrayJoin(path) FROM %s.stacks WHERE ",
		q->database, q->database);
	write_stacks_of_samples(q, out);
	fputc(')', out);
	write_services(q, out);
	fputs(" GROUP BY function" FORMAT, out);
}

void question_write_values(const struct question *q, const char *label, FILE *out)
{
	fputs("SELECT l, uniqExactMerge(h), uniqExactMerge(p), sum(n), sum(c) AS cs, sum(w) AS ws "
	      "FROM (SELECT l, uniqExactState(host) AS h, uniqExactState(host, pid) AS p, count() "
	      "AS n, sum(x) AS c, sum(y) AS w FROM (SELECT ",
	      out);
	write_label(label, out);
	fputs(" AS l, host, pid, toUInt64(arraySum(`samples.cpu`)) AS x, "
	      "toUInt64(arraySum(`samples.wall`)) AS y",
	      out);
	write_from_once(q, out);
	fputs(" GROUP BY l", out);
	if (q->nhours) {
		fputs(" UNION ALL SELECT ", out);
		write_label(label, out);
		fputs(" AS l, uniqExactMergeState(hosts) AS h, uniqExactMergeState(processes) AS "
		      "p, sumMerge(intervals) AS n, sumMerge(cpu) AS c, sumMerge(wall) AS w",
		      out);
		write_from_hours(q, HOURS_INFO, out);
		fputs(" GROUP BY l", out);
	}
	fputs(") GROUP BY l ORDER BY cs DESC, ws DESC, l LIMIT 10000" FORMAT, out);
}
