// SPDX-License-Identifier: BSD-2-Clause
/*
 * Estimates from windows: exact if there was no gap; otherwise weighted so that they add up to the
 * CPU clock, correct on average for a program whose true figures are known, and with errors of the
 * reported size.
 */
#include <math.h>

#include "estimate/estimate_priv.h"
#include "estimate/taken.h"
#include "estimate/window.h"
#include "harness/estimate_rig.h"
#include "harness/reports.h"
#include "harness/test.h"

static double error(const struct estimate_rig *m, uint32_t func, enum snapshot_figure k)
{
	return sqrt(estimate_rig_variance(m, func, k));
}

static double cost_factor(const struct estimate_rig *m)
{
	struct estimate_result r = estimate_rig_reconcile(m, &estimate_rig_no_cost);
	double factor = r.cost_factor;

	estimate_result_deinit(&r);
	return factor;
}

Test(estimate, exact_without_a_gap)
{
	struct estimate_rig m;

	estimate_rig_init(&m);
	for (int i = 0; i < 10; i++) {
		estimate_rig_seen(&m, m.f, 3, 100, 150);
		estimate_rig_seen(&m, m.g, 7, 50, 50);
		estimate_own_cpu(&m.e, 123); /* irrelevant without a gap */
		assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 200, &estimate_rig_no_cost, 1));
	}
	estimate_rig_seen(&m, m.f, 1, 1, 1); /* not folded yet */
	cr_assert(!estimate_sampled(&m.e));
	cr_assert_eq(estimate_rig_figures(&m, m.f).calls, 31);
	cr_assert_eq(estimate_rig_figures(&m, m.f).self[SNAPSHOT_CPU], 1001);
	cr_assert_eq(estimate_rig_figures(&m, m.f).self[SNAPSHOT_WALL], 1501);
	cr_assert_eq(estimate_rig_figures(&m, m.g).calls, 70);
	cr_assert_eq(estimate_rig_variance(&m, F, SNAPSHOT_CALLS), 0);
	estimate_rig_deinit(&m);
	check_no_leaks();
}

/*
 * A tenth of the time was traced, and the CPU clock is 5 % above the sum of the windows' CPU time.
 */
Test(estimate, adds_up)
{
	struct estimate_rig m;
	uint64_t cpu;

	estimate_rig_init(&m);
	for (int i = 0; i < 10; i++) {
		estimate_gap(&m.e, 9000);
		estimate_own_cpu(&m.e, 10500 - 4000);
		estimate_rig_seen(&m, m.f, 2, 400, 1000);
		estimate_rig_seen(&m, m.g, 1, 250, 0);
		assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &estimate_rig_no_cost, 1));
	}
	cr_assert(estimate_sampled(&m.e));
	cr_assert_eq(m.e.windows, 10);
	cpu = estimate_rig_figures(&m, m.f).self[SNAPSHOT_CPU] +
	      estimate_rig_figures(&m, m.g).self[SNAPSHOT_CPU];
	cr_assert_leq(cpu, 65001);
	cr_assert_geq(cpu, 64999);
	cr_assert_eq(estimate_rig_figures(&m, m.f).self[SNAPSHOT_CPU], 40000);
	cr_assert_eq(estimate_rig_figures(&m, m.f).calls, 200);
	cr_assert_eq(estimate_rig_figures(&m, m.f).self[SNAPSHOT_WALL], 100000,
		     "with 60,000 of waiting");
	cr_assert(error(&m, F, SNAPSHOT_CALLS) < 1e-3, "all windows were alike");
	/* A gap that no window represents yet increases all figures. */
	estimate_gap(&m.e, 10000);
	estimate_own_cpu(&m.e, 6500);
	cr_assert_eq(estimate_rig_figures(&m, m.f).calls, 220);
	cr_assert_eq(estimate_rig_figures(&m, m.f).self[SNAPSHOT_WALL], 110000);
	estimate_clear(&m.e);
	cr_assert_eq(estimate_rig_figures(&m, m.f).calls, 0);
	estimate_rig_deinit(&m);
	check_no_leaks();
}

