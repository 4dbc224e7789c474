/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What each mode would cost a process, from a moment in which its calls were counted and sampled.
 * Pure; survey.c takes that moment.
 */
#ifndef PYPROF_SESSION_FORECAST_H
#define PYPROF_SESSION_FORECAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cost.h"
#include "base/target_opts.h"

/* While calls were counted with samples beside (mode count with a rate). */
struct forecast_reading {
	uint64_t calls;
	uint64_t samples;   /* of the program itself */
	uint64_t of_probes; /* of the probes' time */
	double yields; /* of all calls, the part that ends in a yield where that costs a multiple */
	double period_ns; /* CPU time that a sample stands for */
	struct cost cost; /* what hits cost a scratch process; may be not known */
};

/* Fractions of the program's own CPU time. */
struct forecast {
	bool measured;	    /* false: nobody has looked, as in mode sample, which needs no probes */
	bool known;	    /* false: not measured, or it has used too little CPU time */
	double calls_per_s; /* of its own CPU time */
	double trace, count;
};

struct forecast forecast_of(const struct forecast_reading *r);

/* Enough samples to tell. */
bool forecast_suffices(const struct forecast_reading *r);

/* What observing it in this way costs, as a fraction; 0 where nothing is known. */
double forecast_cost(const struct forecast *f, const struct target_opts *opts);

/* "trace +192 % · count +85 % · …"; where that was not measured, the cost alone. Returns out. */
#define FORECAST_TEXT 256
const char *forecast_text(const struct forecast *f, double cost, char out[FORECAST_TEXT]);
/* What costs less than that; NULL: it costs little. */
const char *forecast_advice(const struct forecast *f, double cost);

#endif
