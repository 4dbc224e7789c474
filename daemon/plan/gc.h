/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plans the sites at the start and end of garbage collections (private to plan/). Does not change
 * the plan for functions.
 */
#ifndef PYPROF_PLAN_GC_H
#define PYPROF_PLAN_GC_H

#include "plan/planner.h"

/* Sets plan->gc or, if it cannot be planned, plan->gc_missing. Returns 0 or -ENOMEM. */
int gc_plan(struct planner *p);

#endif