/* Half of a gap belongs to the window before it, and half to the one after it. */
Test(estimate, gaps_are_shared)
{
	struct estimate_rig m;

	estimate_rig_init(&m);
	estimate_rig_seen(&m, m.f, 10, 100, 100);
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &estimate_rig_no_cost, 1));
	cr_assert_eq(m.e.windows, 0, "there was no gap");
	cr_assert_eq(estimate_rig_figures(&m, m.f).calls, 10);
	estimate_gap(&m.e, 4000);
	estimate_rig_seen(&m, m.g, 10, 100, 100);
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &estimate_rig_no_cost, 1));
	cr_assert_eq(m.e.windows, 2);
	cr_assert_eq(estimate_rig_figures(&m, m.f).calls, 30);
	cr_assert_eq(estimate_rig_figures(&m, m.g).calls, 30);
	estimate_gap(&m.e, 2000);
	estimate_rig_seen(&m, m.f, 1, 100, 100);
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &estimate_rig_no_cost, 1));
	cr_assert_eq(estimate_rig_figures(&m, m.f).calls, 32);
	cr_assert_eq(estimate_rig_figures(&m, m.g).calls, 40);
	cr_assert_float_eq(m.e.all_ns, 9000, 1e-6);
	/* The estimate ends because the program's behaviour has changed. */
	estimate_fold_end(&m.e);
	estimate_gap(&m.e, 2000);
	estimate_rig_seen(&m, m.g, 10, 100, 100);
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &estimate_rig_no_cost, 1));
	cr_assert_eq(estimate_rig_figures(&m, m.f).calls, 32);
	cr_assert_eq(estimate_rig_figures(&m, m.g).calls, 70);
	estimate_rig_deinit(&m);
	check_no_leaks();
}

static void expect_sums(const struct estimate_rig *m, uint32_t func, enum snapshot_figure k,
			double sum, double square, double product)
{
	const struct estimate_func *f = &m->e.funcs[func];

	cr_assert(f->sum[k] == sum && f->square[k] == square && f->product[k] == product,
		  "%u, %d: %g %g %g", func, k, f->sum[k], f->square[k], f->product[k]);
}

static void expect_variance(const struct estimate_rig *m, uint32_t func, enum snapshot_figure k,
			    double expected)
{
	double variance = estimate_rig_variance(m, func, k);

	cr_assert_float_eq(variance / expected, 1, 1e-6, "%u, %d: %.9g", func, k, variance);
}

static void fold_after(struct estimate_rig *m, uint64_t gap_ns)
{
	estimate_gap(&m->e, gap_ns);
	assert_ok(estimate_fold(&m->e, &m->tree, FUNCS, 1000, &estimate_rig_no_cost, 1));
}

/*
 * The sums that errors follow from, by hand. The first of four windows has a weight of 2 and then, as one
 * more gap follows, of 3. The others have 2, the third one only after the fourth has shown a gap. f calls g,
 * which calls f: cumulative times of f are those of the outer call.
 */
Test(estimate, sums_of_windows)
{
	struct estimate_rig m;
	uint32_t inner;

	estimate_rig_init(&m);
	inner = calltree_child(&m.tree, m.g, F);
	estimate_rig_seen(&m, m.f, 2, 30, 40);
	estimate_rig_seen(&m, m.g, 3, 20, 20);
	estimate_rig_seen(&m, inner, 5, 10, 13);
	m.tree.yields[m.g] = 1;
	fold_after(&m, 1000);
	expect_sums(&m, F, SNAPSHOT_CALLS, 14, 98, 840);
	expect_sums(&m, F, SNAPSHOT_TOT_CPU, 80, 3200, 4800);
	expect_sums(&m, F, SNAPSHOT_TOT_WALL, 106, 5618, 7738);
	expect_sums(&m, F, SNAPSHOT_CUM_CPU, 120, 7200, 7200);
	expect_sums(&m, F, SNAPSHOT_CUM_WALL, 146, 10658, 10658);
	cr_assert(m.e.windows == 1 && m.e.seen_cpu == 60);
	estimate_rig_seen(&m, m.g, 1, 10, 10);
	fold_after(&m, 2000);
	estimate_rig_seen(&m, m.g, 1, 10, 10);
	fold_after(&m, 0);
	cr_assert_eq(m.e.windows, 2, "the third does not represent more than itself");
	expect_sums(&m, G, SNAPSHOT_TOT_CPU, 80, 2600, 7400);
	cr_assert_gt(estimate_rig_variance(&m, G, SNAPSHOT_TOT_CPU), 0, "two are enough");
	fold_after(&m, 2000);
	expect_sums(&m, F, SNAPSHOT_CALLS, 21, 294, 2520);
	expect_sums(&m, G, SNAPSHOT_CALLS, 13, 58, 1120);
	expect_sums(&m, G, SNAPSHOT_TOT_CPU, 100, 2800, 7600);
	expect_sums(&m, G, SNAPSHOT_CUM_CPU, 130, 5800, 11200);
	cr_assert(m.e.windows == 4 && m.e.gap_ns == 0 && m.e.seen_cpu == 80);
	cr_assert(m.e.size[SNAPSHOT_CPU] == 220 && m.e.size2[SNAPSHOT_CPU] == 22000);
	cr_assert(m.e.size[SNAPSHOT_WALL] == 259 && m.e.size2[SNAPSHOT_WALL] == 32374);
	cr_assert(m.e.length == 9000 && m.e.length2 == 12e6 && m.e.length_cpu == 400000);
	cr_assert(m.e.all_ns == 9000 && m.e.all_cpu == 220 && m.e.calls == 34);
	cr_assert(m.e.nodes[m.f].cpu == 90 && m.e.nodes[m.f].wait == 30);
	cr_assert(m.e.nodes[m.g].yields == 3 && m.e.nodes[inner].calls == 15);
	cr_assert_eq(m.e.last.nfuncs, 0);
	/* Student's factor for 4 windows; as few as 2.2, and of wall time 2.07, say little. */
	estimate_own_cpu(&m.e, 2 * 220);
	expect_variance(&m, G, SNAPSHOT_CALLS, 39.2148278);
	expect_variance(&m, G, SNAPSHOT_TOT_CPU, 6115.86086);
	expect_variance(&m, G, SNAPSHOT_CUM_CPU, 3921.48278);
	expect_variance(&m, F, SNAPSHOT_TOT_WALL, 8577.74618);
	cr_assert_eq(estimate_rig_variance(&m, FUNCS, SNAPSHOT_CALLS), -1, "none of the windows'");
	/* Sums are of one period. */
	estimate_clear(&m.e);
	expect_sums(&m, G, SNAPSHOT_TOT_CPU, 0, 0, 0);
	cr_assert(m.e.windows == 0 && m.e.length == 0);
	estimate_rig_deinit(&m);
	check_no_leaks();
}

