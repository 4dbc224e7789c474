// SPDX-License-Identifier: BSD-2-Clause
/*
 * Estimates from windows: exact if there was no gap; otherwise weighted so that they add up to the
 * CPU clock, correct on average for a program whose true figures are known, and with errors of the
 * reported size.
 */
#include <math.h>

#include "harness/reports.h"
#include "harness/test.h"
#include "estimate/estimate.h"
#include "stats/func.h"

enum { F = FUNC_PSEUDO_MAX, G, H, FUNCS };

struct made {
	struct estimate e;
	struct calltree tree;
	uint32_t root, f, g; /* g is called by f */
	struct funcs *funcs; /* NULL: all functions are Python functions */
};

static const struct cost no_cost;

static void make(struct made *m)
{
	estimate_init(&m->e);
	calltree_init(&m->tree, 1000);
	m->funcs = NULL;
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

static struct estimate_result settled(const struct made *m, const struct cost *cost)
{
	struct estimate_result r;

	assert_ok(estimate_reconcile(&m->e, &m->tree, FUNCS, m->funcs, cost, &r));
	return r;
}

static struct estimate_figures figures(const struct made *m, uint32_t node)
{
	struct estimate_result r = settled(m, &no_cost);
	struct estimate_figures f = estimate_figures(&r, node);

	estimate_result_deinit(&r);
	return f;
}

static double variance(const struct made *m, uint32_t func, enum snapshot_figure k)
{
	struct estimate_result r = settled(m, &no_cost);
	double var = estimate_variance(&r, func, k);

	estimate_result_deinit(&r);
	return var;
}

static double error(const struct made *m, uint32_t func, enum snapshot_figure k)
{
	return sqrt(variance(m, func, k));
}

static double cost_factor(const struct made *m)
{
	struct estimate_result r = settled(m, &no_cost);
	double factor = r.cost_factor;

	estimate_result_deinit(&r);
	return factor;
}

Test(estimate, exact_without_a_gap)
{
	struct made m;

	make(&m);
	for (int i = 0; i < 10; i++) {
		seen(&m, m.f, 3, 100, 150);
		seen(&m, m.g, 7, 50, 50);
		estimate_own_cpu(&m.e, 123); /* irrelevant without a gap */
		assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 200, &no_cost, 1));
	}
	seen(&m, m.f, 1, 1, 1); /* not folded yet */
	cr_assert(!estimate_sampled(&m.e));
	cr_assert_eq(figures(&m, m.f).calls, 31);
	cr_assert_eq(figures(&m, m.f).self[SNAPSHOT_CPU], 1001);
	cr_assert_eq(figures(&m, m.f).self[SNAPSHOT_WALL], 1501);
	cr_assert_eq(figures(&m, m.g).calls, 70);
	cr_assert_eq(variance(&m, F, SNAPSHOT_CALLS), 0);
	unmake(&m);
	check_no_leaks();
}

/*
 * A tenth of the time was traced, and the CPU clock is 5 % above the sum of the windows' CPU time.
 */
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
	/* A gap that no window represents yet increases all figures. */
	estimate_gap(&m.e, 10000);
	estimate_own_cpu(&m.e, 6500);
	cr_assert_eq(figures(&m, m.f).calls, 220);
	cr_assert_eq(figures(&m, m.f).self[SNAPSHOT_WALL], 110000);
	estimate_clear(&m.e);
	cr_assert_eq(figures(&m, m.f).calls, 0);
	unmake(&m);
	check_no_leaks();
}

/* Half of a gap belongs to the window before it, and half to the one after it. */
Test(estimate, gaps_are_shared)
{
	struct made m;

	make(&m);
	seen(&m, m.f, 10, 100, 100);
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &no_cost, 1));
	cr_assert_eq(m.e.windows, 0, "there was no gap");
	cr_assert_eq(figures(&m, m.f).calls, 10);
	estimate_gap(&m.e, 4000);
	seen(&m, m.g, 10, 100, 100);
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &no_cost, 1));
	cr_assert_eq(m.e.windows, 2);
	cr_assert_eq(figures(&m, m.f).calls, 30);
	cr_assert_eq(figures(&m, m.g).calls, 30);
	estimate_gap(&m.e, 2000);
	seen(&m, m.f, 1, 100, 100);
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &no_cost, 1));
	cr_assert_eq(figures(&m, m.f).calls, 32);
	cr_assert_eq(figures(&m, m.g).calls, 40);
	cr_assert_float_eq(m.e.all_ns, 9000, 1e-6);
	/* The estimate ends because the program's behaviour has changed. */
	estimate_fold_end(&m.e);
	estimate_gap(&m.e, 2000);
	seen(&m, m.g, 10, 100, 100);
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &no_cost, 1));
	cr_assert_eq(figures(&m, m.f).calls, 32);
	cr_assert_eq(figures(&m, m.g).calls, 70);
	unmake(&m);
	check_no_leaks();
}

