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

#endif
