// SPDX-License-Identifier: BSD-2-Clause
/* What modes would cost, from calls and samples of a moment. */
#include "session/forecast.h"

#include <math.h>

#include "harness/test.h"

static char text[FORECAST_TEXT];

/* 20 ms of its own, 100,000 calls; as long again in probes: 200 ns a hit, and a return costs half. */
Test(forecast, of_a_busy_program)
{
	const struct forecast_reading r = {
		.calls = 100000,
		.samples = 100,
		.of_probes = 100,
		.period_ns = 200000,
		.cost = {.known = true, .before = {300, 100}, .after = {300, 200}},
	};
	struct forecast f = forecast_of(&r);

	cr_assert(f.known && forecast_suffices(&r));
	cr_assert(fabs(f.calls_per_s - 5e6) < 1 && fabs(f.count - 1) < 1e-9);
	cr_assert(fabs(f.trace - 1.5) < 1e-9);
	cr_assert_str_eq(forecast_text(&f, text),
			 "5 million calls per second of CPU time, trace +150 %, count +100 %, "
			 "count --rate 199 +100 %, trace --max-overhead 5 +5.0 %, sample +0.2 %");
	cr_assert(strstr(forecast_advice(&f), "--max-overhead 5"));
}

/* As the first, but every third call ends in a yield, and that costs ten times what a call does. */
Test(forecast, of_yields_that_cost_a_multiple)
{
	struct forecast_reading r = {
		.calls = 100000,
		.samples = 100,
		.of_probes = 100,
		.period_ns = 200000,
		.yields = 1 / 3.0,
		.cost = {.known = true, .before = {300, 100, 2000}, .after = {300, 200, 4000}},
	};
	struct forecast f = forecast_of(&r);

	cr_assert(fabs(f.count - 1) < 1e-9);
	cr_assert(fabs(f.trace - (1 + 2200 / 600.0)) < 1e-9, "%g", f.trace);
	r.cost.known = false;
	cr_assert(forecast_of(&r).trace > f.trace);
}

/* Too few samples of probes: what the scratch process says of their cost. */
Test(forecast, of_one_that_seldom_calls)
{
	const struct forecast_reading r = {
		.calls = 200,
		.samples = 100,
		.period_ns = 200000,
		.cost = {.known = true, .before = {300, 200}, .after = {500, 200}},
	};
	struct forecast f = forecast_of(&r);

	cr_assert(fabs(f.count - 200 * 800 / 20e6) < 1e-9);
	cr_assert(fabs(f.trace - 200 * 1200 / 20e6) < 1e-9);
	cr_assert(!forecast_advice(&f));
	cr_assert(strstr(forecast_text(&f, text), "trace --max-overhead 5 +1.2 %"), "%s", text);
}

Test(forecast, of_one_that_waits)
{
	const struct forecast_reading r = {.calls = 3, .samples = 2, .period_ns = 200000};
	struct forecast f = forecast_of(&r);

	cr_assert(!f.known && !forecast_suffices(&r) && !forecast_advice(&f));
	cr_assert(strstr(forecast_text(&f, text), "none"));
}

Test(forecast, without_calls_or_costs)
{
	const struct forecast_reading none = {.samples = 100, .period_ns = 1};
	const struct forecast_reading some = {.calls = 1, .samples = 100, .period_ns = 1};

	cr_assert(forecast_of(&none).trace == 0 && forecast_of(&none).count == 0);
	cr_assert(isfinite(forecast_of(&some).trace));
	for (double x = 1; x < 1e300; x *= 1e20) {
		struct forecast f = {true, x, x, x};

		cr_assert(strlen(forecast_text(&f, text)) < FORECAST_TEXT);
	}
}