/* Two contexts were merged between two windows, twice. */
Test(estimate, gaps_are_shared_with_what_was_moved)
{
	struct made m;
	uint32_t a, b;

	make(&m);
	a = calltree_child(&m.tree, m.g, F);
	b = calltree_child(&m.tree, m.root, G);
	seen(&m, m.f, 10, 100, 100);
	seen(&m, a, 1, 100, 100);
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &no_cost, 1));
	assert_ok(estimate_move(&m.e, &m.tree, m.f, a));
	assert_ok(estimate_move(&m.e, &m.tree, a, b));
	estimate_gap(&m.e, 4000);
	seen(&m, a, 5, 100, 100);
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &no_cost, 1));
	cr_assert_eq(figures(&m, b).calls, 33);
	cr_assert_eq(figures(&m, a).calls, 15);
	cr_assert_eq(figures(&m, m.f).calls, 0);
	unmake(&m);
	check_no_leaks();
}

/*
 * The probes' time is included in the figures, as in exact ones, but not in the comparison with the
 * clock.
 */
Test(estimate, probes_time)
{
	const struct cost cost = {.known = true, .before = {100, 100, 0}, .after = {100, 100, 0}};
	struct made m;

	make(&m);
	for (int i = 0; i < 4; i++) {
		estimate_gap(&m.e, 5000);
		estimate_own_cpu(&m.e, 6000);
		/* One call of g: its hits take 200 ns in g and 200 in f. */
		seen(&m, m.g, 1, 600, 600);
		seen(&m, m.f, 0, 800, 800);
		assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &cost, 1));
	}
	cr_assert_float_eq(m.e.seen_cpu, 4000, 1e-6);
	cr_assert_eq(figures(&m, m.g).self[SNAPSHOT_CPU], 6 * 4 * 600);
	cr_assert_float_eq(cost_factor(&m), 1, 1e-9);
	unmake(&m);
	check_no_leaks();
}

/* If the costs exceed the measured time, they were lower than known. */
Test(estimate, costs_too_high)
{
	const struct cost cost = {.known = true, .before = {500, 500, 0}, .after = {500, 500, 0}};
	struct made m;

	make(&m);
	estimate_gap(&m.e, 5000);
	seen(&m, m.g, 10, 9000, 9000);
	seen(&m, m.f, 0, 7000, 7000);
	assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000, &cost, 1));
	cr_assert(cost_factor(&m) < 1 && cost_factor(&m) > 0.5);
	cr_assert(m.e.seen_cpu > 0);
	unmake(&m);
	check_no_leaks();
}

/* A window in which hits were more expensive than when they were measured. */
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
	cr_assert_float_eq(cost_factor(&m), 1.5, 1e-9);
	estimate_costs_change(&m.e, 2);
	cr_assert_float_eq(cost_factor(&m), 0.75, 1e-9, "of what was measured since");
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
 * A program that is in f for 3 ms, with a call per 1 us, and in g for 7 ms, with a call per 10 us;
 * windows of 1 ms at random times. The true figures are known, and so is the probability that an
 * estimate is off by more than twice its error.
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
	cr_assert_lt(variance(&m, F, SNAPSHOT_CALLS), 0);
	unmake(&m);
	check_no_leaks();
}

/* ---- samples between windows ---- */

/*
 * A program that repeatedly spends 200 ns in f, 300 in g, which f calls, and 700 in a loop, h. The
 * two hits of a call take 1200 ns, half in f and half in g; the known costs differ from that by a
 * factor. Fifty windows of about 1 ms of the program, each after 9 ms.
 */
#define WINDOWS	 50
#define ALL_NS	 (WINDOWS * 10e6)
#define ROUND_NS 1200

struct watched {
	struct made m;
	uint32_t h;
	struct cost cost;
	struct estimate_result r;
};

