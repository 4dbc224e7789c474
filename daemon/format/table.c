// SPDX-License-Identifier: BSD-2-Clause
/* The table that pstats would hold: see table.h. */
#include "format/table.h"

#include <errno.h>
#include <string.h>

#include "format/names.h"

/*
 * State while building: the row of each function of the snapshot, and a hash table of rows by key.
 */
struct builder {
	const struct view *v;
	struct table *t;
	uint32_t *row_of; /* per function; SNAPSHOT_NONE: not seen yet */
	uint32_t *slots;  /* open addressing; SNAPSHOT_NONE: empty */
	size_t mask;
};

static uint32_t *new_indices(size_t n)
{
	uint32_t *ret = malloc((n ? n : 1) * sizeof(*ret));

	if (ret)
		memset(ret, 0xff, n * sizeof(*ret));
	return ret;
}

static uint64_t hash_str(uint64_t h, const char *s)
{
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	return (h ^ 0xff) * 0x100000001b3u;
}

static bool row_same(const struct table_row *a, const struct table_row *b)
{
	return a->line == b->line && strcmp(a->name, b->name) == 0 && strcmp(a->file, b->file) == 0;
}

static void row_deinit(struct table_row *r)
{
	free(r->file);
	free(r->name);
	free(r->std);
}

/*
 * Sets the strings of the key. A pseudo function has the form that pstats prints for an empty file.
 */
static int row_init(struct table_row *r, const struct snapshot_func *f)
{
	const char *file = f->pseudo ? "~" : f->filename;

	*r = (struct table_row){
		.line = f->pseudo ? 0 : f->firstlineno,
		.gc = snapshot_func_is_gc(f),
	};
	r->file = name_normal(file ? file : "<unknown>", NAME_KEEP_SURROGATES);
	r->name = name_normal(f->name ? f->name : "<unknown>", NAME_KEEP_SURROGATES);
	r->std = r->file && r->name ? name_std(r->file, r->line, r->name) : NULL;
	if (r->std)
		return 0;
	row_deinit(r);
	return -ENOMEM;
}

static size_t slot_of(const struct builder *b, const struct table_row *r)
{
	size_t i = hash_str(hash_str(0xcbf29ce484222325u, r->file) + (uint32_t)r->line, r->name);

	for (i &= b->mask; b->slots[i] != SNAPSHOT_NONE; i = (i + 1) & b->mask)
		if (row_same(&b->t->rows[b->slots[i]], r))
			break;
	return i;
}

/* Sets *ret to the row of a function, which is created if it is new. */
static int row_get(struct builder *b, uint32_t func, uint32_t *ret)
{
	struct table_row r;
	size_t slot;

	if (b->row_of[func] == SNAPSHOT_NONE) {
		if (row_init(&r, &b->v->snapshot->funcs[func]) < 0)
			return -ENOMEM;
		slot = slot_of(b, &r);
		if (b->slots[slot] == SNAPSHOT_NONE) {
			b->slots[slot] = (uint32_t)b->t->nrows;
			b->t->rows[b->t->nrows++] = r;
		} else {
			row_deinit(&r);
		}
		b->row_of[func] = b->slots[slot];
	}
	*ret = b->row_of[func];
	return 0;
}

static void add_variance(double *sum, double variance)
{
	*sum = *sum < 0 || variance < 0 ? -1 : *sum + variance;
}

static int add_rows(struct builder *b, enum snapshot_clock clock)
{
	static const enum snapshot_figure tot_figure[] = {SNAPSHOT_TOT_CPU, SNAPSHOT_TOT_WALL};
	static const enum snapshot_figure cum_figure[] = {SNAPSHOT_CUM_CPU, SNAPSHOT_CUM_WALL};

	for (size_t i = 0; i < b->v->nrows; i++) {
		const struct view_row *from = &b->v->rows[i];
		const struct snapshot_func *f = &b->v->snapshot->funcs[from->func];
		struct table_row *row;
		uint32_t at;

		if (row_get(b, from->func, &at) < 0)
			return -ENOMEM;
		row = &b->t->rows[at];
		/* A pseudo function without calls and without time on this clock is not listed. */
		row->listed = row->listed || (!f->pseudo && view_row_has_time(from)) ||
			      from->ncalls || from->cum[clock];
		row->nc += from->ncalls;
		row->cc += from->pcalls;
		row->tt += from->tot[clock];
		row->ct += from->cum[clock];
		per_call_merge(&row->calls, &from->calls);
		add_variance(&row->nc_variance, f->variance[SNAPSHOT_CALLS]);
		add_variance(&row->tt_variance, f->variance[tot_figure[clock]]);
		add_variance(&row->ct_variance, f->variance[cum_figure[clock]]);
	}
	return 0;
}

