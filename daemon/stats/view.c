// SPDX-License-Identifier: BSD-2-Clause
/*
 * Views: rows and edges from the calling-context tree. One depth-first walk over the selected
 * threads' trees counts how often each function and each edge is on the path from the root. Only
 * the first occurrence, the outermost activation, adds to cumulative time and to primitive calls.
 * (cProfile keeps the same counts as "recursion levels" of its entries and subentries.) The walk
 * follows links instead of recursing, because trees can be as deep as a stack.
 */
#include "stats/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "snapshot/lines.h"
#include "stats/tree.h"

/*
 * Flags of a node while columns are added up: it contributes to a row; it is the outermost of its
 * function on the path.
 */
#define ROW	      1
#define ROW_OUTERMOST 2

struct walk {
	const struct snapshot *s;
	const struct view_filter *filter;
	struct view *v;
	struct tree *tree;
	uint32_t *edge_of;    /* per node */
	uint32_t *func_depth; /* per function: occurrences on the path */
	uint32_t *edge_depth; /* the same per edge; grows with the edges */
	size_t edges_cap;
	struct map edges; /* (caller, callee) → edge */
	bool *memory;	  /* per node: it or a callee has figures of memory; NULL: not measured */
	unsigned char *is_row;	     /* per node: ROW and ROW_OUTERMOST; NULL: no columns */
	bool counted;		     /* a tree of mode count: two levels deep, without recursion */
	enum per_call_source source; /* of the tree's calls */
};

static void walk_deinit(struct walk *w)
{
	tree_free(w->tree);
	free(w->edge_of);
	free(w->func_depth);
	free(w->edge_depth);
	map_deinit(&w->edges);
	free(w->is_row);
	free(w->memory);
}

void view_free(struct view *v)
{
	if (!v)
		return;
	free(v->rows);
	free(v->edges);
	for (int c = 0; c < COLUMNS; c++) {
		free(v->self[c]);
		free(v->cum[c]);
	}
	free(v);
}

bool view_selects(const struct view_filter *filter, const struct snapshot_thread *t)
{
	if (!filter)
		return true;
	return (!filter->pid || filter->pid == t->pid) && (!filter->tid || filter->tid == t->tid);
}

static bool selects_all(const struct snapshot *s, const struct view_filter *filter)
{
	for (uint32_t i = 0; i < s->nthreads; i++)
		if (!view_selects(filter, &s->threads[i]))
			return false;
	return true;
}

bool view_has_errors(const struct snapshot *s, const struct view_filter *filter)
{
	return selects_all(s, filter) && snapshot_has_errors(s);
}

bool view_estimates_calls(const struct snapshot *s, const struct view_filter *filter)
{
	for (uint32_t i = 0; i < s->ntargets; i++)
		if (s->targets[i].windows.sampled)
			return view_has_errors(s, filter);
	return false;
}

bool view_has_durations(const struct snapshot *s, const struct view_filter *filter)
{
	return selects_all(s, filter) && snapshot_has_durations(s);
}

bool view_has_lines(const struct snapshot *s, const struct view_filter *filter)
{
	return selects_all(s, filter) && snapshot_has_lines(s);
}

static int reserve_edge(struct walk *w)
{
	size_t cap = w->edges_cap ? w->edges_cap * 2 : 64;
	struct view_edge *edges;
	uint32_t *depth;

	if (w->v->nedges < w->edges_cap)
		return 0;
	edges = reallocarray(w->v->edges, cap, sizeof(*edges));
	if (!edges)
		return -ENOMEM;
	w->v->edges = edges;
	depth = reallocarray(w->edge_depth, cap, sizeof(*depth));
	if (!depth)
		return -ENOMEM;
	w->edge_depth = depth;
	w->edges_cap = cap;
	return 0;
}

static int find_edge(struct walk *w, uint32_t caller, uint32_t callee, uint32_t *ret)
{
	uint64_t key = (uint64_t)callee << 32 | caller;
	uint32_t edge = (uint32_t)w->v->nedges;
	int err;

	if (map_get(&w->edges, key, ret))
		return 0;
	err = reserve_edge(w);
	if (!err)
		err = map_put(&w->edges, key, edge);
	if (err)
		return err;
	w->v->edges[edge] = (struct view_edge){.caller = caller, .callee = callee};
	w->edge_depth[edge] = 0;
	w->v->nedges++;
	*ret = edge;
	return 0;
}

/* Whether a node is the outermost of its function or edge on the path. */
struct outermost {
	bool calls;
	const uint64_t *cum; /* its cumulative times if it is the outermost; otherwise NULL */
};

