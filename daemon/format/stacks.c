// SPDX-License-Identifier: BSD-2-Clause
/* Calling contexts as stacks: see stacks.h. */
#include "format/stacks.h"

#include <errno.h>
#include <string.h>

#include "stats/tree.h"

#define HEAD (STACKS_MAX_FRAMES / 2)
#define TAIL (STACKS_MAX_FRAMES - HEAD - 1)

struct walk {
	const struct snapshot *s;
	stacks_fn fn;
	void *ctx;
	uint32_t *path; /* functions from the outermost to the current node */
	size_t depth, cap;
	struct stack stack;
};

static int reserve(struct walk *w)
{
	size_t cap = w->cap ? w->cap * 2 : 256;
	uint32_t *path;

	if (w->depth < w->cap)
		return 0;
	path = reallocarray(w->path, cap, sizeof(*path));
	if (!path)
		return -ENOMEM;
	w->path = path;
	w->cap = cap;
	return 0;
}

static void fill(struct walk *w)
{
	struct stack *st = &w->stack;

	if (w->depth <= STACKS_MAX_FRAMES) {
		st->n = w->depth;
		memcpy(st->funcs, w->path, w->depth * sizeof(*w->path));
		return;
	}
	st->n = STACKS_MAX_FRAMES;
	memcpy(st->funcs, w->path, HEAD * sizeof(*w->path));
	st->funcs[HEAD] = SNAPSHOT_NONE;
	memcpy(st->funcs + HEAD + 1, w->path + w->depth - TAIL, TAIL * sizeof(*w->path));
}

static int enter(void *ctx, uint32_t node)
{
	struct walk *w = ctx;
	const struct snapshot_node *n = &w->s->nodes[node];

	if (n->parent == SNAPSHOT_NONE)
		return 0;
	if (reserve(w) < 0)
		return -ENOMEM;
	w->path[w->depth++] = n->func;
	w->stack.thread = n->thread;
	w->stack.node = node;
	fill(w);
	return w->fn(w->ctx, &w->stack);
}

static void leave(void *ctx, uint32_t node)
{
	struct walk *w = ctx;

	if (w->s->nodes[node].parent != SNAPSHOT_NONE)
		w->depth--;
}

int stacks_each(const struct snapshot *s, const struct view_filter *filter, stacks_fn fn, void *ctx)
{
	_cleanup_(tree_freep) struct tree *t = NULL;
	struct walk w = {.s = s, .fn = fn, .ctx = ctx};
	const struct tree_visitor visitor = {enter, leave, &w};
	int err = tree_build(s, &t);

	for (uint32_t i = 0; i < s->nthreads && !err; i++)
		if (view_selects(filter, &s->threads[i]))
			err = tree_walk(t, s->threads[i].root, &visitor);
	free(w.path);
	return err;
}
