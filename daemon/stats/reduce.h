/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Snapshots with less in them, for reports: without directories, or with library code or some of the
 * C functions folded into their callers. Pure. What is made here borrows strings, targets and threads from the
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
 * File names without their directories; nothing is added up, reports know functions by name. Time in
 * a function that is folded is its caller's own, and what it called was called by that: library code
 * with only_my_code, the functions that have a true in `fold` (one per function; NULL: none), of
 * which builtins_of (borrowed) says in words which they are. -ENOMEM.
 */
struct reduce_opts {
	bool strip_dirs, only_my_code;
	const bool *fold;
	const char *builtins_of;
};

int reduce_snapshot(const struct snapshot *s, const struct reduce_opts *o, struct snapshot **ret);

#endif