/*
 * Probes' time, unscaled, by hand: hits of calls take 10 + 100 ns, of returns 1 + 1000, of suspensions
 * 3 + 5000, the first part from the caller or, at an end, from the callee.
 */
Test(estimate, sums_of_probes)
{
	const struct cost cost = {.known = true, .before = {10, 1, 3}, .after = {100, 1000, 5000}};
	const double of_f = 2 * 101 + 3 * 10 + 2 * 1000 + 5000, of_g = 3 * 100 + 2 * 1 + 3;
	const double all = of_f + of_g + 2 * (10 + 1000);
	struct estimate_rig m;

	estimate_rig_init(&m);
	m.tree.yields[m.g] = 1;
	estimate_rig_seen(&m, m.root, 0, 9000, 9000);
	estimate_rig_seen(&m, m.f, 2, 40000, 40000);
	estimate_rig_seen(&m, m.g, 3, 4000, 5000);
	estimate_gap(&m.e, 1000);
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &cost, 1.5));
	cr_assert(m.e.last.expected == all && m.e.expected == 2 * all && m.e.taken == 3 * all);
	cr_assert(m.e.nodes[m.f].taken == 3 * of_f && m.e.nodes[m.g].taken == 3 * of_g);
	cr_assert_eq(m.e.seen_cpu, 53000 - 1.5 * all);
	expect_sums(&m, G, SNAPSHOT_TOT_CPU, 2 * (4000 - 1.5 * of_g), 2 * pow(4000 - 1.5 * of_g, 2),
		    2 * (4000 - 1.5 * of_g) * m.e.seen_cpu);
	/* What is left of 10,000 ns is 25 ns for each of 10 hits: other costs were that much lower. */
	estimate_fold_end(&m.e);
	m.tree.yields[m.g] = 1;
	estimate_rig_seen(&m, m.f, 2, 6000, 6000);
	estimate_rig_seen(&m, m.g, 3, 4000, 4000);
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &cost, 1.5));
	cr_assert_float_eq(m.e.last.taken, 10000 - 10 * 25, 1e-6);
	/* 25 ns for each hit are all there is. */
	estimate_fold_end(&m.e);
	estimate_rig_seen(&m, m.f, 2, 100, 100);
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &cost, 1));
	cr_assert(m.e.last.taken == 0 && m.e.last.cpu == 100);
	estimate_rig_deinit(&m);
	check_no_leaks();
}

/* Of a function that calls itself through 1023 others, only the outer call counts; through more, both do. */
Test(estimate, outermost_of_a_deep_recursion)
{
	for (int between = 1023; between <= 1024; between++) {
		double cum = between == 1023 ? 20 : 20 + 10;
		struct estimate_rig m;
		uint32_t node;

		estimate_rig_init(&m);
		calltree_deinit(&m.tree);
		calltree_init(&m.tree, 2000);
		m.root = calltree_add_root(&m.tree);
		m.f = node = calltree_child(&m.tree, m.root, F);
		for (int i = 0; i < between; i++)
			node = calltree_child(&m.tree, node, i % 2 ? G : H);
		node = calltree_child(&m.tree, node, F);
		estimate_rig_seen(&m, m.f, 1, 10, 10);
		estimate_rig_seen(&m, node, 1, 10, 10);
		fold_after(&m, 1000);
		cr_assert_eq(m.e.funcs[F].sum[SNAPSHOT_CUM_CPU], 2 * cum);
		cr_assert_eq(m.e.funcs[G].sum[SNAPSHOT_CUM_CPU], 2 * 10);
		estimate_rig_deinit(&m);
	}
	check_no_leaks();
}

