// SPDX-License-Identifier: BSD-2-Clause
/* Reconciling a trace with samples: the weight of each source, and the preservation of sums. */
#include "accuracy/solve.h"

#include <inttypes.h>
#include <math.h>

#include "accuracy/finish.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"

#define PERIOD	 1000.0 /* ns */
#define SLOWDOWN 150.0

/* without post-trap slowdown */
static const struct reconcile even = {.period_ns = PERIOD};

Test(reconcile, costs_of_all_hits)
{
	/* 1000 samples of 1 us are the program's, so hits take 9 of the 10 ms and not 7.5. */
	double k = reconcile_scale(10e6, 7.5e6, 1000, PERIOD);

	cr_assert(fabs(k - 1.2) < 0.01, "%f", k);
	/* With few hits, the known costs are more precise than the samples. */
	k = reconcile_scale(10e6, 1e3, 8000, PERIOD);
	cr_assert(fabs(k - 1) < 0.01, "%f", k);
	/* Weighted by 1 / 600^2 and 1 / (7.5 * 1000^2): 6000 ns by the trace, and 7000 by samples. */
	k = reconcile_scale(10000, 4000, 7, PERIOD);
	cr_assert_float_eq(k, (4000 - 1000 * 0.36 / 7.86) / 4000, 1e-12, "%f", k);
	cr_assert_eq(reconcile_scale(10e6, 5e6, 0, PERIOD), 1, "no samples");
	cr_assert_eq(reconcile_scale(10e6, 0, 100, PERIOD), 1, "no hits");
	cr_assert_leq(reconcile_scale(1e9, 1e3, 1, 1), 5);
	cr_assert_geq(reconcile_scale(10e6, 9e6, 1e6, PERIOD), 0.2);
}

/*
 * The time of a loop without hits comes from the trace, that of a function that only calls from the
 * samples.
 */
Test(reconcile, each_by_its_precision)
{
	struct reconcile_row rows[] = {
		{.own = 4e6, .taken = 0, .samples = 3900},
		{.own = 0, .taken = 50e6, .samples = 1000},
		{.own = 3e6, .taken = 50e6, .samples = 1100},
	};

	assert_ok(reconcile_solve(&even, rows, 3));
	cr_assert(fabs(rows[0].ns - 4e6) < 1, "%f", rows[0].ns);
	cr_assert_eq(rows[0].variance, 0);
	cr_assert(fabs(rows[1].ns - 1e6) < 0.1e6, "%f", rows[1].ns);
	cr_assert(fabs(rows[2].ns - 1.1e6) < 0.15e6, "%f", rows[2].ns);
	cr_assert_leq(sqrt(rows[1].variance), sqrt(1000) * PERIOD);
	cr_assert_geq(sqrt(rows[1].variance), 0.5 * sqrt(1000) * PERIOD);
}

Test(reconcile, nothing_known)
{
	struct reconcile_row none[] = {{.own = 5, .taken = 3}, {0}};

	assert_ok(reconcile_solve(&even, none, 2));
	cr_assert(fabs(none[0].ns - 5) < 0.1 && none[1].ns == 0);
	assert_ok(reconcile_solve(&even, none, 0));
}

/*
 * Traps of 7 us, of some virtual machines, make intervals of 40 ns last 400 ns longer, which is more than the
 * usual slowdown could be. Shares remain those of the samples from before.
 */
Test(reconcile, slow_traps)
{
	struct reconcile slow = {.period_ns = 1e6,
				 .slowdown_ns = 1050,
				 .disturbed = 0.93,
				 .total_ns = 22.8e6,
				 .total_error_ns = 1.5e6};
	struct reconcile_row rows[] = {
		{.own = 150e6, .taken = 1846e6, .samples = 150, .before = 556, .intervals = 320e3},
		{.own = 66e6, .taken = 920e6, .samples = 60, .before = 117, .intervals = 160e3},
		{.own = 41e6, .taken = 614e6, .samples = 39, .before = 54, .intervals = 106e3},
		{.own = 16e6, .taken = 310e6, .samples = 27, .before = 39, .intervals = 54e3},
	};
	const size_t n = sizeof(rows) / sizeof(rows[0]);
	double sum = 0;

	assert_ok(reconcile_solve(&slow, rows, n));
	for (size_t i = 0; i < n; i++)
		sum += rows[i].ns;
	cr_assert(fabs(sum - 22.8e6) < 1e6, "%f", sum);
	for (size_t i = 0; i < n; i++)
		cr_assert(fabs(rows[i].ns / sum - rows[i].before / 766) < 0.03, "%zu: %f", i,
			  rows[i].ns / sum);
}

/*
 * Of a program that mostly makes calls, the slowdown by probes is not known well enough; how far it has come
 * shows its total. (Functions of 16 programs were slowed down by 0.3 to 1.6 times the usual.)
 */
Test(reconcile, progress_shows_the_total)
{
	struct reconcile dense = {.period_ns = 1e6, .slowdown_ns = SLOWDOWN, .disturbed = 0.9};
	const struct reconcile_row traced[] = {
		{.own = 50e6, .taken = 900e6, .samples = 50, .before = 100, .intervals = 1e6},
		{.own = 170e6, .taken = 900e6, .samples = 170, .before = 300, .intervals = 1e6},
	};
	struct reconcile_row rows[2];
	double without, with;

	memcpy(rows, traced, sizeof(rows));
	assert_ok(reconcile_solve(&dense, rows, 2));
	without = rows[0].ns + rows[1].ns;
	cr_assert(without < 120e6, "%f: the usual slowdown", without);
	dense.total_ns = 190e6;
	dense.total_error_ns = 6e6;
	memcpy(rows, traced, sizeof(rows));
	assert_ok(reconcile_solve(&dense, rows, 2));
	with = rows[0].ns + rows[1].ns;
	cr_assert(with > 175e6 && with < 200e6, "%f", with);
	cr_assert(rows[1].ns > 2.5 * rows[0].ns && rows[1].ns < 3.5 * rows[0].ns);
	cr_assert(rows[1].variance > 0 && rows[1].variance < 20e6 * 20e6);
}

