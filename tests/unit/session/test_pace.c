// SPDX-License-Identifier: BSD-2-Clause
/* The CPU time of the work that marks show, from readings before the trace. */
#include "session/pace.h"

#include <math.h>

#include "harness/test.h"

#define MS     1000000ull
#define HIT_NS 300.0

/* n readings, each of ms[i % 2] ms of the program's own time, and hits[i % 2] hits. */
static struct pace readings(unsigned int n, const double ms[2], const unsigned int hits[2])
{
	struct pace p = {.choosing.marks.hit_ns = HIT_NS, .last_cpu_ns = 7 * MS};
	uint64_t cpu = p.last_cpu_ns, all = 0;

	for (unsigned int i = 0; i < n; i++) {
		cpu += (uint64_t)(ms[i % 2] * MS + HIT_NS * hits[i % 2]);
		all += hits[i % 2];
		pace_add(&p, cpu, all);
	}
	return p;
}

Test(pace, a_steady_program)
{
	const struct pace p = readings(20, (double[]){15, 15}, (unsigned int[]){300, 300});
	double error, ns = pace_undisturbed(&p, 2000, &error);

	cr_assert(pace_suffices(&p));
	cr_assert(fabs(ns - 100.0 * MS) < 0.01 * MS, "%f", ns);
	cr_assert(error > 0.05 && error < 0.08, "%f: never exact", error);
}

/* Turns of more and of less work for each mark. */
Test(pace, an_uneven_program)
{
	const struct pace p = readings(20, (double[]){15, 15}, (unsigned int[]){450, 150});
	double error, of_less, ns = pace_undisturbed(&p, 2000, &error);

	cr_assert(fabs(ns - 100.0 * MS) < 0.01 * MS, "%f", ns);
	cr_assert(error > 0.15 && error < 0.3, "%f", error);
	(void)pace_undisturbed(&p, 200, &of_less);
	cr_assert(of_less > 1.5 * error, "a short trace varies more: %f", of_less);
}

Test(pace, too_little_was_seen)
{
	const struct pace few = readings(3, (double[]){15, 15}, (unsigned int[]){300, 300}),
			  idle = readings(20, (double[]){0.1, 0.1}, (unsigned int[]){300, 300}),
			  rare = readings(20, (double[]){15, 15}, (unsigned int[]){1, 2}),
			  none = {0};

	cr_assert(!pace_suffices(&few));
	cr_assert(!pace_suffices(&idle));
	cr_assert(!pace_suffices(&rare));
	cr_assert(!pace_suffices(&none));
}

Test(pace, is_measured_until_it_is_precise)
{
	const struct pace steady = readings(20, (double[]){15, 15}, (unsigned int[]){300, 310}),
			  brief = readings(19, (double[]){15, 15}, (unsigned int[]){300, 310}),
			  rare = readings(20, (double[]){15, 15}, (unsigned int[]){1, 1}),
			  uneven = readings(20, (double[]){15, 15}, (unsigned int[]){300, 360}),
			  longer = readings(80, (double[]){15, 15}, (unsigned int[]){300, 360});

	cr_assert(pace_is_precise(&steady));
	cr_assert(!pace_is_precise(&brief));
	cr_assert(!pace_is_precise(&rare));
	cr_assert(!pace_is_precise(&uneven));
	cr_assert(pace_is_precise(&longer));
}

Test(pace, nothing_was_traced)
{
	const struct pace p = readings(20, (double[]){15, 15}, (unsigned int[]){300, 300});
	double error;

	cr_assert_eq(pace_undisturbed(&p, 0, &error), 0);
	cr_assert_eq(error, 0);
}
