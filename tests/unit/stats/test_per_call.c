// SPDX-License-Identifier: BSD-2-Clause
/* Calls per call of the caller, of functions and of contexts, compared with figures computed by hand. */
#include "stats/per_call.h"

#include <math.h>

#include "base/student.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"
#include "harness/wholes.h"
#include "snapshot/merge.h"
#include "stats/view.h"

static struct per_call of_edge(const struct snapshot *s, const struct view_filter *filter,
			       const char *caller, const char *callee)
{
	_cleanup_(view_freep) struct view *v = NULL;

	assert_ok(view_build(s, filter, &v));
	for (size_t i = 0; i < v->nedges; i++)
		if (v->edges[i].caller != SNAPSHOT_NONE &&
		    strcmp(s->funcs[v->edges[i].caller].name, caller) == 0 &&
		    strcmp(s->funcs[v->edges[i].callee].name, callee) == 0)
			return v->edges[i].per_call;
	cr_assert(false, "%s does not call %s", caller, callee);
	return (struct per_call){0};
}

static struct per_call of_context(const struct snapshot *s, uint32_t node)
{
	_cleanup_free_ struct per_call_evidence *e = per_call_contexts(s, NULL, s->nnodes);

	cr_assert(e);
	return per_call_of(&e[node], &e[s->nodes[node].parent], per_call_windows(s, 0));
}

static void expect(struct per_call p, double calls, double error)
{
	cr_assert_float_eq(p.calls, calls, 1e-9, "%.9f, not %.9f", p.calls, calls);
	if (calls >= 0)
		cr_assert_float_eq(p.error, error, 1e-9, "error %.9f, not %.9f", p.error, error);
}

#define UNKNOWN -1, 0

/* The standard error of a ratio of sums from windows' deviations. */
static double error_of(double square_sum, double y, double n)
{
	return sqrt(student_widened(square_sum / (y * y) * n / (n - 1), n));
}

#define TEXT                                                                                       \
	"target 42\nthread 42 42 Main\n"                                                           \
	"main a.py:1 0 1\n"                                                                        \
	"  all a.py:2 4 1\n"                                                                       \
	"    item a.py:3 10 1\n"                                                                   \
	"  item a.py:3 5 1\n"                                                                      \
	"  other a.py:4 0 1\n"                                                                     \
	"    all a.py:2 1 1\n"

/* root 0, main 1, all 2, item 3, item 4, other 5, all 6 */

Test(per_call, exact_counts)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(TEXT);

	expect(of_edge(s, NULL, "all", "item"), 2, 0);
	expect(of_context(s, 3), 2.5, 0);
	/* main was called before, other is not known to be called */
	expect(of_edge(s, NULL, "main", "item"), UNKNOWN);
	expect(of_edge(s, NULL, "main", "other"), UNKNOWN);
	expect(of_context(s, 6), UNKNOWN);
	s->targets[0].mode = MODE_COUNT;
	expect(of_edge(s, NULL, "all", "item"), 2, 0);
	expect(of_context(s, 3), UNKNOWN);
	s->targets[0].mode = MODE_SAMPLE;
	expect(of_edge(s, NULL, "all", "item"), UNKNOWN);
	check_no_leaks();
}

Test(per_call, windows)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(TEXT);
	double square_sum;

	WHOLES_ADD_WINDOW(s, 0, {2, 0, 1}, {3, 30, 0});
	/* one window does not show by how much they differ */
	expect(of_edge(s, NULL, "all", "item"), UNKNOWN);
	WHOLES_ADD_WINDOW(s, 0, {2, 0, 1}, {3, 44, 0});
	expect(of_edge(s, NULL, "all", "item"), 37, error_of(2 * 49, 2, 2));
	expect(of_context(s, 3), 37, error_of(2 * 49, 2, 2));
	/* most windows say nothing */
	s->targets[0].windows.n = 1000;
	expect(of_context(s, 3), 37, error_of(2 * 49, 2, 2));
	/* a context from which item is not called is a caller as well: 74 in 3 calls */
	WHOLES_ADD_WINDOW(s, 0, {6, 0, 1});
	expect(of_context(s, 3), 37, error_of(2 * 49, 2, 2));
	square_sum = pow(30 - 74. / 3, 2) + pow(44 - 74. / 3, 2) + pow(74. / 3, 2);
	expect(of_edge(s, NULL, "all", "item"), 74. / 3, error_of(square_sum, 3, 3));
	/* no whole call of the caller; no call in them */
	expect(of_context(s, 4), UNKNOWN);
	expect(of_edge(s, NULL, "other", "all"), UNKNOWN);
	check_no_leaks();
}

/* Each call makes as many: no error, whatever the rounding. */
Test(per_call, always_as_many)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(TEXT);

	for (int i = 1; i < 1000; i++)
		WHOLES_ADD_WINDOW(s, 0, {2, 0, 3 * i}, {3, i, 0});
	expect(of_context(s, 3), 1. / 3, 0);
	check_no_leaks();
}

