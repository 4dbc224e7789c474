// SPDX-License-Identifier: BSD-2-Clause
/* Estimates from windows and from samples between them: the program's true figures are known. */
#include <math.h>

#include "harness/estimate_rig.h"
#include "harness/test.h"

/*
 * A program that repeatedly spends 200 ns in f, 300 in g, which f calls, and 700 in a loop, h. The
 * two hits of a call take 1200 ns, half in f and half in g; the known costs differ from that by a
 * factor. Fifty windows of about 1 ms of the program, each after 9 ms.
 */
#define WINDOWS	 50
#define ALL_NS	 (WINDOWS * 10e6)
#define ROUND_NS 1200

struct watched {
	struct estimate_rig m;
	uint32_t h;
	struct cost cost;
	struct estimate_result r;
};

static void watch(struct watched *w, double claimed)
{
	const uint32_t ns = (uint32_t)(300 * claimed + 0.5);
	struct estimate_rig *m = &w->m;

	estimate_rig_init(m);
	w->h = calltree_child(&m->tree, m->root, H);
	w->cost = (struct cost){.known = true, .before = {ns, ns, ns}, .after = {ns, ns, ns}};
	for (uint64_t i = 0; i < WINDOWS; i++) {
		uint64_t n = 810 + i;

		estimate_gap(&m->e, 9000000);
		estimate_own_cpu(&m->e, 10e6);
		/*
		 * After a hit of 600 ns, 200 ns become 291 and 300 become 401 (post-trap slowdown).
		 */
		estimate_rig_seen(m, m->f, 0, n * (291 + 600), n * (291 + 600));
		estimate_rig_seen(m, m->g, n, n * (401 + 600), n * (401 + 600));
		estimate_rig_seen(m, w->h, 0, n * 700, n * 700);
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

static void reconcile(struct watched *w)
{
	w->r = estimate_rig_reconcile(&w->m, &w->cost);
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
	estimate_rig_deinit(&w->m);
}

Test(samples, samples_yield_the_real_cost_of_hits)
{
	for (int percent = 80; percent <= 120; percent += 5) {
		double claimed = percent / 100.0, whole;
		struct watched w;

		watch(&w, claimed);
		sampled_rightly(&w, 400);
		reconcile(&w);
		whole = share(&w, w.m.f) + share(&w, w.m.g) + share(&w, w.h);
		cr_assert_float_eq(whole, 1, 1e-6, "%.2f: they add up to %.4f", claimed, whole);
		cr_assert_float_eq(w.r.cost_factor * claimed, 1, 0.02, "%.2f: %.4f", claimed,
				   w.r.cost_factor);
		cr_assert_float_eq(share(&w, w.m.f), 200.0 / ROUND_NS, 0.005, "%.2f", claimed);
		cr_assert_float_eq(share(&w, w.m.g), 300.0 / ROUND_NS, 0.005, "%.2f", claimed);
		cr_assert_float_eq((double)estimate_figures(&w.r, w.m.g).calls, ALL_NS / ROUND_NS,
				   0.02 * ALL_NS / ROUND_NS, "counts hang on costs as well");
		unwatch(&w);
	}
	check_no_leaks();
}

/*
 * A program that makes nothing but empty calls: probes take 20 times as long as it does itself, and
 * samples cannot tell what hits cost, as each function has as many hits as time. If hits cost 12 % more
 * than claimed, several times too few calls are reported, and the errors say so.
 */
#define EMPTY_NS 60
Test(samples, empty_calls)
{
	for (int percent = 88; percent <= 100; percent += 6) {
		const double truth = ALL_NS / EMPTY_NS;
		const uint32_t ns = (uint32_t)(3 * percent);
		double calls, error;
		struct watched w;

		estimate_rig_init(&w.m);
		w.cost =
			(struct cost){.known = true, .before = {ns, ns, ns}, .after = {ns, ns, ns}};
		for (uint64_t i = 0; i < WINDOWS; i++) {
			uint64_t n = 1000000 / EMPTY_NS + i;

			estimate_gap(&w.m.e, 9000000);
			estimate_own_cpu(&w.m.e, 10e6);
			estimate_rig_seen(&w.m, w.m.f, 0, n * (55 + 600), n * (55 + 600));
			estimate_rig_seen(&w.m, w.m.g, n, n * (55 + 600), n * (55 + 600));
			assert_ok(estimate_fold(&w.m.e, &w.m.tree, FUNCS, 1000000, &w.cost, 1));
		}
		sampled(&w, w.m.f, 500);
		sampled(&w, w.m.g, 500);
		reconcile(&w);
		calls = (double)estimate_figures(&w.r, w.m.g).calls;
		error = sqrt(estimate_variance(&w.r, G, SNAPSHOT_CALLS));
		cr_assert(fabs(calls - truth) < 2.5 * error, "%d %%: %.0f +- %.0f, not %.0f",
			  percent, calls, error, truth);
		unwatch(&w);
	}
	check_no_leaks();
}

/*
 * The program above, which waits instead of running the loop: a hundred rounds per 10 ms,
 * alternately more and less by `spread`. A tenth of the time is traced. Returns the true number of
 * calls.
 */
static double watch_waiting(struct watched *w, double claimed, uint64_t windows, uint64_t spread)
{
	const uint32_t ns = (uint32_t)(300 * claimed + 0.5);
	struct estimate_rig *m = &w->m;

	estimate_rig_init(m);
	w->cost = (struct cost){.known = true, .before = {ns, ns, ns}, .after = {ns, ns, ns}};
	for (uint64_t i = 0; i < windows; i++) {
		uint64_t n = i % 2 ? 100 + spread : 100 - spread, cpu = n * (291 + 600);

		estimate_gap(&m->e, 90000000);
		estimate_own_cpu(&m->e, 1000 * 500);
		estimate_rig_seen(m, m->f, 0, cpu, cpu + 10000000 - n * 500);
		estimate_rig_seen(m, m->g, n, n * (401 + 600), n * (401 + 600));
		assert_ok(estimate_fold(&m->e, &m->tree, FUNCS, 10000000, &w->cost, 1));
	}
	reconcile(w);
	return 1000.0 * (double)windows;
}

/*
 * For a program that waits, the cost of hits matters little: the number of calls depends on elapsed
 * time.
 */
Test(samples, counts_of_what_waits_go_by_time)
{
	for (int percent = 80; percent <= 120; percent += 20) {
		double claimed = percent / 100.0, calls, truth;
		struct watched w;

		truth = watch_waiting(&w, claimed, 100, 10);
		calls = (double)estimate_figures(&w.r, w.m.g).calls;
		cr_assert_float_eq(calls, truth, 0.04 * truth, "%.1f: %.0f of %.0f", claimed, calls,
				   truth);
		cr_assert(fabs(calls - truth) <
			  2 * sqrt(estimate_variance(&w.r, G, SNAPSHOT_CALLS)));
		cr_assert(claimed == 1 || fabs(w.r.rest - 1) > 0.15, "not by the CPU time: %.3f",
			  w.r.rest);
		unwatch(&w);
	}
	check_no_leaks();
}

/*
 * Few windows, some with nineteen times the activity of others: then CPU time is the better weight.
 */
Test(samples, counts_go_by_cpu_time_where_windows_differ)
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

Test(samples, without_samples_as_windows_have_it)
{
	struct watched w;
	double calls, error;

	watch(&w, 1);
	reconcile(&w);
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
Test(samples, few_samples_change_little)
{
	struct watched none, few;
	double before;

	watch(&none, 1.1);
	reconcile(&none);
	watch(&few, 1.1);
	sampled(&few, few.m.f, 4);
	sampled(&few, few.h, 2);
	reconcile(&few);
	before = share(&none, none.h);
	cr_assert(fabs(share(&few, few.h) - before) < 0.1 * before, "%.3f, before %.3f",
		  share(&few, few.h), before);
	cr_assert_float_eq(few.r.cost_factor, 1, 0.08);
	unwatch(&none);
	unwatch(&few);
	check_no_leaks();
}

/* A context that no window has shown gets its time from samples, and no calls. */
Test(samples, what_windows_missed)
{
	struct watched w;
	uint32_t missed;

	watch(&w, 1);
	missed = calltree_child(&w.m.tree, w.h, F);
	sampled_rightly(&w, 400);
	sampled(&w, missed, 400);
	reconcile(&w);
	cr_assert(estimate_has(&w.m.e, missed));
	cr_assert_eq(estimate_figures(&w.r, missed).calls, 0);
	cr_assert(share(&w, missed) > 0.05 && share(&w, missed) < 0.1, "%.4f", share(&w, missed));
	unwatch(&w);
	check_no_leaks();
}

/*
 * Functions that are newer than the windows' data, and a tree that has grown since the last fold.
 */
Test(samples, samples_of_what_is_unknown)
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
	reconcile(&w);
	cr_assert_eq(w.r.fit.samples, 253);
	whole = 0;
	for (uint32_t i = 0; i < w.m.tree.n; i++)
		whole += (double)estimate_figures(&w.r, i).self[SNAPSHOT_CPU];
	cr_assert(isfinite(whole) && whole > ALL_NS);
	unwatch(&w);
	check_no_leaks();
}

/* Samples alone: no window was folded, or costs are not known. */
Test(samples, samples_alone_are_not_enough)
{
	struct watched w;

	estimate_rig_init(&w.m);
	w.cost = (struct cost){.known = true};
	w.h = w.m.root;
	sampled(&w, w.m.f, 10);
	reconcile(&w);
	cr_assert_eq(estimate_figures(&w.r, w.m.f).self[SNAPSHOT_CPU], 0);
	unwatch(&w);
	watch(&w, 1);
	sampled_rightly(&w, 10);
	w.cost.known = false;
	reconcile(&w);
	cr_assert_eq(w.r.fit.samples, 0);
	unwatch(&w);
	check_no_leaks();
}

/*
 * Between windows there are as many samples of f as of h, and no other data on them. In windows
 * nearly all of f's time was in a C function: the estimate keeps that ratio.
 */
Test(samples, samples_of_functions_that_call_c)
{
	static const struct cost cost = {.known = true, .before = {100, 100}, .after = {100, 100}};
	const struct func_identity ids[] = {{.filename = "a.py", .name = "f", .firstlineno = 1},
					    {.filename = "~", .name = "<built-in method g>"},
					    {.filename = "a.py", .name = "h", .firstlineno = 2}};
	struct estimate_result r;
	struct funcs funcs;
	struct estimate_rig m;
	uint32_t h;

	estimate_rig_init(&m);
	assert_ok(funcs_init(&funcs, 100, 1 << 16));
	for (uint32_t i = 0; i < 3; i++)
		cr_assert_eq(funcs_intern(&funcs, &ids[i]), F + i);
	m.funcs = &funcs;
	h = calltree_child(&m.tree, m.root, H);
	for (int i = 0; i < 20; i++) {
		estimate_rig_seen(&m, m.f, 1, 2000, 2000);
		estimate_rig_seen(&m, m.g, 1, 98000, 98000);
		estimate_rig_seen(&m, h, 100, 100000, 100000);
		assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 200000, &cost, 1));
		estimate_gap(&m.e, 1800000);
		estimate_own_cpu(&m.e, 2000000);
		for (int k = 0; k < 50; k++) {
			assert_ok(estimate_sample(&m.e, &m.tree, m.f));
			assert_ok(estimate_sample(&m.e, &m.tree, h));
		}
	}
	r = estimate_rig_reconcile(&m, &cost);
	cr_assert_gt(estimate_figures(&r, m.g).self[SNAPSHOT_CPU],
		     20 * estimate_figures(&r, m.f).self[SNAPSHOT_CPU]);
	cr_assert_float_eq((double)estimate_figures(&r, m.g).self[SNAPSHOT_CPU] /
				   (double)estimate_figures(&r, h).self[SNAPSHOT_CPU],
			   1, 0.1);
	cr_assert(estimate_variance(&r, G, SNAPSHOT_TOT_CPU) >= 0);
	cr_assert_gt(estimate_variance(&r, F, SNAPSHOT_TOT_CPU), 0);
	estimate_result_deinit(&r);
	funcs_deinit(&funcs);
	estimate_rig_deinit(&m);
	check_no_leaks();
}

