// SPDX-License-Identifier: BSD-2-Clause
/*
 * Callers and callees: the output of pstats' print_callers() and print_callees(), byte for byte
 * except for escaped names, followed by the provenance. On a terminal, and if calls are estimated from windows, a
 * column is added: calls per call of the caller.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "format/calls_text.h"
#include "format/names.h"
#include "format/screen.h"
#include "format/selection.h"
#include "format/writers.h"

#define PER_CALL_WIDTH 18

struct report {
	const struct table *t;
	const struct format_opts *o;
	const struct table_edge **edges; /* grouped by the function that lists them */
	size_t nedges;
	size_t *first; /* per row: index of its first edge; one element more at the end */
	bool callees;
	bool per_call; /* with calls per call of the caller */
	bool estimated; /* numbers of calls have errors, which are known of a function's calls by all callers */
	FILE *out;
};

static uint32_t lister(const struct report *r, const struct table_edge *e)
{
	return r->callees ? e->caller : e->callee;
}

static uint32_t listed(const struct report *r, const struct table_edge *e)
{
	return r->callees ? e->callee : e->caller;
}

/* The order of Python's keys (file, line, name). */
static int compare_keys(const struct table_row *l, const struct table_row *r)
{
	int c = strcmp(l->file, r->file);

	if (!c)
		c = (l->line > r->line) - (l->line < r->line);
	return c ? c : strcmp(l->name, r->name);
}

static int compare_edges(const void *left, const void *right, void *arg)
{
	const struct table_edge *const *l = left, *const *r = right;
	const struct report *report = arg;
	uint32_t a = lister(report, *l), b = lister(report, *r);

	if (a != b)
		return a < b ? -1 : 1;
	return compare_keys(&report->t->rows[listed(report, *l)],
			    &report->t->rows[listed(report, *r)]);
}

static int report_init(struct report *r)
{
	size_t at = 0;

	r->edges = calloc(r->t->nedges + 1, sizeof(*r->edges));
	r->first = calloc(r->t->nrows + 1, sizeof(*r->first));
	if (!r->edges || !r->first)
		return -ENOMEM;
	/* pstats finds edges by callee, so a function without a row has none */
	for (size_t i = 0; i < r->t->nedges; i++)
		if (r->t->rows[r->t->edges[i].callee].listed)
			r->edges[r->nedges++] = &r->t->edges[i];
	qsort_r(r->edges, r->nedges, sizeof(*r->edges), compare_edges, r);
	for (size_t row = 0; row < r->t->nrows; row++) {
		r->first[row] = at;
		while (at < r->nedges && lister(r, r->edges[at]) == row)
			at++;
	}
	r->first[r->t->nrows] = at;
	return 0;
}

static bool has_per_call(const struct table *t)
{
	for (size_t i = 0; i < t->nedges; i++)
		if (t->edges[i].per_call.calls >= 0)
			return true;
	return false;
}

static void report_deinit(struct report *r)
{
	free(r->edges);
	free(r->first);
}

static size_t name_width(const struct table_row *r)
{
	size_t n = 0;

	/* pstats counts characters, not columns; escapes may use more */
	for (const char *p = r->std; *p;)
		n += name_putc_length(utf8_next(&p));
	return n < NAME_COLUMNS ? n : NAME_COLUMNS;
}

/* As in pstats: the longest name of all rows or, if only some are shown, of those. */
static size_t column_width(const struct report *r, const struct selection *rows)
{
	size_t width = 0, all = 0, nlisted = 0;

	for (size_t i = 0; i < r->t->nrows; i++) {
		size_t n = r->t->rows[i].listed ? name_width(&r->t->rows[i]) : 0;

		nlisted += r->t->rows[i].listed;
		all = n > all ? n : all;
	}
	for (size_t i = 0; i < rows->n; i++) {
		size_t n = name_width(&r->t->rows[rows->order[i]]);

		width = n > width ? n : width;
	}
	return (rows->n < nlisted ? width : all) + 2;
}

