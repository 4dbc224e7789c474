// SPDX-License-Identifier: BSD-2-Clause
/*
 * Estimates from windows: exact where there was no gap; otherwise weighted so that they add up to
 * what the CPU clock says, right on average for a program whose truth is known, and off by as much
 * as they say.
 */
#include <math.h>

#include "harness/test.h"
#include "stack/estimate.h"
#include "stats/func.h"

enum { F = FUNC_PSEUDO_MAX, G, FUNCS };

struct made {
	struct estimate e;
	struct calltree tree;
	uint32_t root, f, g; /* g is called by f */
};

static const struct cost no_cost;

static void make(struct made *m)
{
	estimate_init(&m->e);
	calltree_init(&m->tree, 1000);
	m->root = calltree_add_root(&m->tree);
	m->f = calltree_child(&m->tree, m->root, F);
	m->g = calltree_child(&m->tree, m->f, G);
}

static void unmake(struct made *m)
{
	estimate_deinit(&m->e);
	calltree_deinit(&m->tree);
}

static void seen(struct made *m, uint32_t node, uint64_t calls, uint64_t cpu, uint64_t wall)
{
	m->tree.nodes[node].calls += calls;
	m->tree.nodes[node].self[SNAPSHOT_CPU] += cpu;
	m->tree.nodes[node].self[SNAPSHOT_WALL] += wall;
}

static struct estimate_figures figures(const struct made *m, uint32_t node)
{
	return estimate_figures(&m->e, &m->tree, node);
}

static double error(const struct made *m, uint32_t func, enum snapshot_figure k)
{
	return sqrt(estimate_variance(&m->e, func, k));
}

Test(estimate, exact_without_a_gap)
{
	struct made m;

	make(&m);
	for (int i = 0; i < 10; i++) {
		seen(&m, m.f, 3, 100, 150);
		seen(&m, m.g, 7, 50, 50);
		estimate_own_cpu(&m.e, 123); /* whatever that says */
		assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 200, &no_cost, 1));
	}
	seen(&m, m.f, 1, 1, 1); /* not folded yet */
	cr_assert(!estimate_sampled(&m.e));
	cr_assert_eq(figures(&m, m.f).calls, 31);
	cr_assert_eq(figures(&m, m.f).self[SNAPSHOT_CPU], 1001);
	cr_assert_eq(figures(&m, m.f).self[SNAPSHOT_WALL], 1501);
	cr_assert_eq(figures(&m, m.g).calls, 70);
	cr_assert_eq(estimate_variance(&m.e, F, SNAPSHOT_CALLS), 0);
	unmake(&m);
	check_no_leaks();
}

/* A tenth of the time was watched, and the clock says that 5 % more CPU time was used than that. */
Test(estimate, adds_up)
{
	struct made m;
	uint64_t cpu;

	make(&m);
	for (int i = 0; i < 10; i++) {
		estimate_gap(&m.e, 9000);
		estimate_own_cpu(&m.e, 10500 - 4000);
		seen(&m, m.f, 2, 400, 1000);
		seen(&m, m.g, 1, 250, 0);
		assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &no_cost, 1));
	}
	cr_assert(estimate_sampled(&m.e));
	cr_assert_eq(m.e.windows, 10);
	cpu = figures(&m, m.f).self[SNAPSHOT_CPU] + figures(&m, m.g).self[SNAPSHOT_CPU];
	cr_assert_leq(cpu, 65001);
	cr_assert_geq(cpu, 64999);
	cr_assert_eq(figures(&m, m.f).self[SNAPSHOT_CPU], 40000);
	cr_assert_eq(figures(&m, m.f).calls, 200);
	cr_assert_eq(figures(&m, m.f).self[SNAPSHOT_WALL], 100000, "with 60,000 of waiting");
	cr_assert(error(&m, F, SNAPSHOT_CALLS) < 1e-3, "all windows were alike");
	/* A gap that no window stands for yet raises all of it. */
	estimate_gap(&m.e, 10000);
	estimate_own_cpu(&m.e, 6500);
	cr_assert_eq(figures(&m, m.f).calls, 220);
	cr_assert_eq(figures(&m, m.f).self[SNAPSHOT_WALL], 110000);
	estimate_clear(&m.e);
	cr_assert_eq(figures(&m, m.f).calls, 0);
	unmake(&m);
	check_no_leaks();
}

