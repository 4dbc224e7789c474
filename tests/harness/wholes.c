// SPDX-License-Identifier: BSD-2-Clause
/* Evidence of whole calls: see wholes.h. */
#include "harness/wholes.h"

#include "harness/test.h"

static double y_of(uint32_t node, const struct whole_calls *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].node == node)
			return v[i].y;
	return 0;
}

void wholes_add_window(struct snapshot *s, uint32_t target, const struct whole_calls *v, size_t n)
{
	if (!s->wholes)
		s->wholes = snapshot_alloc(s, (size_t)s->nnodes + 1, sizeof(*s->wholes));
	cr_assert(s->wholes && target < s->ntargets);
	s->targets[target].windows.sampled = true;
	s->targets[target].windows.n++;
	for (size_t i = 0; i < n; i++) {
		struct snapshot_whole *w = &s->wholes[v[i].node];
		double of_parent = y_of(s->nodes[v[i].node].parent, v, n);

		w->x += v[i].x;
		w->y += v[i].y;
		w->x2 += v[i].x * v[i].x;
		w->xy += v[i].x * of_parent;
		w->y2 += v[i].y * v[i].y;
	}
}
