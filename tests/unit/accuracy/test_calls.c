// SPDX-License-Identifier: BSD-2-Clause
/*
 * From windows to the whole run: which functions decide the factor, its error, marks, and the errors of counts.
 */
#include "accuracy/calls.h"

#include <math.h>

#include "accuracy/evidence.h"
#include "harness/evidence_rig.h"
#include "harness/test.h"

/* As if each context had this factor, and samples said nothing. */
static double variance_of(const struct evidence *e, const struct calls_estimate *c, uint32_t func)
{
	return calls_variance(e, c, func, c->factor, 1);
}

/* Windows that represent `factor` times less CPU time than the target used */
static struct evidence windows_of(double factor)
{
	return (struct evidence){.windows = 2, .own_cpu = factor * 1e6, .all_cpu = 1e6};
}

/*
 * Windows show this many rounds of a program. In each, it spends 200 ns in f and 300 in g, which f calls; after
 * the hits of the call, of 600 ns each, these become 291 and 401. Then it spends 700 in a loop.
 */
#define ROUNDS 41725.0
#define FACTOR 10.0

enum { OF_F, OF_G, OF_LOOP, ROWS };

/* claimed: what hits are thought to take, as a part of what they do. */
static void program(struct calls_row *rows, double claimed)
{
	rows[OF_F] = (struct calls_row){.cpu = ROUNDS * (291 + 600),
					.taken = ROUNDS * 600 * claimed,
					.intervals = ROUNDS,
					.samples = ROUNDS * 200 * FACTOR};
	rows[OF_G] = (struct calls_row){.cpu = ROUNDS * (401 + 600),
					.taken = ROUNDS * 600 * claimed,
					.intervals = ROUNDS,
					.samples = ROUNDS * 300 * FACTOR};
	rows[OF_LOOP] = (struct calls_row){.cpu = ROUNDS * 700, .samples = ROUNDS * 700 * FACTOR};
}

static struct calls_estimate estimate(const struct calls_row *rows, size_t n, double times,
				      double error)
{
	const struct evidence e = windows_of(1);

	return calls_estimate(&e, &(struct calls_given){.rows = rows,
							.n = n,
							.hit_ns = 600,
							.times = times,
							.error = error,
							.period_ns = 1e6});
}

/* Whatever hits are thought to take, the loop is known. Without it, the factor is far off, and its error large. */
Test(calls, functions_that_compute_decide)
{
	for (int percent = 80; percent <= 120; percent += 10) {
		const double claimed = percent / 100.0;
		struct calls_row rows[ROWS];
		struct calls_estimate c, without;

		program(rows, claimed);
		c = estimate(rows, ROWS, 1, 0.1);
		without = estimate(rows, OF_LOOP, 1, 0.1);
		cr_assert(fabs(c.factor - FACTOR) < 0.08 * FACTOR, "%d %%: %g", percent, c.factor);
		cr_assert(percent == 100 ||
				  fabs(without.factor - FACTOR) > 3 * fabs(c.factor - FACTOR),
			  "%d %%: %g", percent, without.factor);
		cr_assert(without.error > 2 * c.error, "%d %%: %g, %g", percent, without.error,
			  c.error);
		cr_assert(fabs(c.factor - FACTOR) < 2 * c.error * FACTOR);
		cr_assert(fabs(without.factor - FACTOR) < 2 * without.error * FACTOR);
		cr_assert(!c.by_marks);
	}
}

/* Samples have shown that hits took longer than measured. */
Test(calls, hits_that_took_longer)
{
	struct calls_row rows[ROWS];

	program(rows, 1 / 1.25);
	for (int i = 0; i < 2; i++) {
		const struct calls_estimate c = calls_estimate(
			&(struct evidence){.windows = 1},
			&(struct calls_given){rows, OF_LOOP, 600 / 1.25, i ? 1.25 : 1, 0.1, 1e6});

		cr_assert(i ? fabs(c.factor - FACTOR) < 0.1 : fabs(c.factor - FACTOR) > 1, "%d: %g",
			  i, c.factor);
	}
}

