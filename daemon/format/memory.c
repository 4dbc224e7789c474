// SPDX-License-Identifier: BSD-2-Clause
/*
 * Memory by function, as text: the own figures of each function, sorted by growth. Sorting and
 * restrictions use the growth in place of times: `tottime` is the function's own growth, `cumtime`
 * the one including callees.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "format/screen.h"
#include "format/selection.h"
#include "format/writers.h"

#define FIGURES_COLUMNS 89
#define KIB		1024

struct figures {
	uint64_t grown, shrunk, mapped, unmapped, large, live, pools;
};

static struct figures figures_of(uint64_t *const columns[COLUMNS], size_t i)
{
#define FIGURE(name) .name = columns[COLUMN_##name] ? columns[COLUMN_##name][i] : 0
	return (struct figures){FIGURE(grown), FIGURE(shrunk), FIGURE(mapped), FIGURE(unmapped),
				FIGURE(large), FIGURE(live),   FIGURE(pools)};
#undef FIGURE
}

static void add(struct figures *to, const struct figures *f)
{
	to->grown += f->grown;
	to->shrunk += f->shrunk;
	to->mapped += f->mapped;
	to->unmapped += f->unmapped;
	to->large += f->large;
	to->live += f->live;
	to->pools += f->pools;
}

static void print(const struct figures *f, FILE *out)
{
	fprintf(out,
		"%11" PRIu64 " %11" PRIu64 " %+11" PRId64 " %11" PRIu64 " %11" PRIu64 " %7" PRIu64
		" %11" PRIu64 " %7" PRIu64,
		f->grown / KIB, f->shrunk / KIB, (int64_t)(f->grown - f->shrunk) / KIB,
		f->mapped / KIB, f->unmapped / KIB, f->large, f->live / KIB, f->pools);
}

/*
 * Builds the table of times with the growth in their place. *ret_figures, by row, belongs to the
 * caller.
 */
static int memory_rows(const struct view *v, const struct format_opts *o, struct table **ret,
		       struct figures **ret_figures)
{
	_cleanup_(table_freep) struct table *t = NULL;
	struct figures *all;
	int err = table_build(v, o->clock, &t);

	if (err < 0)
		return err;
	all = calloc(t->nrows + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < t->nrows; i++)
		t->rows[i].tt = t->rows[i].ct = 0;
	for (size_t i = 0; i < v->nrows; i++) {
		const uint32_t row = t->row_of[v->rows[i].func];
		const struct figures own = figures_of(v->self, i), with = figures_of(v->cum, i);

		add(&all[row], &own);
		t->rows[row].tt += own.grown;
		t->rows[row].ct += with.grown;
	}
	for (size_t i = 0; i < t->nrows; i++)
		t->rows[i].listed = all[i].grown || all[i].shrunk || all[i].mapped ||
				    all[i].unmapped || all[i].live || all[i].pools;
	*ret = TAKE_PTR(t);
	*ret_figures = all;
	return 0;
}

/* The roots' own figures, if there is no row for time outside Python. */
static struct figures outside(const struct snapshot *s, const struct format_opts *o)
{
	struct figures sum = {0};

	for (uint32_t i = 0; i < s->nthreads; i++) {
		const struct figures f = figures_of(s->columns, s->threads[i].root);

		if (view_selects(&o->filter, &s->threads[i]))
			add(&sum, &f);
	}
	return sum;
}

static void print_table(const struct table *t, const struct selection *rows,
			const struct figures *all, const struct figures *rest,
			const struct format_opts *o, FILE *out)
{
	struct figures total = *rest;

	for (size_t i = 0; i < t->nrows; i++)
		add(&total, &all[i]);
	fprintf(out,
		"   %sResident memory: grown %" PRIu64 " KiB, given back %" PRIu64
		" KiB%s; mapped in blocks of 128 KiB and more: %" PRIu64 " KiB, unmapped %" PRIu64
		" KiB, live %" PRIu64 " KiB\n",
		screen_bold(o), total.grown / KIB, total.shrunk / KIB, screen_plain(o),
		total.mapped / KIB, total.unmapped / KIB, total.live / KIB);
	fprintf(out,
		"%s\n%s  grown KiB  shrunk KiB         net  mapped KiB    unmapped   large    live "
		"KiB   pools  %s%s\n",
		rows->n ? rows->notes : "", screen_bold(o), "filename:lineno(function)",
		screen_plain(o));
	for (size_t i = 0; i < rows->n; i++) {
		print(&all[rows->order[i]], out);
		fputs("  ", out);
		screen_last(out, t->rows[rows->order[i]].std, o, FIGURES_COLUMNS);
		fputc('\n', out);
	}
	fputs("\n\n", out);
}

int memory_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		 FILE *out, struct diag *diag)
{
	_cleanup_(selection_deinit) struct selection rows = {0};
	_cleanup_(table_freep) struct table *t = NULL;
	_cleanup_free_ struct figures *all = NULL;
	struct format_opts sorted = *o;
	struct figures rest;
	int err;

	if (!(s->measured & column_group("memory")))
		return diag_set(diag, -ENODATA, PYP_EXIT_FAILURE,
				"`pyprofctl attach --exact --counters memory PID` does",
				"memory was not measured");
	if (!o->sort)
		sorted.sort = "tottime,cumtime";
	err = memory_rows(v, &sorted, &t, &all);
	if (!err)
		err = selection_init(&rows, t, &sorted, diag);
	if (err < 0)
		return err;
	rest = outside(s, &sorted);
	print_table(t, &rows, all, &rest, o, out);
	return screen_provenance(s, o, out);
}
