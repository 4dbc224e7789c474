/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures the cost of probes on this machine: attaches the same BPF programs to instructions of
 * the same class in a scratch process that does nothing but hit them. Used if the target's own
 * interpreter cannot be measured (verify/measure.h), which is more accurate.
 */
#ifndef PYPROF_PROBE_CALIBRATE_H
#define PYPROF_PROBE_CALIBRATE_H

#include "base/cost.h"
#include "plan/plan.h"
#include "python/layout.h"

/*
 * Measures the cost of this plan's sites. Returns an unknown cost on failure. Call it in a process
 * of its own: it neither frees memory nor ends the scratch process; the exit of the caller does
 * both.
 */
struct cost calibrate_synthetic(const struct layout *layout, const struct plan *plan);

/*
 * Computes the costs from the times between the events of a calibration run, in ns, minus the time
 * without probes. Pure.
 */
struct calibration_times {
	uint64_t enter_leave, leave_enter; /* call, return, call, return ... */
	uint64_t enter_enter;		   /* call, call, call ... */
	uint64_t enter_yield, yield_enter;
};
struct cost calibration_cost(const struct calibration_times *t);

#endif