/* ---- results that a separate program computed from the descriptions in estimate/ ---- */

enum { ROOT, OF_F, OF_G, OF_H, INNER, NODES };

/* f calls g, and h calls f. Six windows of 1 ms, each after 9 ms; and after a gap, calls in an open one. */
static const struct known {
	unsigned int times; /* of the cost of hits */
	double own_cpu;	    /* the target's CPU time per window */
	uint64_t wait;	    /* of h, in each window */
	bool native;	    /* g is a C function, so that its samples are f's */
	bool sampled;
	double cost_factor;
	uint64_t calls[NODES - 1], yields; /* without those of the root; of g */
	double cpu[NODES], wall[NODES];
	double error[3][SNAPSHOT_FIGURES]; /* of f, g, h */
} known[] = {
	{
		/* Samples and windows */
		.times = 1,
		.own_cpu = 10000000,
		.wait = 100000,
		.native = false,
		.sampled = true,
		.cost_factor = 0.864968272,
		.calls = {942, 18846, 78, 3885},
		.yields = 1555,
		.cpu = {819353, 11206850, 35209418, 25179227, 4873647},
		.wall = {1523353, 12078850, 35209418, 31579227, 4873647},
		.error = {{219.24754, 649727.37, 298734.04, 1718477.3, 1763558.1},
			  {1276.4025, 1043503.7, 1917113.6, 1707173.8, 1917113.6},
			  {3.9910354, 985144.54, 1493060.3, 1467127.8, 1566771.5}},
	},
	{
		/* Windows alone */
		.times = 1,
		.own_cpu = 10000000,
		.wait = 100000,
		.native = false,
		.sampled = false,
		.cost_factor = 1.1,
		.calls = {984, 19682, 81, 4057},
		.yields = 1624,
		.cpu = {668298, 7902818, 46342588, 22389037, 4689154},
		.wall = {1372298, 8774818, 46342588, 28789037, 4689154},
		.error = {{250.20437, 120315.42, 319812.79, 1922303.6, 1972555},
			  {1389.9257, 1892461.2, 2099964.9, 1892461.2, 2099964.9},
			  {4.4730907, 1479998.5, 1626153, 1579800.5, 1715522.6}},
	},
	{
		/* A C function */
		.times = 1,
		.own_cpu = 10000000,
		.wait = 100000,
		.native = true,
		.sampled = true,
		.cost_factor = 1.2086317,
		.calls = {1005, 20100, 83, 4143},
		.yields = 1659,
		.cpu = {917608, 8867691, 43136624, 25930985, 5457670},
		.wall = {1621608, 9739691, 43136624, 32330985, 5457670},
		.error = {{267.01385, 2095234.1, 323423.58, 1915470.8, 1965601},
			  {1451.3387, 1729130.3, 2107117.6, 1891356.5, 2107117.6},
			  {4.7353943, 1040009.7, 1634841.2, 1594434.5, 1721597.2}},
	},
	{
		/* Mostly waiting */
		.times = 1,
		.own_cpu = 1000000,
		.wait = 30000000,
		.native = false,
		.sampled = false,
		.cost_factor = 1.1,
		.calls = {99, 1980, 8, 408},
		.yields = 163,
		.cpu = {67159, 795036, 4659321, 2250754, 471455},
		.wall = {771159, 1667036, 4659321, 1922250754, 471455},
		.error = {{25.176866, 12095.2, 24663.093, 193247.45, 266350.31},
			  {139.84827, 190247.41, 277134.79, 190247.41, 277134.79},
			  {0.45008968, 148782.91, 7722689.1, 158815.91, 7733180.4}},
	},
	{
		/* Slow traps */
		.times = 4,
		.own_cpu = 10000000,
		.wait = 100000,
		.native = false,
		.sampled = false,
		.cost_factor = 1.09293731,
		.calls = {776, 15523, 64, 3200},
		.yields = 1281,
		.cpu = {1285200, 24769659, 52769045, 38807254, 4896000},
		.wall = {1989200, 25641659, 52769045, 45207254, 4896000},
		.error = {{1082.1369, 0, 819690.95, 10463229, 11064266},
			  {4378.9422, 10463229, 10503765, 10463229, 10503765},
			  {17.400609, 9712602.1, 14393220, 9712602.1, 14393220}},
	},
	{
		/* Slow traps, and waiting */
		.times = 4,
		.own_cpu = 10000000,
		.wait = 30000000,
		.native = true,
		.sampled = true,
		.cost_factor = 0.765056114,
		.calls = {776, 15523, 64, 3200},
		.yields = 1281,
		.cpu = {1543488, 17338377, 48989123, 29481906, 7315348},
		.wall = {2247488, 18210377, 48989123, 1949481906, 7315348},
		.error = {{1733.2213, 10329309, 737277.53, 10378605, 10997391},
			  {6863.2743, 10232020, 10388674, 10378605, 10388674},
			  {27.887641, 1409841, 1.4370559e+09, 9622655.3, 1.4370559e+09}},
	},
	{
		/* A clock far from what windows show */
		.times = 1,
		.own_cpu = 90000,
		.wait = 100000,
		.native = false,
		.sampled = false,
		.cost_factor = 1.1,
		.calls = {9, 178, 1, 37},
		.yields = 15,
		.cpu = {6187, 71500, 419251, 202783, 42539},
		.wall = {710187, 943500, 419251, 6602783, 42539},
		.error = {{2.2659134, 1088.5681, 2893.5443, 17392.271, 17846.926},
			  {12.586318, 17122.268, 18999.682, 17122.268, 18999.682},
			  {0.040507989, 13390.463, 14712.813, 14293.433, 15521.395}},
	},
};

