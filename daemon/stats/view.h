/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Views of a snapshot: function rows, caller→callee edges, per-thread selections. Derived from the
 * calling-context tree; pure.
 *
 * Meanings (as cProfile's): ncalls counts calls at entry; pcalls those made while the function was
 * not already on the stack; tottime is self time; cumtime counts a recursion once, at its outermost
 * activation. Where calls were only counted, recursion is not known: all calls are primitive. Edge cumtime likewise counts a recursive edge's outermost activation only.
 */
#ifndef PYPROF_STATS_VIEW_H
#define PYPROF_STATS_VIEW_H

#include "base/diag.h"
#include "snapshot/snapshot.h"

struct view_row {
	uint32_t func;
	uint64_t ncalls, pcalls;
	uint32_t inflight;
	uint64_t tot[SNAPSHOT_CLOCKS], cum[SNAPSHOT_CLOCKS];
	uint64_t min[SNAPSHOT_CLOCKS], max[SNAPSHOT_CLOCKS];
};

struct view_edge {
	uint32_t caller; /* function index; SNAPSHOT_NONE: called from outside Python */
	uint32_t callee;
	uint64_t ncalls, pcalls;
	uint64_t tot[SNAPSHOT_CLOCKS], cum[SNAPSHOT_CLOCKS];
};

struct view {
	const struct snapshot *snapshot; /* borrowed */
	struct view_row *rows;		 /* functions that were called or have time */
	size_t nrows;
	/* By row, of each column that the snapshot has measured: the function's own figure, and that with
	 * all that it called, of outermost activations only. NULL: not measured. */
	uint64_t *self[COLUMNS], *cum[COLUMNS];
	struct view_edge *edges; /* sorted by callee, then caller */
	size_t nedges;
	uint64_t ncalls, pcalls;	 /* totals over rows */
	uint64_t total[SNAPSHOT_CLOCKS]; /* sum of tot over rows */
};

struct view_filter {
	uint32_t pid; /* 0: all */
	uint32_t tid; /* 0: all */
};

/* Is the thread one of those that a filter (NULL: all) selects? */
bool view_selects(const struct view_filter *filter, const struct snapshot_thread *t);

/* Have the figures standard errors? These are of all threads together: where only some of them are
 * selected they are not known. */
bool view_has_errors(const struct snapshot *s, const struct view_filter *filter);

/* Have functions durations? These are of all threads together, as errors are. */
bool view_has_durations(const struct snapshot *s, const struct view_filter *filter);

int view_build(const struct snapshot *s, const struct view_filter *filter, struct view **ret);
void view_free(struct view *v);
DEFINE_FREEP(struct view, view_free)

#endif
