// SPDX-License-Identifier: BSD-2-Clause
/* Additional columns: see extras.h. */
#include "format/extras.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "format/quantiles.h"
#include "format/resumptions.h"

#define WIDTH_MIN 10

struct extra {
	char title[COLUMN_KEY_MAX + 8];
	int quantile; /* QUANTILES: not a quantile but a column */
	int column;
	bool cum;
	enum { OTHER, PERCENT, CALLS, RESUMED } kind; /* OTHER: one of the above */
};

struct extras {
	const struct view *view;
	const struct table *table;
	uint64_t total; /* own time of all rows */
	bool own;	/* percent of the own time */
	enum snapshot_clock clock;
	bool durations;			   /* durations are available */
	struct extra list[EXTRAS_MAX + 1]; /* one is not from the list of names */
	size_t n;
	/*
	 * The view's rows of each table row, as a linked list of row number + 1, newest first; 0
	 * ends it.
	 */
	uint32_t *first, *next;
	uint64_t *resumed; /* per function of the snapshot */
};

static bool is_quantile(const char *name, size_t n, struct extra *ret)
{
	for (int k = 0; k < QUANTILES; k++)
		if (strlen(quantile_names[k]) == n && memcmp(name, quantile_names[k], n) == 0) {
			ret->quantile = k;
			return true;
		}
	return false;
}

static bool is_column(const char *name, size_t n, struct extra *ret)
{
	static const char suffix[] = "_cum";
	size_t end = sizeof(suffix) - 1;
	char key[COLUMN_KEY_MAX];

	ret->quantile = QUANTILES;
	ret->cum = n > end && memcmp(name + n - end, suffix, end) == 0;
	if (ret->cum)
		n -= end;
	for (ret->column = 0; ret->column < COLUMNS; ret->column++)
		if (strlen(column_key(ret->column, key)) == n && memcmp(key, name, n) == 0)
			return true;
	return false;
}

static const char *const of_calls[] = {"", "percent", "calls", "resumed"};

static bool is_of_calls(const char *name, size_t n, struct extra *ret)
{
	for (int k = PERCENT; k <= RESUMED; k++)
		if (strlen(of_calls[k]) == n && memcmp(name, of_calls[k], n) == 0) {
			ret->kind = k;
			return true;
		}
	ret->kind = OTHER;
	return false;
}

static int parse(const char *list, struct extra ret[EXTRAS_MAX], size_t *ret_n, struct diag *diag)
{
	static const char hint[] =
		"percent calls resumed p50 p90 p99 max, or columns of the csv format such as "
		"counters_minflt, counters_minflt_cum";

	for (const char *p = list;; p++) {
		size_t n = strcspn(p, ",");
		struct extra *e = &ret[*ret_n];

		if (*ret_n == EXTRAS_MAX)
			return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, "", "too many columns");
		if (!is_of_calls(p, n, e) && !is_quantile(p, n, e) && !is_column(p, n, e))
			return diag_set(diag, -EINVAL, PYP_EXIT_USAGE, hint,
					"unknown column '%.*s'",
					n < COLUMN_KEY_MAX ? (int)n : COLUMN_KEY_MAX, p);
		snprintf(e->title, sizeof(e->title), "%.*s", (int)n, p);
		++*ret_n;
		p += n;
		if (!*p)
			return 0;
	}
}

int extras_check(const char *list, struct diag *diag)
{
	struct extra parsed[EXTRAS_MAX];
	size_t n = 0;

	return list ? parse(list, parsed, &n, diag) : 0;
}

/* View rows that differ only in their qualified name belong to one table row. */
static int link_rows(struct extras *e, const struct table *t)
{
	const struct view *v = e->view;

	e->first = calloc(t->nrows + 1, sizeof(*e->first));
	e->next = calloc(v->nrows + 1, sizeof(*e->next));
	if (!e->first || !e->next)
		return -ENOMEM;
	for (uint32_t i = 0; i < v->nrows; i++) {
		uint32_t row = t->row_of[v->rows[i].func];

		e->next[i] = e->first[row];
		e->first[row] = i + 1;
	}
	return 0;
}

static void add_percent(struct extras *e)
{
	struct extra *x = &e->list[e->n];

	for (size_t i = 0; i < e->n; i++)
		if (e->list[i].kind == PERCENT)
			return;
	e->n++;
	x->kind = PERCENT;
	snprintf(x->title, sizeof(x->title), "%s", of_calls[PERCENT]);
}

int extras_new(const struct view *v, const struct table *t, const struct format_opts *o,
	       struct extras **ret, struct diag *diag)
{
	_cleanup_(extras_freep) struct extras *e = calloc(1, sizeof(*e));
	int err = e ? 0 : -ENOMEM;