static void see(struct estimate_rig *m, const uint32_t *node, const struct known *k, uint64_t i)
{
	estimate_rig_seen(m, node[ROOT], 0, 9000, 20000);
	estimate_rig_seen(m, node[OF_F], 10 + i, 60000 + 3000 * i, 80000);
	estimate_rig_seen(m, node[OF_G], 200 + 20 * i, 500000 + 40000 * i, 500000 + 40000 * i);
	m->tree.yields[node[OF_G]] += 20;
	estimate_rig_seen(m, node[OF_H], 1, 300000 - 10000 * i, 300000 - 10000 * i + k->wait);
	estimate_rig_seen(m, node[INNER], 50, 60000 + 100 * i * i, 60000 + 100 * i * i);
}

static void sample_known(struct estimate_rig *m, const uint32_t *node, bool native)
{
	const int samples[NODES] = {[ROOT] = 5,
				    [OF_F] = native ? 250 : 100,
				    [OF_G] = native ? 0 : 150,
				    [OF_H] = 200,
				    [INNER] = 30};

	for (int i = 0; i < NODES; i++)
		for (int n = 0; n < samples[i]; n++)
			assert_ok(estimate_sample(&m->e, &m->tree, node[i]));
}

static void is_about(double got, double want, const char *what, size_t at, int i)
{
	cr_assert(fabs(got - want) <= 1 + 2e-6 * want, "%zu, %s of %d: %.9g, not %.9g", at, what, i,
		  got, want);
}

