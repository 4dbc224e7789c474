/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where collections of the cyclic garbage collector begin and end (private to plan/). Nothing here
 * changes the plan for functions.
 */
#ifndef PYPROF_PLAN_GC_H
#define PYPROF_PLAN_GC_H

#include "plan/planner.h"

/* Fills plan->gc, or plan->gc_missing. -ENOMEM. */
int gc_plan(struct planner *p);

#endif
