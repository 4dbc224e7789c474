/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Snapshots with less in them, for reports: without directories, or with library code folded into
 * whoever called it. Pure. What is made here borrows strings, targets and threads from the
 * snapshot that it was made of, which must outlive it.
 */
#ifndef PYPROF_STATS_REDUCE_H
#define PYPROF_STATS_REDUCE_H

#include "snapshot/snapshot.h"

/* Stands for library code that no code of the program's own called. */
#define REDUCE_LIBRARY "(library)"

/* Is this file part of the standard library, or was it installed? */
bool reduce_is_library(const char *filename);

/*
 * File names without their directories; nothing is added up, reports know functions by name. With
 * only_my_code, time in library code is its caller's own, and what it called was called by that.
 * -ENOMEM.
 */
struct reduce_opts {
	bool strip_dirs, only_my_code;
};

int reduce_snapshot(const struct snapshot *s, const struct reduce_opts *o, struct snapshot **ret);

#endif