static void watch(struct watched *w, double said)
{
	const uint32_t ns = (uint32_t)(300 * said + 0.5);
	struct made *m = &w->m;

	make(m);
	w->h = calltree_child(&m->tree, m->root, H);
	w->cost = (struct cost){.known = true, .before = {ns, ns, ns}, .after = {ns, ns, ns}};
	for (uint64_t i = 0; i < WINDOWS; i++) {
		uint64_t n = 810 + i;

		estimate_gap(&m->e, 9000000);
		estimate_own_cpu(&m->e, 10e6);
		/*
		 * After a hit of 600 ns, 200 ns become 291 and 300 become 401 (post-trap slowdown).
		 */
		seen(m, m->f, 0, n * (291 + 600), n * (291 + 600));
		seen(m, m->g, n, n * (401 + 600), n * (401 + 600));
		seen(m, w->h, 0, n * 700, n * 700);
		assert_ok(estimate_fold(&m->e, &m->tree, FUNCS, 1000000, &w->cost, 1));
	}
}

static void sampled(struct watched *w, uint32_t node, int n)
{
	for (int i = 0; i < n; i++)
		assert_ok(estimate_sample(&w->m.e, &w->m.tree, node));
}

static void sampled_rightly(struct watched *w, int rounds)
{
	sampled(w, w->m.f, 2 * rounds);
	sampled(w, w->m.g, 3 * rounds);
	sampled(w, w->h, 7 * rounds);
}

static void settle(struct watched *w)
{
	w->r = settled(&w->m, &w->cost);
}

/* Returns the share in a report, in which the time of hits is subtracted. */
static double share(const struct watched *w, uint32_t node)
{
	const struct cost c = cost_scaled(&w->cost, w->r.cost_factor);
	bool hit = node == w->m.f || node == w->m.g;
	uint64_t calls = hit ? estimate_figures(&w->r, w->m.g).calls : 0;

	return ((double)estimate_figures(&w->r, node).self[SNAPSHOT_CPU] -
		(double)(calls * (c.before[COST_ENTER] + c.after[COST_ENTER]))) /
	       ALL_NS;
}

static void unwatch(struct watched *w)
{
	estimate_result_deinit(&w->r);
	unmake(&w->m);
}

Test(estimate, samples_tell_what_hits_really_cost)
{
	for (int percent = 80; percent <= 120; percent += 5) {
		double said = percent / 100.0, whole;
		struct watched w;

		watch(&w, said);
		sampled_rightly(&w, 400);
		settle(&w);
		whole = share(&w, w.m.f) + share(&w, w.m.g) + share(&w, w.h);
		cr_assert_float_eq(whole, 1, 1e-6, "%.2f: they add up to %.4f", said, whole);
		cr_assert_float_eq(w.r.cost_factor * said, 1, 0.02, "%.2f: %.4f", said,
				   w.r.cost_factor);
		cr_assert_float_eq(share(&w, w.m.f), 200.0 / ROUND_NS, 0.005, "%.2f", said);
		cr_assert_float_eq(share(&w, w.m.g), 300.0 / ROUND_NS, 0.005, "%.2f", said);
		cr_assert_float_eq((double)estimate_figures(&w.r, w.m.g).calls, ALL_NS / ROUND_NS,
				   0.02 * ALL_NS / ROUND_NS, "counts hang on costs as well");
		unwatch(&w);
	}
	check_no_leaks();
}

/*
 * The same program, which waits instead of running the loop: a hundred rounds per 10 ms,
 * alternately more and less by `spread`. A tenth of the time is traced. Returns the true number of
 * calls.
 */
static double watch_waiting(struct watched *w, double said, uint64_t windows, uint64_t spread)
{
	const uint32_t ns = (uint32_t)(300 * said + 0.5);
	struct made *m = &w->m;

	make(m);
	w->cost = (struct cost){.known = true, .before = {ns, ns, ns}, .after = {ns, ns, ns}};
	for (uint64_t i = 0; i < windows; i++) {
		uint64_t n = i % 2 ? 100 + spread : 100 - spread, cpu = n * (291 + 600);

		estimate_gap(&m->e, 90000000);
		estimate_own_cpu(&m->e, 1000 * 500);
		seen(m, m->f, 0, cpu, cpu + 10000000 - n * 500);
		seen(m, m->g, n, n * (401 + 600), n * (401 + 600));
		assert_ok(estimate_fold(&m->e, &m->tree, FUNCS, 10000000, &w->cost, 1));
	}
	settle(w);
	return 1000.0 * (double)windows;
}

/*
 * For a program that waits, the cost of hits matters little: the number of calls depends on elapsed
 * time.
 */
