// SPDX-License-Identifier: BSD-2-Clause
/* Each context's calls: see accuracy/rest.c. */
#include <criterion/criterion.h>
#include <math.h>

#include "accuracy/rest.h"
#include "harness/test.h"

enum { ROOT, MAIN, VIEW, LOOP, READ, NODES };

/* A thread's main() calls view(), which calls loop(), and read(). */
struct service {
	struct evidence_node seen[NODES];
	struct evidence_func funcs[NODES];
	struct node nodes[NODES];
	uint32_t parents[NODES], callers[NODES];
	uint64_t yields[NODES];
	struct evidence e;
	struct calltree tree;
	struct rest_given g;
};

/* Windows saw so much CPU time of loop() and of read(), in ms; samples show 900 and 900. */
static void service_make(struct service *s, double loop_ms, double read_ms)
{
	const uint32_t parents[NODES] = {NODE_NONE, ROOT, MAIN, VIEW, MAIN};
	const double cpu[NODES] = {[LOOP] = loop_ms * 1e6, [READ] = read_ms * 1e6};

	*s = (struct service){
		.e = {.n = NODES, .nfuncs = NODES, .windows = 4, .partial = true},
		.tree = {.n = NODES},
		.g = {.nfuncs = NODES, .hit_ns = 500, .times = 1, .error = 0.05, .period_ns = 1e6},
	};
	for (uint32_t i = 0; i < NODES; i++) {
		s->parents[i] = parents[i];
		s->callers[i] = i;
		s->nodes[i].func = i == ROOT ? SNAPSHOT_NONE : i;
		s->seen[i] = (struct evidence_node){.cpu = cpu[i],
						    .samples = cpu[i] > 0 ? 900000000 : 0};
		s->seen[i].calls = i == ROOT ? 0 : 1000;
		s->e.all_cpu += cpu[i];
		s->funcs[i].by_cpu = (struct evidence_ratio){1000, 1e5, 1e5 * cpu[i] / 1e3};
	}
	s->e.own_cpu = 1800e6;
	s->e.size = s->e.all_cpu;
	s->e.size2 = s->e.all_cpu * s->e.all_cpu / 4;
	s->e.nodes = s->seen;
	s->e.funcs = s->funcs;
	s->tree.nodes = s->nodes;
	s->tree.parents = s->parents;
	s->tree.yields = s->yields;
	s->g.e = &s->e;
	s->g.tree = &s->tree;
	s->g.callers = s->callers;
}

static double calls_of(const struct service *s, const struct rest *r, uint32_t node)
{
	return (double)rest_of(&s->g, r, node).calls;
}

/*
 * Windows have seen loop() 1.5 times as often as samples say, relative to the mean, and read() half as often. So few
 * windows' time in them is less sure than that.
 */
Test(rest, what_windows_saw_too_often)
{
	_cleanup_(rest_deinit) struct rest alike = {0}, apart = {0};
	struct service s;

	service_make(&s, 90, 90);
	cr_assert_eq(rest_solve(&s.g, &alike), 0);
	for (uint32_t i = MAIN; i < NODES; i++)
		cr_assert_float_eq(calls_of(&s, &alike, i), 10000, 100, "%u: %g", i,
				   calls_of(&s, &alike, i));
	service_make(&s, 120, 60);
	cr_assert_eq(rest_solve(&s.g, &apart), 0);
	cr_assert_float_eq(calls_of(&s, &apart, LOOP), 8660, 300, "%g", calls_of(&s, &apart, LOOP));
	cr_assert_float_eq(calls_of(&s, &apart, READ), 14500, 400, "%g",
			   calls_of(&s, &apart, READ));
	/* view() has no samples of its own, but loop() has. */
	cr_assert_float_eq(calls_of(&s, &apart, VIEW), calls_of(&s, &apart, LOOP), 100);
	cr_assert_lt(apart.variance[LOOP], alike.variance[LOOP]);
	rest_deinit(&alike);
	rest_deinit(&apart);
	check_no_leaks();
}

/* Where probes have taken nearly all of the time, what is left of it says nothing: all calls have one factor. */
Test(rest, what_mostly_makes_calls_says_nothing)
{
	_cleanup_(rest_deinit) struct rest r = {0};
	struct service s;

	service_make(&s, 90, 90);
	s.seen[READ].cpu += 2000e6;
	s.seen[READ].taken = 2030e6;
	s.seen[READ].calls = 4000000;
	cr_assert_eq(rest_solve(&s.g, &r), 0);
	cr_assert_float_eq(r.factor[READ], r.factor[ROOT], 0.15 * r.factor[ROOT], "%g of %g",
			   r.factor[READ], r.factor[ROOT]);
	rest_deinit(&r);
	check_no_leaks();
}
