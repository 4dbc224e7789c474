/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures the probes' cost when a target is attached, in a helper process while the daemon
 * continues: on the target's interpreter (measure.h), or else on similar instructions
 * (probe/calibrate.h). A cost measured on the interpreter is cached with the self-test's result, so
 * this happens once per build.
 */
#ifndef PYPROF_VERIFY_CALIBRATION_H
#define PYPROF_VERIFY_CALIBRATION_H

#include "base/cleanup.h"
#include "base/cost.h"
#include "verify/result.h"

struct calibration;

/* Start measuring. synthetic: do not run the target's interpreter. NULL: impossible. opts is only
 * used during this call. */
struct calibration *calibration_start(const struct verify_opts *opts, bool synthetic);
/* Add an owner: followed children have the same cost as their parent. Returns c. */
struct calibration *calibration_share(struct calibration *c);
/* Remove an owner. The last one kills the helper if it still runs. NULL is accepted. */
void calibration_free(struct calibration *c);
DEFINE_FREEP(struct calibration, calibration_free)

/* Wait up to ms (0: do not wait) for the result, and reap the helper. Returns whether the result is
 * final; a helper that takes too long is killed. */
bool calibration_wait(struct calibration *c, int ms);

/* Call calibration_wait() when the descriptor is readable, or at the deadline (CLOCK_MONOTONIC ns). */
int calibration_fd(const struct calibration *c);
uint64_t calibration_deadline(const struct calibration *c);

/* The costs. Unknown: calibration_wait() has not returned true, or the measurement failed. */
struct cost calibration_result(const struct calibration *c);

#endif
