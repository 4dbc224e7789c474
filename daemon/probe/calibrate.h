/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What our probes cost on this machine, measured by putting them on a process of our own that does
 * nothing else than run into them: the same BPF programs, instructions of the same class. The
 * measurement runs in a helper process, beside whatever its caller does in the meantime.
 */
#ifndef PYPROF_PROBE_CALIBRATE_H
#define PYPROF_PROBE_CALIBRATE_H

#include "base/cleanup.h"
#include "base/cost.h"
#include "plan/plan.h"
#include "python/layout.h"

struct calibration;

/* Begin to measure what this plan's sites cost; NULL: that is not possible. */
struct calibration *calibration_start(const struct layout *layout, const struct plan *plan);
/* Kills the helper if it is still at it. */
void calibration_free(struct calibration *c);
DEFINE_FREEP(struct calibration, calibration_free)

/* Take the result if it is there, so that the helper does not linger; never waits. */
void calibration_poll(struct calibration *c);

/* The costs; waits for the helper, for a few seconds at most. Not known: it could not measure. */
struct cost calibration_result(struct calibration *c);

/* The costs from the times between the events of a calibration run; for tests. Medians, in ns. */
struct calibration_times {
	uint64_t enter_leave, leave_enter; /* call, return, call, return ... */
	uint64_t enter_enter;		   /* call, call, call ... */
	uint64_t enter_yield, yield_enter;
};
struct cost calibration_cost(const struct calibration_times *t);

#endif