Test(estimate, counts_of_what_waits_go_by_time)
{
	for (int percent = 80; percent <= 120; percent += 20) {
		double said = percent / 100.0, calls, truth;
		struct watched w;

		truth = watch_waiting(&w, said, 100, 10);
		calls = (double)estimate_figures(&w.r, w.m.g).calls;
		cr_assert_float_eq(calls, truth, 0.04 * truth, "%.1f: %.0f of %.0f", said, calls,
				   truth);
		cr_assert(fabs(calls - truth) <
			  2 * sqrt(estimate_variance(&w.r, G, SNAPSHOT_CALLS)));
		cr_assert(said == 1 || fabs(w.r.rest - 1) > 0.15, "not by the CPU time: %.3f",
			  w.r.rest);
		unwatch(&w);
	}
	check_no_leaks();
}

/*
 * Few windows, some with nineteen times the activity of others: then CPU time is the better weight.
 */
Test(estimate, counts_go_by_cpu_time_where_windows_differ)
{
	struct watched w;
	double truth = watch_waiting(&w, 1, 5, 90), calls, error;

	/* Three of the five windows show little activity. */
	calls = (double)estimate_figures(&w.r, w.m.g).calls;
	error = sqrt(estimate_variance(&w.r, G, SNAPSHOT_CALLS));
	cr_assert_float_eq(calls, truth, 0.06 * truth, "%.0f of %.0f", calls, truth);
	cr_assert(error > 0.15 * truth && error < 0.6 * truth, "%.0f of %.0f", error, truth);
	unwatch(&w);
	check_no_leaks();
}

Test(estimate, without_samples_as_windows_have_it)
{
	struct watched w;
	double calls, error;

	watch(&w, 1);
	settle(&w);
	cr_assert_eq(w.r.fit.samples, 0);
	cr_assert_float_eq(w.r.fit.factor, 1, 1e-9);
	cr_assert_float_eq(share(&w, w.m.f), 200.0 / ROUND_NS, 1e-4);
	/*
	 * Windows are alike; the uncertainty is in the cost of hits, a tenth. Hits take half of the
	 * time.
	 */
	calls = (double)estimate_figures(&w.r, w.m.g).calls;
	error = sqrt(estimate_variance(&w.r, G, SNAPSHOT_CALLS));
	cr_assert(error > 0.05 * calls && error < 0.2 * calls, "%f of %f", error, calls);
	unwatch(&w);
	check_no_leaks();
}

/* Costs are 10 % wrong, and six samples are not enough to correct them. */
Test(estimate, few_samples_change_little)
{
	struct watched none, few;
	double before;

	watch(&none, 1.1);
	settle(&none);
	watch(&few, 1.1);
	sampled(&few, few.m.f, 4);
	sampled(&few, few.h, 2);
	settle(&few);
	before = share(&none, none.h);
	cr_assert(fabs(share(&few, few.h) - before) < 0.1 * before, "%.3f, before %.3f",
		  share(&few, few.h), before);
	cr_assert_float_eq(few.r.cost_factor, 1, 0.08);
	unwatch(&none);
	unwatch(&few);
	check_no_leaks();
}

/* A context that no window has shown gets its time from samples, and no calls. */
Test(estimate, what_windows_missed)
{
	struct watched w;
	uint32_t missed;

	watch(&w, 1);
	missed = calltree_child(&w.m.tree, w.h, F);
	sampled_rightly(&w, 400);
	sampled(&w, missed, 400);
	settle(&w);
	cr_assert(estimate_has(&w.m.e, missed));
	cr_assert_eq(estimate_figures(&w.r, missed).calls, 0);
	cr_assert(share(&w, missed) > 0.05 && share(&w, missed) < 0.1, "%.4f", share(&w, missed));
	unwatch(&w);
	check_no_leaks();
}

/*
 * Functions that are newer than the windows' data, and a tree that has grown since the last fold.
 */
Test(estimate, samples_of_what_is_unknown)
{
	struct watched w;
	uint32_t other;
	double whole;

	watch(&w, 1);
	for (uint32_t i = 0; i < 500; i++) {
		other = calltree_child(&w.m.tree, w.m.root, FUNCS + 1 + i);
		if (i % 2)
			sampled(&w, other, 1);
	}
	sampled(&w, w.m.root, 3);
	settle(&w);
	cr_assert_eq(w.r.fit.samples, 253);
	whole = 0;
	for (uint32_t i = 0; i < w.m.tree.n; i++)
		whole += (double)estimate_figures(&w.r, i).self[SNAPSHOT_CPU];
	cr_assert(isfinite(whole) && whole > ALL_NS);
	unwatch(&w);
	check_no_leaks();
}

