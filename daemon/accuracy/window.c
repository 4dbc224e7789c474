// SPDX-License-Identifier: BSD-2-Clause
/* The program's own time in a window: see window.h. */
#include "accuracy/window.h"

void window_open(struct window *w, uint64_t length_ns, const struct cost *cost)
{
	/* events and their costs are also counted without a limit */
	w->limit_ns = length_ns ? length_ns : UINT64_MAX;
	w->shown_ns = 0;
	w->cut = false;
	w->events = w->taken = 0;
	for (int k = 0; k < COST_KINDS; k++)
		w->cost[k] = cost->before[k] + cost->after[k];
}

void window_clear(struct window *w)
{
	w->events = w->taken = 0;
}

uint64_t window_close(const struct window *w, uint64_t ts, uint64_t *ret_end)
{
	uint64_t shown = window_shown(w, ts);

	*ret_end = ts;
	if (shown > w->limit_ns) {
		*ret_end = ts - (shown - w->limit_ns);
		shown = w->limit_ns;
	}
	return shown;
}

uint64_t window_rescale(const struct window *w, uint64_t shown, double scale)
{
	double own = (double)shown - (scale - 1) * (double)w->taken;
	double least = (double)(w->events * WINDOW_OWN_NS);

	return (uint64_t)(own > least ? own : least);
}