static void add_to_row(struct view_row *r, const struct snapshot_node *n, struct outermost o)
{
	r->ncalls += n->calls;
	r->inflight += n->inflight;
	if (o.calls)
		r->pcalls += n->calls;
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
		r->tot[c] += n->self[c];
		if (o.cum)
			r->cum[c] += o.cum[c];
		if (n->min[c] < r->min[c])
			r->min[c] = n->min[c];
		if (n->max[c] > r->max[c])
			r->max[c] = n->max[c];
	}
}

static void add_to_edge(struct view_edge *e, const struct snapshot_node *n, struct outermost o)
{
	e->ncalls += n->calls;
	if (o.calls)
		e->pcalls += n->calls;
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
		e->tot[c] += n->self[c];
		if (o.cum)
			e->cum[c] += o.cum[c];
	}
}

/*
 * Counted calls are known by caller and callee only: a caller's node may exist only to hold its
 * callees, and recursion is not visible. Samples in the same snapshot have whole stacks.
 */
static bool is_row(const struct walk *w, uint32_t i)
{
	const struct snapshot_node *n = &w->s->nodes[i];

	const uint64_t *cum = w->tree->nodes[i].cum;

	return n->parent != SNAPSHOT_NONE && (!w->counted || n->calls || cum[SNAPSHOT_CPU] ||
					      cum[SNAPSHOT_WALL] || (w->memory && w->memory[i]));
}

static struct outermost outermost(const struct walk *w, uint32_t depth, const uint64_t *cum)
{
	return (struct outermost){
		.calls = depth == 0 || w->counted,
		.cum = depth == 0 ? cum : NULL,
	};
}

static int node_enter(void *ctx, uint32_t i)
{
	struct walk *w = ctx;
	const struct snapshot_node *n = &w->s->nodes[i];
	const uint64_t *cum = w->tree->nodes[i].cum;
	uint32_t edge;
	int err;

	if (!is_row(w, i))
		return 0;
	err = find_edge(w, w->s->nodes[n->parent].func, n->func, &edge);
	if (err)
		return err;
	w->edge_of[i] = edge;
	if (w->is_row)
		w->is_row[i] = ROW | (w->func_depth[n->func] == 0 ? ROW_OUTERMOST : 0);
	add_to_row(&w->v->rows[n->func], n, outermost(w, w->func_depth[n->func]++, cum));
	add_to_edge(&w->v->edges[edge], n, outermost(w, w->edge_depth[edge]++, cum));
	per_call_add(&w->v->rows[n->func].calls, w->s, i, w->source);
	per_call_add(&w->v->edges[edge].calls, w->s, i, w->source);
	return 0;
}

static void node_leave(void *ctx, uint32_t i)
{
	struct walk *w = ctx;
	const struct snapshot_node *n = &w->s->nodes[i];

	if (!is_row(w, i))
		return;
	w->func_depth[n->func]--;
	w->edge_depth[w->edge_of[i]]--;
}

static int walk_threads(struct walk *w)
{
	const struct tree_visitor visitor = {node_enter, node_leave, w};
	int err = 0;

	for (uint32_t t = 0; t < w->s->nthreads && !err; t++) {
		if (!view_selects(w->filter, &w->s->threads[t]))
			continue;
		w->counted = snapshot_thread_mode(w->s, t) == MODE_COUNT;
		w->source = per_call_source(w->s, t);
		err = tree_walk(w->tree, w->s->threads[t].root, &visitor);
	}
	return err;
}

/*
 * Adds up one column by function. all: space for one figure per node, including descendants.
 * Parents precede children.
 */
static int sum_column(const struct walk *w, int c, uint64_t *all)
{
	const struct snapshot *s = w->s;
	uint64_t *self = calloc((size_t)s->nfuncs + 1, sizeof(*self));
	uint64_t *cum = calloc((size_t)s->nfuncs + 1, sizeof(*cum));

	w->v->self[c] = self;
	w->v->cum[c] = cum;
	if (!self || !cum)
		return -ENOMEM;
	if (!s->columns[c])
		return 0;
	memcpy(all, s->columns[c], s->nnodes * sizeof(*all));
	for (uint32_t i = s->nnodes; i-- > 0;)
		if (s->nodes[i].parent != SNAPSHOT_NONE)
			column_merge(c, &all[s->nodes[i].parent], all[i]);
	for (uint32_t i = 0; i < s->nnodes; i++) {
		if (w->is_row[i] & ROW)
			column_merge(c, &self[s->nodes[i].func], s->columns[c][i]);
		if (w->is_row[i] & ROW_OUTERMOST)
			column_merge(c, &cum[s->nodes[i].func], all[i]);
	}
	return 0;
}