/*
 * Many functions agree on a total, but that does not make it more certain: all of them can be slowed
 * down by the same factor. (asyncio's 40 functions: 1.6 times the undisturbed time, before.)
 */
Test(reconcile, many_functions_agree_on_a_wrong_total)
{
	struct reconcile dense = {.period_ns = 1e6,
				  .slowdown_ns = SLOWDOWN,
				  .disturbed = 0.8,
				  .total_ns = 200e6,
				  .total_error_ns = 14e6};
	struct reconcile_row rows[40];
	double sum = 0;

	for (int i = 0; i < 40; i++)
		rows[i] = (struct reconcile_row){
			.own = 8e6, .taken = 30e6, .samples = 8, .before = 25, .intervals = 1e3};
	assert_ok(reconcile_solve(&dense, rows, 40));
	for (int i = 0; i < 40; i++)
		sum += rows[i].ns;
	cr_assert(sum > 195e6 && sum < 225e6, "%f", sum);
	cr_assert(sqrt(rows[0].variance) < 0.25 * rows[0].ns, "%f", rows[0].variance);
	dense.total_ns = dense.total_error_ns = 0;
	for (int i = 0; i < 40; i++)
		rows[i].ns = rows[i].variance = 0;
	assert_ok(reconcile_solve(&dense, rows, 40));
	cr_assert(rows[0].ns > 6e6, "%f", rows[0].ns);
	cr_assert(sqrt(rows[0].variance) > 0.24 * rows[0].ns, "the same error of all is stated");
}

/*
 * What a separate program computed from the description in solve.c. Rows: own, taken, samples, before,
 * intervals.
 */
static const struct known {
	struct reconcile r;
	struct reconcile_row rows[5];
	double ns[5], error[5];
	size_t n;
} known[] = {
	{
		/* Two functions without samples from before */
		.r = {.period_ns = 1000, .each_ns = 100, .disturbed = 0.5},
		.rows = {{3000, 4000, 5, 0, 2}, {1000, 2000, 0, 0, 2}},
		.ns = {3000.79837, 730.47299},
		.error = {1262.7032, 456.888527},
		.n = 2,
	},
	{
		/* The same, slowed down */
		.r = {.period_ns = 1000, .slowdown_ns = 150, .each_ns = 10, .disturbed = 0.5},
		.rows = {{3000, 4000, 5, 0, 2}, {1000, 2000, 0, 0, 2}},
		.ns = {2880.81863, 645.374627},
		.error = {1176.17736, 322.299574},
		.n = 2,
	},
	{
		/* No samples at all */
		.r = {.period_ns = 1000, .slowdown_ns = 150, .disturbed = 0.5},
		.rows = {{3000, 4000, 0, 0, 2}, {1000, 2000, 0, 0, 2}},
		.ns = {2700.03702, 726.621296},
		.error = {1141.17768, 357.086082},
		.n = 2,
	},
	{
		/* Samples from before */
		.r = {.period_ns = 1000000, .slowdown_ns = 150, .each_ns = 20, .disturbed = 0.9},
		.rows = {{50000000, 900000000, 50, 100, 1000000},
			 {170000000, 900000000, 170, 300, 1000000},
			 {30000000, 5000000, 28, 40, 2000},
			 {8000000, 40000000, 6, 3, 90000},
			 {2000000, 1000000, 1, 0, 50}},
		.ns = {41609787.9, 162027895, 25775939.8, 2284576.33, 1253567.01},
		.error = {14736250.3, 53027181.4, 9330755.91, 1473459.51, 549636.283},
		.n = 5,
	},
	{
		/* A known total */
		.r = {.period_ns = 1000000,
		      .slowdown_ns = 150,
		      .each_ns = 20,
		      .disturbed = 0.9,
		      .total_ns = 230000000,
		      .total_error_ns = 9000000},
		.rows = {{50000000, 900000000, 50, 100, 1000000},
			 {170000000, 900000000, 170, 300, 1000000},
			 {30000000, 5000000, 28, 40, 2000},
			 {8000000, 40000000, 6, 3, 90000},
			 {2000000, 1000000, 1, 0, 50}},
		.ns = {46988478.9, 156929361, 22905096.8, 2060835.42, 756908.112},
		.error = {4811459.78, 10514253.3, 3158154.35, 872183.542, 292744.961},
		.n = 5,
	},
	{
		/* A known total, and no slowdown */
		.r = {.period_ns = 1000000,
		      .disturbed = 0.4,
		      .total_ns = 230000000,
		      .total_error_ns = 9000000},
		.rows = {{50000000, 900000000, 50, 100, 1000000},
			 {170000000, 900000000, 170, 300, 1000000},
			 {30000000, 5000000, 28, 40, 2000},
			 {8000000, 40000000, 6, 3, 90000},
			 {2000000, 1000000, 1, 0, 50}},
		.ns = {50700223.1, 152697274, 24609390, 1846118.74, 1326016.14},
		.error = {5435255.25, 10704857.8, 2578859.56, 942778.77, 214025.414},
		.n = 5,
	},
	{
		/* Another behaviour than before */
		.r = {.period_ns = 1000000, .slowdown_ns = 150, .each_ns = 20, .disturbed = 0.3},
		.rows = {{50000000, 900000000, 50, 400, 1000000},
			 {170000000, 900000000, 170, 30, 1000000},
			 {30000000, 5000000, 28, 300, 2000},
			 {8000000, 40000000, 6, 3, 90000},
			 {2000000, 1000000, 1, 0, 50}},
		.ns = {26514123.6, 5810742.07, 30175159.6, 1102645.89, 1624257.39},
		.error = {9836376.9, 3816348.32, 8336750.05, 1007748.67, 468375.99},
		.n = 5,
	},
};

