// SPDX-License-Identifier: BSD-2-Clause
/* Questions: see question.h. */
#include "clickhouse/question.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/column.h"
#include "clickhouse/tables.h"

#define S_PER_DAY UINT64_C(86400)

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
	static const char *const columns[] = {"service", "host",    "version", "python",  "mode",
					      "options", "program", "kernel",  "command", NULL};

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

static void write_from(const struct question *q, FILE *out)
{
	uint64_t last = q->until_s > q->from_s ? q->until_s - 1 : q->from_s;

	fprintf(out,
		" FROM %s.profiles WHERE day >= toDate(%" PRIu64 ") AND day <= toDate(%" PRIu64
		") AND time >= toDateTime(%" PRIu64 ") AND time < toDateTime(%" PRIu64 ")",
		q->database, q->from_s / S_PER_DAY, last / S_PER_DAY, q->from_s, q->until_s);
	for (unsigned int i = 0; i < q->nfilters; i++)
		write_filter(&q->filters[i], out);
}

/* Equal rows that the engine has not merged yet count once. */
static void write_from_once(const struct question *q, FILE *out)
{
	write_from(q, out);
	fputs(" LIMIT 1 BY id)", out);
}

/* The services' conditions, for the tables of functions and stacks */
static void write_services(const struct question *q, FILE *out)
{
	for (unsigned int i = 0; i < q->nfilters; i++)
		if (strcmp(q->filters[i].name, INTERVAL_SERVICE) == 0)
			write_filter(&q->filters[i], out);
}

#define FORMAT " FORMAT RowBinary"

/* ---- questions ---- */

void question_write_summary(const struct question *q, FILE *out)
{
	static const char *const texts[] = {"service", "host",	  "version", "python",
					    "mode",    "options", "clock",   "kernel",
					    "program", "command", NULL};

	fputs("SELECT uniqExact(id), uniqExact(host), uniqExact(host, pid), "
	      "toUInt64(min(start_ns)), toUInt64(max(end_ns)), toUInt32(max(rate)), "
	      "toUInt64(max(period_ns)), toUInt32(max(max_overhead))",
	      out);
	for (const char *const *t = texts; *t; t++)
		fprintf(out, ", min(`%s`), max(`%s`)", *t, *t);
	write_from(q, out);
	fputs(FORMAT, out);
}

void question_write_figures(const struct question *q, FILE *out)
{
	fputs("SELECT f, n, sum(v), max(v), sum(e) FROM (SELECT `figures.function` AS fs, "
	      "`figures.name` AS ns, `figures.value` AS vs, `figures.variance` AS es",
	      out);
	write_from_once(q, out);
	fputs(" ARRAY JOIN fs AS f, ns AS n, vs AS v, es AS e GROUP BY f, n" FORMAT, out);
}

struct figure_list {
	uint64_t columns;
	FILE *out;
	unsigned int n;
};

typedef void (*figure_fn)(struct figure_list *l, const char *name, const char *merge);

static void each_figure(struct figure_list *l, figure_fn fn)
{
	char key[COLUMN_KEY_MAX];

	l->n = 0;
	for (const struct tables_figure *f = tables_figures; f->name; f++, l->n++)
		fn(l, f->name, f->merge);
	for (int c = 0; c < COLUMNS; c++) {
		if (!(l->columns & COLUMN_BIT(c)))
			continue;
		fn(l, column_key(c, key), tables_column_merge(c));
		l->n++;
	}
}

static void write_sum(struct figure_list *l, const char *name, const char *merge)
{
	(void)name;
	fprintf(l->out, ", %s(x%u)", merge, l->n);
}

static void write_array(struct figure_list *l, const char *name, const char *merge)
{
	(void)merge;
	fprintf(l->out, ", `samples.%s` AS a%u", name, l->n);
}

static void write_join(struct figure_list *l, const char *name, const char *merge)
{
	(void)name, (void)merge;
	fprintf(l->out, ", a%u AS x%u", l->n, l->n);
}

void question_write_samples(const struct question *q, uint64_t columns, FILE *out)
{
	struct figure_list l = {.columns = columns, .out = out};

	fputs("SELECT s", out);
	each_figure(&l, write_sum);
	fputs(" FROM (SELECT `samples.stack` AS ss", out);
	each_figure(&l, write_array);
	write_from_once(q, out);
	fputs(" ARRAY JOIN ss AS s", out);
	each_figure(&l, write_join);
	fputs(" GROUP BY s" FORMAT, out);
}

static void write_stacks_of_samples(const struct question *q, FILE *out)
{
	fputs("stack IN (SELECT arrayJoin(`samples.stack`)", out);
	write_from(q, out);
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
	fputs("SELECT l, uniqExact(h), uniqExact(h, p), count(), sum(c), sum(w) FROM (SELECT ",
	      out);
	write_label(label, out);
	fputs(" AS l, host AS h, pid AS p, toUInt64(arraySum(`samples.cpu`)) AS c, "
	      "toUInt64(arraySum(`samples.wall`)) AS w",
	      out);
	write_from_once(q, out);
	fputs(" GROUP BY l ORDER BY sum(c) DESC, sum(w) DESC, l LIMIT 10000" FORMAT, out);
}