/* Two contexts were merged between two windows, twice. */
Test(estimate, gaps_are_shared_with_what_was_moved)
{
	struct estimate_rig m;
	uint32_t a, b;

	estimate_rig_init(&m);
	a = calltree_child(&m.tree, m.g, F);
	b = calltree_child(&m.tree, m.root, G);
	estimate_rig_seen(&m, m.f, 10, 100, 100);
	estimate_rig_seen(&m, a, 1, 100, 100);
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &estimate_rig_no_cost, 1));
	assert_ok(estimate_move(&m.e, &m.tree, m.f, a));
	assert_ok(estimate_move(&m.e, &m.tree, a, b));
	estimate_gap(&m.e, 4000);
	estimate_rig_seen(&m, a, 5, 100, 100);
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &estimate_rig_no_cost, 1));
	cr_assert_eq(estimate_rig_figures(&m, b).calls, 33);
	cr_assert_eq(estimate_rig_figures(&m, a).calls, 15);
	cr_assert_eq(estimate_rig_figures(&m, m.f).calls, 0);
	estimate_rig_deinit(&m);
	check_no_leaks();
}

/* All figures of a context are moved, those of the last window as well, and its samples. */
Test(estimate, all_that_is_moved)
{
	const struct cost cost = {.known = true, .before = {1, 2, 3}, .after = {4, 5, 6}};
	struct estimate_rig m;
	struct estimate_node *n;
	uint32_t a, b;
	double taken;

	estimate_rig_init(&m);
	a = calltree_child(&m.tree, m.g, F);
	b = calltree_child(&m.tree, m.root, G);
	estimate_rig_seen(&m, m.f, 10, 1000, 1500);
	estimate_rig_seen(&m, a, 1, 400, 1000);
	m.tree.yields[m.f] = 2;
	m.tree.yields[a] = 1;
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &cost, 1));
	for (int i = 0; i < 5; i++)
		assert_ok(estimate_sample(&m.e, &m.tree, i < 3 ? m.f : a));
	taken = m.e.nodes[m.f].taken + m.e.nodes[a].taken;
	cr_assert_gt(m.e.nodes[a].taken, 0);
	assert_ok(estimate_move(&m.e, &m.tree, m.f, a));
	assert_ok(estimate_move(&m.e, &m.tree, a, b));
	n = &m.e.nodes[b];
	cr_assert(n->calls == 11 && n->yields == 3 && n->cpu == 1400 && n->wait == 1100);
	cr_assert(n->taken == taken && n->samples == 5 && m.e.samples == 5);
	cr_assert(!estimate_has(&m.e, m.f) && !estimate_has(&m.e, a) && estimate_has(&m.e, b));
	cr_assert(m.e.outermost[m.f] == 0 && m.e.outermost[a] == 0, "to be computed again");
	estimate_gap(&m.e, 4000);
	estimate_rig_seen(&m, m.g, 1, 1, 1);
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &cost, 1));
	cr_assert(n->calls == 33 && n->yields == 9 && n->cpu == 4200 && n->wait == 3300);
	cr_assert(n->taken == 3 * taken && n->samples == 5);
	/* One that is newer than the windows has nothing. */
	assert_ok(estimate_move(&m.e, &m.tree, m.e.n, b));
	estimate_rig_deinit(&m);
	check_no_leaks();
}

Test(estimate, contexts_that_have_figures)
{
	struct estimate_rig m;

	estimate_rig_init(&m);
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &estimate_rig_no_cost, 1));
	cr_assert(!estimate_has(&m.e, m.f) && !estimate_has(&m.e, m.e.n));
	m.e.nodes[m.f] = (struct estimate_node){.calls = 1};
	cr_assert(estimate_has(&m.e, m.f));
	m.e.nodes[m.f] = (struct estimate_node){.cpu = 1};
	cr_assert(estimate_has(&m.e, m.f));
	m.e.nodes[m.f] = (struct estimate_node){.wait = 1};
	cr_assert(estimate_has(&m.e, m.f));
	m.e.nodes[m.f] = (struct estimate_node){.samples = 1};
	cr_assert(estimate_has(&m.e, m.f));
	m.e.nodes[m.f] = (struct estimate_node){.taken = 1};
	cr_assert(!estimate_has(&m.e, m.f));
	/* A window of no length shows nothing, and a gap alone is one. */
	estimate_rig_seen(&m, m.f, 1, 1, 1);
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 0, &estimate_rig_no_cost, 1));
	cr_assert(m.tree.nodes[m.f].calls == 1 && !estimate_sampled(&m.e));
	estimate_own_cpu(&m.e, -5);
	cr_assert_eq(m.e.own_cpu, 0);
	estimate_gap(&m.e, 1);
	cr_assert(estimate_sampled(&m.e));
	estimate_rig_deinit(&m);
	check_no_leaks();
}

