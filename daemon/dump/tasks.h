/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds asyncio's tasks to a dump (private to dump/). */
#ifndef PYPROF_DUMP_TASKS_H
#define PYPROF_DUMP_TASKS_H

#include "dump/dump.h"
#include "dump/frames.h"

/* stacks: of the dump's first n threads. Returns 0 or -ENOMEM; tasks that cannot be read are an
 * error of d->tasks_err only. */
int dump_tasks(struct dump *d, struct frames *f, const struct python_stack *stacks, size_t n);

#endif
