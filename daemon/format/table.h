/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table that pstats would hold: functions identified by (file, line, name) only, on one clock,
 * with their callers. Rows of the view that differ only in their qualified name are one row here.
 */
#ifndef PYPROF_FORMAT_TABLE_H
#define PYPROF_FORMAT_TABLE_H

#include "stats/view.h"

struct table_row {
	char *file, *name; /* UTF-8, lone surrogates allowed */
	char *std;	   /* file:line(name) */
	int32_t line;
	bool listed;	 /* false: only present as a caller */
	bool gc;	 /* its calls are garbage collections */
	uint64_t nc, cc; /* calls, primitive calls */
	uint64_t tt, ct; /* own time, cumulative time: ns */
	double tt_variance,
		ct_variance; /* variances of these over all threads, ns^2; negative: unknown */
	double nc_variance;
	struct per_call_evidence calls; /* as a caller */
};

struct table_edge {
	uint32_t caller, callee; /* row indices */
	uint64_t nc, cc, tt, ct;
	struct per_call_evidence calls;
	struct per_call per_call; /* calls per call of the caller */
};

struct table {
	struct table_row *rows; /* in the view's order */
	size_t nrows;
	struct table_edge
		*edges; /* sorted by callee, then caller; excludes calls from outside Python */
	size_t nedges;
	uint32_t *row_of; /* row by function of the snapshot; SNAPSHOT_NONE: none */
};

int table_build(const struct view *v, enum snapshot_clock clock, struct table **ret);
void table_free(struct table *t);
DEFINE_FREEP(struct table, table_free)

/*
 * Converts to seconds with the arithmetic of pstats, for formats whose digits must equal pstats'.
 */
static inline double table_seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

#endif
