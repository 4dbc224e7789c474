/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The index of a merged file, its first member: which files' intervals it contains,
 *
 * 	{"merged": ["2026-11-26T14/143010-1f2e3d4c.gz", …]}
 *
 * These files do not count any more, whether they are still there or not. (Names are unique: they
 * have the time and 32 random bits.)
 */
#ifndef PYPROF_HISTORY_DISK_INDEX_H
#define PYPROF_HISTORY_DISK_INDEX_H

#include <stddef.h>

#include "base/diag.h"

/* The member. *ret is malloc'ed. Returns 0 or a negative errno. */
int disk_index_pack(const char *const *names, size_t n, void **ret, size_t *ret_size,
		    struct diag *diag);

/* Untrusted data: passes each name to fn, unless it is NULL. *ret_size: the bytes before the intervals.
 * Returns 0, or -EBADMSG if it is damaged. */
typedef void (*disk_index_fn)(void *ctx, const char *name);
int disk_index_read(const void *data, size_t size, disk_index_fn fn, void *ctx, size_t *ret_size);

#endif
