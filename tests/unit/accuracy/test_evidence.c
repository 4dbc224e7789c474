// SPDX-License-Identifier: BSD-2-Clause
/*
 * Evidence: weights of windows, the sums that errors follow from, the probes' time, stretches and samples, and
 * contexts that are merged. All figures are simple enough to be computed by hand.
 */
#include <errno.h>
#include <math.h>

#include "accuracy/evidence.h"
#include "accuracy/window.h"
#include "harness/evidence_rig.h"
#include "harness/reports.h"
#include "harness/test.h"

static bool short_of_memory;

/* Replaces libc's. */
void *reallocarray(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (short_of_memory || __builtin_mul_overflow(n, size, &bytes))
		return NULL;
	return realloc(p, bytes);
}

/* Gaps ------------------------------------------------------------------------------------- */

/* Half of a gap belongs to the window before it, and half to the one after it. */
Test(evidence, gaps_are_shared)
{
	struct evidence_rig m;

	evidence_rig_init(&m);
	evidence_rig_seen(&m, m.f, 10, 100);
	evidence_rig_fold(&m, 0, 1000, NULL, 1);
	cr_assert_eq(m.e.windows, 0, "there was no gap");
	cr_assert(m.e.nodes[m.f].calls == 10 && m.e.nodes[m.f].cpu == 100);
	cr_assert(m.tree.nodes[m.f].calls == 0 && m.tree.nodes[m.f].self[SNAPSHOT_CPU] == 0);
	evidence_rig_seen(&m, m.g, 10, 100);
	evidence_rig_fold(&m, 4000, 1000, NULL, 1);
	cr_assert_eq(m.e.windows, 2);
	cr_assert_eq(m.e.nodes[m.f].calls, 30);
	cr_assert_eq(m.e.nodes[m.g].calls, 30);
	evidence_rig_seen(&m, m.f, 1, 100);
	evidence_rig_fold(&m, 2000, 1000, NULL, 1);
	cr_assert_eq(m.e.nodes[m.f].calls, 30 + 2);
	cr_assert_eq(m.e.nodes[m.g].calls, 40);
	cr_assert_eq(m.e.all_ns, 9000);
	cr_assert_eq(m.e.gap_ns, 0);
	evidence_clear(&m.e);
	cr_assert(!m.e.partial && !m.e.windows && m.e.last.length == 0 && m.e.last.n == 0);
	evidence_rig_seen(&m, m.g, 5, 100);
	evidence_rig_fold(&m, 2000, 1000, NULL, 1);
	cr_assert(m.e.nodes[m.g].calls == 15 && m.e.nodes[m.f].calls == 0);
	evidence_rig_deinit(&m);
	check_no_leaks();
}

static void expect_sums(const struct evidence_rig *m, uint32_t func, double sum, double square,
			double product)
{
	const struct evidence_ratio *f = &m->e.funcs[func].by_cpu;

	cr_assert(f->sum == sum && f->square == square && f->product == product, "%u: %g %g %g",
		  func, f->sum, f->square, f->product);
}

/*
 * The first of four windows has a weight of 2 and then, as one more gap follows, of 3. The others have 2, the
 * third one only after the fourth has shown a gap. f calls g, which calls f.
 */
