// SPDX-License-Identifier: BSD-2-Clause
/* Text tables of objects other than functions: see listing.h. */
#include "format/listing.h"

#include <errno.h>

#include "format/screen.h"

static int listing_table(const struct listing *l, const struct snapshot *s,
			 const struct format_opts *o, struct table **ret)
{
	_cleanup_(table_freep) struct table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->rows = calloc(l->n + 1, sizeof(*t->rows));
	if (!t->rows)
		return -ENOMEM;
	while (t->nrows < l->n) {
		size_t i = t->nrows++; /* the table also frees an incomplete row */
		int err = l->fill(s, i, o, &t->rows[i]);

		if (err < 0)
			return err;
	}
	if (l->complete)
		l->complete(s, t->rows);
	*ret = TAKE_PTR(t);
	return 0;
}

static void print_rows(const struct listing *l, const struct snapshot *s, const struct table *t,
		       const struct selection *rows, const struct format_opts *o, FILE *out)
{
	struct listing_row r = {0};

	for (size_t i = 0; i < t->nrows; i++)
		r.total += t->rows[i].listed ? t->rows[i].ct : 0;
	fputs("   Ordered by: ", out);
	sort_print_title(&rows->sort, out);
	fprintf(out, "\n%s\n%s%s%s\n", rows->notes, screen_bold(o), l->header, screen_plain(o));
	for (size_t i = 0; i < rows->n; i++) {
		r.i = rows->order[i];
		r.row = &t->rows[r.i];
		l->print(s, &r, o, out);
	}
	if (l->notes)
		l->notes(s, rows, out);
	fputs("\n\n", out);
}

int listing_write(const struct listing *l, const struct snapshot *s, const struct format_opts *o,
		  FILE *out, struct diag *diag)
{
	_cleanup_(selection_deinit) struct selection rows = {0};
	_cleanup_(table_freep) struct table *t = NULL;
	struct format_opts sorted = *o;
	int err = listing_table(l, s, o, &t);

	if (!o->sort)
		sorted.sort = "cumulative";
	if (!err)
		err = selection_init(&rows, t, &sorted, diag);
	if (err < 0)
		return err;
	if (rows.n)
		print_rows(l, s, t, &rows, o, out);
	else
		fputs(l->none, out);
	return screen_provenance(s, o, out);
}