Test(reconcile, computed_twice)
{
	for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
		struct reconcile_row rows[5];

		memcpy(rows, known[k].rows, sizeof(rows));
		assert_ok(reconcile_solve(&known[k].r, rows, known[k].n));
		for (size_t i = 0; i < known[k].n; i++) {
			cr_assert_float_eq(rows[i].ns / known[k].ns[i], 1, 1e-6, "%zu, %zu: %.9g",
					   k, i, rows[i].ns);
			cr_assert_float_eq(sqrt(rows[i].variance) / known[k].error[i], 1, 1e-6,
					   "%zu, %zu: +- %.9g", k, i, sqrt(rows[i].variance));
		}
	}
}

#define FUNCTIONS 301

/*
 * A server: one function has a third of the time, in calls of 100 us, and 300 share the rest. Of 100
 * samples from before, few of these have one. (Seen with Flask: 0.11 s of 0.6 s were reported.)
 */
Test(reconcile, many_functions_with_few_samples)
{
	const struct reconcile server = {
		.period_ns = 1e6, .slowdown_ns = SLOWDOWN, .disturbed = 0.33};
	struct reconcile_row rows[FUNCTIONS] = {
		{.own = 200e6, .taken = 1.5e6, .samples = 200, .before = 33, .intervals = 2000}};
	double sum = 0;

	for (int i = 1; i < FUNCTIONS; i++)
		rows[i] = (struct reconcile_row){.own = 1.4e6,
						 .taken = 1.7e6,
						 .samples = i % 3 ? 1 : 2,
						 .before = i % 4 == 0 ? 1 : 0,
						 .intervals = 2600};
	assert_ok(reconcile_solve(&server, rows, FUNCTIONS));
	for (int i = 0; i < FUNCTIONS; i++)
		sum += rows[i].ns;
	cr_assert(fabs(rows[0].ns - 200e6) < 40e6, "%f", rows[0].ns);
	cr_assert(sum > 400e6 && sum < 720e6, "%f", sum);
}

/*
 * fib(14), and once per round two system calls and some arithmetic by its caller, which take 1 us and
 * three times as long while traced. Undisturbed, all of it took 102 ms. Such a small function, known
 * precisely, must not decide the total (measured; it was 157 ms).
 */
Test(reconcile, a_small_function_with_cold_caches)
{
	const struct reconcile fib = {
		.period_ns = 1001001, .slowdown_ns = 102.6, .disturbed = 0.95};
	struct reconcile_row rows[] = {
		{.own = 6919634, .taken = 1243176, .samples = 7, .before = 18, .intervals = 2216},
		{.own = 148953209,
		 .taken = 2841432300,
		 .samples = 150,
		 .before = 774,
		 .intervals = 5402110},
	};
	double sum;

	assert_ok(reconcile_solve(&fib, rows, 2));
	sum = rows[0].ns + rows[1].ns;
	cr_assert(sum > 85e6 && sum < 118e6, "%f", sum);
	cr_assert(rows[0].ns < 4.5e6, "%f", rows[0].ns);
}

/* Functions whose intervals between hits differ in length are slowed down by different factors. */

static double slowed(double intervals, double ns, double slowdown)
{
	return ns + intervals * slowdown * (1 - exp(-ns / intervals / SLOWDOWN));
}

struct program {
	size_t n;
	double ns[4], intervals[4];
};

/* 30 ms, half of it in short calls. Probes have taken 20 times as much. */
static const struct program program = {
	4,
	{10e6, 5e6, 5e6, 10e6},
	{2, 100000, 60000, 40000},
};

/* Computes the rows as measured with this slowdown, and by samples before the probes. */
static void see(const struct program *p, double slowdown, double before, struct reconcile_row *rows)
{
	double sum = 0;

	for (size_t i = 0; i < p->n; i++)
		sum += p->ns[i];
	for (size_t i = 0; i < p->n; i++) {
		double u = slowed(p->intervals[i], p->ns[i], slowdown);

		rows[i] = (struct reconcile_row){.own = u,
						 .taken = p->intervals[i] * 2000,
						 .samples = u / 10e3,
						 .before = before * p->ns[i] / sum,
						 .intervals = p->intervals[i]};
	}
}

static double sum_of(const struct reconcile_row *rows, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += rows[i].ns;
	return sum;
}

static const struct reconcile slow = {.period_ns = 10e3, .slowdown_ns = SLOWDOWN};

Test(reconcile, slowdown_after_hits)
{
	struct reconcile_row rows[4];

	see(&program, SLOWDOWN, 0, rows);
	assert_ok(reconcile_solve(&slow, rows, 4));
	for (size_t i = 0; i < 4; i++)
		cr_assert(fabs(rows[i].ns - program.ns[i]) < 0.02 * program.ns[i], "%zu: %f", i,
			  rows[i].ns);
	cr_assert(sqrt(rows[1].variance) > 0.1 * rows[1].ns, "by how much differs");
}

/* Samples from before the probes determine the slowdown. */
Test(reconcile, samples_before)
{
	struct reconcile_row rows[4];

	for (double times = 0.5; times < 1.6; times += 0.5) {
		see(&program, times * SLOWDOWN, 4000, rows);
		assert_ok(reconcile_solve(&slow, rows, 4));
		cr_assert(fabs(sum_of(rows, 4) - 30e6) < 0.08 * 30e6, "%f: %f", times,
			  sum_of(rows, 4));
		for (size_t i = 0; i < 4; i++)
			cr_assert(fabs(rows[i].ns - program.ns[i]) < 0.12 * program.ns[i],
				  "%f, %zu: %f", times, i, rows[i].ns);
	}
}