	if (!err && o->columns)
		err = parse(o->columns, e->list, &e->n, diag);
	if (err < 0)
		return err;
	if (o->width)
		add_percent(e);
	e->view = v;
	e->table = t;
	e->own = o->sort && *o->sort == 't'; /* time, tottime or an abbreviation */
	for (size_t i = 0; i < t->nrows; i++)
		e->total += t->rows[i].listed ? t->rows[i].tt : 0;
	e->clock = o->clock;
	e->durations = view_has_durations(v->snapshot, &o->filter);
	e->resumed = resumptions_new(v->snapshot, &o->filter);
	if (!e->resumed || link_rows(e, t) < 0)
		return -ENOMEM;
	*ret = TAKE_PTR(e);
	return 0;
}

void extras_free(struct extras *e)
{
	if (!e)
		return;
	free(e->first);
	free(e->next);
	free(e->resumed);
	free(e);
}

static int width_of(const struct extra *x)
{
	int n = (int)strlen(x->title);

	if (x->kind == PERCENT)
		return n;
	return n > WIDTH_MIN ? n : WIDTH_MIN;
}

size_t extras_columns(const struct extras *e)
{
	size_t n = 0;

	for (size_t i = 0; i < e->n; i++)
		n += (size_t)width_of(&e->list[i]) + 1;
	return n;
}

void extras_print_titles(const struct extras *e, FILE *out)
{
	for (size_t i = 0; i < e->n; i++)
		fprintf(out, "%*s ", width_of(&e->list[i]), e->list[i].title);
}

static uint64_t quantile_of(const struct extras *e, int quantile, uint32_t row)
{
	struct quantiles q = {.max = 0};

	for (uint32_t i = e->durations ? e->first[row] : 0; i; i = e->next[i - 1])
		quantiles_add(&q, e->view->snapshot->funcs[e->view->rows[i - 1].func].durations,
			      e->clock);
	return quantiles_get(&q, (enum quantile)quantile);
}

static uint64_t figure_of(const struct extras *e, const struct extra *x, uint32_t row)
{
	const uint64_t *figures = (x->cum ? e->view->cum : e->view->self)[x->column];
	uint64_t figure = 0;

	for (uint32_t i = e->first[row]; i; i = e->next[i - 1])
		column_merge(x->column, &figure, figures[i - 1]);
	return figure;
}

uint64_t extras_resumed(const struct extras *e, uint32_t row)
{
	uint64_t ret = RESUMED_NONE, calls = e->table->rows[row].nc;

	for (uint32_t i = e->first[row]; i; i = e->next[i - 1]) {
		uint64_t n = e->resumed[e->view->rows[i - 1].func];

		if (n != RESUMED_NONE)
			ret = (ret == RESUMED_NONE ? 0 : ret) + n;
	}
	return ret == RESUMED_NONE || ret <= calls ? ret : calls;
}

static void print_percent(const struct extras *e, const struct extra *x, uint32_t row, FILE *out)
{
	const struct table_row *r = &e->table->rows[row];
	uint64_t ns = e->own ? r->tt : r->ct;

	fprintf(out, "%*.1f%% ", width_of(x) - 1,
		e->total ? 100.0 * (double)ns / (double)e->total : 0);
}

static void print_calls(const struct extras *e, const struct extra *x, uint32_t row, FILE *out)
{
	uint64_t resumed = extras_resumed(e, row);
	bool none = resumed == RESUMED_NONE;

	if (x->kind == CALLS)
		fprintf(out, "%*" PRIu64 " ", width_of(x),
			e->table->rows[row].nc - (none ? 0 : resumed));
	else if (none)
		fprintf(out, "%*s ", width_of(x), "-");
	else
		fprintf(out, "%*" PRIu64 " ", width_of(x), resumed);
}

static void print_figure(const struct extras *e, const struct extra *x, uint32_t row, FILE *out)
{
	bool quantile = x->quantile < QUANTILES;
	bool known = quantile || e->view->self[x->column];
	uint64_t n = quantile ? quantile_of(e, x->quantile, row) : known ? figure_of(e, x, row) : 0;

	if (!known || (quantile && !n))
		fprintf(out, "%*s ", width_of(x), "-");
	else if (quantile || column_table[x->column].unit == COLUMN_NS)
		fprintf(out, "%*.6f ", width_of(x), table_seconds(n));
	else
		fprintf(out, "%*" PRIu64 " ", width_of(x), n);
}

void extras_print_row(const struct extras *e, uint32_t row, FILE *out)
{
	for (size_t i = 0; i < e->n; i++) {
		const struct extra *x = &e->list[i];

		if (x->kind == PERCENT)
			print_percent(e, x, row, out);
		else if (x->kind == OTHER)
			print_figure(e, x, row, out);
		else
			print_calls(e, x, row, out);
	}
}
