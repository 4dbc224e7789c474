/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program's own time in a window: elapsed time minus the cost of the events. Ends the window at
 * its limit. Pure; all times are in ns.
 */
#ifndef PYPROF_ACCURACY_WINDOW_H
#define PYPROF_ACCURACY_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cost.h"

/* Minimum own time per event, with the probes' time subtracted */
#define WINDOW_OWN_NS 25u

struct window {
	uint64_t begin_ts;
	uint64_t limit_ns;	/* of the program's own time; 0: no window is open */
	uint64_t shown_ns;	/* final value, if the limit has ended the window */
	bool cut;		/* it ends with the next event */
	uint64_t events, taken; /* in this window: number and cost of events */
	uint64_t taken_ever;	/* cost of events in all windows, including discarded events */
	uint32_t cost[COST_KINDS];
};

/* Begin a window of length_ns (0: unlimited). cost: per event, as known now. */
static inline void window_open(struct window *w, uint64_t length_ns, const struct cost *cost)
{
	/* events and their costs are also counted without a limit */
	w->limit_ns = length_ns ? length_ns : UINT64_MAX;
	w->shown_ns = 0;
	w->cut = false;
	w->events = w->taken = 0;
	for (int k = 0; k < COST_KINDS; k++)
		w->cost[k] = cost->before[k] + cost->after[k];
}

/* Forget the time shown so far; the window stays open. */
static inline void window_clear(struct window *w)
{
	w->events = w->taken = 0;
}

/* The time shown up to ts */
static inline uint64_t window_shown(const struct window *w, uint64_t ts)
{
	uint64_t passed = ts > w->begin_ts ? ts - w->begin_ts : 0;
	uint64_t own = passed > w->taken ? passed - w->taken : 0;
	uint64_t least = w->events * WINDOW_OWN_NS;

	if (own < least)
		own = least < passed ? least : passed;
	return own;
}

/* Close the open window at *ret_end: ts, or earlier if the limit was reached. Returns the time shown. */
static inline uint64_t window_close(const struct window *w, uint64_t ts, uint64_t *ret_end)
{
	uint64_t shown = window_shown(w, ts);

	*ret_end = ts;
	if (shown > w->limit_ns) {
		/* between events, own time equals elapsed time */
		*ret_end = ts - (shown - w->limit_ns);
		shown = w->limit_ns;
	}
	return shown;
}

/* Correct `shown` (from window_close()) if events cost scale times the cost given at window_open(). */
static inline uint64_t window_rescale(const struct window *w, uint64_t shown, double scale)
{
	double own = (double)shown - (scale - 1) * (double)w->taken;
	double least = (double)(w->events * WINDOW_OWN_NS);

	return (uint64_t)(own > least ? own : least);
}

/* Count an event at ts. False: the window ended before it, at *ret_end. Its cost is added to
 * taken_ever in any case. Inline, because each event in a window needs it. */
static inline bool window_admit(struct window *w, uint64_t ts, enum cost_kind kind,
				uint64_t *ret_end)
{
	w->taken_ever += w->cost[kind];
	if (window_shown(w, ts) < w->limit_ns && !w->cut) {
		w->events++;
		w->taken += w->cost[kind];
		return true;
	}
	w->shown_ns = window_close(w, ts, ret_end);
	return false;
}

/* Add the cost of an event outside of any window. */
static inline void window_discard(struct window *w, enum cost_kind kind)
{
	w->taken_ever += w->cost[kind];
}

#endif
