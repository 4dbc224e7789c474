// SPDX-License-Identifier: BSD-2-Clause
/* Folding ended processes: see fold.h. */
#include "snapshot/fold.h"

#include <errno.h>
#include <string.h>

#include "snapshot/merge.h"

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * Makes the snapshot the same target and thread as every other folded one, so that snapshot_merge
 * adds them up. Start times are part of the identity and are made equal first.
 */
static void become(struct snapshot *s, uint64_t start_ns, uint64_t start_unix_ns)
{
	struct snapshot_target *t = &s->targets[0];

	t->pid = t->parent = 0;
	t->folded = t->folded ? t->folded : 1;
	t->cmdline = "(children that have ended)";
	t->start_ns = start_ns;
	t->start_unix_ns = start_unix_ns;
	for (uint32_t i = 0; i < s->nthreads; i++) {
		struct snapshot_thread *th = &s->threads[i];

		th->pid = th->tid = 0;
		th->name = "(ended)";
		th->folded = 0;
		th->entry = NULL;
		th->alive = false;
		th->start_ns = start_ns;
	}
	for (uint32_t i = 0; i < s->ncoros; i++)
		s->coros[i].pid = 0;
	for (uint32_t i = 0; i < s->ngil_pairs; i++)
		s->gil_pairs[i].pid = 0;
}

/* Changes nothing if out of memory. */
static int flatten_columns(struct snapshot *s)
{
	uint64_t *sums[COLUMNS] = {NULL};

	for (int c = 0; c < COLUMNS; c++) {
		if (!s->columns[c])
			continue;
		sums[c] = snapshot_alloc(s, 2, sizeof(*sums[c]));
		if (!sums[c])
			return -ENOMEM;
		for (uint32_t i = 0; i < s->nnodes; i++)
			column_merge(c, &sums[c][s->nodes[i].parent != SNAPSHOT_NONE],
				     s->columns[c][i]);
	}
	memcpy(s->columns, sums, sizeof(sums));
	return 0;
}

/* Reduces the tree to totals: the time outside Python, and one context for everything else. */
static int flatten(struct snapshot *s)
{
	struct snapshot_node *nodes = snapshot_alloc(s, 2, sizeof(*nodes));
	struct snapshot_func *func = snapshot_alloc(s, 1, sizeof(*func));
	struct snapshot_rest *rest = s->rest ? snapshot_alloc(s, 2, sizeof(*rest)) : NULL;

	if (!nodes || !func || (s->rest && !rest) || flatten_columns(s) < 0)
		return -ENOMEM;
	*func = (struct snapshot_func){.filename = "~", .name = "(truncated)", .pseudo = true};
	nodes[0] = (struct snapshot_node){.parent = SNAPSHOT_NONE, .func = SNAPSHOT_NONE};
	nodes[1] = (struct snapshot_node){.func = 0};
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
		nodes[0].min[c] = nodes[1].min[c] = UINT64_MAX;
	for (uint32_t i = 0; i < s->nnodes; i++) {
		const struct snapshot_node *n = &s->nodes[i];
		struct snapshot_node *into = &nodes[n->parent != SNAPSHOT_NONE];

		into->calls += n->calls;
		into->yields += n->yields;
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
			into->self[c] += n->self[c];
		if (rest)
			snapshot_add_rest(&rest[n->parent != SNAPSHOT_NONE], &s->rest[i]);
	}
	for (uint32_t i = 1; i < s->nthreads; i++)
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
			s->threads[0].total[c] += s->threads[i].total[c];
	for (uint32_t i = 0; i < s->ncoros; i++)
		s->targets[0].forgotten += s->coros[i].started + s->coros[i].partial;
	s->ncoros = 0;
	for (uint32_t i = 0; i < s->ngil_pairs; i++)
		s->targets[0].waits.pairs_dropped += s->gil_pairs[i].ns;
	s->ngil_pairs = 0;
	for (uint32_t i = 0; i < s->nwaits; i++)
		if (s->waits[i].func != SNAPSHOT_NONE)
			s->waits[i].func = 0;
	s->targets[0].truncated += s->nnodes;
	s->nodes = nodes;
	s->nnodes = 2;
	s->rest = rest;
	s->wholes = NULL; /* no context is left that has a caller */
	s->funcs = func;
	s->nfuncs = 1;
	s->threads[0].root = 0;
	s->nthreads = 1;
	return 0;
}

int snapshot_fold(struct snapshot **sum, struct snapshot *s, uint32_t max_nodes)
{
	const struct snapshot *list[] = {s, *sum};
	struct snapshot *old = *sum, *merged;
	uint64_t start_ns, start_unix_ns;
	int r;

	if (s->ntargets != 1)
		return -EINVAL;
	if (s->nthreads && s->nnodes + (old ? old->nnodes : 0) > max_nodes) {
		r = flatten(s);
		if (r < 0)
			return r;
	}
	start_ns = s->targets[0].start_ns;
	start_unix_ns = s->targets[0].start_unix_ns;
	if (old) {
		start_ns = earlier(start_ns, old->targets[0].start_ns);
		start_unix_ns = earlier(start_unix_ns, old->targets[0].start_unix_ns);
		become(old, start_ns, start_unix_ns);
	}
	become(s, start_ns, start_unix_ns);
	r = snapshot_merge(list, old ? 2 : 1, &merged);
	if (r < 0)
		return r;
	snapshot_free(old);
	*sum = merged;
	return 0;
}
