/* SPDX-License-Identifier: BSD-2-Clause */
/* A moment in which a process's calls are counted and sampled, for a forecast. */
#ifndef PYPROF_SESSION_SURVEY_H
#define PYPROF_SESSION_SURVEY_H

#include "base/diag.h"
#include "session/forecast.h"

struct plan;
struct python;
struct target;

/*
 * Probes are on for SURVEY_NS, up to SURVEY_TIMES times until there are samples enough; and once more,
 * on calls' ends too, where the plan has yields single-stepped. Blocks as long. What is known of costs is not in *ret. -EOPNOTSUPP: this build cannot be counted, or sampled;
 * else as probe_open and probe_attach. All arguments are borrowed.
 */
#define SURVEY_NS    50000000ull
#define SURVEY_TIMES 10
int survey_run(const struct target *t, const struct python *py, const struct plan *plan,
	       struct forecast_reading *ret, struct diag *diag);

#endif
