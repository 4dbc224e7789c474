/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What our probes cost a target, measured when it is attached to, in a helper process beside
 * whatever the daemon does in the meantime: on the target's own interpreter (measure.h) or, where
 * that cannot be or is not wanted, on instructions of the same kind (probe/calibrate.h). What was
 * measured on the interpreter itself is kept with the verdict on it, so it is once per build.
 */
#ifndef PYPROF_VERIFY_CALIBRATION_H
#define PYPROF_VERIFY_CALIBRATION_H

#include "base/cleanup.h"
#include "base/cost.h"
#include "verify/verify.h"

struct calibration;

/* Begin to measure; synthetic: do not run the target's interpreter. NULL: that is not possible.
 * What opts point to is needed by this call only. */
struct calibration *calibration_start(const struct verify_opts *opts, bool synthetic);
/* One more owner: children that are followed cost what their parent does. Returns c. */
struct calibration *calibration_share(struct calibration *c);
/* One owner less; by the last one, the helper is killed if it is still at it. */
void calibration_free(struct calibration *c);
DEFINE_FREEP(struct calibration, calibration_free)

/* Wait for the result, so long at most (0: not at all), and have the helper reaped when it is there.
 * Returns whether there is nothing more to wait for; a helper that takes too long is given up. */
bool calibration_wait(struct calibration *c, int ms);

/* The costs, as far as they have been waited for. Not known: not yet, or they cannot be measured. */
struct cost calibration_result(const struct calibration *c);

#endif
