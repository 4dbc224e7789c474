// SPDX-License-Identifier: BSD-2-Clause
/*
 * Merging ended threads: see ended.h. A thread is merged when ENDED_APART others have ended after
 * it, unless something still refers to its contexts: counts that the next reading replaces
 * (counting/counts.c), or what a window has shown that goes on.
 */
#include "profile/profile_priv.h"

#include <stdlib.h>
#include <string.h>

#include "stats/func.h"

/* The functions here run before the function passed to threading.Thread. */
#define THREADING "threading.py"

/* The entry function --------------------------------------------------------------------- */

/* Returns the function that was called first. Lists of children are newest first. */
static uint32_t oldest_child(const struct calltree *t, uint32_t node)
{
	uint32_t oldest = NODE_NONE;

	for (uint32_t i = t->first_child[node]; i != NODE_NONE; i = t->sibling[i])
		if (!func_is_pseudo(t->nodes[i].func))
			oldest = i;
	return oldest;
}

static bool is_named(const struct profile *p, uint32_t node, const char *name)
{
	const struct func *f = &p->codes.funcs.list[p->rb.tree.nodes[node].func];

	return strcmp(strtab_get(&p->codes.funcs.strings, f->name), name) == 0;
}

static bool is_threading(const struct profile *p, uint32_t node)
{
	const struct func *f = &p->codes.funcs.list[p->rb.tree.nodes[node].func];
	const char *file = strtab_get(&p->codes.funcs.strings, f->filename);
	const char *base = strrchr(file, '/');

	return strcmp(base ? base + 1 : file, THREADING) == 0;
}

static uint32_t child_named(const struct profile *p, uint32_t node, const char *name)
{
	uint32_t child = p->rb.tree.first_child[node];

	while (child != NODE_NONE && !is_named(p, child, name))
		child = p->rb.tree.sibling[child];
	return child;
}

/* Returns the next node inwards if this one is threading's own code; otherwise NODE_NONE. */
static uint32_t inside_threading(const struct profile *p, uint32_t node)
{
	if (!is_threading(p, node))
		return NODE_NONE;
	if (is_named(p, node, "_bootstrap"))
		return child_named(p, node, "_bootstrap_inner");
	if (is_named(p, node, "_bootstrap_inner"))
		return child_named(p, node, "run");
	return is_named(p, node, "run") ? oldest_child(&p->rb.tree, node) : NODE_NONE;
}

/*
 * Returns the function that the thread ran; SNAPSHOT_NONE: it called nothing, or the name is
 * unknown.
 */
static uint32_t entry_of(const struct profile *p, const struct thread *th)
{
	uint32_t node = oldest_child(&p->rb.tree, th->root), inner = node;

	while (inner != NODE_NONE) {
		node = inner;
		inner = inside_threading(p, node);
	}
	return node == NODE_NONE ? SNAPSHOT_NONE : p->rb.tree.nodes[node].func;
}

/* Rows ------------------------------------------------------------------------------------- */

/* NULL: out of memory. */
static struct thread *new_row(struct profile *p, uint32_t entry)
{
	struct ended *e = &p->ended;
	struct thread *row;

	if (!e->rows)
		e->rows = calloc(ENDED_ROWS + 1, sizeof(struct thread *));
	if (!e->rows || map_put(&e->row_of, entry, p->threads.nrows))
		return NULL;
	row = threads_add_row(&p->threads);
	if (!row) {
		map_del(&e->row_of, entry);
		return NULL;
	}
	row->entry = entry;
	row->start_ns = UINT64_MAX;
	e->rows[p->threads.nrows - 1] = row;
	return row;
}

static struct thread *row_for(struct profile *p, uint32_t entry)
{
	struct ended *e = &p->ended;
	uint32_t i;

	if (map_get(&e->row_of, entry, &i))
		return e->rows[i];
	if (p->threads.nrows >= ENDED_ROWS && entry != SNAPSHOT_NONE)
		return row_for(p, SNAPSHOT_NONE);
	return new_row(p, entry);
}

/* Folding ---------------------------------------------------------------------------------- */

static void node_moved(void *ctx, uint32_t from, uint32_t to)
{
	struct profile *p = ctx;

	profile_move_blocks(p, from, to);
	if (p->windows && evidence_move(&p->evidence, &p->rb.tree, from, to))
		p->rb.truncated++;
	wholes_move(&p->wholes, from, to);
	if (p->waiting.kept)
		waiting_move(&p->waiting, from, to);
}

static void add_times(struct thread *row, const struct thread *th)
{
	row->folded++;
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
		row->total[c] += th->total[c];
	if (th->start_ns < row->start_ns)
		row->start_ns = th->start_ns;
	if (th->end_ns > row->end_ns)
		row->end_ns = th->end_ns;
	if (th->last_ts > row->end_ns)
		row->end_ns = th->last_ts;
}

/* Merges the first of the separate threads. Returns false if out of memory; the thread stays. */
static bool fold_first(struct profile *p)
{
	struct ended *e = &p->ended;
	struct thread *th = e->first, *row = row_for(p, entry_of(p, th));

	if (!row)
		return false;
	add_times(row, th);
	if (p->waiting.kept)
		waiting_fold(&p->waiting, row, th);
	p->rb.truncated += calltree_fold(&p->rb.tree, th->root, row->root, node_moved, p);
	e->folded++;
	e->first = th->later;
	if (!e->first)
		e->last = NULL;
	e->napart--;
	threads_remove(&p->threads, th);
	return true;
}

void profile_fold_ended(struct profile *p)
{
	/* Counts that the next reading replaces, and what a window has shown, are located by node. */
	if (p->counts.nparts || p->tail.end_ns || p->wholes.shown)
		return;
	while (p->ended.napart > ENDED_APART)
		if (!fold_first(p))
			return;
}

void profile_add_ended(struct profile *p, struct thread *th)
{
	struct ended *e = &p->ended;

	th->later = NULL;
	if (e->last)
		e->last->later = th;
	else
		e->first = th;
	e->last = th;
	e->napart++;
	profile_fold_ended(p);
}
