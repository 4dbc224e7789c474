// SPDX-License-Identifier: BSD-2-Clause
/*
 * Computes the overhead of each mode from calls and samples. The cost of a call's hit is measured
 * in the process itself, by the samples that hit the probes' time. The cost of a call's end (return
 * or yield) relative to that comes from the scratch process.
 */
#include "session/forecast.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/consent.h"

#define ENOUGH	  100 /* samples of the program */
#define LEAST	  10
#define OF_PROBES 20 /* samples of the probes that suffice to determine a hit's cost */
#define ADVISE	  0.25

bool forecast_suffices(const struct forecast_reading *r)
{
	return r->samples >= ENOUGH;
}

static struct cost cost_of(const struct forecast_reading *r)
{
	return r->cost.known ? r->cost : cost_guess(0);
}

/* Returns the mean cost of the end of a call, in ns. */
static double end_ns(const struct forecast_reading *r)
{
	const struct cost c = cost_of(r);
	const double yield = r->cost.known ? cost_hit(&c, COST_YIELD) : COST_STEPPED_NS;

	return (1 - r->yields) * cost_hit(&c, COST_LEAVE) + r->yields * yield;
}

/*
 * What a call and its end cost in a trace. Counting shows what this program's calls cost, but counts otherwise
 * than a trace records; a scratch process shows the cost in a trace, but not of this program. By the slowdown
 * of three programs, it was some 1020, 1250 and 1530 ns; by the one 1100, 1540 and 2090, by the other 1140.
 */
static double pair_ns(const struct forecast_reading *r, double hit)
{
	const struct cost c = cost_of(r);
	const double enter = cost_enter(&c), pair = enter + end_ns(r),
		     as_counted = hit / enter * pair;

	return r->cost.known ? (as_counted + pair) / 2 : as_counted;
}

/*
 * When calls are counted, intervals of 40 to 200 ns were prolonged by 0.2 to 1.2 of their length, by half of
 * it on average (16 programs): less than cost_cold() alone says, which is of traces. A compromise.
 */
#define COUNTED_TIMES  0.7
#define COUNTED_LONGER 1.4

/*
 * The sampled time includes the post-trap slowdown after each hit. Tracing also hits returns, so
 * the slowdown is first removed and then added for twice as many hits: see base/cost.h. Where traps are slow,
 * nearly all of the sampled time can be slowdown; a tenth remains.
 */
struct forecast forecast_of(const struct forecast_reading *r)
{
	/*
	 * If probes take nearly all of its time, there may be no sample of the program; assume one.
	 */
	double seen = (double)(r->samples ? r->samples : 1) * r->period_ns;
	double calls = (double)r->calls, hit, hits, cold, each, own;
	const struct cost c = cost_of(r);
	struct forecast f = {.measured = true};

	if (r->samples < LEAST && r->samples + r->of_probes < ENOUGH)
		return f;
	hit = r->of_probes >= OF_PROBES && r->calls ? (double)r->of_probes * r->period_ns / calls
						    : cost_enter(&c);
	hits = pair_ns(r, hit);
	cold = cost_cold(hit);
	each = cost_each(hit) * calls;
	own = calls > 0 ? cost_undisturbed(COUNTED_LONGER * cold, calls,
					   fmax(seen - each, seen / 10), COUNTED_TIMES)
			: seen;
	if (own <= 0)
		return f;
	f.known = true;
	f.calls_per_s = calls / own * 1e9;
	f.count = (calls * hit + seen - own) / own;
	f.trace = calls * hits / own;
	if (calls > 0)
		f.trace += (cost_cold_slowdown(cold, 2 * calls, own) + 2 * each) / own;
	return f;
}

static double cost_of_samples(uint32_t rate)
{
	return (double)COST_SAMPLE_NS * rate / 1e9;
}

double forecast_cost(const struct forecast *f, const struct target_opts *o)
{
	double samples = cost_of_samples(target_opts_rate(o));

	if (!f->known || o->mode.mode == MODE_SAMPLE)
		return o->mode.mode == MODE_SAMPLE ? samples : 0;
	if (target_opts_limit(o))
		return fmin(f->trace, (double)target_opts_limit(o) / 100);
	return (o->mode.mode == MODE_COUNT ? f->count : f->trace) + samples;
}

static int put_share(char *out, size_t size, const char *mode, double share)
{
	return snprintf(out, size, "%s +%.*f %%", mode, share < 0.0995 ? 1 : 0, 100 * share);
}

const char *forecast_text(const struct forecast *f, double cost, uint32_t limit,
			  char out[FORECAST_TEXT])
{
	struct target_opts initial, sample;
	size_t n = 0;

	target_opts_init(&initial);
	sample = initial;
	sample.mode.mode = MODE_SAMPLE;
	const double samples = forecast_cost(f, &sample);
	const struct {
		const char *mode;
		double share;
	} rows[] = {{"trace", f->trace},
		    {" · count", f->count},
		    {" · count+samples", f->count + samples},
		    {" · sample", samples},
		    {" · the default", forecast_cost(f, &initial)}};

	if (!f->measured && limit) {
		snprintf(out, FORECAST_TEXT,
			 "at most about +%" PRIu32
			 " %% of its own CPU time, or 0.5 %% of a CPU (--exact: no limit)",
			 limit);
		return out;
	}
	if (!f->measured) {
		if (cost > 0)
			snprintf(out, FORECAST_TEXT, "+%.1f %% (by samples, without probes)",
				 100 * cost);
		else
			snprintf(out, FORECAST_TEXT, "no forecast: its calls could not be counted");
		return out;
	}
	if (!f->known) {
		snprintf(out, FORECAST_TEXT, "no forecast: the process used hardly any CPU time");
		return out;
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows) && n < FORECAST_TEXT; i++)
		n += (size_t)put_share(out + n, FORECAST_TEXT - n, rows[i].mode, rows[i].share);
	return out;
}

const char *forecast_advice(const struct forecast *f, double cost)
{
	if (!f->known || cost <= ADVISE)
		return NULL;
	return f->count <= ADVISE
		       ? "less overhead: the default, which has a limit, or --mode count"
		       : "less overhead: the default, which has a limit, or --mode sample";
}

const char *forecast_question(const struct forecast *f, const struct target_opts *o,
			      char out[FORECAST_TEXT])
{
	const double cost = 100 * forecast_cost(f, o);

	if (cost <= CONSENT_ASK)
		return NULL;
	snprintf(out, FORECAST_TEXT, "%s every call? it costs about +%.0f %% of its own CPU time",
		 o->mode.mode == MODE_COUNT ? "count" : "trace", cost);
	return out;
}
