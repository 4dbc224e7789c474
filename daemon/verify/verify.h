/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The self-test: a scratch process runs a test program with the target's interpreter and is traced
 * with the target's plan. Each call, return, yield, throw and unwinding, in order, is compared with
 * the known events, also while a profiler, a debugger or sys.monitoring is active. The result is
 * cached by user, interpreter file and plan (cache.h), so this happens once for each.
 *
 * The probes' cost is measured separately (calibration.h) and cached with the result.
 *
 * The scratch process has the target's user, mount namespace and root directory, but no
 * capabilities, network, devices or site directories, and limited memory and time. The target
 * itself is not changed.
 */
#ifndef PYPROF_VERIFY_VERIFY_H
#define PYPROF_VERIFY_VERIFY_H

#include "verify/result.h"

/* Takes at most a few seconds, and blocks meanwhile: the daemon runs it in a helper process
 * (offload.h). Never fails: the result is VERIFY_NOT_RUN if it is impossible. */
void verify_run(const struct verify_opts *opts, struct verify_result *ret);

#endif