/*
 * The probes' time is included in the figures, as in exact ones, but not in the comparison with the
 * clock.
 */
Test(estimate, probes_time)
{
	const struct cost cost = {.known = true, .before = {100, 100, 0}, .after = {100, 100, 0}};
	struct estimate_rig m;

	estimate_rig_init(&m);
	for (int i = 0; i < 4; i++) {
		estimate_gap(&m.e, 5000);
		estimate_own_cpu(&m.e, 6000);
		/* One call of g: its hits take 200 ns in g and 200 in f. */
		estimate_rig_seen(&m, m.g, 1, 600, 600);
		estimate_rig_seen(&m, m.f, 0, 800, 800);
		assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &cost, 1));
	}
	cr_assert_float_eq(m.e.seen_cpu, 4000, 1e-6);
	cr_assert_eq(estimate_rig_figures(&m, m.g).self[SNAPSHOT_CPU], 6 * 4 * 600);
	cr_assert_float_eq(cost_factor(&m), 1, 1e-9);
	estimate_rig_deinit(&m);
	check_no_leaks();
}

/* If the costs exceed the measured time, they were lower than known. */
Test(estimate, costs_too_high)
{
	const struct cost cost = {.known = true, .before = {500, 500, 0}, .after = {500, 500, 0}};
	struct estimate_rig m;

	estimate_rig_init(&m);
	estimate_gap(&m.e, 5000);
	estimate_rig_seen(&m, m.g, 10, 9000, 9000);
	estimate_rig_seen(&m, m.f, 0, 7000, 7000);
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &cost, 1));
	cr_assert(cost_factor(&m) < 1 && cost_factor(&m) > 0.5);
	cr_assert(m.e.seen_cpu > 0);
	estimate_rig_deinit(&m);
	check_no_leaks();
}

/* A window in which hits were more expensive than when they were measured. */
Test(estimate, expensive_hits)
{
	const struct cost cost = {.known = true, .before = {100, 100, 0}, .after = {100, 100, 0}};
	struct estimate_rig m;

	estimate_rig_init(&m);
	estimate_gap(&m.e, 5000);
	estimate_rig_seen(&m, m.g, 1, 600, 600);
	estimate_rig_seen(&m, m.f, 0, 800, 800);
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &cost, 1.5));
	cr_assert_float_eq(m.e.seen_cpu, 800, 1e-6);
	cr_assert_float_eq(cost_factor(&m), 1.5, 1e-9);
	estimate_costs_change(&m.e, 2);
	cr_assert_float_eq(cost_factor(&m), 0.75, 1e-9, "of what was measured since");
	estimate_rig_deinit(&m);
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
static void sample(struct estimate_rig *m, int windows)
{
	estimate_rig_init(m);
	m->g = calltree_child(&m->tree, m->root, G);
	for (int i = 0; i < windows; i++) {
		double start = uniform() * 10e6, from = start, end = start + 1e6;

		estimate_gap(&m->e, 9000000);
		estimate_own_cpu(&m->e, 10e6);
		while (from < end) {
			double at = fmod(from, 10e6), turn = at < 3e6 ? 3e6 : 10e6;
			double n = fmin(end - from, turn - at);

			if (at < 3e6)
				estimate_rig_seen(m, m->f, (uint64_t)(n / 1e3), (uint64_t)n,
						  (uint64_t)n);
			else
				estimate_rig_seen(m, m->g, (uint64_t)(n / 1e4), (uint64_t)n,
						  (uint64_t)n);
			from += n + 1e-3;
		}
		assert_ok(estimate_fold(&m->e, &m->tree, FUNCS, 1000000, &estimate_rig_no_cost, 1));
	}
}

