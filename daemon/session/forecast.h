/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Forecasts the overhead of each mode for a process, from a short measurement in which its calls
 * were counted and sampled (survey.c). Pure.
 */
#ifndef PYPROF_SESSION_FORECAST_H
#define PYPROF_SESSION_FORECAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cost.h"
#include "base/target_opts.h"

/* The result of counting calls while sampling (mode count with a rate). */
struct forecast_reading {
	uint64_t calls;
	uint64_t samples;   /* that hit the program itself */
	uint64_t of_probes; /* that hit the probes' time */
	double yields; /* share of calls ending in a yield, if those are single-stepped; else 0 */
	double period_ns; /* CPU time per sample, ns */
	struct cost cost; /* of hits in a scratch process; may be unknown */
};

/* Overheads are fractions of the program's own CPU time. */
struct forecast {
	bool measured;	    /* false: calls were not counted (mode sample needs no probes) */
	bool known;	    /* false: not measured, or the process used too little CPU time */
	double calls_per_s; /* per second of its own CPU time */
	double trace, count;
};

struct forecast forecast_of(const struct forecast_reading *r);

/* Returns whether there are enough samples for a forecast. */
bool forecast_suffices(const struct forecast_reading *r);

/* Returns the overhead of observing the process with these options, as a fraction; 0 if unknown. */
double forecast_cost(const struct forecast *f, const struct target_opts *opts);

/*
 * Formats "trace +192 % · count +85 % · …", where trace is of every call; if calls were not counted,
 * only `cost` (a fraction). Of a target with a limit (percent; 0: none), the limit, as its calls are
 * not counted before. Returns out.
 */
#define FORECAST_TEXT 256
const char *forecast_text(const struct forecast *f, double cost, uint32_t limit,
			  char out[FORECAST_TEXT]);
/*
 * Suggests options with less overhead than `cost` (a fraction). Returns a static string; NULL: the
 * cost is low or there is no forecast.
 */
const char *forecast_advice(const struct forecast *f, double cost);
/*
 * The question for consent (base/consent.h) to these options: "trace every call? it costs about +594
 * % of its own CPU time". Returns out; NULL: the cost needs no consent, or there is no forecast.
 */
const char *forecast_question(const struct forecast *f, const struct target_opts *opts,
			      char out[FORECAST_TEXT]);

#endif
