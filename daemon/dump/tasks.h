/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds asyncio's tasks to a dump (private to dump/). */
#ifndef PYPROF_DUMP_TASKS_H
#define PYPROF_DUMP_TASKS_H

#include "dump/dump.h"
#include "dump/frames.h"

/*
 * Reads asyncio's tasks, or the suspended greenlets. stacks: of the n threads. Returns 0 or -ENOMEM;
 * tasks that cannot be read only set d->err.
 */
int dump_tasks(struct dump_tasks *d, struct frames *f, bool greenlets,
	       const struct python_stack *stacks, size_t n);

#endif