static int add_edges(struct builder *b, enum snapshot_clock clock)
{
	for (size_t i = 0; i < b->v->nedges; i++) {
		const struct view_edge *from = &b->v->edges[i];
		struct table_edge *edge = &b->t->edges[b->t->nedges];

		if (from->caller == SNAPSHOT_NONE)
			continue;
		if (row_get(b, from->caller, &edge->caller) < 0 ||
		    row_get(b, from->callee, &edge->callee) < 0)
			return -ENOMEM;
		edge->nc = from->ncalls;
		edge->cc = from->pcalls;
		edge->tt = from->tot[clock];
		edge->ct = from->cum[clock];
		edge->calls = from->calls;
		b->t->nedges++;
	}
	return 0;
}

static int edge_compare(const void *left, const void *right)
{
	const struct table_edge *l = left, *r = right;

	if (l->callee != r->callee)
		return l->callee < r->callee ? -1 : 1;
	if (l->caller != r->caller)
		return l->caller < r->caller ? -1 : 1;
	return 0;
}

/* Merges edges that became equal because their functions share a row. */
static void merge_edges(struct table *t)
{
	size_t n = 0;

	if (t->nedges)
		qsort(t->edges, t->nedges, sizeof(*t->edges), edge_compare);
	for (size_t i = 0; i < t->nedges; i++) {
		const struct table_edge *e = &t->edges[i];

		if (n && edge_compare(&t->edges[n - 1], e) == 0) {
			t->edges[n - 1].nc += e->nc;
			t->edges[n - 1].cc += e->cc;
			t->edges[n - 1].tt += e->tt;
			t->edges[n - 1].ct += e->ct;
			per_call_merge(&t->edges[n - 1].calls, &e->calls);
		} else {
			t->edges[n++] = *e;
		}
	}
	t->nedges = n;
}

static struct table *table_new(const struct view *v)
{
	struct table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->rows = calloc(v->snapshot->nfuncs + 1, sizeof(*t->rows));
	t->edges = calloc(v->nedges + 1, sizeof(*t->edges));
	if (t->rows && t->edges)
		return t;
	table_free(t);
	return NULL;
}

int table_build(const struct view *v, enum snapshot_clock clock, struct table **ret)
{
	_cleanup_(table_freep) struct table *t = table_new(v);
	_cleanup_free_ uint32_t *row_of = new_indices(v->snapshot->nfuncs);
	_cleanup_free_ uint32_t *slots = NULL;
	struct builder b = {.v = v, .t = t, .row_of = row_of, .mask = 15};

	while (b.mask < (size_t)v->snapshot->nfuncs * 2)
		b.mask = b.mask * 2 + 1;
	b.slots = slots = new_indices(b.mask + 1);
	if (!t || !row_of || !slots)
		return -ENOMEM;
	if (add_rows(&b, clock) < 0 || add_edges(&b, clock) < 0)
		return -ENOMEM;
	merge_edges(t);
	for (size_t i = 0; i < t->nedges; i++)
		t->edges[i].per_call = per_call_of(&t->edges[i].calls,
						   &t->rows[t->edges[i].caller].calls, v->windows);
	t->row_of = TAKE_PTR(row_of);
	*ret = TAKE_PTR(t);
	return 0;
}

void table_free(struct table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->nrows; i++)
		row_deinit(&t->rows[i]);
	free(t->rows);
	free(t->edges);
	free(t->row_of);
	free(t);
}
