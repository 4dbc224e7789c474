/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads tasks until two readings agree (private to python/). */
#ifndef PYPROF_PYTHON_TASK_READINGS_H
#define PYPROF_PYTHON_TASK_READINGS_H

#include "python/details.h"
#include "python/values.h"

/* One reading. Returns 0 or -ENOMEM; *ret is owned by the caller. */
typedef int (*task_reading_fn)(struct values *v, void *ctx, struct python_tasks *ret);

/* Repeats it, up to a limit, and marks the tasks that differ in the last two readings. */
int task_readings(const struct python *py, const struct memory *mem, task_reading_fn fn, void *ctx,
		  struct python_tasks *ret);

void python_task_deinit(struct python_task *t);

#endif