/* The program now behaves differently than before: the trace and its samples are used. */
Test(reconcile, drift)
{
	struct reconcile_row rows[4];

	see(&program, SLOWDOWN, 4000, rows);
	rows[0].before = 100;
	rows[1].before = 3000;
	assert_ok(reconcile_solve(&slow, rows, 4));
	cr_assert(fabs(rows[0].ns - program.ns[0]) < 0.1 * program.ns[0], "%f", rows[0].ns);
	for (size_t i = 0; i < 4; i++)
		cr_assert(fabs(rows[i].ns - program.ns[i]) < 3 * sqrt(rows[i].variance) + 1e5,
			  "%zu: %f, error %f", i, rows[i].ns, sqrt(rows[i].variance));
}

static const struct snapshot_node *node(const struct snapshot *s, const char *name)
{
	for (uint32_t i = 0; i < s->nnodes; i++)
		if (s->nodes[i].func != SNAPSHOT_NONE &&
		    strcmp(s->funcs[s->nodes[i].func].name, name) == 0)
			return &s->nodes[i];
	cr_assert_fail("no %s", name);
	return NULL;
}

static uint32_t func_of(const struct snapshot *s, const char *name)
{
	return node(s, name)->func;
}

static struct snapshot *traced(void)
{
	struct snapshot *s = snapshot_build("target 42\n"
					    "thread 42 43 worker\n"
					    "main a.py:1 1 2000000 9000000 1\n"
					    "  f a.py:2 1000 11000000\n"
					    "  g a.py:3 1000 13000000\n"
					    "    f a.py:2 500 5000000\n");

	s->threads[0].total[SNAPSHOT_CPU] = s->threads[0].total[SNAPSHOT_WALL] = 0;
	for (uint32_t i = 0; i < s->nnodes; i++) {
		s->nodes[i].min[0] = s->nodes[i].min[1] = UINT64_MAX;
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
			s->threads[0].total[c] += s->nodes[i].self[c];
	}
	s->targets[0].cost = (struct cost){
		.known = true, .before = {4000, 4000, 4000}, .after = {4000, 4000, 4000}};
	s->targets[0].cost_scale = 1;
	return s;
}

static void give_samples(struct snapshot *s, uint64_t of_f, uint64_t of_main)
{
	uint64_t *of = snapshot_alloc(s, s->nfuncs, sizeof(*of));

	of[func_of(s, "f")] = of_f;
	of[func_of(s, "main")] = of_main;
	s->targets[0].beside.trace = (struct snapshot_sampled){of, s->nfuncs, 0};
	s->targets[0].estimate = (struct snapshot_estimate){
		.rate = 999, .period_ns = 1000, .samples = of_f + of_main};
}

static void give_more(struct snapshot *s, const char *name, uint64_t samples)
{
	((uint64_t *)s->targets[0].beside.trace.of)[func_of(s, name)] += samples;
	s->targets[0].estimate.samples += samples;
}

static void check_sums(const struct snapshot *s)
{
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
		uint64_t self = 0;

		for (uint32_t i = 0; i < s->nnodes; i++)
			self += s->nodes[i].self[c];
		cr_assert_eq(self, s->threads[0].total[c]);
	}
	cr_assert(snapshot_valid(s));
}

/*
 * After subtracting costs, nothing is left of g, and too much of f; according to the samples both
 * have equal times.
 */
Test(reconcile, a_snapshot)
{
	_cleanup_(snapshot_freep) struct snapshot *plain = traced(), *s = traced();
	uint64_t wait = node(s, "main")->self[SNAPSHOT_WALL] - node(s, "main")->self[SNAPSHOT_CPU];
	double f, g;

	give_samples(s, 2000, 1000);
	give_more(s, "g", 2000);
	assert_ok(snapshot_correct(plain));
	assert_ok(snapshot_correct(s));
	check_sums(plain);
	check_sums(s);
	g = (double)node(s, "g")->self[SNAPSHOT_CPU];
	f = (double)(node(s, "f")->self[SNAPSHOT_CPU]);
	for (uint32_t i = 0, n = 0; i < s->nnodes; i++)
		if (s->nodes[i].func == func_of(s, "f") && n++)
			f += (double)s->nodes[i].self[SNAPSHOT_CPU];
	/* 2 ms each, minus the slowdown after 1500 hits: these are slow, 0.49 us for each besides D. */
	cr_assert(g > 0.6e6 && g < 1.2e6, "%f", g);
	cr_assert(fabs(f - g) < 0.2e6, "%f", f);
	cr_assert((double)s->threads[0].total[SNAPSHOT_CPU] < 4e6);
	cr_assert_eq(node(s, "main")->self[SNAPSHOT_WALL] - node(s, "main")->self[SNAPSHOT_CPU],
		     wait, "waiting is no matter of samples");
	cr_assert_eq(node(s, "f")->calls, node(plain, "f")->calls);
	cr_assert(snapshot_error(&s->funcs[func_of(s, "f")], SNAPSHOT_TOT_CPU) > 0);
	cr_assert_eq(snapshot_error(&s->funcs[func_of(s, "f")], SNAPSHOT_CALLS), 0);
	cr_assert_lt(snapshot_error(&s->funcs[func_of(s, "f")], SNAPSHOT_CUM_CPU), 0);
	cr_assert(!s->targets[0].beside.trace.of, "used once");
}

Test(reconcile, without_samples_as_before)
{
	_cleanup_(snapshot_freep) struct snapshot *plain = traced(), *s = traced();

	give_samples(s, 0, 0);
	assert_ok(snapshot_correct(plain));
	assert_ok(snapshot_correct(s));
	for (uint32_t i = 0; i < s->nnodes; i++)
		cr_assert_leq(llabs((long long)s->nodes[i].self[SNAPSHOT_CPU] -
				    (long long)plain->nodes[i].self[SNAPSHOT_CPU]),
			      1);
	check_sums(s);
}

