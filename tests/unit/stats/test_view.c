// SPDX-License-Identifier: BSD-2-Clause
/* Views compared with figures computed by hand, as defined by cProfile. */
#include "stats/view.h"

#include "harness/event_script.h"
#include "harness/test.h"

static struct snapshot *run(const char *script)
{
	struct event_script *es = event_script_new(NULL);
	struct snapshot *s;

	event_script_run(es, script);
	s = event_script_snapshot(es);
	event_script_free(es);
	return s;
}

static const char *func_name(const struct view *v, uint32_t func)
{
	return func == SNAPSHOT_NONE ? "-" : v->snapshot->funcs[func].name;
}

/* Expected rows on the wall clock: "name ncalls/pcalls tot cum" */
static void expect_rows(const struct view *v, const char *expected)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (size_t i = 0; i < v->nrows; i++) {
		const struct view_row *r = &v->rows[i];

		fprintf(out, "%s %lu/%lu %lu %lu\n", func_name(v, r->func), r->ncalls, r->pcalls,
			r->tot[SNAPSHOT_WALL], r->cum[SNAPSHOT_WALL]);
	}
	fclose(out);
	cr_assert(strcmp(text, expected) == 0, "rows:\n%snot\n%s", text, expected);
	free(text);
}

/* Expected edges: "caller callee ncalls/pcalls tot cum" */
static void expect_edges(const struct view *v, const char *expected)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (size_t i = 0; i < v->nedges; i++) {
		const struct view_edge *e = &v->edges[i];

		fprintf(out, "%s %s %lu/%lu %lu %lu\n", func_name(v, e->caller),
			func_name(v, e->callee), e->ncalls, e->pcalls, e->tot[SNAPSHOT_WALL],
			e->cum[SNAPSHOT_WALL]);
	}
	fclose(out);
	cr_assert(strcmp(text, expected) == 0, "edges:\n%snot\n%s", text, expected);
	free(text);
}

static void expect(const char *script, const char *rows, const char *edges)
{
	struct snapshot *s = run(script);
	struct view *v;

	assert_ok(view_build(s, NULL, &v));
	expect_rows(v, rows);
	expect_edges(v, edges);
	view_free(v);
	snapshot_free(s);
	check_no_leaks();
}

Test(view, empty)
{
	struct snapshot *s = snapshot_new();
	struct view *v;

	assert_ok(view_build(s, NULL, &v));
	cr_assert_eq(v->nrows + v->nedges, 0);
	view_free(v);
	snapshot_free(s);
	check_no_leaks();
}

Test(view, nested)
{
	expect("T1 enter 1 f; T1 +5 enter 2 g 1; T1 +7 leave 2; T1 +1 enter 2 g 1; T1 +3 leave 2; "
	       "T1 +2 leave 1",
	       "f 1/1 8 18\n"
	       "g 2/2 10 10\n",
	       "- f 1/1 8 18\n"
	       "f g 2/2 10 10\n");
}

/* fact(3): f calls itself twice; cProfile prints 3/1. */
Test(view, recursion)
{
	expect("T1 enter 1 f; T1 +1 enter 2 f 1; T1 +2 enter 3 f 2; T1 +3 leave 3; T1 +4 leave 2; "
	       "T1 +5 leave 1",
	       "f 3/1 15 15\n",
	       "f f 2/1 9 9\n"
	       "- f 1/1 6 15\n");
}

/* f → g → f → g: each edge's cumulative time counts its outermost activation only. */
Test(view, mutual_recursion)
{
	expect("T1 enter 1 f; T1 +1 enter 2 g 1; T1 +1 enter 3 f 2; T1 +1 enter 4 g 3\n"
	       "T1 +1 leave 4; T1 +1 leave 3; T1 +1 leave 2; T1 +1 leave 1",
	       "f 2/1 4 7\n"
	       "g 2/1 3 5\n",
	       "g f 1/1 2 3\n"
	       "- f 1/1 2 7\n"
	       "f g 2/1 3 5\n");
}

