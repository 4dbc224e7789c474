// SPDX-License-Identifier: BSD-2-Clause
/*
 * Whole calls: see wholes.h. A node belongs to one thread, so what an outermost call has shown so far is kept in
 * its nodes, and counts when it has ended.
 */
#include "accuracy/wholes.h"

#include <stdlib.h>

#include "base/array.h"

void wholes_deinit(struct wholes *w)
{
	free(w->v);
	*w = (struct wholes){0};
}

void wholes_clear(struct wholes *w)
{
	w->n = 0;
	w->shown = false;
}

/* NULL: out of memory */
static struct wholes_node *reserve(struct wholes *w, uint32_t node)
{
	struct wholes_node *v = w->v;

	if (node >= w->cap)
		v = array_room(v, &w->cap, node + 1, ARRAY_FIRST, sizeof(*v));
	if (!v)
		return NULL;
	w->v = v;
	for (; w->n <= node; w->n++)
		v[w->n] = (struct wholes_node){0};
	return &v[node];
}

static struct wholes_node *of_call(struct wholes *w, struct thread_whole *c, uint32_t node)
{
	struct wholes_node *n = reserve(w, node);

	if (!n) {
		wholes_drop(w, c);
		return NULL;
	}
	if (!n->listed) {
		n->next = c->first;
		c->first = node + 1;
		n->listed = true;
	}
	return n;
}

void wholes_enter(struct wholes *w, struct thread_whole *c, uint32_t node, uint32_t depth)
{
	struct wholes_node *n;

	if (!c->depth && w->on && w->admits) {
		c->depth = depth;
		w->open++;
		return;
	}
	if (!c->depth)
		return;
	n = of_call(w, c, node);
	if (n)
		n->open.calls++;
}

/* Moves an outermost call's figures to those of the window, or forgets them. */
static void close_call(struct wholes *w, struct thread_whole *c, bool whole)
{
	while (c->first) {
		const uint32_t node = c->first - 1;
		struct wholes_node *n = &w->v[node];

		c->first = n->next;
		if (whole) {
			n->window.calls += n->open.calls;
			n->window.ended += n->open.ended;
		}
		n->open = (struct wholes_pair){0};
		n->listed = false;
		n->next = 0;
	}
	w->shown |= whole;
	w->open -= c->depth > 0;
	c->depth = 0;
}

void wholes_leave(struct wholes *w, struct thread_whole *c, uint32_t node, uint32_t depth)
{
	struct wholes_node *n;

	if (!c->depth)
		return;
	n = of_call(w, c, node);
	if (!n)
		return;
	n->open.ended++;
	if (depth == c->depth)
		close_call(w, c, true);
}

void wholes_drop(struct wholes *w, struct thread_whole *c)
{
	close_call(w, c, false);
}

void wholes_fold(struct wholes *w, const struct calltree *tree)
{
	for (uint32_t k = 0; k < calltree_ntouched(tree); k++) {
		const uint32_t i = calltree_touched(tree, k), parent = tree->parents[i];
		struct wholes_node *n = i < w->n ? &w->v[i] : NULL;
		const double of = parent < w->n ? (double)w->v[parent].window.ended : 0;
		double x, y;

		if (!n)
			continue;
		x = (double)n->window.calls;
		y = (double)n->window.ended;
		n->sums.x += x;
		n->sums.y += y;
		n->sums.x2 += x * x;
		n->sums.xy += x * of;
		n->sums.y2 += y * y;
	}
	for (uint32_t k = 0; k < calltree_ntouched(tree); k++)
		if (calltree_touched(tree, k) < w->n)
			w->v[calltree_touched(tree, k)].window = (struct wholes_pair){0};
	w->shown = false;
}

void wholes_move(struct wholes *w, uint32_t from, uint32_t to)
{
	const struct snapshot_whole *b = from < w->n ? &w->v[from].sums : NULL;
	struct wholes_node *a = b && b->x + b->y > 0 ? reserve(w, to) : NULL;

	if (a) /* b may have moved */
		snapshot_add_whole(&a->sums, &w->v[from].sums);
	if (from < w->n) {
		w->v[from].sums = (struct snapshot_whole){0};
		w->v[from].window = (struct wholes_pair){0};
	}
}
