/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What our probes cost on this machine, measured by putting them on a process of our own that does
 * nothing else than run into them: the same BPF programs, instructions of the same class. For where
 * the target's own interpreter cannot be measured (verify/measure.h), which is the better way.
 */
#ifndef PYPROF_PROBE_CALIBRATE_H
#define PYPROF_PROBE_CALIBRATE_H

#include "base/cost.h"
#include "plan/plan.h"
#include "python/layout.h"

/*
 * Measure what this plan's sites cost. Not known: it could not be measured. To be called in a
 * process made for it: memory is not freed, nor the scratch process ended, which the caller's end
 * does both.
 */
struct cost calibrate_synthetic(const struct layout *layout, const struct plan *plan);

/* The costs from the times between the events of a calibration run, ns, less what passes between
 * them anyway. Pure. */
struct calibration_times {
	uint64_t enter_leave, leave_enter; /* call, return, call, return ... */
	uint64_t enter_enter;		   /* call, call, call ... */
	uint64_t enter_yield, yield_enter;
};
struct cost calibration_cost(const struct calibration_times *t);

#endif