Test(estimate, right_on_average_and_within_its_error)
{
	double sum = 0, calls = 0;
	int off = 0;

	for (int k = 0; k < 200; k++) {
		struct estimate_rig m;
		double share, claimed;

		sample(&m, 100);
		share = (double)estimate_rig_figures(&m, m.f).self[SNAPSHOT_CPU] / (100 * 10e6);
		claimed = error(&m, F, SNAPSHOT_TOT_CPU) / (100 * 10e6);
		sum += share;
		calls += (double)estimate_rig_figures(&m, m.f).calls / (100 * 3000.0);
		off += fabs(share - 0.3) > 2 * claimed;
		cr_assert(claimed > 0.01 && claimed < 0.1, "%.4f", claimed);
		estimate_rig_deinit(&m);
	}
	cr_assert(fabs(sum / 200 - 0.3) < 0.012, "%.4f", sum / 200);
	cr_assert(fabs(calls / 200 - 1) < 0.04, "%.4f", calls / 200);
	cr_assert(off < 30, "%d of 200 are off by more than twice their error", off);
	check_no_leaks();
}

Test(estimate, inverses_of_what_is_uncertain)
{
	/* Two errors reach as far as two errors of x do, and not further than 20 times x. */
	cr_assert_float_eq(estimate_inverse_widened(0.1), 0.1 / 0.8, 1e-12);
	cr_assert_float_eq(estimate_inverse_widened(0.5), 0.5 / 0.05, 1e-12);
}

/* One window does not show by how much windows differ, so counts go by the CPU time: twice as many here. */
Test(estimate, counts_by_one_window)
{
	const struct cost cost = {.known = true, .before = {1, 1, 1}, .after = {1, 1, 1}};
	struct estimate_result r;
	struct estimate_rig m;

	estimate_rig_init(&m);
	estimate_gap(&m.e, 1000);
	estimate_rig_seen(&m, m.f, 10, 10000, 10000);
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &cost, 1));
	estimate_own_cpu(&m.e, 4 * 10000);
	r = estimate_rig_reconcile(&m, &cost);
	cr_assert(r.counts == r.rest && r.rest > 2 && r.rest < 2.1, "%g, %g", r.counts, r.rest);
	cr_assert_lt(estimate_variance(&r, F, SNAPSHOT_CALLS), 0);
	estimate_result_deinit(&r);
	estimate_rig_deinit(&m);
	check_no_leaks();
}

Test(estimate, one_window_has_no_error)
{
	struct estimate_rig m;

	estimate_rig_init(&m);
	estimate_gap(&m.e, 1000);
	estimate_rig_seen(&m, m.f, 1, 100, 100);
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 100, &estimate_rig_no_cost, 1));
	cr_assert_lt(estimate_rig_variance(&m, F, SNAPSHOT_CALLS), 0);
	estimate_rig_deinit(&m);
	check_no_leaks();
}

/* One window ------------------------------------------------------------------------------- */

static const struct cost eleven = {.known = true, .before = {10, 20, 30}, .after = {1, 2, 3}};

/* Calls take 11 ns, returns 22, suspensions 33; at least 25 ns are left for each of these. */
static void open_window(struct window *w, uint64_t length_ns)
{
	uint64_t end;

	*w = (struct window){.begin_ts = 1000};
	window_open(w, length_ns, &eleven);
	cr_assert_eq(window_shown(w, 999), 0);
	cr_assert(window_admit(w, 1100, COST_ENTER, &end));
	cr_assert_eq(window_shown(w, 1100), 100 - 11);
	cr_assert(window_admit(w, 1110, COST_LEAVE, &end));
	cr_assert_eq(window_shown(w, 1110), 110 - 33);
	for (int i = 0; i < 3; i++)
		cr_assert(window_admit(w, 1111, COST_YIELD, &end));
	cr_assert_eq(window_shown(w, 1111), 111, "not more than has passed");
	cr_assert_eq(window_shown(w, 1200), 5 * 25);
	cr_assert_eq(window_shown(w, 1300), 300 - 132);
	cr_assert(w->events == 5 && w->taken == 132 && w->taken_ever == 132);
}

Test(window, ends_at_its_limit)
{
	struct window w;
	uint64_t end = 0;

	open_window(&w, 500);
	cr_assert(window_close(&w, 1500, &end) == 368 && end == 1500);
	cr_assert(window_close(&w, 1632, &end) == 500 && end == 1632);
	cr_assert(window_close(&w, 2000, &end) == 500 && end == 1632);
	cr_assert(window_admit(&w, 1631, COST_ENTER, &end));
	w.events--, w.taken -= 11;
	cr_assert(!window_admit(&w, 1632, COST_LEAVE, &end) && end == 1632);
	cr_assert(!window_admit(&w, 2000, COST_YIELD, &end) && end == 1632);
	cr_assert(w.shown_ns == 500 && w.events == 5 && w.taken == 132);
	window_discard(&w, COST_ENTER);
	cr_assert_eq(w.taken_ever, 132 + 11 + 22 + 33 + 11, "whether it was shown or not");
	window_open(&w, 0, &eleven);
	cr_assert(w.limit_ns == UINT64_MAX && !w.shown_ns && !w.events && !w.taken);
	cr_assert_eq(w.taken_ever, 209);
}