static int sum_columns(const struct walk *w)
{
	_cleanup_free_ uint64_t *all = NULL;

	if (!w->s->measured)
		return 0;
	all = calloc((size_t)w->s->nnodes + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	for (int c = 0; c < COLUMNS; c++)
		if (w->s->measured & COLUMN_BIT(c) && sum_column(w, c, all) < 0)
			return -ENOMEM;
	return 0;
}

/* Parents precede children. */
static int mark_memory(struct walk *w)
{
	const struct snapshot *s = w->s;

	w->memory = calloc((size_t)s->nnodes + 1, sizeof(*w->memory));
	if (!w->memory)
		return -ENOMEM;
	for (uint32_t i = s->nnodes; i-- > 0;) {
		for (int c = COLUMN_MEMORY_FIRST; c < COLUMN_MEMORY_END; c++)
			w->memory[i] |= snapshot_figure(s, c, i) != 0;
		if (w->memory[i] && s->nodes[i].parent != SNAPSHOT_NONE)
			w->memory[s->nodes[i].parent] = true;
	}
	return 0;
}

static int walk_init(struct walk *w)
{
	const struct snapshot *s = w->s;

	/* calloc(0) may return NULL, so allocate one more. */
	w->edge_of = calloc((size_t)s->nnodes + 1, sizeof(*w->edge_of));
	w->func_depth = calloc((size_t)s->nfuncs + 1, sizeof(*w->func_depth));
	w->v->rows = calloc((size_t)s->nfuncs + 1, sizeof(*w->v->rows));
	if (!w->edge_of || !w->func_depth || !w->v->rows)
		return -ENOMEM;
	for (uint32_t f = 0; f < s->nfuncs; f++)
		w->v->rows[f] = (struct view_row){.func = f, .min = {UINT64_MAX, UINT64_MAX}};
	if (s->measured) {
		w->is_row = calloc((size_t)s->nnodes + 1, sizeof(*w->is_row));
		if (!w->is_row)
			return -ENOMEM;
	}
	if (s->measured & COLUMN_BIT(COLUMN_grown) && mark_memory(w) < 0)
		return -ENOMEM;
	return tree_build(s, &w->tree);
}

/* In modes with samples, functions without a sample can have figures of memory. */
static bool row_used(const struct view *v, const struct view_row *r)
{
	if (view_row_has_time(r))
		return true;
	for (int c = COLUMN_MEMORY_FIRST; c < COLUMN_MEMORY_END; c++)
		if (v->cum[c] && v->cum[c][r->func])
			return true;
	return false;
}

static void finish_rows(struct view *v, uint32_t nfuncs)
{
	for (uint32_t f = 0; f < nfuncs; f++) {
		const struct view_row *r = &v->rows[f];

		if (!row_used(v, r))
			continue;
		/* Collections do not count as calls of functions. */
		if (!snapshot_func_is_gc(&v->snapshot->funcs[f])) {
			v->ncalls += r->ncalls;
			v->pcalls += r->pcalls;
		}
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
			v->total[c] += r->tot[c];
		for (int c = 0; c < COLUMNS; c++)
			if (v->self[c]) {
				v->self[c][v->nrows] = v->self[c][f];
				v->cum[c][v->nrows] = v->cum[c][f];
			}
		v->rows[v->nrows++] = *r;
	}
}

/* Rows still have the functions' indices. */
static void divide_calls(struct view *v)
{
	static const struct per_call unknown = {.calls = -1};

	for (size_t i = 0; i < v->nedges; i++) {
		struct view_edge *e = &v->edges[i];

		e->per_call =
			e->caller == SNAPSHOT_NONE
				? unknown
				: per_call_of(&e->calls, &v->rows[e->caller].calls, v->windows);
	}
}

static int compare_edges(const void *pa, const void *pb)
{
	const struct view_edge *a = pa, *b = pb;

	if (a->callee != b->callee)
		return a->callee < b->callee ? -1 : 1;
	return (a->caller > b->caller) - (a->caller < b->caller);
}

int view_build(const struct snapshot *s, const struct view_filter *filter, struct view **ret)
{
	_cleanup_(view_freep) struct view *v = calloc(1, sizeof(*v));
	_cleanup_(walk_deinit) struct walk w = {.s = s, .filter = filter, .v = v};
	int err;

	if (!v)
		return -ENOMEM;
	v->snapshot = s;
	err = walk_init(&w);
	if (!err)
		err = walk_threads(&w);
	if (!err)
		err = sum_columns(&w);
	if (err)
		return err;
	v->windows = per_call_windows(s, filter ? filter->pid : 0);
	divide_calls(v);
	finish_rows(v, s->nfuncs);
	if (v->nedges)
		qsort(v->edges, v->nedges, sizeof(*v->edges), compare_edges);
	*ret = TAKE_PTR(v);
	return 0;
}