Test(evidence, sums_of_windows)
{
	struct evidence_rig m;
	uint32_t inner;

	evidence_rig_init(&m);
	inner = calltree_child(&m.tree, m.g, F);
	evidence_rig_seen(&m, m.f, 2, 30);
	evidence_rig_seen(&m, m.g, 3, 20);
	evidence_rig_seen(&m, inner, 5, 10);
	m.tree.yields[m.g] = 1;
	evidence_rig_fold(&m, 1000, 1000, NULL, 1);
	cr_assert_eq(m.tree.yields[m.g], 0);
	expect_sums(&m, F, 14, 98, 840);
	expect_sums(&m, G, 6, 18, 360);
	cr_assert(m.e.windows == 1 && m.e.seen_cpu == 60);
	evidence_rig_seen(&m, m.g, 1, 10);
	evidence_rig_fold(&m, 2000, 1000, NULL, 1);
	evidence_rig_seen(&m, m.g, 1, 10);
	evidence_rig_fold(&m, 0, 1000, NULL, 1);
	cr_assert_eq(m.e.windows, 2, "the third does not represent more than itself");
	evidence_rig_fold(&m, 2000, 1000, NULL, 1);
	expect_sums(&m, F, 21, 294, 2520);
	expect_sums(&m, G, 13, 58, 1120);
	cr_assert(m.e.windows == 4 && m.e.gap_ns == 0 && m.e.seen_cpu == 80);
	cr_assert(m.e.size == 220 && m.e.size2 == 22000);
	cr_assert(m.e.all_ns == 9000 && m.e.all_cpu == 220 && m.e.calls == 34);
	cr_assert(m.e.nodes[m.f].cpu == 90 && m.e.nodes[m.f].calls == 6);
	cr_assert(m.e.nodes[m.g].yields == 3 && m.e.nodes[inner].calls == 15);
	cr_assert_eq(m.e.last.nfuncs, 0);
	evidence_clear(&m.e);
	expect_sums(&m, G, 0, 0, 0);
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/* A window of no length shows nothing; what it has seen is in the next one. */
Test(evidence, nothing)
{
	struct evidence_rig m;

	evidence_rig_init(&m);
	evidence_rig_seen(&m, m.f, 1, 1);
	evidence_rig_fold(&m, 0, 0, NULL, 1);
	cr_assert(m.tree.nodes[m.f].calls == 0 && !m.e.partial && m.e.n == 0);
	evidence_own_cpu(&m.e, -5);
	cr_assert_eq(m.e.own_cpu, 0);
	evidence_own_cpu(&m.e, 5);
	evidence_own_cpu(&m.e, 2);
	cr_assert_eq(m.e.own_cpu, 7);
	evidence_gap(&m.e, 0);
	cr_assert(!m.e.partial);
	evidence_gap(&m.e, 1);
	cr_assert(m.e.partial && m.e.gap_ns == 1);
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/* Without memory, the window's figures stay in the tree, and the next window includes them. */
Test(evidence, fold_without_memory)
{
	const struct cost unknown = {0};
	const struct evidence_window w = {
		.length_ns = 1000, .cpu_ns = INFINITY, .cost = &unknown, .times = 1};
	struct evidence_rig m;

	evidence_rig_init(&m);
	evidence_rig_seen(&m, m.f, 3, 30);
	evidence_gap(&m.e, 1000);
	short_of_memory = true;
	assert_err(evidence_fold(&m.e, &m.tree, FUNCS, &w), -ENOMEM);
	assert_err(evidence_keep(&m.e, &m.tree, true), -ENOMEM);
	assert_err(evidence_sample(&m.e, &m.tree, m.f, 10, false), -ENOMEM);
	short_of_memory = false;
	cr_assert(m.tree.nodes[m.f].calls == 3 && m.e.gap_ns == 1000 && m.e.samples == 0);
	evidence_rig_seen(&m, m.f, 4, 40);
	assert_ok(evidence_fold(&m.e, &m.tree, FUNCS, &w));
	cr_assert(m.e.nodes[m.f].calls == 14 && m.e.nodes[m.f].cpu == 140);
	/* A tree that has grown; the last window has not changed. */
	for (uint32_t i = 0; i < 500; i++)
		evidence_rig_seen(&m, calltree_child(&m.tree, m.root, FUNCS + i), 1, 1);
	evidence_gap(&m.e, 1000);
	short_of_memory = true;
	assert_err(evidence_fold(&m.e, &m.tree, FUNCS + 500, &w), -ENOMEM);
	assert_err(evidence_keep(&m.e, &m.tree, false), -ENOMEM);
	short_of_memory = false;
	cr_assert(m.e.last.weight == 2 && m.e.gap_ns == 1000 && m.tree.nodes[m.g + 1].calls == 1);
	assert_ok(evidence_fold(&m.e, &m.tree, FUNCS + 500, &w));
	cr_assert(m.e.nodes[m.f].calls == 14 + 3.5 && m.e.nodes[m.g + 1].calls == 1.5);
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/* The probes' time ------------------------------------------------------------------------- */

/* Hits of calls take 10 + 100 ns, of returns 1 + 1000, of suspensions 3 + 5000. */
static const struct cost costs = {.known = true, .before = {10, 1, 3}, .after = {100, 1000, 5000}};

/* The first part is from the caller or, at an end, from the callee. */
Test(evidence, sums_of_probes)
{
	const double of_f = 2 * 101 + 3 * 10 + 2 * 1000 + 5000, of_g = 3 * 100 + 2 * 1 + 3;
	const double all = of_f + of_g + 2 * (10 + 1000);
	struct evidence_rig m;

	evidence_rig_init(&m);
	m.tree.yields[m.g] = 1;
	evidence_rig_seen(&m, m.root, 0, 9000);
	evidence_rig_seen(&m, m.f, 2, 40000);
	evidence_rig_seen(&m, m.g, 3, 4000);
	evidence_rig_fold(&m, 1000, 1000, &costs, 1.5);
	cr_assert(m.e.nodes[m.f].taken == 2 * of_f && m.e.nodes[m.g].taken == 2 * of_g);
	cr_assert(m.e.nodes[m.f].cpu == 80000 && m.e.nodes[m.g].cpu == 8000, "unlike their sum");
	cr_assert_float_eq(m.e.seen_cpu, 53000 - 1.5 * all, 1e-6);
	expect_sums(&m, G, 6, 18, 6 * m.e.seen_cpu);
	/* Costs were twice as high; the last window's, too, whose weight is 3 after the next gap. */
	evidence_costs_change(&m.e, 2);
	cr_assert(m.e.nodes[m.f].taken == 4 * of_f && m.e.nodes[m.g].taken == 4 * of_g);
	evidence_rig_fold(&m, 2000, 1000, &costs, 1.5);
	cr_assert_float_eq(m.e.nodes[m.g].taken, 6 * of_g, 1e-9);
	evidence_costs_change(&m.e, 2);
	cr_assert_float_eq(m.e.nodes[m.g].taken, 12 * of_g, 1e-9);
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/* Of 10,000 ns, 25 for each of 10 hits are the program's own at least; of 100, all. */
Test(evidence, costs_too_high)
{
	struct evidence_rig m;
	double taken;

	evidence_rig_init(&m);
	m.tree.yields[m.g] = 1;
	evidence_rig_seen(&m, m.f, 2, 6000);
	evidence_rig_seen(&m, m.g, 3, 4000);
	evidence_rig_fold(&m, 0, 1000, &costs, 1.5);
	cr_assert_float_eq(m.e.last.cpu, 10 * WINDOW_OWN_NS, 1e-6, "%g", m.e.last.cpu);
	evidence_rig_seen(&m, m.f, 2, 100);
	evidence_rig_fold(&m, 0, 1000, &costs, 1);
	cr_assert_eq(m.e.last.cpu, 100);
	/* What is not known takes nothing. */
	taken = m.e.nodes[m.f].taken;
	cr_assert_gt(taken, 0);
	evidence_rig_seen(&m, m.f, 2, 100);
	evidence_rig_fold(&m, 0, 1000, &(struct cost){.before = {10, 1}}, 1);
	cr_assert(m.e.last.cpu == 100 && m.e.nodes[m.f].taken == taken);
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/* Calls without a context of their own include their callers' part; collections are like calls. */
Test(evidence, probes_of_pseudo_functions)
{
	const uint32_t others[] = {NODE_TRUNCATED(0), NODE_LOST(0)};
	struct evidence_rig m;
	uint32_t gc;

	evidence_rig_init(&m);
	gc = calltree_child(&m.tree, m.f, FUNC_GC);
	for (int i = 0; i < 2; i++)
		evidence_rig_seen(&m, m.root + others[i], 4, 9000);
	evidence_rig_seen(&m, gc, 5, 90000);
	evidence_rig_seen(&m, m.f, 0, 1);
	evidence_rig_fold(&m, 0, 1000, &costs, 1);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(m.e.nodes[m.root + others[i]].taken, 4 * (100 + 1) + 4 * (10 + 1000));
	cr_assert_eq(m.e.nodes[m.root].taken, 0);
	cr_assert_eq(m.e.nodes[gc].taken, 5 * 101);
	cr_assert_eq(m.e.nodes[m.f].taken, 5 * 1010);
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/* More suspensions than calls: some began in earlier windows. */
Test(evidence, more_ends_than_calls)
{
	struct evidence_rig m;

	evidence_rig_init(&m);
	m.tree.yields[m.g] = 2;
	evidence_rig_seen(&m, m.g, 1, 90000);
	evidence_rig_seen(&m, m.f, 0, 1);
	evidence_rig_fold(&m, 0, 1000, &costs, 1);
	cr_assert_eq(m.e.nodes[m.g].taken, 100 + 2 * 3);
	cr_assert_eq(m.e.nodes[m.f].taken, 10 + 2 * 5000);
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/*
 * Of 1 s by events, the process has used 0.6 s: a hypervisor had the rest. Hits took what they take. What is less than
 * a clock may be late by shows nothing.
 */
Test(evidence, stolen_time)
{
	const struct cost cost = {.known = true, .before = {50, 50}, .after = {50, 50}};
	struct evidence_rig m;

	evidence_rig_init(&m);
	for (int i = 0; i < 2; i++) {
		evidence_rig_seen(&m, m.f, 1, 800000000);
		evidence_rig_seen(&m, m.g, 0, 200000000);
		evidence_gap(&m.e, 1000000000);
		assert_ok(evidence_fold(&m.e, &m.tree, FUNCS,
					&(struct evidence_window){.length_ns = 1e9,
								  .cpu_ns = i ? 995e6 : 590e6,
								  .cost = &cost,
								  .times = 1}));
		cr_assert_eq(m.e.last.cpu, (i ? 1e9 : 600e6) - 200, "never more than events show");
		if (i)
			continue;
		cr_assert_float_eq(m.e.nodes[m.f].cpu, 2 * 480e6, 1e-3);
		cr_assert_float_eq(m.e.nodes[m.g].cpu, 2 * 120e6, 1e-3);
		cr_assert_eq(m.e.nodes[m.f].taken, 2 * 100);
	}
	cr_assert_eq(m.e.seen_cpu, 1600e6 - 400);
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/* Stretches and samples -------------------------------------------------------------------- */

static void keep(struct evidence_rig *m, bool light)
{
	assert_ok(evidence_keep(&m->e, &m->tree, light));
}

/* All calls of a stretch count as they are; its times do if it is light, else samples show them. */
Test(evidence, stretches)
{
	struct evidence_rig m;
	const struct evidence_node *f;

	evidence_rig_init(&m);
	for (int light = 0; light <= 1; light++) {
		evidence_rig_seen(&m, m.f, light ? 3 : 5, light ? 300 : 500);
		m.tree.yields[m.f] = 1;
		assert_ok(evidence_sample(&m.e, &m.tree, m.f, light ? 10 : 100, true));
		f = &m.e.nodes[m.f];
		cr_assert_eq(f->within, light ? 10 : 100);
		keep(&m, light);
		cr_assert(m.tree.nodes[m.f].calls == 0 && m.tree.yields[m.f] == 0 &&
			  m.tree.nodes[m.f].self[SNAPSHOT_CPU] == 0);
		cr_assert(f->heavy.calls == 5 && f->heavy.yields == 1 && f->heavy.cpu == 0);
		cr_assert(f->exact.calls == (light ? 3 : 0) && f->exact.yields == (uint64_t)light);
		cr_assert_eq(f->exact.cpu, light ? 300 : 0);
		cr_assert_eq(f->exact.samples, light ? 10 : 0);
		cr_assert_eq(f->samples, 100);
		cr_assert_eq(f->within, 0);
	}
	cr_assert(f->calls == 0 && f->cpu == 0 && m.e.windows == 0 && !m.e.partial);
	cr_assert_eq(m.e.samples, 2);
	/* A sample that is not in a stretch stays apart. */
	assert_ok(evidence_sample(&m.e, &m.tree, m.f, 7, false));
	keep(&m, true);
	cr_assert(f->samples == 107 && f->exact.samples == 10 && m.e.samples == 3);
	/* Nothing is counted twice, and a clear forgets all. */
	cr_assert(f->exact.calls == 3 && f->heavy.calls == 5 && f->exact.cpu == 300);
	evidence_clear(&m.e);
	assert_ok(evidence_sample(&m.e, &m.tree, m.g, 1, false));
	cr_assert(!evidence_has(&m.e, m.f) && m.e.samples == 1);
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/* The gap between a window and a stretch is the window's, all of it; the one after the stretch is the next one's. */
Test(evidence, gaps_beside_stretches)
{
	struct evidence_rig m;

	evidence_rig_init(&m);
	evidence_rig_seen(&m, m.f, 10, 100);
	evidence_rig_fold(&m, 1000, 1000, NULL, 1);
	evidence_gap(&m.e, 3000);
	evidence_rig_seen(&m, m.f, 1, 10);
	evidence_rig_seen(&m, m.g, 4, 40);
	keep(&m, true);
	cr_assert_eq(m.e.nodes[m.f].calls, 50);
	cr_assert_eq(m.e.nodes[m.f].exact.calls, 1);
	cr_assert(m.e.nodes[m.g].exact.calls == 4 && m.e.nodes[m.g].calls == 0);
	cr_assert(m.e.gap_ns == 0 && m.e.all_ns == 5000);
	evidence_gap(&m.e, 2000);
	evidence_rig_seen(&m, m.f, 10, 100);
	evidence_rig_fold(&m, 0, 1000, NULL, 1);
	cr_assert_eq(m.e.nodes[m.f].calls, 50 + 30, "half of it is nobody else's");
	cr_assert_eq(m.e.nodes[m.f].exact.calls, 1);
	/* Without a window before, it is still the next one's. */
	evidence_clear(&m.e);
	evidence_gap(&m.e, 1000);
	evidence_rig_seen(&m, m.g, 4, 40);
	keep(&m, true);
	cr_assert(m.e.partial && m.e.gap_ns == 1000);
	evidence_rig_seen(&m, m.f, 10, 100);
	evidence_rig_fold(&m, 0, 1000, NULL, 1);
	cr_assert_eq(m.e.nodes[m.f].calls, 20);
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/* Contexts --------------------------------------------------------------------------------- */

/* Two contexts were merged between two windows, twice. */
Test(evidence, gaps_are_shared_with_what_was_moved)
{
	struct evidence_rig m;
	uint32_t a, b;

	evidence_rig_init(&m);
	a = calltree_child(&m.tree, m.g, F);
	b = calltree_child(&m.tree, m.root, G);
	evidence_rig_seen(&m, m.f, 10, 100);
	evidence_rig_seen(&m, a, 1, 100);
	evidence_rig_fold(&m, 0, 1000, NULL, 1);
	assert_ok(evidence_move(&m.e, &m.tree, m.f, a));
	assert_ok(evidence_move(&m.e, &m.tree, a, b));
	evidence_rig_seen(&m, a, 5, 100);
	evidence_rig_fold(&m, 4000, 1000, NULL, 1);
	cr_assert_eq(m.e.nodes[b].calls, 33);
	cr_assert_eq(m.e.nodes[a].calls, 15);
	cr_assert_eq(m.e.nodes[m.f].calls, 0);
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/* All figures of a context are moved, those of the last window as well. */
Test(evidence, all_that_is_moved)
{
	const struct cost cost = {.known = true, .before = {1, 2, 3}, .after = {4, 5, 6}};
	struct evidence_rig m;
	struct evidence_node *n;
	uint32_t a, b;
	double taken;

	evidence_rig_init(&m);
	a = calltree_child(&m.tree, m.g, F);
	b = calltree_child(&m.tree, m.root, G);
	for (int light = 0; light <= 1; light++) {
		evidence_rig_seen(&m, m.f, 7, 70);
		evidence_rig_seen(&m, a, 2, 20);
		m.tree.yields[a] = 1;
		assert_ok(evidence_sample(&m.e, &m.tree, m.f, 30, true));
		assert_ok(evidence_sample(&m.e, &m.tree, a, 40, true));
		keep(&m, light);
	}
	evidence_rig_seen(&m, m.f, 10, 1000);
	evidence_rig_seen(&m, a, 1, 400);
	m.tree.yields[m.f] = 2;
	m.tree.yields[a] = 1;
	evidence_rig_fold(&m, 0, 1000, &cost, 1);
	assert_ok(evidence_sample(&m.e, &m.tree, m.f, 3, true));
	assert_ok(evidence_sample(&m.e, &m.tree, a, 4, true));
	taken = m.e.nodes[m.f].taken + m.e.nodes[a].taken;
	cr_assert_gt(m.e.nodes[a].taken, 0);
	assert_ok(evidence_move(&m.e, &m.tree, m.f, a));
	assert_ok(evidence_move(&m.e, &m.tree, a, b));
	n = &m.e.nodes[b];
	cr_assert(n->calls == 11 && n->yields == 3 && n->cpu == 1400 && n->taken == taken);
	cr_assert(n->samples == 70 && n->within == 7 && m.e.samples == 6);
	cr_assert(n->exact.calls == 9 && n->exact.yields == 1 && n->exact.cpu == 90 &&
		  n->exact.samples == 70);
	cr_assert(n->heavy.calls == 9 && n->heavy.yields == 1);
	cr_assert(!evidence_has(&m.e, m.f) && !evidence_has(&m.e, a) && evidence_has(&m.e, b));
	evidence_rig_seen(&m, m.g, 1, 1);
	evidence_rig_fold(&m, 4000, 1000, &cost, 1);
	cr_assert(n->calls == 33 && n->yields == 9 && n->cpu == 4200 && n->taken == 3 * taken);
	cr_assert(n->samples == 77 && n->within == 0 && n->exact.calls == 9);
	/* One that is newer than the windows has nothing. */
	assert_ok(evidence_move(&m.e, &m.tree, m.e.n, b));
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/* Into a context for which there is no memory, figures are lost; the last window has no more of them. */
Test(evidence, moved_without_memory)
{
	struct evidence_rig m;
	uint32_t to = 0;

	evidence_rig_init(&m);
	evidence_rig_seen(&m, m.f, 10, 100);
	evidence_rig_seen(&m, m.g, 1, 100);
	evidence_rig_fold(&m, 0, 1000, NULL, 1);
	for (uint32_t i = 0; i < 500; i++)
		to = calltree_child(&m.tree, m.root, FUNCS + i);
	short_of_memory = true;
	assert_err(evidence_move(&m.e, &m.tree, m.f, to), -ENOMEM);
	short_of_memory = false;
	cr_assert(!evidence_has(&m.e, m.f) && m.e.nodes[m.g].calls == 1);
	evidence_rig_fold(&m, 2000, 1000, NULL, 1);
	cr_assert(!evidence_has(&m.e, m.f) && !evidence_has(&m.e, to));
	cr_assert_eq(m.e.nodes[m.g].calls, 2);
	evidence_rig_deinit(&m);
	check_no_leaks();
}

Test(evidence, contexts_that_have_figures)
{
	static const struct evidence_node some[] = {
		{.calls = 1},	    {.cpu = 1},	      {.samples = 1},	    {.within = 1},
		{.exact.calls = 1}, {.exact.cpu = 1}, {.exact.samples = 1}, {.heavy.calls = 1},
	};
	struct evidence_rig m;

	evidence_rig_init(&m);
	evidence_rig_fold(&m, 0, 1000, NULL, 1);
	cr_assert(!evidence_has(&m.e, m.f) && !evidence_has(&m.e, m.e.n));
	for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++) {
		m.e.nodes[m.f] = some[i];
		cr_assert(evidence_has(&m.e, m.f), "%zu", i);
	}
	m.e.nodes[m.f] = (struct evidence_node){.taken = 1};
	cr_assert(!evidence_has(&m.e, m.f));
	evidence_rig_deinit(&m);
	check_no_leaks();
}

/*
 * Two trees with the same figures: one lists the touched contexts, the other is scanned completely.
 */
static void grow_random(struct evidence_rig *m, unsigned int *seed, uint32_t depth)
{
	uint32_t node = m->root;

	while (depth--) {
		uint32_t child = calltree_child(&m->tree, node, F + random_below(seed, 3));

		node = child == NODE_NONE ? node : child;
	}
	evidence_rig_seen(m, node, random_below(seed, 4), random_below(seed, 1000));
	m->tree.yields[node] += random_below(seed, 2);
}

static void expect_equal(const struct evidence_rig *a, const struct evidence_rig *b)
{
	cr_assert_eq(a->tree.n, b->tree.n);
	for (uint32_t i = 0; i < a->tree.n; i++) {
		const struct evidence_node *x = &a->e.nodes[i], *y = &b->e.nodes[i];

		cr_assert(x->calls == y->calls && x->yields == y->yields && x->cpu == y->cpu &&
				  x->taken == y->taken && x->exact.calls == y->exact.calls &&
				  x->heavy.calls == y->heavy.calls && x->exact.cpu == y->exact.cpu,
			  "node %u", i);
		cr_assert(a->tree.nodes[i].calls == 0 && a->tree.yields[i] == 0);
	}
	for (uint32_t f = F; f < FUNCS; f++)
		cr_assert(a->e.funcs[f].by_cpu.square == b->e.funcs[f].by_cpu.square &&
			  a->e.funcs[f].by_cpu.product == b->e.funcs[f].by_cpu.product);
}

Test(evidence, lists_of_touched_contexts_change_nothing)
{
	const struct cost cost = {.known = true, .before = {3, 4, 5}, .after = {6, 7, 8}};
	struct evidence_rig listed, all;
	unsigned int seed = 1, again = 1;

	evidence_rig_init(&listed);
	evidence_rig_init(&all);
	assert_ok(calltree_keep_touched(&listed.tree));
	for (int window = 0; window < 300; window++) {
		int changes = window % 10 ? 3 : 200;

		for (int i = 0; i < changes; i++) {
			uint32_t depth = (uint32_t)(i * 7 + window) % 12;

			grow_random(&listed, &seed, depth);
			grow_random(&all, &again, depth);
		}
		if (window % 7 == 3) {
			keep(&listed, window % 2);
			keep(&all, window % 2);
		} else {
			evidence_rig_fold(&listed, 5000, 10000, &cost, 1);
			evidence_rig_fold(&all, 5000, 10000, &cost, 1);
		}
		cr_assert_eq(listed.tree.ntouched, 0);
	}
	expect_equal(&listed, &all);
	evidence_rig_deinit(&listed);
	evidence_rig_deinit(&all);
	check_no_leaks();
}
