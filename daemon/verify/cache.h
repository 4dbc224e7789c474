/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verdicts kept between runs (private to verify/): one small file per build-id, in $CACHE_DIRECTORY
 * (systemd), else $XDG_CACHE_HOME/pyprofd, else /var/cache/pyprofd. Only right verdicts are kept. A
 * directory or file that anyone else could have written, or that says anything unexpected, counts
 * as not there.
 */
#ifndef PYPROF_VERIFY_CACHE_H
#define PYPROF_VERIFY_CACHE_H

#include "verify/verify.h"

/* 0, or a negative errno if there is no verdict on this build with this plan. */
int cache_load(const struct python *py, const struct plan *plan, struct verify_result *ret);
/* A cache that cannot be written is none: no error. */
void cache_store(const struct python *py, const struct plan *plan, const struct verify_result *v);
/* What the probes cost, with the verdict that is kept; without one, nothing is kept. Not known:
 * there is no verdict, or none with costs. */
struct cost cache_load_cost(const struct python *py, const struct plan *plan);
void cache_store_cost(const struct python *py, const struct plan *plan, const struct cost *cost);

#endif