/* Samples alone: no window was folded, or costs are not known. */
Test(estimate, samples_alone_are_not_enough)
{
	struct watched w;

	make(&w.m);
	w.cost = (struct cost){.known = true};
	w.h = w.m.root;
	sampled(&w, w.m.f, 10);
	settle(&w);
	cr_assert_eq(estimate_figures(&w.r, w.m.f).self[SNAPSHOT_CPU], 0);
	unwatch(&w);
	watch(&w, 1);
	sampled_rightly(&w, 10);
	w.cost.known = false;
	settle(&w);
	cr_assert_eq(w.r.fit.samples, 0);
	unwatch(&w);
	check_no_leaks();
}

/* The cost of a window --------------------------------------------------------------------- */

/*
 * Two trees with the same figures: one lists the touched contexts, the other is scanned completely.
 */
static void grow_random(struct made *m, unsigned int *seed, uint32_t depth)
{
	uint32_t node = m->root;

	while (depth--) {
		uint32_t child = calltree_child(&m->tree, node, F + random_below(seed, 3));

		node = child == NODE_NONE ? node : child;
	}
	calltree_touch(&m->tree, node);
	seen(m, node, random_below(seed, 4), random_below(seed, 1000), 1000);
	m->tree.yields[node] += random_below(seed, 2);
}

static void expect_equal(const struct made *a, const struct made *b)
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
			cr_assert(variance(a, f, (enum snapshot_figure)k) ==
				  variance(b, f, (enum snapshot_figure)k));
}

Test(estimate, lists_of_touched_contexts_change_nothing)
{
	const struct cost cost = {.known = true, .before = {3, 4, 5}, .after = {6, 7, 8}};
	struct made listed, all;
	unsigned int seed = 1, again = 1;

	make(&listed);
	make(&all);
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
	unmake(&listed);
	unmake(&all);
	check_no_leaks();
}

/*
 * Between windows there are as many samples of f as of h, and no other data on them. In windows
 * nearly all of f's time was in a C function: the estimate keeps that ratio.
 */
Test(estimate, samples_of_functions_that_call_c)
{
	static const struct cost cost = {.known = true, .before = {100, 100}, .after = {100, 100}};
	const struct func_identity ids[] = {{.filename = "a.py", .name = "f", .firstlineno = 1},
					    {.filename = "~", .name = "<built-in method g>"},
					    {.filename = "a.py", .name = "h", .firstlineno = 2}};
	struct estimate_result r;
	struct funcs funcs;
	struct made m;
	uint32_t h;

	make(&m);
	assert_ok(funcs_init(&funcs, 100, 1 << 16));
	for (uint32_t i = 0; i < 3; i++)
		cr_assert_eq(funcs_intern(&funcs, &ids[i]), F + i);
	m.funcs = &funcs;
	h = calltree_child(&m.tree, m.root, H);
	for (int i = 0; i < 20; i++) {
		seen(&m, m.f, 1, 2000, 2000);
		seen(&m, m.g, 1, 98000, 98000);
		seen(&m, h, 100, 100000, 100000);
		assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 200000, &cost, 1));
		estimate_gap(&m.e, 1800000);
		estimate_own_cpu(&m.e, 2000000);
		for (int k = 0; k < 50; k++) {
			assert_ok(estimate_sample(&m.e, &m.tree, m.f));
			assert_ok(estimate_sample(&m.e, &m.tree, h));
		}
	}
	r = settled(&m, &cost);
	cr_assert_gt(estimate_figures(&r, m.g).self[SNAPSHOT_CPU],
		     20 * estimate_figures(&r, m.f).self[SNAPSHOT_CPU]);
	cr_assert_float_eq((double)estimate_figures(&r, m.g).self[SNAPSHOT_CPU] /
				   (double)estimate_figures(&r, h).self[SNAPSHOT_CPU],
			   1, 0.1);
	cr_assert(estimate_variance(&r, G, SNAPSHOT_TOT_CPU) >= 0);
	cr_assert_gt(estimate_variance(&r, F, SNAPSHOT_TOT_CPU), 0);
	estimate_result_deinit(&r);
	funcs_deinit(&funcs);
	unmake(&m);
	check_no_leaks();
}