/* Each of these makes the error larger: uncertain hits, few samples, functions that contradict each other. */
Test(calls, what_is_uncertain)
{
	struct calls_row rows[ROWS];
	double certain, usual;

	program(rows, 1);
	certain = estimate(rows, OF_LOOP, 1, 0).error;
	cr_assert_gt(estimate(rows, OF_LOOP, 1, 0.3).error, 1.05 * certain);
	for (int i = 0; i < ROWS; i++)
		rows[i].samples *= 1e-3;
	usual = estimate(rows, ROWS, 1, 0.1).error;
	for (int i = 0; i < ROWS; i++)
		rows[i] = (struct calls_row){.cpu = 1e-3 * rows[i].cpu,
					     .taken = 1e-3 * rows[i].taken,
					     .intervals = 1e-3 * rows[i].intervals,
					     .samples = 1e-3 * rows[i].samples};
	cr_assert_gt(estimate(rows, ROWS, 1, 0.1).error, 1.5 * usual);
	/* Two loops: as both agree, and as one has had 300 times as much time as windows show of it. */
	for (int i = 0; i < 2; i++)
		rows[i] = (struct calls_row){.cpu = 50e6, .samples = 500e6};
	usual = estimate(rows, 2, 1, 0.1).error;
	cr_assert_float_eq(usual, 0.25, 0.08, "%g", usual);
	rows[1].samples = 20e9;
	cr_assert_gt(estimate(rows, 2, 1, 0.1).error, 1.5 * usual);
}

/* A function without samples was not used much, which makes the factor smaller; it does not make it 0. */
Test(calls, functions_without_samples)
{
	struct calls_row rows[] = {{.cpu = 50e6, .samples = 500e6}, {.cpu = 10e6}};
	const double alone = estimate(rows, 1, 1, 0).factor, both = estimate(rows, 2, 1, 0).factor;

	cr_assert_float_eq(alone, 10, 1e-9);
	cr_assert(both > 0.5 * alone && both < 0.9 * alone, "%g", both);
	/* What no window has shown says nothing about the factor, but it makes it less certain. */
	rows[1] = (struct calls_row){.samples = 400e6};
	cr_assert_float_eq(estimate(rows, 2, 1, 0).factor, 10, 1e-9);
	cr_assert_gt(estimate(rows, 2, 1, 0).error, 1.2 * estimate(rows, 1, 1, 0).error);
}

/* Without windows, or without anything in them that has samples, nothing is known. */
Test(calls, nothing_known)
{
	struct calls_row rows[ROWS];
	struct calls_given g = {rows, ROWS, 600, 1, 0.1, 1e6};
	struct evidence e = windows_of(1);
	struct calls_estimate c;

	program(rows, 1);
	cr_assert_gt(calls_estimate(&e, &g).factor, 0);
	e.windows = 0;
	c = calls_estimate(&e, &g);
	cr_assert(c.factor == 0 && c.error == 0 && !c.by_marks);
	cr_assert_eq(variance_of(&e, &c, 0), -1);
	e.windows = 2;
	g.n = 0;
	cr_assert_eq(calls_estimate(&e, &g).factor, 0);
	for (int i = 0; i < ROWS; i++)
		rows[i].samples = 0;
	g.n = ROWS;
	cr_assert_eq(calls_estimate(&e, &g).factor, 0);
	rows[0] = (struct calls_row){.samples = 5e6};
	g.n = 1;
	cr_assert_eq(calls_estimate(&e, &g).factor, 0);
}

/* Results that a separate program computed from the description in calls.c. */
Test(calls, computed_twice)
{
	static const struct {
		double hit_ns, times, error, period_ns, before; /* by the CPU time alone */
		struct calls_row rows[4];
		double factor, of_factor;
	} known[] = {
		{600,
		 1,
		 0.1,
		 1e6,
		 10,
		 {{ROUNDS * 891, ROUNDS * 600, ROUNDS, 83e6},
		  {ROUNDS * 1001, ROUNDS * 600, ROUNDS, 125e6},
		  {ROUNDS * 700, 0, 0, 292e6}},
		 9.99285539,
		 0.412004219},
		{600,
		 1,
		 0.1,
		 1e6,
		 10,
		 {{ROUNDS * 891, ROUNDS * 660, ROUNDS, 83e6},
		  {ROUNDS * 1001, ROUNDS * 660, ROUNDS, 125e6},
		  {ROUNDS * 700, 0, 0, 292e6}},
		 10.4108127,
		 0.411988417},
		/* functions that contradict each other */
		{600,
		 1,
		 0.1,
		 1e6,
		 10,
		 {{ROUNDS * 891, ROUNDS * 600, ROUNDS, 10e6},
		  {ROUNDS * 1001, ROUNDS * 600, ROUNDS, 125e6},
		  {ROUNDS * 700, 0, 0, 900e6}},
		 26.3576271,
		 0.430614206},
		/* one without samples, one that windows do not show, and one without either */
		{600,
		 1,
		 0.1,
		 1e6,
		 4,
		 {{5e6, 1e6, 2000, 0}, {20e6, 4e6, 9000, 60e6}, {0, 0, 0, 3e6}},
		 2.02713376,
		 1.19628808},
		/* slow hits */
		{6000,
		 1.2,
		 0.05,
		 4e6,
		 20,
		 {{70e6, 60e6, 9000, 40e6}, {90e6, 80e6, 12000, 60e6}, {12e6, 2e6, 300, 150e6}},
		 16.5180046,
		 0.390273124},
		/* a single function */
		{600, 1, 0.1, 1e6, 3, {{20e6, 4e6, 9000, 60e6}}, 3.9925472, 0.991185845},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		const struct evidence e = windows_of(known[i].before);
		const struct calls_estimate c = calls_estimate(
			&e, &(struct calls_given){known[i].rows, 4, known[i].hit_ns, known[i].times,
						  known[i].error, known[i].period_ns});

		cr_assert_float_eq(c.factor / known[i].factor, 1, 1e-7, "%zu: %.9g", i, c.factor);
		cr_assert_float_eq(c.error / known[i].of_factor, 1, 1e-7, "%zu: %.9g", i, c.error);
	}
}

