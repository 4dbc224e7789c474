// SPDX-License-Identifier: BSD-2-Clause
/*
 * Threads: a line for each, on both clocks. They are sorted and restricted as functions are, with
 * `process:thread(name)` in place of `file:line(name)`; the largest come first unless told
 * otherwise.
 */
#include <errno.h>
#include <inttypes.h>

#include "format/names.h"
#include "format/screen.h"
#include "format/selection.h"
#include "format/writers.h"

#define NAME_WIDTH 20

static int row_init(struct table_row *r, const struct snapshot_thread *thread,
		    enum snapshot_clock clock)
{
	if (asprintf(&r->file, "%" PRIu32, thread->pid) < 0) {
		r->file = NULL;
		return -ENOMEM;
	}
	r->name = name_normal(thread->name, NAME_KEEP_SURROGATES);
	r->line = (int32_t)thread->tid;
	r->std = r->name ? name_std(r->file, r->line, r->name) : NULL;
	r->tt = r->ct = thread->total[clock];
	return r->std ? 0 : -ENOMEM;
}

static int threads_table(const struct snapshot *s, const struct format_opts *o, struct table **ret)
{
	_cleanup_(table_freep) struct table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->rows = calloc((size_t)s->nthreads + 1, sizeof(*t->rows));
	if (!t->rows)
		return -ENOMEM;
	for (; t->nrows < s->nthreads; t->nrows++) {
		const struct snapshot_thread *thread = &s->threads[t->nrows];

		if (row_init(&t->rows[t->nrows], thread, o->clock) < 0) {
			t->nrows++; /* what it has is freed with the others */
			return -ENOMEM;
		}
		t->rows[t->nrows].listed = view_selects(&o->filter, thread);
	}
	for (uint32_t i = 0; i < s->nnodes; i++) {
		t->rows[s->nodes[i].thread].nc += s->nodes[i].calls;
		t->rows[s->nodes[i].thread].cc += s->nodes[i].calls;
	}
	*ret = TAKE_PTR(t);
	return 0;
}

/* Rounding of two clocks read one after the other can make less than nothing of it. */
static double waited(const struct snapshot_thread *thread)
{
	if (thread->total[SNAPSHOT_CPU] > thread->total[SNAPSHOT_WALL])
		return 0;
	return table_seconds(thread->total[SNAPSHOT_WALL] - thread->total[SNAPSHOT_CPU]);
}

static void print_row(const struct snapshot_thread *thread, const struct table_row *r,
		      const struct format_opts *o, uint64_t total, FILE *out)
{
	double share = total ? 100.0 * (double)r->ct / (double)total : 0;

	fprintf(out, "%7" PRIu32 " %7" PRIu32 " %9" PRIu64 " %9.3f %9.3f %9.3f ", thread->pid,
		thread->tid, r->nc, table_seconds(thread->total[SNAPSHOT_CPU]),
		table_seconds(thread->total[SNAPSHOT_WALL]), waited(thread));
	fprintf(out, "%s%5.1f%%%s ", share < 1 ? screen_dim(o) : "", share, screen_plain(o));
	screen_fit(out, r->name, thread->alive ? NAME_WIDTH : NAME_WIDTH - 2);
	fputs(thread->alive ? "\n" : " -\n", out);
}

static void print_rows(const struct snapshot *s, const struct table *t,
		       const struct selection *rows, const struct format_opts *o, FILE *out)
{
	uint64_t total = 0;

	if (!rows->n)
		return;
	for (size_t i = 0; i < t->nrows; i++)
		total += t->rows[i].listed ? t->rows[i].ct : 0;
	fputs("   Ordered by: ", out);
	sort_print_title(&rows->sort, out);
	fprintf(out, "\n%s\n%s", rows->notes, screen_bold(o));
	fprintf(out, "%7s %7s %9s %9s %9s %9s %6s %s%s\n", "pid", "tid", "calls", "cpu", "wall",
		"wait", "share", "thread (-: ended)", screen_plain(o));
	for (size_t i = 0; i < rows->n; i++)
		print_row(&s->threads[rows->order[i]], &t->rows[rows->order[i]], o, total, out);
	fputs("\n\n", out);
}

int threads_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		  FILE *out, struct diag *diag)
{
	_cleanup_(selection_deinit) struct selection rows = {0};
	_cleanup_(table_freep) struct table *t = NULL;
	struct format_opts sorted = *o;
	int err = threads_table(s, o, &t);

	(void)v;
	if (!o->sort)
		sorted.sort = "cumulative";
	if (!err)
		err = selection_init(&rows, t, &sorted, diag);
	if (err < 0)
		return err;
	print_rows(s, t, &rows, o, out);
	return screen_provenance(s, o, out);
}
