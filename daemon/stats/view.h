/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Views of a snapshot: function rows, caller→callee edges, selections by thread. Computed from the
 * calling-context tree; pure.
 *
 * Definitions (as in cProfile): ncalls counts calls at entry; pcalls counts those made while the
 * function was not on the stack; tottime is self time; cumtime counts a recursion once, at its
 * outermost activation. An edge's cumtime likewise counts only its outermost activation. In mode
 * count recursion is unknown and all calls are primitive.
 */
#ifndef PYPROF_STATS_VIEW_H
#define PYPROF_STATS_VIEW_H

#include "base/diag.h"
#include "snapshot/snapshot.h"
#include "stats/per_call.h"

struct view_row {
	uint32_t func;
	uint64_t ncalls, pcalls;
	uint32_t inflight;
	uint64_t tot[SNAPSHOT_CLOCKS], cum[SNAPSHOT_CLOCKS];
	uint64_t min[SNAPSHOT_CLOCKS], max[SNAPSHOT_CLOCKS];
	struct per_call_evidence calls; /* as a caller */
};

/* Returns whether a row has calls or time; the others have figures of optional columns only. */
static inline bool view_row_has_time(const struct view_row *r)
{
	return r->ncalls || r->inflight || r->cum[SNAPSHOT_CPU] || r->cum[SNAPSHOT_WALL];
}

struct view_edge {
	uint32_t caller; /* index of the function; SNAPSHOT_NONE: called from outside Python */
	uint32_t callee;
	uint64_t ncalls, pcalls;
	uint64_t tot[SNAPSHOT_CLOCKS], cum[SNAPSHOT_CLOCKS];
	struct per_call_evidence calls;
	struct per_call per_call; /* calls per call of the caller */
};

struct view {
	const struct snapshot *snapshot; /* borrowed */
	struct view_row *rows;		 /* functions with calls or time */
	size_t nrows;
	/*
	 * Per row, for each measured column: the function's own figure, and the one including
	 * callees, of outermost activations only. NULL: not measured.
	 */
	uint64_t *self[COLUMNS], *cum[COLUMNS];
	struct view_edge *edges; /* sorted by callee, then caller */
	size_t nedges;
	uint64_t windows;		 /* of all targets: see per_call_windows() */
	uint64_t ncalls, pcalls;	 /* totals over rows */
	uint64_t total[SNAPSHOT_CLOCKS]; /* sum of tot over rows */
};

struct view_filter {
	uint32_t pid; /* 0: all */
	uint32_t tid; /* 0: all */
};

/* Returns whether a filter (NULL: all) selects the thread. */
bool view_selects(const struct view_filter *filter, const struct snapshot_thread *t);

/*
 * Returns whether the figures have standard errors. Errors apply to the sum of all threads, so they
 * are unknown if a filter selects only some of them.
 */
bool view_has_errors(const struct snapshot *s, const struct view_filter *filter);
/* Returns whether numbers of calls have them, because they are estimated from windows. */
bool view_estimates_calls(const struct snapshot *s, const struct view_filter *filter);

/* Returns whether functions have durations. They also apply to the sum of all threads. */
bool view_has_durations(const struct snapshot *s, const struct view_filter *filter);
/* Returns whether functions have lines, which also apply to the sum of all threads. */
bool view_has_lines(const struct snapshot *s, const struct view_filter *filter);

int view_build(const struct snapshot *s, const struct view_filter *filter, struct view **ret);
void view_free(struct view *v);
DEFINE_FREEP(struct view, view_free)

#endif
