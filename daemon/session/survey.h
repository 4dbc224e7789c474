/* SPDX-License-Identifier: BSD-2-Clause */
/* A moment in which a process's calls are counted and sampled, for a forecast. */
#ifndef PYPROF_SESSION_SURVEY_H
#define PYPROF_SESSION_SURVEY_H

#include "base/cleanup.h"
#include "base/diag.h"
#include "session/forecast.h"

struct plan;
struct python;
struct target;

#define SURVEY_NS 50000000ull

/*
 * Everything is loaded, and nothing touches the process yet. survey_next puts probes on (1). SURVEY_NS
 * later it takes them off, reads what they saw, and puts them on again until there are samples enough,
 * `times` times at most; and once more, on calls' ends too, where the plan has yields single-stepped.
 * 0: that was all. survey_free takes them off.
 *
 * What is known of costs is not in the reading. -EOPNOTSUPP: this build cannot be counted, or sampled;
 * else as probe_open and probe_attach. All arguments are borrowed for the survey's lifetime.
 */
struct survey;
struct survey_of {
	const struct target *target;
	const struct python *python;
	const struct plan *plan;
	bool builtins; /* calls of C functions are calls as well, where the plan has them */
	unsigned int times;
};
int survey_begin(const struct survey_of *of, struct survey **ret, struct diag *diag);
int survey_next(struct survey *s, struct diag *diag);
struct forecast_reading survey_reading(const struct survey *s);
void survey_free(struct survey *s);
DEFINE_FREEP(struct survey, survey_free)

/* All of it, in so many moments at most. Blocks as long. */
int survey_run(const struct survey_of *of, struct forecast_reading *ret, struct diag *diag);

#endif