/* What the probes took is in the figures, as in exact ones, and not in what is compared. */
Test(estimate, probes_time)
{
	const struct cost cost = {.known = true, .before = {100, 100, 0}, .after = {100, 100, 0}};
	struct made m;

	make(&m);
	for (int i = 0; i < 4; i++) {
		estimate_gap(&m.e, 5000);
		estimate_own_cpu(&m.e, 6000);
		/* One call of g: 200 ns in it, 200 in f. */
		seen(&m, m.g, 1, 600, 600);
		seen(&m, m.f, 0, 800, 800);
		assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &cost, 1));
	}
	cr_assert_float_eq(m.e.seen_cpu, 4000, 1e-6);
	cr_assert_eq(figures(&m, m.g).self[SNAPSHOT_CPU], 6 * 4 * 600);
	cr_assert_float_eq(estimate_cost_factor(&m.e), 1, 1e-9);
	unmake(&m);
	check_no_leaks();
}

/* Costs that come to more than there was are taken to have been lower. */
Test(estimate, costs_too_high)
{
	const struct cost cost = {.known = true, .before = {500, 500, 0}, .after = {500, 500, 0}};
	struct made m;

	make(&m);
	estimate_gap(&m.e, 5000);
	seen(&m, m.g, 10, 9000, 9000);
	seen(&m, m.f, 0, 7000, 7000);
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &cost, 1));
	cr_assert(estimate_cost_factor(&m.e) < 1 && estimate_cost_factor(&m.e) > 0.5);
	cr_assert(m.e.seen_cpu > 0);
	unmake(&m);
	check_no_leaks();
}

/* A window in which hits were dearer than when they were measured. */
Test(estimate, dearer_hits)
{
	const struct cost cost = {.known = true, .before = {100, 100, 0}, .after = {100, 100, 0}};
	struct made m;

	make(&m);
	estimate_gap(&m.e, 5000);
	seen(&m, m.g, 1, 600, 600);
	seen(&m, m.f, 0, 800, 800);
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &cost, 1.5));
	cr_assert_float_eq(m.e.seen_cpu, 800, 1e-6);
	cr_assert_float_eq(estimate_cost_factor(&m.e), 1.5, 1e-9);
	estimate_costs_change(&m.e, 2);
	cr_assert_float_eq(estimate_cost_factor(&m.e), 0.75, 1e-9, "of what was measured since");
	unmake(&m);
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
 * A program that is in f for 3 ms, with a call each 1 us, and in g for 7 ms, with a call each 10 us;
 * windows of 1 ms at random. The truth is known, and so is how often an estimate may be off by more
 * than twice its error.
 */
static void sample(struct made *m, int windows)
{
	make(m);
	m->g = calltree_child(&m->tree, m->root, G);
	for (int i = 0; i < windows; i++) {
		double start = uniform() * 10e6, from = start, end = start + 1e6;

		estimate_gap(&m->e, 9000000);
		estimate_own_cpu(&m->e, 10e6);
		while (from < end) {
			double at = fmod(from, 10e6), turn = at < 3e6 ? 3e6 : 10e6;
			double n = fmin(end - from, turn - at);

			if (at < 3e6)
				seen(m, m->f, (uint64_t)(n / 1e3), (uint64_t)n, (uint64_t)n);
			else
				seen(m, m->g, (uint64_t)(n / 1e4), (uint64_t)n, (uint64_t)n);
			from += n + 1e-3;
		}
		assert_ok(estimate_fold(&m->e, &m->tree, FUNCS, 1000000, &no_cost, 1));
	}
}

Test(estimate, right_on_average_and_as_far_off_as_it_says)
{
	double sum = 0, calls = 0;
	int off = 0;

	for (int k = 0; k < 200; k++) {
		struct made m;
		double share, told;

		sample(&m, 100);
		share = (double)figures(&m, m.f).self[SNAPSHOT_CPU] / (100 * 10e6);
		told = error(&m, F, SNAPSHOT_TOT_CPU) / (100 * 10e6);
		sum += share;
		calls += (double)figures(&m, m.f).calls / (100 * 3000.0);
		off += fabs(share - 0.3) > 2 * told;
		cr_assert(told > 0.01 && told < 0.1, "%.4f", told);
		unmake(&m);
	}
	cr_assert(fabs(sum / 200 - 0.3) < 0.012, "%.4f", sum / 200);
	cr_assert(fabs(calls / 200 - 1) < 0.04, "%.4f", calls / 200);
	cr_assert(off < 30, "%d of 200 are off by more than twice their error", off);
	check_no_leaks();
}

Test(estimate, one_window_has_no_error)
{
	struct made m;

	make(&m);
	estimate_gap(&m.e, 1000);
	seen(&m, m.f, 1, 100, 100);
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 100, &no_cost, 1));
	cr_assert_lt(estimate_variance(&m.e, F, SNAPSHOT_CALLS), 0);
	unmake(&m);
	check_no_leaks();
}
