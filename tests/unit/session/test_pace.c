// SPDX-License-Identifier: BSD-2-Clause
/* The CPU time of the work that marks show, from readings before the trace. */
#include "session/pace.h"

#include <math.h>

#include "harness/test.h"

#define MS     1000000ull
#define HIT_NS 300.0

/* n readings, each of ms[i % 2] ms of the program's own time, and hits[i % 2] hits. */
static void add_readings(struct pace *p, unsigned int n, const double ms[2],
			 const unsigned int hits[2])
{
	uint64_t cpu = p->last_cpu_ns, all = p->last_hits;

	for (unsigned int i = 0; i < n; i++) {
		cpu += (uint64_t)(ms[i % 2] * MS + HIT_NS * hits[i % 2]);
		all += hits[i % 2];
		pace_add(p, cpu, all);
	}
}

static struct pace readings(unsigned int n, const double ms[2], const unsigned int hits[2])
{
	struct pace p = {.progress.marks.of.hit_ns = HIT_NS, .last_cpu_ns = 7 * MS};

	add_readings(&p, n, ms, hits);
	return p;
}

Test(pace, a_steady_program)
{
	const struct pace p = readings(20, (double[]){15, 15}, (unsigned int[]){300, 300});
	double error, ns = pace_undisturbed(&p, 2000, &error);

	cr_assert(pace_suffices(&p.before));
	cr_assert(fabs(ns - 100.0 * MS) < 0.01 * MS, "%f", ns);
	cr_assert(error > 0.05 && error < 0.08, "%f: never exact", error);
}

/* 15 ms for 300 hits before the trace, and so many after it. */
static double undisturbed_between(double ms, unsigned int n, double *ret_error)
{
	struct pace p = readings(20, (double[]){15, 15}, (unsigned int[]){300, 300});

	p.again = true;
	add_readings(&p, n, (double[]){ms, ms}, (unsigned int[]){300, 300});
	return pace_undisturbed(&p, 2000, ret_error);
}

Test(pace, is_the_mean_of_before_and_after)
{
	const struct pace once = readings(20, (double[]){15, 15}, (unsigned int[]){300, 300});
	double error, of_one, of_same, ns = undisturbed_between(18, 20, &error);

	cr_assert(fabs(ns - 110.0 * MS) < 0.01 * MS, "%f", ns);
	ns = undisturbed_between(18, 3, &of_one);
	cr_assert(fabs(ns - 100.0 * MS) < 0.01 * MS, "%f: too few readings", ns);
	(void)pace_undisturbed(&once, 2000, &of_one);
	(void)undisturbed_between(15, 20, &of_same);
	cr_assert(of_same < 0.8 * of_one, "two agree: %f, %f", of_same, of_one);
	cr_assert(error > 0.06 && error < 0.1, "the two are 18 %% apart: %f", error);
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

	cr_assert(!pace_suffices(&few.before));
	cr_assert(!pace_suffices(&idle.before));
	cr_assert(!pace_suffices(&rare.before));
	cr_assert(!pace_suffices(&none.before));
}

Test(pace, is_measured_until_it_is_precise)
{
	const struct pace steady = readings(20, (double[]){15, 15}, (unsigned int[]){300, 310}),
			  brief = readings(19, (double[]){15, 15}, (unsigned int[]){300, 310}),
			  rare = readings(20, (double[]){15, 15}, (unsigned int[]){1, 1}),
			  uneven = readings(20, (double[]){15, 15}, (unsigned int[]){300, 360}),
			  longer = readings(80, (double[]){15, 15}, (unsigned int[]){300, 360});

	cr_assert(pace_is_precise(&steady.before));
	cr_assert(!pace_is_precise(&brief.before));
	cr_assert(!pace_is_precise(&rare.before));
	cr_assert(!pace_is_precise(&uneven.before));
	cr_assert(pace_is_precise(&longer.before));
}

Test(pace, nothing_was_traced)
{
	const struct pace p = readings(20, (double[]){15, 15}, (unsigned int[]){300, 300});
	double error;

	cr_assert_eq(pace_undisturbed(&p, 0, &error), 0);
	cr_assert_eq(error, 0);
}