/* Contexts of another process are not changed. */
Test(reconcile, one_of_two_targets)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("target 42\ntarget 43\n"
			       "thread 42 42 a\nmain a.py:1 1 8000000\n  f a.py:2 1000 9000000\n"
			       "thread 43 43 b\nmain a.py:1 1 8000000\n  f a.py:2 1000 9000000\n");
	uint64_t before[2];

	for (uint32_t i = 0; i < s->nnodes; i++)
		s->nodes[i].min[0] = s->nodes[i].min[1] = UINT64_MAX;
	give_samples(s, 100, 5000);
	s->targets[0].cost = (struct cost){.known = true, .before = {4000}, .after = {3000}};
	memcpy(before, s->nodes[s->nnodes - 1].self, sizeof(before));
	assert_ok(snapshot_correct(s));
	cr_assert_arr_eq(s->nodes[s->nnodes - 1].self, before, sizeof(before));
	cr_assert(s->targets[0].corrected && !s->targets[1].corrected);
}

static double variance_of(const struct snapshot *s, const char *name)
{
	return s->funcs[func_of(s, name)].variance[SNAPSHOT_TOT_CPU];
}

/*
 * Without samples, a function's error is 15 % of its probes' time. f has 1,000 and 500 calls of 8 us; g has 1,000,
 * and makes 500; main makes 2,000, which take longer than it does.
 */
Test(reconcile, errors_without_samples)
{
	_cleanup_(snapshot_freep) struct snapshot *s = traced();

	give_samples(s, 0, 0);
	assert_ok(snapshot_correct(s));
	cr_assert_float_eq(variance_of(s, "f") / 1.8e6 / 1.8e6, 1, 1e-9);
	cr_assert_float_eq(variance_of(s, "g") / 1.8e6 / 1.8e6, 1, 1e-9);
	cr_assert_eq(variance_of(s, "main"), 0, "it has no time");
	cr_assert_eq(s->funcs[func_of(s, "f")].variance[SNAPSHOT_TOT_WALL], variance_of(s, "f"));
	cr_assert_eq(s->funcs[func_of(s, "f")].variance[SNAPSHOT_CUM_WALL], -1);
	cr_assert_eq(s->funcs[func_of(s, "f")].variance[SNAPSHOT_CALLS], 0);
}

/*
 * Of 1,000 calls, 100 have ended: main has 101 intervals, and f as many as calls. By samples, a hit costs
 * 4440 ns. (The rest was computed as in computed_twice.)
 */
Test(reconcile, calls_that_have_not_ended)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("target 42\nthread 42 43 worker\nmain a.py:1 1 30000000 30000000 1\n"
			       "  f a.py:2 1000 20000000 20000000 900\n");
	struct snapshot_target *t = &s->targets[0];

	for (uint32_t i = 0; i < s->nnodes; i++)
		s->nodes[i].min[0] = s->nodes[i].min[1] = UINT64_MAX;
	s->threads[0].total[0] = s->threads[0].total[1] = 50000000;
	t->cost = (struct cost){
		.known = true, .before = {4000, 4000, 4000}, .after = {4000, 4000, 4000}};
	t->cost_scale = 2;
	give_samples(s, 1500, 2500);
	t->estimate.period_ns = 10000;
	assert_ok(snapshot_correct(s));
	check_sums(s);
	cr_assert_eq(t->cost.before[COST_ENTER], 4440);
	cr_assert_float_eq(t->cost_scale, 2 * 1.1100990025, 1e-9);
	cr_assert_eq(node(s, "main")->self[SNAPSHOT_CPU], 24803201);
	cr_assert_eq(node(s, "f")->self[SNAPSHOT_CPU], 12865531);
	cr_assert_eq(t->subtracted[SNAPSHOT_CPU], 50000000 - 24803201 - 12865531);
	cr_assert_float_eq(sqrt(variance_of(s, "main")), 422469.656, 1e-2);
	cr_assert_float_eq(sqrt(variance_of(s, "f")), 925376.058, 1e-2);
}

static struct snapshot *counted(void)
{
	struct snapshot *s = snapshot_build("target 42\n"
					    "thread 42 43 worker\n"
					    "main a.py:1 1 9000000\n"
					    "  f a.py:2 10000 3000000\n"
					    "  g a.py:3 10000 0\n");
	struct snapshot_target *t = &s->targets[0];
	uint64_t *before = snapshot_alloc(s, s->nfuncs, sizeof(*before));

	for (uint32_t i = 0; i < s->nnodes; i++)
		s->nodes[i].self[SNAPSHOT_WALL] = 0;
	s->threads[0].total[SNAPSHOT_CPU] = 12000000;
	s->threads[0].total[SNAPSHOT_WALL] = 0;
	t->mode = MODE_COUNT;
	/* A hit costs 1 us, so it slows the following code by up to 180 ns. */
	t->estimate = (struct snapshot_estimate){.rate = 999,
						 .period_ns = 10000,
						 .samples = 1200,
						 .of_probes = 2000,
						 .before = 1000};
	before[func_of(s, "main")] = 800;
	before[func_of(s, "f")] = 150;
	before[func_of(s, "g")] = 50;
	t->beside.before = (struct snapshot_sampled){before, s->nfuncs, 0};
	return s;
}

/*
 * Without any probes' time, figures stay; each function's time T has the variance of a number of samples, and
 * half a sample more.
 */