/* Marks ------------------------------------------------------------------------------------ */

/* Windows in which marks were counted: they yield a factor with an error between those of a loop and of calls. */
static struct evidence marked(void)
{
	return (struct evidence){
		.windows = 10,
		.calls = 900,
		.all_ns = 1000,
		.gap_ns = 100,
		.own_cpu = 10e6,
		.all_cpu = 1e6,
		.progress = {.shown = 100,
			     .marked = {.total = 1000,
					.all_marks = 100,
					.all_calls = 400,
					.calls = {300, 4000, 950},
					.marks = 75,
					.marks2 = 250}},
	};
}

/* The factor with the smaller error is used. */
Test(calls, marks_or_samples)
{
	struct evidence e = marked();
	struct calls_row rows[ROWS];
	struct calls_given loop = {&rows[OF_LOOP], 1, 600, 1, 0.1, 1e6};
	struct calls_given dense = {rows, OF_LOOP, 600, 1, 0.1, 1e6};
	double error, common, factor = calls_factor_by_marks(&e, &error, &common), of_samples;
	struct calls_estimate c;

	program(rows, 1);
	e.progress.marked.total = 0;
	c = calls_estimate(&e, &loop);
	of_samples = c.error;
	cr_assert(!c.by_marks && fabs(c.factor - FACTOR) < 1e-9 && of_samples < 0.4, "%g", c.error);
	e = marked();
	cr_assert(factor > 0 && error < of_samples, "%g", error);
	c = calls_estimate(&e, &loop);
	cr_assert(c.by_marks && c.factor == factor && c.error == common);
	/* Calls that do not go with marks */
	e.progress.marked.calls.square = 60001;
	cr_assert(calls_factor_by_marks(&e, &error, &common) > 0 && error > of_samples);
	cr_assert_not(calls_estimate(&e, &loop).by_marks);
	cr_assert(calls_estimate(&e, &dense).by_marks == (error < 1), "%g", error);
	/* No samples */
	e = marked();
	rows[OF_LOOP].samples = 0;
	c = calls_estimate(&e, &loop);
	cr_assert(c.by_marks && c.factor == factor);
	/* No windows */
	e.windows = 0;
	cr_assert_eq(calls_estimate(&e, &loop).factor, 0);
}

/* Errors of counts ------------------------------------------------------------------------- */

/*
 * The windows of evidence/sums_of_windows. As few as 2.2 that count say little; Student's factor is that of 4.
 */
