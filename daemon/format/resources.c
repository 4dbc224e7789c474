// SPDX-License-Identifier: BSD-2-Clause
/*
 * Resource counters: a table for each that was kept, by function, own share and with callees. Sorted
 * and restricted as times are, with the counter in their place: `tottime` is the own share.
 */
#include "base/metrics.h"

#include <errno.h>
#include <inttypes.h>

#include "format/screen.h"
#include "format/selection.h"
#include "format/writers.h"

#define NAME_WIDTH 38

/* The table of times, with the counter instead. */
static int counter_table(const struct view *v, const struct format_opts *o, int k,
			 struct table **ret)
{
	_cleanup_(table_freep) struct table *t = NULL;
	int err = table_build(v, o->clock, &t);

	if (err < 0)
		return err;
	for (size_t i = 0; i < t->nrows; i++)
		t->rows[i].tt = t->rows[i].ct = 0;
	for (size_t i = 0; i < v->nrows; i++) {
		struct table_row *r = &t->rows[t->row_of[v->rows[i].func]];

		r->tt += v->metrics[i].self[k];
		r->ct += v->metrics[i].cum[k];
	}
	for (size_t i = 0; i < t->nrows; i++)
		t->rows[i].listed = t->rows[i].tt || t->rows[i].ct;
	*ret = TAKE_PTR(t);
	return 0;
}

/* What roots have kept for themselves: where there is no row for time outside Python. */
static uint64_t outside(const struct snapshot *s, const struct format_opts *o, int k)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->nthreads; i++)
		if (view_selects(&o->filter, &s->threads[i]))
			n += s->node_metrics[s->threads[i].root][k];
	return n;
}

static void print_row(const struct table_row *r, FILE *out)
{
	fprintf(out, "%9" PRIu64 " %12" PRIu64 " %12" PRIu64 "  ", r->nc, r->tt, r->ct);
	screen_fit(out, r->std, NAME_WIDTH);
	fputc('\n', out);
}

static int print_counter(const struct snapshot *s, const struct view *v,
			 const struct format_opts *o, int k, FILE *out, struct diag *diag)
{
	_cleanup_(selection_deinit) struct selection rows = {0};
	_cleanup_(table_freep) struct table *t = NULL;
	uint64_t total = 0;
	int err = counter_table(v, o, k, &t);

	if (!err)
		err = selection_init(&rows, t, o, diag);
	if (err < 0)
		return err;
	for (size_t i = 0; i < t->nrows; i++)
		total += t->rows[i].tt;
	fprintf(out, "   %s%s%s (%s): %" PRIu64 "\n", screen_bold(o),
		metrics_text((enum pyp_metric)k), screen_plain(o), metrics_name((enum pyp_metric)k),
		total + outside(s, o, k));
	if (rows.n)
		fprintf(out, "%s\n%s   ncalls         self          cum  %s%s\n", rows.notes,
			screen_bold(o), "filename:lineno(function)", screen_plain(o));
	for (size_t i = 0; i < rows.n; i++)
		print_row(&t->rows[rows.order[i]], out);
	fputs("\n\n", out);
	return 0;
}

int resources_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		    FILE *out, struct diag *diag)
{
	struct format_opts sorted = *o;
	int err = 0;

	if (!s->metrics || !v->metrics)
		return diag_set(diag, -ENODATA, PYP_EXIT_FAILURE,
				"`pyprofctl attach --metrics all PID` counts them",
				"no resources were counted");
	if (!o->sort)
		sorted.sort = "tottime,cumtime";
	for (int k = 0; k < PYP_METRICS && !err; k++)
		if (s->metrics & 1u << k)
			err = print_counter(s, v, &sorted, k, out, diag);
	return err < 0 ? err : screen_provenance(s, o, out);
}