Test(reconcile, errors_of_what_was_counted)
{
	_cleanup_(snapshot_freep) struct snapshot *s = counted();

	s->targets[0].estimate.of_probes = 0;
	s->targets[0].beside.before = (struct snapshot_sampled){0};
	assert_ok(snapshot_correct(s));
	cr_assert_leq(9000000 - node(s, "main")->self[SNAPSHOT_CPU], 1);
	cr_assert_leq(3000000 - node(s, "f")->self[SNAPSHOT_CPU], 1);
	cr_assert_float_eq(variance_of(s, "main") / (9005e3 * 10e3), 1, 1e-6);
	cr_assert_float_eq(variance_of(s, "f") / (3005e3 * 10e3), 1, 1e-6);
	cr_assert_float_eq(variance_of(s, "g") / (5e3 * 10e3), 1, 1e-6);
	/* What was unknown stays so. */
	for (int k = 0; k < SNAPSHOT_FIGURES; k++)
		s->funcs[func_of(s, "f")].variance[k] = -1;
	assert_ok(snapshot_correct(s));
	cr_assert_eq(variance_of(s, "f"), -1);
}

/* In mode count all times come from samples; those from before the probes determine the shares. */
Test(reconcile, counted)
{
	_cleanup_(snapshot_freep) struct snapshot *s = counted();
	const struct snapshot_target *t = &s->targets[0];
	uint64_t all;

	assert_ok(snapshot_correct(s));
	all = s->threads[0].total[SNAPSHOT_CPU];
	cr_assert(all > 9000000 && all < 12000000, "%" PRIu64, all);
	cr_assert(fabs((double)node(s, "main")->self[SNAPSHOT_CPU] / (double)all - 0.8) < 0.04);
	cr_assert(fabs((double)node(s, "f")->self[SNAPSHOT_CPU] / (double)all - 0.15) < 0.04);
	cr_assert(node(s, "g")->self[SNAPSHOT_CPU] > 0, "no sample met it, but one before");
	cr_assert_eq(node(s, "g")->calls, 10000);
	cr_assert_eq(s->threads[0].total[SNAPSHOT_WALL], 0, "samples know no wall time");
	cr_assert(!t->beside.before.of && t->subtracted[SNAPSHOT_CPU] == 0);
}

/* Waiting is known where walks have shown it, and stays as it is; wall time is both. */
Test(reconcile, counted_with_waits)
{
	_cleanup_(snapshot_freep) struct snapshot *s = counted(), *plain = counted();

	s->targets[0].waits.walked = true;
	for (uint32_t i = 0; i < s->nnodes; i++) {
		s->nodes[i].self[SNAPSHOT_WALL] = s->nodes[i].self[SNAPSHOT_CPU] + 1000000 * i;
		s->threads[0].total[SNAPSHOT_WALL] += s->nodes[i].self[SNAPSHOT_WALL];
	}
	assert_ok(snapshot_correct(plain));
	assert_ok(snapshot_correct(s));
	check_sums(s);
	for (uint32_t i = 0; i < s->nnodes; i++) {
		cr_assert_eq(s->nodes[i].self[SNAPSHOT_CPU], plain->nodes[i].self[SNAPSHOT_CPU]);
		cr_assert_eq(s->nodes[i].self[SNAPSHOT_WALL] - s->nodes[i].self[SNAPSHOT_CPU],
			     1000000 * i);
	}
}

/* Returns the total of what was counted, if the process's CPU time would be this long undisturbed. */
static uint64_t correct_by_progress(struct snapshot *s, double undisturbed_ns,
				    double process_cpu_ns)
{
	struct snapshot_beside *b = &s->targets[0].beside;

	b->undisturbed_ns = undisturbed_ns;
	b->undisturbed_error = 0.05;
	b->process_cpu_ns = process_cpu_ns;
	assert_ok(snapshot_correct(s));
	return s->threads[0].total[SNAPSHOT_CPU];
}

