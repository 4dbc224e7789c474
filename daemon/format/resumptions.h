/* SPDX-License-Identifier: BSD-2-Clause */
/* Which of a function's calls are resumptions of generators and coroutines. Pure. */
#ifndef PYPROF_FORMAT_RESUMPTIONS_H
#define PYPROF_FORMAT_RESUMPTIONS_H

#include "stats/view.h"

/*
 * Returns for each function how many of its calls (ncalls) are resumptions of generators and
 * coroutines; the others start one. RESUMED_NONE: it is no such function, or unknown, as for single
 * threads and in windows. The caller frees it. NULL: out of memory.
 */
#define RESUMED_NONE UINT64_MAX
uint64_t *resumptions_new(const struct snapshot *s, const struct view_filter *filter);

#endif
