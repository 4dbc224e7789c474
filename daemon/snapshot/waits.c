// SPDX-License-Identifier: BSD-2-Clause
/* Adjusting reasons for waiting: see waits.h. */
#include "snapshot/waits.h"

#define FIRST_KIND COLUMN_io_disk
#define END_KIND   (COLUMN_io_device + 1)

static uint64_t sum_of(const struct snapshot *s, uint32_t node, int first, int end)
{
	uint64_t sum = 0;

	for (int c = first; c < end; c++)
		sum += snapshot_figure(s, c, node);
	return sum;
}

/*
 * Scales columns that add up to `sum` in this node so that they add up to `want`, which is not
 * larger.
 */
static void scale(struct snapshot *s, uint32_t node, int first, int end, uint64_t sum,
		  uint64_t want)
{
	uint64_t left = want;
	int largest = first;

	for (int c = first; c < end; c++) {
		uint64_t *v = s->columns[c] ? &s->columns[c][node] : NULL;

		if (!v)
			continue;
		if (*v > snapshot_figure(s, largest, node) || !s->columns[largest])
			largest = c;
	}
	for (int c = first; c < end; c++) {
		uint64_t *v = s->columns[c] ? &s->columns[c][node] : NULL;

		if (!v || c == largest)
			continue;
		*v = (uint64_t)((unsigned __int128)*v * want / sum);
		left -= *v;
	}
	s->columns[largest][node] = left;
}

static void fit(struct snapshot *s, uint32_t node)
{
	const struct snapshot_node *n = &s->nodes[node];
	uint64_t sum = sum_of(s, node, COLUMN_WAITS_FIRST, COLUMN_WAITS_END), kinds;
	uint64_t want = n->self[SNAPSHOT_WALL] > n->self[SNAPSHOT_CPU]
				? n->self[SNAPSHOT_WALL] - n->self[SNAPSHOT_CPU]
				: 0;

	if (sum <= want)
		return;
	scale(s, node, COLUMN_WAITS_FIRST, COLUMN_WAITS_END, sum, want);
	kinds = sum_of(s, node, FIRST_KIND, END_KIND);
	if (kinds > snapshot_figure(s, COLUMN_io, node))
		scale(s, node, FIRST_KIND, END_KIND, kinds, snapshot_figure(s, COLUMN_io, node));
}

void snapshot_fit_waits(struct snapshot *s)
{
	if (!(s->measured & COLUMN_WAITS))
		return;
	for (uint32_t i = 0; i < s->nnodes; i++)
		fit(s, i);
}