/* The same, as it was computed twice: without a known total, with one, and with one that is of twice the time. */
Test(reconcile, counted_computed_twice)
{
	static const struct {
		double undisturbed_ns, process_cpu_ns;
		uint64_t ns[3]; /* of main, f, g */
	} cases[] = {
		{0, 0, {8903993, 1712326, 2017}},
		{6e6, 32e6, {5015374, 1052429, 135}},
		{12e6, 64e6, {8522567, 1638651, 2082}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(snapshot_freep) struct snapshot *s = counted();

		correct_by_progress(s, cases[i].undisturbed_ns, cases[i].process_cpu_ns);
		cr_assert_eq(node(s, "main")->self[SNAPSHOT_CPU], cases[i].ns[0], "%zu", i);
		cr_assert_eq(node(s, "f")->self[SNAPSHOT_CPU], cases[i].ns[1], "%zu", i);
		cr_assert_eq(node(s, "g")->self[SNAPSHOT_CPU], cases[i].ns[2], "%zu", i);
	}
}

/* The program's progress determines the total: it ran half as fast as usual between the hits. */
Test(reconcile, counted_by_progress)
{
	_cleanup_(snapshot_freep) struct snapshot *s = counted();
	const uint64_t all = correct_by_progress(s, 6e6, 32e6);

	cr_assert(all > 5800000 && all < 6600000, "%" PRIu64, all);
	cr_assert(fabs((double)node(s, "main")->self[SNAPSHOT_CPU] / (double)all - 0.8) < 0.04);
}

/* Half of the process's time was used by threads that were not observed, as fast as usual. */
Test(reconcile, counted_by_progress_of_half)
{
	_cleanup_(snapshot_freep) struct snapshot *s = counted();
	const uint64_t all = correct_by_progress(s, 12e6, 64e6);

	cr_assert(all > 5800000 && all < 12000000, "%" PRIu64, all);
}

/*
 * Samples show Python functions only: f and g have half of them each, f's in a C function. 1000
 * hits were in calls of another C function by g.
 */
static struct snapshot *with_natives(void)
{
	struct snapshot *s = snapshot_build("target 42\n"
					    "thread 42 43 worker\n"
					    "main a.py:1 1 1000\n"
					    "  f a.py:2 10 100000\n"
					    "    sort ~:0 10 9900000\n"
					    "  g a.py:3 10 8000000\n"
					    "    len ~:0 1000 10000000\n");

	s->threads[0].total[SNAPSHOT_CPU] = s->threads[0].total[SNAPSHOT_WALL] = 0;
	for (uint32_t i = 0; i < s->nnodes; i++) {
		s->nodes[i].min[0] = s->nodes[i].min[1] = UINT64_MAX;
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
			s->threads[0].total[c] += s->nodes[i].self[c];
	}
	return s;
}

static double tot(const struct snapshot *s, const char *name)
{
	return (double)node(s, name)->self[SNAPSHOT_CPU];
}

static double error_of(const struct snapshot *s, const char *name)
{
	return snapshot_error(&s->funcs[func_of(s, name)], SNAPSHOT_TOT_CPU);
}

/*
 * There are as many samples of f as of g; a hit costs 8 us, so hits take as long as the calls of
 * len and g together.
 */
static void sample_natives(struct snapshot *s)
{
	uint64_t *of = snapshot_alloc(s, s->nfuncs, sizeof(*of)),
		 *before = snapshot_alloc(s, s->nfuncs, sizeof(*before));

	of[func_of(s, "f")] = of[func_of(s, "g")] = 1000;
	before[func_of(s, "f")] = before[func_of(s, "g")] = 500;
	s->targets[0].beside.trace = (struct snapshot_sampled){of, s->nfuncs, 0};
	s->targets[0].beside.before = (struct snapshot_sampled){before, s->nfuncs, 0};
	s->targets[0].cost = (struct cost){
		.known = true, .before = {4000, 4000, 4000}, .after = {4000, 4000, 4000}};
	s->targets[0].cost_scale = 1;
	s->targets[0].estimate = (struct snapshot_estimate){
		.rate = 999, .period_ns = 10000, .samples = 2000, .before = 1000};
}

Test(reconcile, c_functions_of_a_trace)
{
	_cleanup_(snapshot_freep) struct snapshot *s = with_natives();

	sample_natives(s);
	assert_ok(snapshot_correct(s));
	check_sums(s);
	cr_assert(tot(s, "sort") > 9e6 && tot(s, "sort") < 10.5e6, "%f", tot(s, "sort"));
	cr_assert(tot(s, "f") < 0.1e6, "%f", tot(s, "f"));
	cr_assert(tot(s, "g") + tot(s, "len") > 8.5e6, "%f %f", tot(s, "g"), tot(s, "len"));
	/* The uncertain figure is the part of the row that was len: its hits took as long. */
	cr_assert(error_of(s, "sort") > 0 && error_of(s, "sort") < 0.1 * tot(s, "sort"));
	cr_assert_gt(error_of(s, "len"), 0.05 * tot(s, "g"));
	cr_assert_gt(error_of(s, "g"), 0.05 * tot(s, "g"));
	cr_assert(snapshot_valid(s));
}

/*
 * Without samples. f's own time is what remains of its row, 240 us of probes' time, after that of sort, 80 us; g's
 * likewise, 16.08 ms, and 8 ms of len. Neither has any.
 */
Test(reconcile, errors_of_c_functions)
{
	_cleanup_(snapshot_freep) struct snapshot *s = with_natives();

	sample_natives(s);
	s->targets[0].beside.trace.n = s->targets[0].beside.before.n = 0;
	s->targets[0].estimate.samples = 0;
	assert_ok(snapshot_correct(s));
	check_sums(s);
	cr_assert(tot(s, "sort") == 9820000 && tot(s, "f") == 0);
	cr_assert(tot(s, "len") == 2000000 && tot(s, "g") == 0);
	cr_assert_float_eq(error_of(s, "f"), 12e3, 1e-6);
	cr_assert_float_eq(error_of(s, "sort"), hypot(36e3, 12e3), 1e-6);
	cr_assert_float_eq(error_of(s, "g"), 1.2e6, 1e-6);
	cr_assert_float_eq(error_of(s, "len"), hypot(2.412e6, 1.2e6), 1e-6);
}

/* 1 % of the row of f and sort are f's: its part of the row's error, and the binomial one of 1,000 samples. */
Test(reconcile, errors_of_c_functions_that_were_counted)
{
	_cleanup_(snapshot_freep) struct snapshot *s = with_natives();
	struct snapshot_target *t = &s->targets[0];
	const double row = (10e6 + 5e3) * 10e3, apart = 10e6 * 10e6 * 0.01 * 0.99 / 1000;

	t->mode = MODE_COUNT;
	t->estimate = (struct snapshot_estimate){.rate = 999, .period_ns = 10000, .samples = 2000};
	assert_ok(snapshot_correct(s));
	cr_assert_float_eq(variance_of(s, "f") / (0.01 * 0.01 * row + apart), 1, 1e-6);
	cr_assert_float_eq(variance_of(s, "sort") / (0.99 * 0.99 * row + apart), 1, 1e-6);
}

/* Calls of len have one event each: their time is unmeasured, which differs from 0. */
Test(reconcile, c_functions_of_one_event)
{
	_cleanup_(snapshot_freep) struct snapshot *s = with_natives();

	sample_natives(s);
	s->funcs[func_of(s, "len")].instant = true;
	((struct snapshot_node *)node(s, "len"))->self[SNAPSHOT_CPU] = 0;
	((struct snapshot_node *)node(s, "len"))->self[SNAPSHOT_WALL] = 0;
	s->threads[0].total[SNAPSHOT_CPU] -= 10000000;
	s->threads[0].total[SNAPSHOT_WALL] -= 10000000;
	assert_ok(snapshot_correct(s));
	check_sums(s);
	cr_assert_eq(tot(s, "len"), 0);
	/* the samples have reduced the cost */
	cr_assert_float_eq(error_of(s, "len"),
			   0.15 * 1000 *
				   (s->targets[0].cost.before[COST_ENTER] +
				    s->targets[0].cost.after[COST_ENTER]),
			   1);
	cr_assert_gt(error_of(s, "len"), 0);
}

Test(reconcile, c_functions_that_were_counted)
{
	_cleanup_(snapshot_freep) struct snapshot *s = with_natives();
	struct snapshot_target *t = &s->targets[0];
	uint64_t *before = snapshot_alloc(s, s->nfuncs, sizeof(*before));

	t->mode = MODE_COUNT;
	((struct snapshot_node *)node(s, "len"))->self[SNAPSHOT_CPU] = 2000000;
	t->estimate = (struct snapshot_estimate){
		.rate = 999, .period_ns = 10000, .samples = 2000, .before = 1000};
	before[func_of(s, "f")] = before[func_of(s, "g")] = 500;
	t->beside.before = (struct snapshot_sampled){before, s->nfuncs, 0};
	assert_ok(snapshot_correct(s));
	cr_assert(tot(s, "sort") > 50 * tot(s, "f"), "%f", tot(s, "sort"));
	cr_assert(fabs(tot(s, "sort") + tot(s, "f") - tot(s, "g") - tot(s, "len")) <
			  0.01 * tot(s, "sort"),
		  "%f and %f", tot(s, "g"), tot(s, "len"));
	cr_assert(fabs(tot(s, "len") / tot(s, "g") - 0.25) < 0.01, "as samples have them");
	cr_assert_gt(error_of(s, "len"), 0);
}

/* Samples show the function that triggered collections; the trace has the collections' time. */
Test(reconcile, collections_of_a_trace)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("target 42\n"
								      "thread 42 43 worker\n"
								      "main a.py:1 1 1000\n"
								      "  f a.py:2 1000 18000000\n"
								      "    <gc> ~:0 10 6000000\n");
	uint64_t *of = snapshot_alloc(s, s->nfuncs, sizeof(*of));
	double collected;

	s->funcs[func_of(s, "<gc>")].pseudo = true;
	s->threads[0].total[SNAPSHOT_CPU] = s->threads[0].total[SNAPSHOT_WALL] = 0;
	for (uint32_t i = 0; i < s->nnodes; i++) {
		s->nodes[i].min[0] = s->nodes[i].min[1] = UINT64_MAX;
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
			s->threads[0].total[c] += s->nodes[i].self[c];
	}
	of[func_of(s, "f")] = 1100; /* 5 ms of its own, 6 ms of collections */
	s->targets[0].beside.trace = (struct snapshot_sampled){of, s->nfuncs, 0};
	s->targets[0].cost = (struct cost){
		.known = true, .before = {4000, 4000, 4000}, .after = {4000, 4000, 4000}};
	s->targets[0].cost_scale = 1;
	s->targets[0].estimate =
		(struct snapshot_estimate){.rate = 999, .period_ns = 10000, .samples = 1100};
	assert_ok(snapshot_correct(s));
	check_sums(s);
	collected = tot(s, "<gc>");
	cr_assert(collected > 5.8e6 && collected < 6e6, "%f", collected);
	cr_assert(tot(s, "f") > 3e6 && tot(s, "f") < 6e6, "%f", tot(s, "f"));
	cr_assert(snapshot_valid(s));
}

