// SPDX-License-Identifier: BSD-2-Clause
/*
 * Text tables of a group of columns: one table per measured column, with each function's own figure
 * and the one including callees. Sorted and restricted like times, with the column in their place:
 * `tottime` sorts by the own figure.
 */
#include <errno.h>
#include <inttypes.h>

#include "format/screen.h"
#include "format/selection.h"
#include "format/writers.h"

#define FIGURES_COLUMNS 37

/* Builds the table of times with the column's figures in their place. */
static int column_rows(const struct view *v, const struct format_opts *o, int c, struct table **ret)
{
	_cleanup_(table_freep) struct table *t = NULL;
	int err = table_build(v, o->clock, &t);

	if (err < 0)
		return err;
	for (size_t i = 0; i < t->nrows; i++)
		t->rows[i].tt = t->rows[i].ct = 0;
	for (size_t i = 0; i < v->nrows; i++) {
		struct table_row *r = &t->rows[t->row_of[v->rows[i].func]];

		column_merge(c, &r->tt, v->self[c][i]);
		column_merge(c, &r->ct, v->cum[c][i]);
	}
	for (size_t i = 0; i < t->nrows; i++)
		t->rows[i].listed = t->rows[i].tt || t->rows[i].ct;
	*ret = TAKE_PTR(t);
	return 0;
}

/* The roots' own figures, if there is no row for time outside Python. */
static uint64_t outside(const struct snapshot *s, const struct format_opts *o, int c)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->nthreads; i++)
		if (view_selects(&o->filter, &s->threads[i]))
			column_merge(c, &n, snapshot_figure(s, c, s->threads[i].root));
	return n;
}

static void print_row(const struct table_row *r, const struct format_opts *o, FILE *out)
{
	fprintf(out, "%9" PRIu64 " %12" PRIu64 " %12" PRIu64 "  ", r->nc, r->tt, r->ct);
	screen_last(out, r->std, o, FIGURES_COLUMNS);
	fputc('\n', out);
}

static int print_column(const struct snapshot *s, const struct view *v, const struct format_opts *o,
			int c, FILE *out, struct diag *diag)
{
	_cleanup_(selection_deinit) struct selection rows = {0};
	_cleanup_(table_freep) struct table *t = NULL;
	uint64_t total = outside(s, o, c);
	int err = column_rows(v, o, c, &t);

	if (!err)
		err = selection_init(&rows, t, o, diag);
	if (err < 0)
		return err;
	for (size_t i = 0; i < t->nrows; i++)
		column_merge(c, &total, t->rows[i].tt);
	fprintf(out, "   %s%s%s (%s): %" PRIu64 "\n", screen_bold(o), column_table[c].text,
		screen_plain(o), column_table[c].name, total);
	if (rows.n)
		fprintf(out, "%s\n%s   ncalls         self          cum  %s%s\n", rows.notes,
			screen_bold(o), "filename:lineno(function)", screen_plain(o));
	for (size_t i = 0; i < rows.n; i++)
		print_row(&t->rows[rows.order[i]], o, out);
	fputs("\n\n", out);
	return 0;
}

/* Prints a table for each of these columns that was measured. */
static int print_columns(const struct snapshot *s, const struct view *v,
			 const struct format_opts *o, uint64_t columns, FILE *out,
			 struct diag *diag)
{
	struct format_opts sorted = *o;
	int err = 0;

	if (!o->sort)
		sorted.sort = "tottime,cumtime";
	for (int c = 0; c < COLUMNS && !err; c++)
		if (columns & s->measured & COLUMN_BIT(c))
			err = print_column(s, v, &sorted, c, out, diag);
	return err < 0 ? err : screen_provenance(s, o, out);
}

int counters_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		   FILE *out, struct diag *diag)
{
	const uint64_t columns = column_group("counters");

	if (!(s->measured & columns))
		return diag_set(diag, -ENODATA, PYP_EXIT_FAILURE,
				"`pyprofctl attach --exact --counters all PID` counts them",
				"no resources were counted");
	return print_columns(s, v, o, columns, out, diag);
}
