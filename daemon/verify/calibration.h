/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures the probes' cost when a target is attached, on the target's interpreter (measure.h), in
 * a helper process while the daemon continues. The cost is cached with the self-test's result: a
 * cached one holds until the new one is known, which becomes a part of it.
 */
#ifndef PYPROF_VERIFY_CALIBRATION_H
#define PYPROF_VERIFY_CALIBRATION_H

#include "base/cleanup.h"
#include "base/cost.h"
#include "verify/result.h"

struct calibration;

/* Start measuring. NULL: impossible. opts is only used during this call. */
struct calibration *calibration_start(const struct verify_opts *opts);
/* Add an owner: followed children have the same cost as their parent. Returns c. */
struct calibration *calibration_share(struct calibration *c);
/* Remove an owner. The last one kills the helper if it still runs. NULL is accepted. */
void calibration_free(struct calibration *c);
DEFINE_FREEP(struct calibration, calibration_free)

/* Wait up to ms (0: do not wait) for the result, and reap the helper. Returns whether the result is
 * final; a helper that takes too long is killed. */
bool calibration_wait(struct calibration *c, int ms);

/* The costs. Unknown: calibration_wait() has not returned true, or the measurement failed. */
struct cost calibration_result(const struct calibration *c);

/*
 * The cost that was measured before: on this build, or else on another one (*ret_other), on this
 * machine and kernel. Hits differ by less between builds than between machines. Unknown if there is
 * none.
 */
struct cost calibration_before(const struct verify_opts *opts, bool *ret_other);

#endif
