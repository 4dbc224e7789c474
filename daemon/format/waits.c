// SPDX-License-Identifier: BSD-2-Clause
/*
 * Waiting, as text: a table of functions with their own times and reasons for waiting, in seconds,
 * and a table of functions that held the GIL while others waited. Sorted and restricted like times:
 * `tottime` is the function's own waiting (or time held), `cumtime` the one including callees.
 */
#include <errno.h>
#include <inttypes.h>

#include "format/screen.h"
#include "format/selection.h"
#include "format/waits_text.h"
#include "format/writers.h"

#define PAIR_WIDTH 34
#define PAIRS	   20u

#define FIRST COLUMN_WAITS_FIRST
#define END   COLUMN_WAITS_END

/* Per row of the table. */
struct row_waits {
	uint64_t of[END - FIRST];
	uint64_t self[SNAPSHOT_CLOCKS];
};

/* ---- waits ------------------------------------------------------------------------------- */

/* Builds the table of times with waiting in their place. */
static int build(const struct view *v, struct table **ret, struct row_waits **ret_waits)
{
	_cleanup_(table_freep) struct table *t = NULL;
	struct row_waits *w;
	int err = table_build(v, SNAPSHOT_WALL, &t);

	if (err < 0)
		return err;
	w = calloc(t->nrows + 1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	for (size_t i = 0; i < t->nrows; i++)
		t->rows[i].tt = t->rows[i].ct = 0;
	for (size_t i = 0; i < v->nrows; i++) {
		uint32_t at = t->row_of[v->rows[i].func];

		for (int c = FIRST; c < END; c++) {
			uint64_t self = v->self[c] ? v->self[c][i] : 0;

			w[at].of[c - FIRST] += self;
			t->rows[at].tt += self;
			t->rows[at].ct += v->cum[c] ? v->cum[c][i] : 0;
		}
		for (int k = 0; k < SNAPSHOT_CLOCKS; k++)
			w[at].self[k] += v->rows[i].tot[k];
	}
	for (size_t i = 0; i < t->nrows; i++)
		t->rows[i].listed = t->rows[i].tt || t->rows[i].ct;
	*ret = TAKE_PTR(t);
	*ret_waits = w;
	return 0;
}

/* Reasons that do not occur have no column. */
static uint64_t sum_up(const struct row_waits *w, size_t n, uint64_t sum[END - FIRST])
{
	uint64_t all = 0;

	for (size_t i = 0; i < n; i++)
		for (int c = 0; c < END - FIRST; c++) {
			sum[c] += w[i].of[c];
			all += w[i].of[c];
		}
	return all;
}

static void print_header(const uint64_t sum[END - FIRST], const struct format_opts *o, FILE *out)
{
	fprintf(out, "%s   wall      cpu", screen_bold(o));
	for (int c = 0; c < END - FIRST; c++)
		if (sum[c])
			fprintf(out, " %8s", column_table[FIRST + c].name);
	fprintf(out, "  filename:lineno(function)%s\n", screen_plain(o));
}

static void print_row(const struct table_row *r, const struct row_waits *w,
		      const uint64_t sum[END - FIRST], const struct format_opts *o, FILE *out)
{
	size_t used = 18;

	fprintf(out, "%7.3f %8.3f", table_seconds(w->self[SNAPSHOT_WALL]),
		table_seconds(w->self[SNAPSHOT_CPU]));
	for (int c = 0; c < END - FIRST; c++)
		if (sum[c]) {
			waits_print_seconds(w->of[c], out);
			used += 9;
		}
	fputs("  ", out);
	screen_last(out, r->std, o, used);
	fputc('\n', out);
}

int waits_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
		FILE *out, struct diag *diag)
{
	_cleanup_(selection_deinit) struct selection rows = {0};
	_cleanup_(table_freep) struct table *t = NULL;
	_cleanup_free_ struct row_waits *w = NULL;
	struct format_opts sorted = *o;
	uint64_t sum[END - FIRST] = {0}, all;
	int err;

	if (!(s->measured & COLUMN_WAITS))
		return waits_not_measured(diag);
	if (o->by_thread)
		return waits_threads_write(s, o, out, diag);
	if (!o->sort)
		sorted.sort = "tottime,cumtime";
	err = build(v, &t, &w);
	if (!err)
		err = selection_init(&rows, t, &sorted, diag);
	if (err < 0)
		return err;
	all = sum_up(w, t->nrows, sum);
	fprintf(out, "   Waiting: %.3f s in all threads\n%s\n", table_seconds(all),
		rows.notes ? rows.notes : "");
	if (rows.n)
		print_header(sum, o, out);
	for (size_t i = 0; i < rows.n; i++)
		print_row(&t->rows[rows.order[i]], &w[rows.order[i]], sum, o, out);
	fputs("\n\n", out);
	waits_print_other(s, out);
	return screen_provenance(s, o, out);
}

