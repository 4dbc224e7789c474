/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reduced snapshots for reports: file names without directories, or library code and some C
 * functions folded into their callers, or waits for work left out. Pure. The result borrows strings, targets and threads from
 * its source, which must outlive it.
 */
#ifndef PYPROF_STATS_REDUCE_H
#define PYPROF_STATS_REDUCE_H

#include "snapshot/snapshot.h"

/* The function for library code that was not called from the program's own code. */
#define REDUCE_LIBRARY "(library)"

/* Returns whether the file belongs to the standard library or to an installed package. */
bool reduce_is_library(const char *filename);

/*
 * strip_dirs removes directories from file names; functions that become equal are merged by
 * reports, not here. Folding adds a function's time to its caller and makes the caller the caller
 * of its callees. only_my_code folds library code. `fold` (one element per function; NULL: none)
 * folds functions marked true; builtins_of (borrowed) is the pattern that selected them, for
 * reports. busy leaves out the contexts that snapshot_pseudo() added for waits for work: their times,
 * the reasons for waiting of their callers, and their part of the threads' wall time. Returns 0 or -ENOMEM.
 */
struct reduce_opts {
	bool strip_dirs, only_my_code, busy;
	const bool *fold;
	const char *builtins_of;
};

int reduce_snapshot(const struct snapshot *s, const struct reduce_opts *o, struct snapshot **ret);

#endif
