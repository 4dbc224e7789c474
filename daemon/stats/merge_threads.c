// SPDX-License-Identifier: BSD-2-Clause
/* One tree for several threads: see merge_threads.h. */
#include "stats/merge_threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

struct merging {
	const struct snapshot *s;
	struct snapshot *to;
	uint32_t *into;	     /* per node of s: its node in `to`; SNAPSHOT_NONE: not selected */
	struct map children; /* (parent, func) → node */
};

static void merging_deinit(struct merging *m)
{
	free(m->into);
	map_deinit(&m->children);
}

static int child_of(struct merging *m, uint32_t parent, uint32_t func, uint32_t *ret)
{
	uint64_t key = (uint64_t)parent << 32 | func;
	uint32_t at = m->to->nnodes;

	if (map_get(&m->children, key, ret))
		return 0;
	if (map_put(&m->children, key, at) < 0)
		return -ENOMEM;
	m->to->nodes[at] = (struct snapshot_node){
		.parent = parent, .func = func, .min = {UINT64_MAX, UINT64_MAX}};
	m->to->nnodes++;
	*ret = at;
	return 0;
}

static void add_node(struct snapshot_node *to, const struct snapshot_node *n)
{
	to->calls += n->calls;
	to->yields += n->yields;
	to->inflight += n->inflight;
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
		to->self[c] += n->self[c];
		to->min[c] = n->min[c] < to->min[c] ? n->min[c] : to->min[c];
		to->max[c] = n->max[c] > to->max[c] ? n->max[c] : to->max[c];
	}
}

/* Parents precede children. The root of the result is node 0. */
static int merge_node(struct merging *m, uint32_t i, const struct view_filter *filter)
{
	const struct snapshot_node *n = &m->s->nodes[i];
	int err = 0;

	m->into[i] = SNAPSHOT_NONE;
	if (n->parent == SNAPSHOT_NONE) {
		if (!view_selects(filter, &m->s->threads[n->thread]))
			return 0;
		m->into[i] = 0;
	} else if (m->into[n->parent] == SNAPSHOT_NONE) {
		return 0;
	} else {
		err = child_of(m, m->into[n->parent], n->func, &m->into[i]);
	}
	if (!err)
		add_node(&m->to->nodes[m->into[i]], n);
	return err;
}

static int merge_all(struct merging *m, const struct view_filter *filter)
{
	int err = 0;

	m->to->nodes[0] = (struct snapshot_node){
		.parent = SNAPSHOT_NONE, .func = SNAPSHOT_NONE, .min = {UINT64_MAX, UINT64_MAX}};
	m->to->nnodes = 1;
	for (uint32_t i = 0; i < m->s->nnodes && !err; i++)
		err = merge_node(m, i, filter);
	return err;
}

static int prepare(struct merging *m)
{
	struct snapshot *to = m->to;
	void *arena = to->arena;

	*to = *m->s;
	to->arena = arena;
	to->ncoros = to->ngil_pairs = 0;
	to->measured = 0;
	memset(to->columns, 0, sizeof(to->columns));
	to->wholes = NULL;
	memset(&to->adding, 0, sizeof(to->adding));
	to->nodes = snapshot_alloc(to, (size_t)m->s->nnodes + 1, sizeof(*to->nodes));
	to->threads = snapshot_alloc(to, 1, sizeof(*to->threads));
	to->nthreads = 1;
	m->into = calloc((size_t)m->s->nnodes + 1, sizeof(*m->into));
	return to->nodes && to->threads && m->into ? 0 : -ENOMEM;
}

int merge_threads(const struct snapshot *s, const struct view_filter *filter, struct snapshot **ret,
		  uint32_t **ret_into)
{
	_cleanup_(snapshot_freep) struct snapshot *to = snapshot_new();
	_cleanup_(merging_deinit) struct merging m = {.s = s, .to = to};
	int err = to ? prepare(&m) : -ENOMEM;

	if (!err)
		err = merge_all(&m, filter);
	if (err < 0)
		return err;
	*ret = TAKE_PTR(to);
	*ret_into = TAKE_PTR(m.into);
	return 0;
}