/* ---- the GIL ----------------------------------------------------------------------------- */

static int held_rows(const struct view *v, struct table **ret)
{
	_cleanup_(table_freep) struct table *t = NULL;
	int err = table_build(v, SNAPSHOT_WALL, &t), c = COLUMN_gil_held_ns;

	if (err < 0)
		return err;
	for (size_t i = 0; i < t->nrows; i++)
		t->rows[i].tt = t->rows[i].ct = 0;
	for (size_t i = 0; i < v->nrows && v->self[c]; i++) {
		struct table_row *r = &t->rows[t->row_of[v->rows[i].func]];

		r->tt += v->self[c][i];
		r->ct += v->cum[c][i];
	}
	for (size_t i = 0; i < t->nrows; i++)
		t->rows[i].listed = t->rows[i].tt || t->rows[i].ct;
	*ret = TAKE_PTR(t);
	return 0;
}

static const char *name_of(const struct table *t, uint32_t func)
{
	uint32_t row = func == SNAPSHOT_NONE ? SNAPSHOT_NONE : t->row_of[func];

	return row == SNAPSHOT_NONE ? "(outside Python)" : t->rows[row].std;
}

static void print_pairs(const struct snapshot *s, const struct table *t,
			const struct format_opts *o, FILE *out)
{
	uint32_t shown = 0;

	for (uint32_t i = 0; i < s->ngil_pairs && shown < PAIRS; i++) {
		const struct snapshot_gil_pair *p = &s->gil_pairs[i];

		if (o->filter.tid || (o->filter.pid && o->filter.pid != p->pid))
			continue;
		if (!shown++)
			fprintf(out, "%s  waited  while held by%*s waiter%s\n", screen_bold(o),
				PAIR_WIDTH - 13, "", screen_plain(o));
		fprintf(out, "%8.3f  ", table_seconds(p->ns));
		for (size_t n = screen_fit(out, name_of(t, p->holder), PAIR_WIDTH); n < PAIR_WIDTH;
		     n++)
			fputc(' ', out);
		fputc(' ', out);
		screen_last(out, name_of(t, p->waiter), o, 11 + PAIR_WIDTH);
		fputc('\n', out);
	}
}

int gil_write(const struct snapshot *s, const struct view *v, const struct format_opts *o,
	      FILE *out, struct diag *diag)
{
	_cleanup_(selection_deinit) struct selection rows = {0};
	_cleanup_(table_freep) struct table *t = NULL;
	struct format_opts sorted = *o;
	uint64_t total = 0;
	int err;

	if (!(s->measured & COLUMN_BIT(COLUMN_gil_held_ns)))
		return waits_not_measured(diag);
	if (!o->sort)
		sorted.sort = "tottime,cumtime";
	err = held_rows(v, &t);
	if (!err)
		err = selection_init(&rows, t, &sorted, diag);
	if (err < 0)
		return err;
	for (size_t i = 0; i < t->nrows; i++)
		total += t->rows[i].tt;
	fprintf(out, "   The GIL was held for %.3f s while others waited for it\n%s\n",
		table_seconds(total), rows.notes ? rows.notes : "");
	if (rows.n)
		fprintf(out, "%s    self      cum  filename:lineno(function)%s\n", screen_bold(o),
			screen_plain(o));
	for (size_t i = 0; i < rows.n; i++) {
		const struct table_row *r = &t->rows[rows.order[i]];

		fprintf(out, "%8.3f %8.3f  ", table_seconds(r->tt), table_seconds(r->ct));
		screen_last(out, r->std, o, 19);
		fputc('\n', out);
	}
	fputc('\n', out);
	print_pairs(s, t, o, out);
	fputc('\n', out);
	waits_print_other(s, out);
	return screen_provenance(s, o, out);
}