/* The same function twice under one caller, but not within itself, is not recursion. */
Test(view, siblings_are_not_recursion)
{
	expect("T1 enter 1 f; T1 enter 2 g 1; T1 +1 enter 3 h 2; T1 +1 leave 3; T1 leave 2\n"
	       "T1 enter 2 h 1; T1 +1 enter 3 g 2; T1 +1 leave 3; T1 leave 2; T1 leave 1",
	       "f 1/1 0 4\n"
	       "g 2/2 2 3\n"
	       "h 2/2 2 3\n",
	       "- f 1/1 0 4\n"
	       "f g 1/1 1 2\n"
	       "h g 1/1 1 1\n"
	       "f h 1/1 1 2\n"
	       "g h 1/1 1 1\n");
}

/*
 * Frames that were running before the attach have time but no calls; calls of the same function by
 * them are not primitive.
 */
Test(view, in_flight)
{
	struct snapshot *s = run("T1 chain 1=f; T1 +1 enter 2 f 1; T1 +5 enter 3 g 2; +4 wait");
	struct view *v;

	assert_ok(view_build(s, NULL, &v));
	expect_rows(v, "f 1/0 6 10\n"
		       "g 1/1 4 4\n");
	cr_assert_eq(v->rows[0].inflight, 2);
	cr_assert_eq(v->rows[0].min[SNAPSHOT_WALL], UINT64_MAX);
	cr_assert_eq(v->total[SNAPSHOT_WALL], 10);
	view_free(v);
	snapshot_free(s);
	check_no_leaks();
}

Test(view, shortest_and_longest)
{
	struct snapshot *s =
		run("T1 enter 1 f; T1 enter 2 g 1; T1 +3 leave 2; T1 enter 2 g 1; T1 +9 leave 2\n"
		    "T1 leave 1; T1 enter 1 g; T1 +1 leave 1");
	struct view *v;

	assert_ok(view_build(s, NULL, &v));
	cr_assert_eq(v->rows[1].min[SNAPSHOT_WALL], 1);
	cr_assert_eq(v->rows[1].max[SNAPSHOT_CPU], 9);
	view_free(v);
	snapshot_free(s);
	check_no_leaks();
}

Test(view, both_clocks)
{
	struct snapshot *s = run(
		"T1 enter 1 f; T1 +2 enter 2 g 1; T1 +3 out; T1 +10 in; T1 +1 leave 2; T1 leave 1");
	struct view *v;

	assert_ok(view_build(s, NULL, &v));
	cr_assert_eq(v->rows[0].cum[SNAPSHOT_CPU], 6);
	cr_assert_eq(v->rows[0].cum[SNAPSHOT_WALL], 16);
	cr_assert_eq(v->rows[1].tot[SNAPSHOT_CPU], 4);
	view_free(v);
	snapshot_free(s);
	check_no_leaks();
}

Test(view, filter)
{
	struct snapshot *s = run("T1 enter 1 f; T2 enter 1 g; T1 +2 leave 1; T2 +3 leave 1");
	const struct view_filter tid = {.tid = 2}, pid = {.pid = 99}, other = {.pid = 98},
				 both = {99, 1};
	struct view *v;

	assert_ok(view_build(s, &tid, &v));
	expect_rows(v, "g 1/1 5 5\n");
	view_free(v);
	assert_ok(view_build(s, &pid, &v));
	cr_assert_eq(v->nrows, 2);
	view_free(v);
	assert_ok(view_build(s, &other, &v));
	cr_assert_eq(v->nrows, 0);
	view_free(v);
	assert_ok(view_build(s, &both, &v));
	expect_rows(v, "f 1/1 2 2\n");
	view_free(v);
	snapshot_free(s);
	check_no_leaks();
}

/* Errors are known for all threads together only. */
Test(view, errors_of_all_or_of_none)
{
	struct snapshot_target targets[] = {{.pid = 7, .windows.sampled = true}, {.pid = 8}};
	struct snapshot_thread threads[] = {{.pid = 7, .tid = 7}, {.pid = 7, .tid = 9}};
	struct snapshot s = {.targets = targets, .ntargets = 2, .threads = threads, .nthreads = 2};

	cr_assert(view_has_errors(&s, NULL));
	cr_assert(view_has_errors(&s, &(struct view_filter){.pid = 7}));
	cr_assert_not(view_has_errors(&s, &(struct view_filter){.tid = 9}));
	threads[1].pid = 8;
	cr_assert(view_has_errors(&s, &(struct view_filter){0}));
	cr_assert_not(view_has_errors(&s, &(struct view_filter){.pid = 7}));
	s.folded = true;
	cr_assert_not(view_has_errors(&s, NULL));
}
