/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Self-test results kept between runs (private to verify/): one small file per user and interpreter
 * file, in $CACHE_DIRECTORY (systemd), else $XDG_CACHE_HOME/pyprofd, else /var/cache/pyprofd. Only
 * successful results are stored. Directories and files that others can write to, or with unexpected
 * contents, are ignored.
 *
 * An entry is valid only for targets of one user, and for the same file: device, inode, owner,
 * size, modification and change time. Build-id and plan are not sufficient, because a target
 * chooses them, and could store a result that another user's target would use.
 */
#ifndef PYPROF_VERIFY_CACHE_H
#define PYPROF_VERIFY_CACHE_H

#include "verify/result.h"

/* Maximum number of entries; the oldest is removed for a new one. */
#define CACHE_ENTRIES 1024

/* All functions use o->python, o->plan and o->target (NULL: python->file, run as our own user). */

/* Returns 0, or a negative errno if there is no result for this file, plan and user. */
int cache_load(const struct verify_opts *o, struct verify_result *ret);
/* Store a result. Errors are ignored. */
void cache_store(const struct verify_opts *o, const struct verify_result *v);
/* The probes' cost, stored together with a result. Unknown if there is no result or it has no
 * cost. */
struct cost cache_load_cost(const struct verify_opts *o);
/*
 * The cost that was stored last on this kernel, with any interpreter: for the same user, or for
 * root with a file of root. Unknown if there is none.
 */
struct cost cache_load_other_cost(const struct verify_opts *o);
void cache_store_cost(const struct verify_opts *o, const struct cost *cost);

#endif
