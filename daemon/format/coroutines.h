/* SPDX-License-Identifier: BSD-2-Clause */
/* Coroutine lifetimes: helpers that several formats share. */
#ifndef PYPROF_FORMAT_COROUTINES_H
#define PYPROF_FORMAT_COROUTINES_H

#include "format/format.h"

/* Returns the number of instances that have started and have not been seen to end. */
uint64_t coroutine_open(const struct snapshot_coro *c);

/*
 * Returns whether the options select this entry. False if they select threads, since coroutines
 * belong to none.
 */
bool coroutine_selected(const struct snapshot *s, const struct snapshot_coro *c,
			const struct format_opts *o);

/*
 * Returns for each function how many of its calls (ncalls) are resumptions of generators and
 * coroutines; the others start one. RESUMED_NONE: it is no such function, or unknown, as for single
 * threads and in windows. The caller frees it. NULL: out of memory.
 */
#define RESUMED_NONE UINT64_MAX
uint64_t *coroutine_resumptions(const struct snapshot *s, const struct view_filter *filter);

#endif