static void expect_known(const struct estimate_rig *m, const uint32_t *node,
			 const struct cost *cost, size_t at)
{
	struct estimate_result r = estimate_rig_reconcile(m, cost);
	const struct known *k = &known[at];

	cr_assert_float_eq(r.cost_factor, k->cost_factor, 1e-7, "%zu: %.9g", at, r.cost_factor);
	for (int i = 0; i < NODES; i++) {
		const struct estimate_figures f = estimate_figures(&r, node[i]);

		cr_assert_eq(f.calls, i ? k->calls[i - 1] : 0, "%zu, %d", at, i);
		cr_assert_eq(f.yields, i == OF_G ? k->yields : 0, "%zu, %d", at, i);
		is_about((double)f.self[SNAPSHOT_CPU], k->cpu[i], "CPU time", at, i);
		is_about((double)f.self[SNAPSHOT_WALL], k->wall[i], "wall time", at, i);
	}
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < SNAPSHOT_FIGURES; j++) {
			double error = sqrt(
				estimate_variance(&r, F + (uint32_t)i, (enum snapshot_figure)j));

			cr_assert(fabs(error - k->error[i][j]) <= 2e-6 * k->error[i][j],
				  "%zu, %d, %d: %.9g", at, i, j, error);
		}
	estimate_result_deinit(&r);
}