Test(window, in_parts)
{
	struct window w;
	uint64_t end;

	open_window(&w, 0);
	cr_assert_eq(window_part(&w, 1300), 168);
	cr_assert_eq(window_part(&w, 1300), 0);
	cr_assert_eq(window_part(&w, 1290), 0);
	cr_assert_eq(window_part(&w, 1310), 10);
	cr_assert_eq(window_close(&w, 1500, &end), 368 - 178);
	cr_assert_eq(window_close(&w, 1300, &end), 0);
	cr_assert_eq(window_rescale(&w, 190, 2), 190, "parts cannot be corrected");
	window_clear(&w);
	cr_assert(!w.events && !w.taken && window_part(&w, 1300) == 300);
}

/* If hits cost more than assumed, less was shown. */
Test(window, rescaled)
{
	struct window w;

	open_window(&w, 0);
	cr_assert_eq(window_rescale(&w, 1000, 1.5), 1000 - 66);
	cr_assert_eq(window_rescale(&w, 1000, 0.5), 1000 + 66);
	cr_assert_eq(window_rescale(&w, 258, 2), 126);
	cr_assert_eq(window_rescale(&w, 256, 2), 125, "25 ns for each event");
}

/* Five activations, two of which were suspended; with seven callees, three of which were. */
Test(window, time_of_probes)
{
	const struct taken_ends own = {5, 2}, callees = {7, 3}, odd = {1, 2};
	const struct cost unknown = {.before = {10, 20, 30}};
	struct node n = {.func = SNAPSHOT_NONE, .self = {30, 100}};

	cr_assert_eq(taken_of(&eleven, own, callees, false),
		     5 * 1 + 3 * 20 + 2 * 30 + 7 * 10 + 4 * 2 + 3 * 3);
	cr_assert_eq(taken_of(&eleven, own, callees, true), 5 * 1 + 3 * 20 + 2 * 30 + 5 * (10 + 2),
		     "without callees, and with the callers' part");
	cr_assert_eq(taken_of(&eleven, odd, odd, false), 1 + 2 * 30 + 10 + 2 * 3);
	cr_assert_eq(taken_of(&unknown, own, callees, false), 0);
	cr_assert(!taken_is_pseudo(&n) && taken_waiting(&n) == 70);
	n = (struct node){.func = FUNC_TRUNCATED, .self = {100, 30}};
	cr_assert(taken_is_pseudo(&n) && taken_waiting(&n) == 0);
	n.func = FUNC_GC;
	cr_assert(!taken_is_pseudo(&n), "collections have events");
	n.func = F;
	cr_assert(!taken_is_pseudo(&n));
}

/* The cost of a window --------------------------------------------------------------------- */

/*
 * Two trees with the same figures: one lists the touched contexts, the other is scanned completely.
 */
static void grow_random(struct estimate_rig *m, unsigned int *seed, uint32_t depth)
{
	uint32_t node = m->root;

	while (depth--) {
		uint32_t child = calltree_child(&m->tree, node, F + random_below(seed, 3));

		node = child == NODE_NONE ? node : child;
	}
	calltree_touch(&m->tree, node);
	estimate_rig_seen(m, node, random_below(seed, 4), random_below(seed, 1000), 1000);
	m->tree.yields[node] += random_below(seed, 2);
}

static void expect_equal(const struct estimate_rig *a, const struct estimate_rig *b)
{
	cr_assert_eq(a->tree.n, b->tree.n);
	for (uint32_t i = 0; i < a->tree.n; i++) {
		const struct estimate_node *x = &a->e.nodes[i], *y = &b->e.nodes[i];

		cr_assert(x->calls == y->calls && x->yields == y->yields && x->cpu == y->cpu &&
				  x->wait == y->wait && x->taken == y->taken,
			  "node %u", i);
		cr_assert(a->tree.nodes[i].calls == 0 && a->tree.yields[i] == 0);
	}
	for (uint32_t f = F; f < FUNCS; f++)
		for (int k = 0; k < SNAPSHOT_FIGURES; k++)
			cr_assert(estimate_rig_variance(a, f, (enum snapshot_figure)k) ==
				  estimate_rig_variance(b, f, (enum snapshot_figure)k));
}

