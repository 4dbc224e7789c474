/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much of the program's own time a window has shown: the time that has passed, less the cost of
 * the events in it. Ends the window at its limit. Pure; all times are in ns.
 */
#ifndef PYPROF_ESTIMATE_WINDOW_H
#define PYPROF_ESTIMATE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cost.h"

/* What an event takes without a probe, at the least: so much progress is in each. */
#define WINDOW_OWN_NS 25u

struct window {
	uint64_t begin_ts;
	uint64_t limit_ns;	/* of the program's own time; 0: no window is open */
	uint64_t shown_ns;	/* all of it, where the limit has ended the window */
	uint64_t folded_ns;	/* the part that window_part() has returned so far */
	uint64_t events, taken; /* in this window: events, and what they have cost */
	uint64_t taken_ever;	/* what events have cost in all windows, discarded ones included */
	uint32_t cost[COST_KINDS];
};

/* A window of this length (0: without a limit) begins; costs: per event, as known now. */
void window_open(struct window *w, uint64_t length_ns, const struct cost *cost);
/* All that was shown is forgotten; the window goes on. */
void window_clear(struct window *w);

/* The window is still open at ts: close it at *ret_end, which is ts or earlier, where the limit was
 * reached. Returns what was shown since the last window_part(). */
uint64_t window_close(const struct window *w, uint64_t ts, uint64_t *ret_end);
/* What an open window has shown since the last call. */
uint64_t window_part(struct window *w, uint64_t ts);
/* What was shown (as window_close() says) if events cost scale times what was known when it opened. */
uint64_t window_rescale(const struct window *w, uint64_t shown, double scale);

/* How much has been shown up to ts. */
static inline uint64_t window_shown(const struct window *w, uint64_t ts)
{
	uint64_t passed = ts > w->begin_ts ? ts - w->begin_ts : 0;
	uint64_t own = passed > w->taken ? passed - w->taken : 0;
	uint64_t least = w->events * WINDOW_OWN_NS;

	if (own < least)
		own = least < passed ? least : passed;
	return own;
}

/* An event at ts belongs to the window, which counts it; false: the window ended before it, at
 * *ret_end. Either way its cost is added to taken_ever. Inline: each event in a window comes here. */
static inline bool window_admit(struct window *w, uint64_t ts, enum cost_kind kind,
				uint64_t *ret_end)
{
	uint64_t shown = window_shown(w, ts);

	w->taken_ever += w->cost[kind];
	if (shown < w->limit_ns) {
		w->events++;
		w->taken += w->cost[kind];
		return true;
	}
	/* Between events the program's time passes as the clock does. */
	*ret_end = ts - (shown - w->limit_ns);
	w->shown_ns = w->limit_ns;
	return false;
}

/* Add the cost of an event that no window shows. */
static inline void window_discard(struct window *w, enum cost_kind kind)
{
	w->taken_ever += w->cost[kind];
}

#endif