Test(samples, computed_twice)
{
	static const struct func_identity ids[] = {
		{.filename = "a.py", .name = "f", .firstlineno = 1},
		{.filename = "~", .name = "<built-in method g>"},
		{.filename = "a.py", .name = "h", .firstlineno = 2}};

	for (size_t at = 0; at < sizeof(known) / sizeof(known[0]); at++) {
		const struct known *k = &known[at];
		const uint32_t n = k->times;
		const struct cost cost = {.known = true,
					  .before = {100 * n, 150 * n, 120 * n},
					  .after = {200 * n, 250 * n, 220 * n}};
		uint32_t node[NODES];
		struct estimate_rig m;
		struct funcs funcs;

		estimate_rig_init(&m);
		assert_ok(funcs_init(&funcs, 100, 1 << 16));
		for (uint32_t i = 0; i < 3; i++)
			cr_assert_eq(funcs_intern(&funcs, &ids[i]), F + i);
		m.funcs = k->native ? &funcs : NULL;
		node[ROOT] = m.root;
		node[OF_F] = m.f;
		node[OF_G] = m.g;
		node[OF_H] = calltree_child(&m.tree, m.root, H);
		node[INNER] = calltree_child(&m.tree, node[OF_H], F);
		for (uint64_t i = 0; i < 6; i++) {
			estimate_gap(&m.e, 9000000);
			estimate_own_cpu(&m.e, k->own_cpu);
			see(&m, node, k, i);
			assert_ok(estimate_fold(&m.e, &m.tree, FUNCS, 1000000, &cost, 1.1));
		}
		if (k->sampled)
			sample_known(&m, node, k->native);
		estimate_gap(&m.e, 4000000);
		estimate_own_cpu(&m.e, k->own_cpu == 10000000 ? 3000000 : floor(k->own_cpu / 3));
		estimate_rig_seen(&m, m.g, 3, 9000, 9000);
		m.tree.yields[m.g] = 1;
		expect_known(&m, node, &cost, at);
		funcs_deinit(&funcs);
		estimate_rig_deinit(&m);
	}
	check_no_leaks();
}