Test(estimate, lists_of_touched_contexts_change_nothing)
{
	const struct cost cost = {.known = true, .before = {3, 4, 5}, .after = {6, 7, 8}};
	struct estimate_rig listed, all;
	unsigned int seed = 1, again = 1;

	estimate_rig_init(&listed);
	estimate_rig_init(&all);
	assert_ok(calltree_keep_touched(&listed.tree));
	for (int window = 0; window < 300; window++) {
		int changes = window % 10 ? 3 : 200;

		for (int i = 0; i < changes; i++) {
			uint32_t depth = (uint32_t)(i * 7 + window) % 12;

			grow_random(&listed, &seed, depth);
			grow_random(&all, &again, depth);
		}
		estimate_gap(&listed.e, 5000);
		estimate_gap(&all.e, 5000);
		assert_ok(estimate_fold(&listed.e, &listed.tree, FUNCS, 10000, &cost, 1));
		assert_ok(estimate_fold(&all.e, &all.tree, FUNCS, 10000, &cost, 1));
		cr_assert_eq(listed.tree.ntouched, 0);
	}
	expect_equal(&listed, &all);
	estimate_rig_deinit(&listed);
	estimate_rig_deinit(&all);
	check_no_leaks();
}

/*
 * An idle process that was busy for a tenth of the time, of which a single one of many windows shows a
 * part. One window says little about all.
 */
Test(estimate, mostly_idle)
{
	const struct cost cost = {.known = true,
				  .before = {[COST_ENTER] = 200, [COST_LEAVE] = 200},
				  .after = {[COST_ENTER] = 200, [COST_LEAVE] = 200}};
	struct estimate_result r;
	struct estimate_rig m;
	double calls, error;

	estimate_rig_init(&m);
	for (int i = 0; i < 50; i++) {
		estimate_gap(&m.e, 99000000);
		estimate_own_cpu(&m.e, 10000000);
		estimate_rig_seen(&m, m.f, i == 25 ? 100 : 0, i == 25 ? 1080000 : 0, 0);
		assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000000, &cost, 1));
	}
	r = estimate_rig_reconcile(&m, &cost);
	calls = (double)estimate_figures(&r, m.f).calls;
	error = sqrt(estimate_variance(&r, F, SNAPSHOT_CALLS));
	cr_assert(fabs(calls - 50000) < 2 * error, "%f +- %f", calls, error);
	cr_assert(calls > 25000 && error > 0.3 * calls, "%f +- %f", calls, error);
	estimate_result_deinit(&r);
	estimate_rig_deinit(&m);
	check_no_leaks();
}

/*
 * Windows of 10 ms, each for 100 ms of a program that calls a function of 100 ns for a tenth of the time, in
 * bursts longer than windows, and computes otherwise. traps_ns: what a hit takes. Returns the true number of calls.
 */
static double watch_bursts(struct estimate_rig *m, double traps_ns, const struct cost *cost)
{
	const double interval = 50, cold = cost_cold_slowdown(cost_cold(traps_ns), 1, interval);
	const double call = 2 * (interval + cold + cost_each(traps_ns));

	estimate_rig_init(m);
	for (int i = 0; i < 100; i++) {
		bool burst = i % 10 == 0;
		uint64_t n = burst ? (uint64_t)(10e6 / call) : 0,
			 own = (uint64_t)((double)n * call);
		uint64_t taken = n * 2 * (uint64_t)traps_ns;

		estimate_gap(&m->e, 90000000);
		estimate_own_cpu(&m->e, 100e6);
		estimate_rig_seen(m, m->f, 0, burst ? own / 2 + taken / 2 : 10000000, 0);
		estimate_rig_seen(m, m->g, n, own / 2 + taken / 2, 0);
		assert_ok(estimate_fold(&m->e, &m->tree, FUNCS, 10000000, cost, 1));
	}
	return 10 * 100e6 / (2 * interval);
}

/* Windows with calls show a ninth of them; most of the time is in windows without. */
Test(estimate, calls_in_bursts_where_traps_are_slow)
{
	for (int slow = 0; slow <= 1; slow++) {
		const uint32_t half = slow ? 3000 : 200;
		const struct cost cost = {
			.known = true, .before = {half, half, 0}, .after = {half, half, 0}};
		struct estimate_result r;
		struct estimate_rig m;
		double truth = watch_bursts(&m, 2 * half, &cost), calls, error;

		r = estimate_rig_reconcile(&m, &cost);
		calls = (double)estimate_figures(&r, m.g).calls;
		error = sqrt(estimate_variance(&r, G, SNAPSHOT_CALLS));
		cr_assert(fabs(calls - truth) < 2 * error, "%.0f +- %.0f of %.0f", calls, error,
			  truth);
		cr_assert(slow ? m.e.missed > 0 : m.e.missed == 0);
		estimate_result_deinit(&r);
		estimate_rig_deinit(&m);
	}
	check_no_leaks();
}
