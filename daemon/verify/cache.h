/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verdicts kept between runs (private to verify/): one small file per user and interpreter file, in
 * $CACHE_DIRECTORY (systemd), else $XDG_CACHE_HOME/pyprofd, else /var/cache/pyprofd. Only right
 * verdicts are kept. A directory or file that anyone else could have written, or that contains
 * anything unexpected, counts as not there.
 *
 * An entry serves only targets of the user that it was stored for, and only the same file: device,
 * inode, owner, size, modification and change time. A target chooses its build-id and plan, so these
 * alone would let it store a verdict that another user's target is given.
 */
#ifndef PYPROF_VERIFY_CACHE_H
#define PYPROF_VERIFY_CACHE_H

#include "verify/verify.h"

/* The directory holds at most so many entries; the oldest is removed for a new one. */
#define CACHE_ENTRIES 1024

/* All read o->python, o->plan and o->target (NULL: python->file, run as our own user). */

/* 0, or a negative errno if there is no verdict on this file with this plan for this user. */
int cache_load(const struct verify_opts *o, struct verify_result *ret);
/* A cache that cannot be written is none: no error. */
void cache_store(const struct verify_opts *o, const struct verify_result *v);
/* The cost of the probes, kept with the verdict; without one, nothing is kept. Not known: there is
 * no verdict, or none with costs. */
struct cost cache_load_cost(const struct verify_opts *o);
void cache_store_cost(const struct verify_opts *o, const struct cost *cost);

#endif
