/* SPDX-License-Identifier: BSD-2-Clause */
/* What formats say of logical stacks. */
#ifndef PYPROF_FORMAT_COROUTINES_H
#define PYPROF_FORMAT_COROUTINES_H

#include "format/format.h"

/* How many instances have begun and were not seen to end. */
uint64_t coroutine_open(const struct snapshot_coro *c);

/* Is it one of those that the options select? None is, of a thread. */
bool coroutine_selected(const struct snapshot *s, const struct snapshot_coro *c,
			const struct format_opts *o);

#endif
