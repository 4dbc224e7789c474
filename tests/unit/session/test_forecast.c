// SPDX-License-Identifier: BSD-2-Clause
/* What modes would cost, from calls and samples of a moment. */
#include "session/forecast.h"

#include <math.h>

#include "harness/test.h"

static char text[FORECAST_TEXT];

/* 20 ms of its own, 100,000 calls; as long again in probes: 200 ns a hit, and a return costs half. */
static const struct forecast_reading busy = {
	.calls = 100000,
	.samples = 100,
	.of_probes = 100,
	.period_ns = 200000,
	.cost = {.known = true, .before = {300, 100}, .after = {300, 200}},
};

/* Of n intervals that took ns, each after the hit of a call that was counted */
static double of_counted(double hit_ns, double n, double ns)
{
	return cost_undisturbed(1.4 * cost_cold(hit_ns), n, ns, 0.7);
}

static double undisturbed(const struct forecast_reading *r, double hit_ns)
{
	return of_counted(hit_ns, (double)r->calls, (double)r->samples * r->period_ns);
}

/*
 * Some of what was its own was slowdown after hits: there will be twice as many intervals. In a trace, a call and its
 * end take 300 ns by the hits that were counted, and 900 ns by those of the scratch process.
 */
Test(forecast, of_a_busy_program)
{
	struct forecast f = forecast_of(&busy);
	double own = undisturbed(&busy, 200), slow = 20e6 - own;

	cr_assert(f.known && forecast_suffices(&busy) && slow > 1e6);
	cr_assert_float_eq(f.calls_per_s, 1e5 / own * 1e9, 1);
	cr_assert_float_eq(f.count, (20e6 + slow) / own, 1e-9);
	cr_assert(f.trace > (60e6 + slow) / own && f.trace < (60e6 + 3 * slow) / own);
	cr_assert(strstr(forecast_advice(&f, f.trace), "the default"));
}

/* A program that only makes calls has hardly any samples of its own: it is busy all the same. */
Test(forecast, of_a_program_that_only_makes_calls)
{
	struct forecast_reading r = busy;
	double before = forecast_of(&busy).trace;

	r.samples = 2;
	r.of_probes = 490;
	cr_assert(forecast_of(&r).known && forecast_of(&r).trace > 10 * before);
	r.samples = 0;
	cr_assert(forecast_of(&r).known && isfinite(forecast_of(&r).trace));
	r.of_probes = 90;
	cr_assert_not(forecast_of(&r).known);
}

/* 6 us a hit: of 720 ns that each call seems to take of its own, 350 are slowdown besides the usual. */
Test(forecast, of_slow_traps)
{
	const struct forecast_reading r = {
		.calls = 10000,
		.samples = 36,
		.of_probes = 300,
		.period_ns = 200000,
		.cost = {.known = true, .before = {3000, 3000}, .after = {3000, 3000}},
	};
	const double seen = 720 - cost_each(6000), own = of_counted(6000, 1, seen);
	struct forecast f = forecast_of(&r);

	cr_assert_float_eq(f.calls_per_s, 1e9 / own, 1);
	cr_assert(own < 250, "%f", own);
	cr_assert(f.trace > 12000 / own, "%f", f.trace);
}

Test(forecast, as_text)
{
	const struct forecast f = {true, true, 5e6, 1.5, 1};
	const struct forecast low = {true, true, 5e3, 0.012, 0.006};

	cr_assert_str_eq(forecast_text(&f, 0, 0, text),
			 "trace +150 % · count +100 % · count+samples +100 % · sample +0.3 % · "
			 "the default +10 %");
	cr_assert(strstr(forecast_text(&low, 0, 0, text), "the default +1.2 %"), "%s", text);
}

Test(forecast, of_what_was_chosen)
{
	const struct forecast f = {true, true, 5e6, 1.5, 1}, none = {0};
	struct target_opts o = {.mode = {.mode = MODE_TRACE}};

	cr_assert_float_eq(forecast_cost(&f, &o), 1.5, 1e-9);
	cr_assert(forecast_cost(&none, &o) == 0);
	o.max_overhead = 10;
	cr_assert_float_eq(forecast_cost(&f, &o), 0.1, 1e-9);
	o.exact = true;
	cr_assert_float_eq(forecast_cost(&f, &o), 1.5, 1e-9);
	o = (struct target_opts){.mode = {.mode = MODE_COUNT, .rate = 1000}};
	cr_assert_float_eq(forecast_cost(&f, &o), 1.03, 1e-9);
	o.mode.mode = MODE_SAMPLE;
	cr_assert_float_eq(forecast_cost(&f, &o), 0.03, 1e-9);
	cr_assert(!forecast_advice(&f, 0.02) && forecast_advice(&f, 0.3));
}

