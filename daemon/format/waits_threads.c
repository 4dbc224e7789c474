// SPDX-License-Identifier: BSD-2-Clause
/*
 * Waiting by thread, as text: a row per thread with its times and the reasons for which it waited,
 * in seconds, sorted by waiting. Named, sorted and restricted like the format threads. Reasons that
 * do not occur have no column.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "format/names.h"
#include "format/screen.h"
#include "format/selection.h"
#include "format/waits_text.h"

#define USED 33 /* columns before the reasons */

static int fill_row(const struct snapshot *s, uint32_t i, const struct waits_of_thread *w,
		    const struct format_opts *o, struct table_row *r)
{
	const struct snapshot_thread *thread = &s->threads[i];

	if (asprintf(&r->file, "%" PRIu32, thread->pid) < 0) {
		r->file = NULL;
		return -ENOMEM;
	}
	r->name = name_normal(thread->name, NAME_KEEP_SURROGATES);
	r->line = (int32_t)thread->tid;
	r->std = r->name ? name_std(r->file, r->line, r->name) : NULL;
	for (int c = COLUMN_WAITS_FIRST; c < COLUMN_WAITS_END; c++)
		r->tt += w->of[c];
	r->ct = r->tt;
	r->listed = view_selects(&o->filter, thread);
	return r->std ? 0 : -ENOMEM;
}

static int build(const struct snapshot *s, const struct waits_of_thread *w,
		 const struct format_opts *o, struct table **ret)
{
	_cleanup_(table_freep) struct table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->rows = calloc((size_t)s->nthreads + 1, sizeof(*t->rows));
	if (!t->rows)
		return -ENOMEM;
	while (t->nrows < s->nthreads) {
		uint32_t i = (uint32_t)t->nrows++; /* the table also frees an incomplete row */
		int err = fill_row(s, i, &w[i], o, &t->rows[i]);

		if (err < 0)
			return err;
	}
	*ret = TAKE_PTR(t);
	return 0;
}

static void print_header(const struct waits_of_thread *sum, const struct format_opts *o, FILE *out)
{
	fprintf(out, "%s    pid     tid     wall      cpu", screen_bold(o));
	for (int c = COLUMN_WAITS_FIRST; c < COLUMN_WAITS_END; c++)
		if (sum->of[c])
			fprintf(out, " %8s", column_table[c].name);
	fprintf(out, "  thread (-: ended)%s\n", screen_plain(o));
}

static void print_row(const struct snapshot_thread *thread, const struct table_row *r,
		      const struct waits_of_thread *w, const struct waits_of_thread *sum,
		      const struct format_opts *o, FILE *out)
{
	size_t used = USED + 2;

	fprintf(out, "%7" PRIu32 " %7" PRIu32 " %8.3f %8.3f", thread->pid, thread->tid,
		table_seconds(thread->total[SNAPSHOT_WALL]),
		table_seconds(thread->total[SNAPSHOT_CPU]));
	for (int c = COLUMN_WAITS_FIRST; c < COLUMN_WAITS_END; c++)
		if (sum->of[c]) {
			waits_print_seconds(w->of[c], out);
			used += 9;
		}
	fputs("  ", out);
	screen_last(out, r->name, o, thread->alive ? used : used + 2);
	fputs(thread->alive ? "\n" : " -\n", out);
}

static void print_table(const struct snapshot *s, const struct table *t,
			const struct waits_of_thread *w, const struct selection *rows,
			const struct format_opts *o, FILE *out)
{
	struct waits_of_thread sum = {0};
	uint64_t all = 0;

	for (size_t i = 0; i < t->nrows; i++)
		for (int c = COLUMN_WAITS_FIRST; c < COLUMN_WAITS_END; c++) {
			sum.of[c] += t->rows[i].listed ? w[i].of[c] : 0;
			all += t->rows[i].listed ? w[i].of[c] : 0;
		}
	fprintf(out, "   Waiting: %.3f s in all threads\n%s\n", table_seconds(all),
		rows->notes ? rows->notes : "");
	if (rows->n)
		print_header(&sum, o, out);
	for (size_t i = 0; i < rows->n; i++) {
		const uint32_t k = rows->order[i];

		print_row(&s->threads[k], &t->rows[k], &w[k], &sum, o, out);
	}
	fputs("\n\n", out);
}

int waits_threads_write(const struct snapshot *s, const struct format_opts *o, FILE *out,
			struct diag *diag)
{
	_cleanup_(selection_deinit) struct selection rows = {0};
	_cleanup_(table_freep) struct table *t = NULL;
	_cleanup_free_ struct waits_of_thread *w = waits_of_threads_new(s);
	struct format_opts sorted = *o;
	int err = w ? build(s, w, o, &t) : -ENOMEM;

	if (!o->sort)
		sorted.sort = "cumulative";
	if (!err)
		err = selection_init(&rows, t, &sorted, diag);
	if (err < 0)
		return err;
	print_table(s, t, w, &rows, o, out);
	waits_print_other(s, out);
	return screen_provenance(s, o, out);
}