/* Windows of which one has nearly all whole calls are not more than one; few ones are less certain. */
Test(per_call, windows_that_count)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(TEXT);

	WHOLES_ADD_WINDOW(s, 0, {2, 0, 20}, {3, 40, 0});
	for (int i = 0; i < 3; i++)
		WHOLES_ADD_WINDOW(s, 0, {2, 0, 1}, {3, 1, 0});
	expect(of_context(s, 3), UNKNOWN);
	/* of two threads in one window */
	snapshot_free(s);
	s = snapshot_build(TEXT "thread 42 43 worker\nall a.py:2 3 1\n  item a.py:3 9 1\n");
	WHOLES_ADD_WINDOW(s, 0, {2, 0, 1}, {3, 30, 0}, {8, 0, 1}, {9, 40, 0});
	expect(of_edge(s, NULL, "all", "item"), UNKNOWN);
	check_no_leaks();
}

/* 2 calls of its own in a call from elsewhere, each of which makes none or two more. */
Test(per_call, recursion)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("target 42\nthread 42 42 Main\nf a.py:1 4 1\n  f a.py:1 8 1\n"
			       "    f a.py:1 4 1\n");

	expect(of_edge(s, NULL, "f", "f"), 12. / 16, 0);
	expect(of_context(s, 2), 2, 0);
	expect(of_context(s, 3), 0.5, 0);
	for (int i = 0; i < 4; i++)
		WHOLES_ADD_WINDOW(s, 0, {1, 0, 1}, {2, 2, 2}, {3, i % 2 * 2, i % 2 * 2});
	expect(of_context(s, 2), 2, 0);
	expect(of_context(s, 3), 0.5, error_of(4, 8, 4));
	/* 8 + 4 calls in 4 + 8 + 4; deviations: 4 windows of 2 - r and 2, 1.5 by turns less 2 r, all less 4 r */
	expect(of_edge(s, NULL, "f", "f"), 12. / 16,
	       error_of(4 * 1.25 * 1.25 + 2 * 1.5 * 1.5 + 2 * 0.5 * 0.5 + 2 * 1.5 * 1.5, 16, 4));
	check_no_leaks();
}

#define TWO                                                                                        \
	"target 42\nthread 42 42 Main\nall a.py:2 4 1\n  item a.py:3 10 1\n"                       \
	"target 43\nthread 43 43 Main\nall a.py:2 4 1\n  item a.py:3 50 1\n"

Test(per_call, several_targets)
{
	const struct view_filter first = {.pid = 42}, second = {.pid = 43};
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(TWO);

	expect(of_edge(s, NULL, "all", "item"), 60. / 8, 0);
	WHOLES_ADD_WINDOW(s, 1, {4, 0, 1}, {5, 12, 0});
	WHOLES_ADD_WINDOW(s, 1, {4, 0, 1}, {5, 12, 0});
	/* windows and all calls do not add up */
	expect(of_edge(s, NULL, "all", "item"), UNKNOWN);
	expect(of_edge(s, &first, "all", "item"), 2.5, 0);
	expect(of_edge(s, &second, "all", "item"), 12, 0);
	expect(of_context(s, 2), 2.5, 0);
	expect(of_context(s, 5), 12, 0);
	/* what was sampled only has no calls */
	s->targets[0].mode = MODE_SAMPLE;
	expect(of_edge(s, NULL, "all", "item"), 12, 0);
	s->targets[0].mode = MODE_TRACE;
	WHOLES_ADD_WINDOW(s, 0, {1, 0, 1}, {2, 2, 0});
	WHOLES_ADD_WINDOW(s, 0, {1, 0, 1}, {2, 4, 0});
	cr_assert(per_call_windows(s, 0) == 4 && per_call_windows(s, 42) == 2);
	expect(of_edge(s, NULL, "all", "item"), 30. / 4,
	       error_of(2 * 4.5 * 4.5 + 5.5 * 5.5 + 3.5 * 3.5, 4, 4));
	check_no_leaks();
}

/* Windows of the same contexts in two snapshots count as if they were in one. */
Test(per_call, merged_snapshots)
{
	_cleanup_(snapshot_freep) struct snapshot *a = snapshot_build(TEXT),
						  *b = snapshot_build(TEXT),
						  *c = snapshot_build(TEXT), *m = NULL;

	WHOLES_ADD_WINDOW(a, 0, {2, 0, 1}, {3, 30, 0});
	WHOLES_ADD_WINDOW(b, 0, {2, 0, 2}, {3, 88, 0});
	assert_ok(snapshot_merge((const struct snapshot *[]){a, b, c}, 3, &m));
	WHOLES_ADD_WINDOW(a, 0, {2, 0, 2}, {3, 88, 0});
	expect(of_context(m, 3), 118. / 3, of_context(a, 3).error);
	snapshot_free(TAKE_PTR(a));
	snapshot_free(TAKE_PTR(b));
	snapshot_free(TAKE_PTR(c));
	snapshot_free(TAKE_PTR(m));
	check_no_leaks();
}