Test(calls, variance_by_hand)
{
	const struct calls_estimate twice = {.factor = 2}, unsure = {.factor = 2, .error = 0.1};
	struct evidence_func marks = {.by_marks = {100, 900, 200}};
	struct calls_estimate by_marks = {.factor = 2, .error = 0.1, .by_marks = true};
	struct evidence_rig m;
	struct evidence e;
	double before;

	evidence_rig_init(&m);
	evidence_rig_seen(&m, m.f, 7, 40);
	evidence_rig_seen(&m, m.g, 3, 20);
	evidence_rig_fold(&m, 1000, 1000, NULL, 1);
	cr_assert_eq(variance_of(&m.e, &twice, G), -1, "one window");
	evidence_rig_seen(&m, m.g, 1, 10);
	evidence_rig_fold(&m, 2000, 1000, NULL, 1);
	cr_assert_gt(variance_of(&m.e, &twice, G), 0, "two are enough");
	evidence_rig_seen(&m, m.g, 1, 10);
	evidence_rig_fold(&m, 0, 1000, NULL, 1);
	evidence_rig_fold(&m, 2000, 1000, NULL, 1);
	cr_assert_float_eq(variance_of(&m.e, &twice, G), 39.2148278, 1e-6);
	cr_assert_float_eq(variance_of(&m.e, &unsure, G), 39.2148278 + 4 * 1.3 * 1.3, 1e-6);
	cr_assert_eq(variance_of(&m.e, &twice, FUNCS), -1, "none of the windows'");
	cr_assert_eq(variance_of(&m.e, &twice, H), 0, "it was not called");
	cr_assert_eq(variance_of(&m.e, &(struct calls_estimate){.factor = 0}, G), -1);
	/* If marks scale them, only their differences per mark count. */
	e = marked();
	marks.by_cpu.sum = 50;
	e.funcs = &marks;
	e.nfuncs = 1;
	e.size = e.size2 = 1;
	cr_assert_float_eq(variance_of(&e, &by_marks, 0), 4 * (913.581293 + 5 * 5), 1e-4);
	before = variance_of(&m.e, &twice, G);
	m.e.funcs[G].by_cpu.product *= 0.9;
	cr_assert_gt(variance_of(&m.e, &twice, G), before, "calls that go less with CPU time");
	evidence_rig_deinit(&m);
	check_no_leaks();
}

static uint64_t state = 88172645463325252ull;

static double uniform(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (double)(state >> 11) / 0x1p53;
}

/*
 * A program that is in f for 3 ms, with a call per 1 us, and in g for 7 ms, with a call per 10 us;
 * windows of 1 ms at random times. The true figures are known, and so is the probability that an
 * estimate is off by more than twice its error.
 */
static void sample(struct evidence_rig *m, int windows)
{
	evidence_rig_init(m);
	m->g = calltree_child(&m->tree, m->root, G);
	for (int i = 0; i < windows; i++) {
		double start = uniform() * 10e6, from = start, end = start + 1e6;

		while (from < end) {
			double at = fmod(from, 10e6), turn = at < 3e6 ? 3e6 : 10e6;
			double n = fmin(end - from, turn - at);

			if (at < 3e6)
				evidence_rig_seen(m, m->f, (uint64_t)(n / 1e3), (uint64_t)n);
			else
				evidence_rig_seen(m, m->g, (uint64_t)(n / 1e4), (uint64_t)n);
			from += n + 1e-3;
		}
		evidence_rig_fold(m, 9000000, 1000000, NULL, 1);
	}
}

Test(calls, right_on_average_and_within_their_errors)
{
	const struct calls_estimate as_weighted = {.factor = 1};
	double sum = 0;
	int off = 0;

	for (int k = 0; k < 200; k++) {
		struct evidence_rig m;
		double calls, error;

		sample(&m, 100);
		calls = m.e.nodes[m.f].calls / (100 * 3000.0);
		error = sqrt(variance_of(&m.e, &as_weighted, F)) / (100 * 3000.0);
		sum += calls;
		off += fabs(calls - 1) > 2 * error;
		cr_assert(error > 0.05 && error < 0.3, "%.4f", error);
		evidence_rig_deinit(&m);
	}
	cr_assert(fabs(sum / 200 - 1) < 0.04, "%.4f", sum / 200);
	cr_assert(off > 1 && off < 30, "%d of 200 are off by more than twice their error", off);
	check_no_leaks();
}

/*
 * An idle process that was busy for a tenth of the time, of which a single one of many windows shows a
 * part. One window says little about all.
 */
Test(calls, mostly_idle)
{
	const struct calls_estimate as_weighted = {.factor = 1};
	struct evidence_rig m;
	double error;

	evidence_rig_init(&m);
	for (int i = 0; i < 50; i++) {
		evidence_rig_seen(&m, m.f, i == 25 ? 100 : 0, i == 25 ? 1000000 : 0);
		evidence_rig_fold(&m, 99000000, 1000000, NULL, 1);
	}
	error = sqrt(variance_of(&m.e, &as_weighted, F));
	cr_assert(error > 0.3 * m.e.nodes[m.f].calls, "%f of %f", error, m.e.nodes[m.f].calls);
	evidence_rig_deinit(&m);
	check_no_leaks();
}
