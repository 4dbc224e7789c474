/* SPDX-License-Identifier: BSD-2-Clause */
/* One calling-context tree for several threads. Pure. */
#ifndef PYPROF_STATS_MERGE_THREADS_H
#define PYPROF_STATS_MERGE_THREADS_H

#include "stats/view.h"

/*
 * Returns a snapshot with one thread (pid and tid 0), whose contexts are the sums of the contexts
 * of all threads that the filter selects, in all processes. It has no optional columns. It borrows
 * functions, targets and strings from s, which must outlive it. *ret_into, which the caller frees, has its
 * node by context of s; SNAPSHOT_NONE: not selected. Returns 0 or -ENOMEM.
 */
int merge_threads(const struct snapshot *s, const struct view_filter *filter, struct snapshot **ret,
		  uint32_t **ret_into);

#endif
