/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a process does before it is observed. A reference: it is sampled for a moment (if it idles then, again after a
 * stop), which shows how it spends its time undisturbed and corrects the times of a trace (accuracy/solve.h). A survey: its calls are counted and
 * sampled for another moment, for a forecast.
 */
#ifndef PYPROF_SESSION_SURVEY_H
#define PYPROF_SESSION_SURVEY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "session/forecast.h"

struct plan;
struct profile;
struct python;
struct target;

/* The duration of a reference in ns: hundreds of samples of a busy thread. */
#define REFERENCE_NS UINT64_C(200000000)

struct reference;

/*
 * begin loads the programs; start attaches them, and waits for that unless is_ready. Samples are
 * taken until reference_end, reference_take or reference_free. py and t must remain valid until
 * start returns. *ret: to be freed by the caller. Return 0, or a negative errno; the trace then has
 * no reference samples, and works without.
 */
int reference_begin(const struct target *t, const struct python *py, struct reference **ret);
bool reference_is_ready(const struct reference *r);
int reference_start(struct reference *r);
/* Changes the time between two samples at random, see probe_jitter. To be called every REFERENCE_TURN_NS. */
#define REFERENCE_TURN_NS UINT64_C(21000000)
void reference_turn(struct reference *r, uint64_t now_ns);
/* Stops sampling and removes the timers; the samples taken so far remain readable. */
void reference_end(struct reference *r);
/* Stops sampling and passes the samples to the profile. Returns the number of samples. */
uint64_t reference_take(struct reference *r, struct profile *p);
/* r may be NULL. */
void reference_free(struct reference *r);
DEFINE_FREEP(struct reference, reference_free)

#define SURVEY_NS 50000000ull

/*
 * survey_begin begins to load the programs without touching the process. Each call of survey_next does
 * one step, and waits for the programs unless survey_is_ready. The first attaches the probes and
 * returns 1. Later calls, each SURVEY_NS after the last one, detach the probes, read the results, and attach them again (returning 1) until there are
 * enough samples, but at most for `times` intervals. If the plan has single-stepped yields, other
 * programs are loaded (returning 1), and one more interval also traces the ends of calls. Returns 0 when the survey is complete. survey_free
 * detaches the probes if necessary.
 *
 * survey_reading does not fill in the cost. Errors: -EOPNOTSUPP if this build cannot be counted or
 * sampled; otherwise as for probe_open and probe_attach. All arguments are borrowed for the
 * survey's lifetime.
 */
struct survey;
struct survey_of {
	const struct target *target;
	const struct python *python;
	const struct plan *plan;
	bool builtins; /* also count calls of C functions, if the plan has them */
	bool plain;    /* count as mode count does in this process: see struct probe_opts */
	unsigned int times;
};
int survey_begin(const struct survey_of *of, struct survey **ret, struct diag *diag);
bool survey_is_ready(const struct survey *s);
int survey_next(struct survey *s, struct diag *diag);
struct forecast_reading survey_reading(const struct survey *s);
void survey_free(struct survey *s);
DEFINE_FREEP(struct survey, survey_free)

/* Runs the whole survey of at most of->times intervals. Blocks for that time. */
int survey_run(const struct survey_of *of, struct forecast_reading *ret, struct diag *diag);

#endif