Test(forecast, asks_for_consent_to_what_costs_much)
{
	const struct forecast f = {true, true, 5e6, 5.94, 1.5}, low = {true, true, 5e6, 0.9, 0.5};
	struct target_opts o;

	target_opts_init(&o);
	cr_assert_null(forecast_question(&f, &o, text));
	o.exact = true;
	o.mode.rate = 0;
	cr_assert_null(forecast_question(&low, &o, text));
	cr_assert_str_eq(forecast_question(&f, &o, text),
			 "trace every call? it costs about +594 % of its own CPU time");
	o.mode.mode = MODE_COUNT;
	cr_assert_str_eq(forecast_question(&f, &o, text),
			 "count every call? it costs about +150 % of its own CPU time");
	o.mode.mode = MODE_SAMPLE;
	cr_assert_null(forecast_question(&f, &o, text));
}

/* As the first, but every third call ends in a yield, and that costs ten times what a call does. */
Test(forecast, of_yields_that_cost_a_multiple)
{
	struct forecast_reading r = busy;
	struct forecast f, without = forecast_of(&busy);
	double own = undisturbed(&busy, 200);

	r.yields = 1 / 3.0;
	r.cost.before[COST_YIELD] = 2000;
	r.cost.after[COST_YIELD] = 4000;
	f = forecast_of(&r);
	cr_assert_float_eq(f.count, without.count, 1e-9);
	cr_assert_float_eq(f.trace - without.trace,
			   (2200 - 300) * (1 + 200 / 600.0) / 2 * 1e5 / own, 1e-6);
	r.cost.known = false;
	cr_assert(forecast_of(&r).trace > f.trace);
}

/* Too few samples of probes: the cost that the scratch process measured. */
Test(forecast, of_a_program_that_seldom_calls)
{
	const struct forecast_reading r = {
		.calls = 200,
		.samples = 100,
		.period_ns = 200000,
		.cost = {.known = true, .before = {300, 200}, .after = {500, 200}},
	};
	struct forecast f = forecast_of(&r);
	double own = undisturbed(&r, 800), slow = 20e6 - own;

	cr_assert(slow < 0.01 * own);
	cr_assert_float_eq(f.count, (200 * 800 + slow) / own, 1e-9);
	cr_assert_float_eq(f.trace, (200 * 1200 + 2 * slow) / own, 1e-4);
	cr_assert(!forecast_advice(&f, f.trace));
}

Test(forecast, of_a_program_that_waits)
{
	const struct forecast_reading r = {.calls = 3, .samples = 2, .period_ns = 200000};
	struct forecast f = forecast_of(&r);

	cr_assert(!f.known && !forecast_suffices(&r) && !forecast_advice(&f, 9));
	cr_assert(strstr(forecast_text(&f, 0, 0, text), "no forecast"));
}

Test(forecast, that_was_not_measured)
{
	const struct forecast f = {0};

	cr_assert_str_eq(forecast_text(&f, 0.002, 0, text), "+0.2 % (by samples, without probes)");
	cr_assert_str_eq(
		forecast_text(&f, 0, 5, text),
		"at most about +5 % of its own CPU time, or 0.5 % of a CPU (--exact: no limit)");
	cr_assert_str_eq(forecast_text(&f, 0, 0, text),
			 "no forecast: its calls could not be counted");
}

Test(forecast, without_calls_or_costs)
{
	const struct forecast_reading none = {.samples = 100, .period_ns = 1};
	const struct forecast_reading some = {.calls = 1, .samples = 100, .period_ns = 1};

	cr_assert(forecast_of(&none).trace == 0 && forecast_of(&none).count == 0);
	cr_assert(isfinite(forecast_of(&some).trace));
	for (double x = 1; x < 1e300; x *= 1e20) {
		struct forecast f = {true, true, x, x, x};

		cr_assert(strlen(forecast_text(&f, 0, 0, text)) < FORECAST_TEXT);
	}
}