/*
 * All at once, as in computed_twice: collections in f, samples of both kinds, and a known total of a process of
 * which a third was not observed. By samples, a hit costs 4367 ns; collections keep what hits leave of them.
 */
Test(reconcile, everything_of_a_trace)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("target 42\nthread 42 43 worker\nmain a.py:1 1 30000000 30000000 1\n"
			       "  f a.py:2 1000 20000000 20000000 900\n    <gc> ~:0 10 6000000\n");
	struct snapshot_target *t = &s->targets[0];
	uint64_t *before = snapshot_alloc(s, s->nfuncs, sizeof(*before));

	s->funcs[func_of(s, "<gc>")].pseudo = true;
	for (uint32_t i = 0; i < s->nnodes; i++)
		s->nodes[i].min[0] = s->nodes[i].min[1] = UINT64_MAX;
	s->threads[0].total[0] = s->threads[0].total[1] = 56000000;
	t->cost = (struct cost){
		.known = true, .before = {4000, 4000, 4000}, .after = {4000, 4000, 4000}};
	t->cost_scale = 1;
	give_samples(s, 2100, 2500);
	t->estimate.period_ns = 10000;
	t->estimate.of_probes = 400;
	before[func_of(s, "main")] = 60;
	before[func_of(s, "f")] = 40;
	t->beside.before = (struct snapshot_sampled){before, s->nfuncs, 3};
	t->beside.undisturbed_ns = 30e6;
	t->beside.undisturbed_error = 0.05;
	t->beside.process_cpu_ns = 80e6;
	assert_ok(snapshot_correct(s));
	check_sums(s);
	cr_assert_eq(t->cost.before[COST_ENTER], 4367);
	cr_assert_eq(node(s, "<gc>")->self[SNAPSHOT_CPU], 5912660);
	cr_assert_float_eq(tot(s, "main"), 24501463.7, 2, "%f", tot(s, "main"));
	cr_assert_float_eq(tot(s, "f"), 12152137.4, 2, "%f", tot(s, "f"));
	cr_assert_float_eq(error_of(s, "main") / 2863470.67, 1, 1e-6);
	cr_assert_float_eq(error_of(s, "f") / 1652750.87, 1, 1e-6, "%f", error_of(s, "f"));
}