static void print_heading(const struct report *r, size_t width)
{
	fputs(screen_bold(r->o), r->out);
	fprintf(r->out, "%-*s%s", (int)width, "Function ",
		r->callees ? "called..." : "was called by...");
	fprintf(r->out, "%s\n", screen_plain(r->o));
	if (r->nedges)
		fprintf(r->out, "%*s    ncalls  tottime  cumtime%s\n", (int)width, "",
			r->per_call ? "  per call of caller" : "");
}

static enum calls_certainty certainty_of(const struct report *r, const struct table_edge *e)
{
	const struct table_row *callee = &r->t->rows[e->callee];

	return r->estimated ? calls_certainty(callee->nc, callee->nc_variance) : CALLS_CERTAIN;
}

static void print_edge(const struct report *r, const struct table_edge *e, int calls_width)
{
	const enum calls_certainty certainty = certainty_of(r, e);
	const char *mark = certainty == CALLS_ROUGH ? "~" : "";
	char calls[48], per_call[CALLS_TEXT_MAX];

	if (certainty == CALLS_UNKNOWN)
		snprintf(calls, sizeof(calls), "?");
	else if (e->nc == e->cc)
		snprintf(calls, sizeof(calls), "%s%" PRIu64, mark, e->nc);
	else
		snprintf(calls, sizeof(calls), "%s%" PRIu64 "/%" PRIu64, mark, e->nc, e->cc);
	fprintf(r->out, "%*s %8.3f %8.3f  ", calls_width, calls, table_seconds(e->tt),
		table_seconds(e->ct));
	if (r->per_call)
		fprintf(r->out, "%*s  ", PER_CALL_WIDTH, calls_text(&e->per_call, per_call));
	name_print(r->out, r->t->rows[listed(r, e)].std, NAME_COLUMNS);
	fputc('\n', r->out);
}

static void print_function(const struct report *r, uint32_t row, size_t width)
{
	const struct table_row *function = &r->t->rows[row];
	size_t n = name_width(function);

	name_print(r->out, function->std, NAME_COLUMNS);
	fprintf(r->out, "%*s%s ", (int)(width > n ? width - n : 0), "", r->callees ? "->" : "<-");
	if (r->first[row] == r->first[row + 1])
		fputc('\n', r->out);
	for (size_t i = r->first[row]; i < r->first[row + 1]; i++) {
		bool first = i == r->first[row];

		fprintf(r->out, "%*s", first ? 0 : (int)width + 1, "");
		print_edge(r, r->edges[i], first ? 7 : 9);
	}
}

static void print_report(const struct report *r, const struct selection *rows)
{
	size_t width = column_width(r, rows);
	bool marked[] = {false, false, false};

	if (!rows->n)
		return;
	fputs("   Ordered by: ", r->out);
	sort_print_title(&rows->sort, r->out);
	fprintf(r->out, "\n%s\n", rows->notes);
	print_heading(r, width);
	for (size_t i = 0; i < rows->n; i++) {
		const uint32_t row = rows->order[i];

		print_function(r, row, width);
		for (size_t k = r->first[row]; k < r->first[row + 1]; k++)
			marked[certainty_of(r, r->edges[k])] = true;
	}
	calls_print_legend(marked[CALLS_ROUGH], marked[CALLS_UNKNOWN], r->out);
	fputs("\n\n", r->out);
}

static int write_edges(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		       bool callees, FILE *out, struct diag *diag)
{
	_cleanup_(selection_deinit) struct selection rows = {0};
	_cleanup_(report_deinit) struct report r = {.o = o, .callees = callees, .out = out};
	_cleanup_(table_freep) struct table *t = NULL;
	struct format_opts sorted = *o;
	int err = table_build(v, o->clock, &t);

	r.t = t;
	if (!o->sort)
		sorted.sort = selection_default_sort(s, &o->filter);
	if (!err)
		err = selection_init(&rows, t, &sorted, diag);
	if (!err)
		err = report_init(&r);
	if (err < 0)
		return err;
	r.estimated = view_estimates_calls(s, &o->filter);
	r.per_call = (o->width > 0 || v->windows) && has_per_call(t);
	print_report(&r, &rows);
	return screen_provenance(s, o, out);
}

int callers_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		  FILE *out, struct diag *diag)
{
	return write_edges(s, v, o, false, out, diag);
}

int callees_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		  FILE *out, struct diag *diag)
{
	return write_edges(s, v, o, true, out, diag);
}
