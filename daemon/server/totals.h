/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What /metrics shows of targets' functions, as counters that only grow: sums of the corrected figures of
 * the intervals between scrapes. (A corrected profile as a whole is not one: its corrections change.)
 * A clear of a target does not reset them; a new attach does.
 *
 * Of each target, the functions with the most own time recently are shown: its half-life is five minutes.
 * The first `top` become shown, and stay while they are among the first 2 * `top`, so that time series
 * do not come and go; so at most 2 * `top` are shown. Pure.
 */
#ifndef PYPROF_SERVER_TOTALS_H
#define PYPROF_SERVER_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/column.h"
#include "base/histogram.h"
#include "base/strtab.h"
#include "snapshot/snapshot.h"

#define TOTALS_BYTES	 ((size_t)128 << 20) /* of the snapshots that the next intervals begin at */
#define TOTALS_DURATIONS ((size_t)32 << 20)  /* of all histograms */
#define TOTALS_FUNCTIONS 65536u		     /* per target; what more there are is left out */
#define TOTALS_WAITS	 (COLUMN_WAITS_END - COLUMN_WAITS_FIRST)

struct total_function {
	uint64_t calls, self[SNAPSHOT_CLOCKS];
	struct histogram durations[SNAPSHOT_CLOCKS];
	double score; /* own time recently, ns; calls where times are not measured */
	bool shown;
};

struct total_target {
	uint32_t pid;
	uint64_t start_ns;
	struct snapshot *before; /* as taken, at the last interval's end */
	size_t before_bytes;
	struct strtab names; /* file:line(name), by function */
	struct total_function *functions;
	uint32_t n, cap;
	bool has_calls, has_self[SNAPSHOT_CLOCKS], has_waits, has_gc;
	uint64_t waits[TOTALS_WAITS]; /* by reason */
	uint64_t collections, gc[SNAPSHOT_CLOCKS];
	uint64_t probes_ns; /* subtracted CPU time */
	bool seen;
};

struct totals {
	struct total_target *v;
	size_t n;
	uint64_t at_ns;		/* end of the last interval; 0: none */
	size_t durations_bytes; /* of all histograms */
	size_t max;		/* 0: TOTALS_BYTES */
	uint64_t skipped;	/* targets whose snapshots did not fit, at present */
};

/*
 * Add an interval: begin, add the snapshot as taken of each target that has not ended, end. Those that
 * were not added are forgotten. now_ns: the time of the snapshots. add takes ownership of s. Returns 0
 * or -ENOMEM; the target then begins anew.
 */
void totals_begin(struct totals *t);
int totals_add(struct totals *t, struct snapshot *s, uint64_t now_ns);
void totals_end(struct totals *t, size_t top, uint64_t now_ns);
void totals_deinit(struct totals *t);

/* Update which of n functions are shown, by their scores; those without one are not. Returns 0 or
 * -ENOMEM, with nothing changed. */
int totals_choose(struct total_function *v, uint32_t n, size_t top);

#endif
