// SPDX-License-Identifier: BSD-2-Clause
/* Views compared with figures computed by hand, as defined by cProfile. */
#include "stats/view.h"

#include <errno.h>

#include "harness/event_script.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"
#include "stats/tree.h"

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

/* Both clocks have their own sums, of rows, of edges and of all. */
Test(view, sums)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("f a.py:1 1 10 100\n"
								      "  f a.py:1 2 20 200\n"
								      "  <gc> ~:0 7 3 30\n");
	_cleanup_(view_freep) struct view *v = NULL;
	const struct view_edge *e;

	s->funcs[1].pseudo = true;
	assert_ok(view_build(s, NULL, &v));
	cr_assert(v->ncalls == 3 && v->pcalls == 1, "collections are no calls");
	cr_assert(v->total[SNAPSHOT_CPU] == 33 && v->total[SNAPSHOT_WALL] == 330);
	cr_assert(v->rows[0].tot[SNAPSHOT_CPU] == 30 && v->rows[0].cum[SNAPSHOT_CPU] == 33);
	cr_assert_eq(v->nedges, 3);
	e = &v->edges[0];
	cr_assert(e->caller == 0 && e->tot[SNAPSHOT_CPU] == 20 && e->cum[SNAPSHOT_WALL] == 200);
	e = &v->edges[1];
	cr_assert(e->caller == SNAPSHOT_NONE && e->ncalls == 1 && e->cum[SNAPSHOT_CPU] == 33);
	e = &v->edges[2];
	cr_assert(e->caller == 0 && e->callee == 1 && e->ncalls == 7 && e->pcalls == 7);
}

/* The figures of a column, whose row numbers are not the functions'. */
static void expect_column(const struct view *v, int c, const char *expected)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (size_t i = 0; i < v->nrows; i++)
		fprintf(out, "%s %lu %lu\n", func_name(v, v->rows[i].func), v->self[c][i],
			v->cum[c][i]);
	fclose(out);
	cr_assert(strcmp(text, expected) == 0, "column:\n%snot\n%s", text, expected);
	free(text);
}

/* Like times: own figures, and those of the outermost activations with their callees'. */
Test(view, columns)
{
	static const uint64_t figures[] = {100, 1, 20, 300, 4000, 50000};
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("target 42\n"
								      "thread 42 42 Main\n"
								      "f a.py:1 1 10\n"
								      "  g a.py:2 1 10\n"
								      "    f a.py:1 1 10\n"
								      "thread 42 43 worker\n"
								      "g a.py:2 1 10\n");
	const struct view_filter tid = {.tid = 43};
	struct view *v;

	cr_assert_eq(s->nnodes, 6);
	assert_ok(snapshot_reserve_columns(s, COLUMN_BIT(COLUMN_vcsw), s->nnodes));
	memcpy(s->columns[COLUMN_vcsw], figures, sizeof(figures));
	s->measured = COLUMN_BIT(COLUMN_vcsw) | COLUMN_BIT(COLUMN_minflt);
	assert_ok(view_build(s, NULL, &v));
	expect_column(v, COLUMN_vcsw, "f 301 321\ng 50020 50320\n");
	expect_column(v, COLUMN_minflt, "f 0 0\ng 0 0\n");
	cr_assert(!v->self[COLUMN_rbytes] && !v->cum[COLUMN_rbytes], "it was not measured");
	view_free(v);
	assert_ok(view_build(s, &tid, &v));
	expect_column(v, COLUMN_vcsw, "g 50000 50000\n");
	view_free(v);
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* Of functions without calls and time, only those with memory, also in a callee, have rows. */
Test(view, rows_of_memory)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("idle a.py:1 0 0\n"
								      "outer a.py:2 0 0\n"
								      "  inner a.py:3 0 0\n"
								      "f a.py:4 1 10\n"
								      "switched a.py:5 0 0\n");
	struct view *v;

	assert_ok(snapshot_reserve_columns(
		s, COLUMN_BIT(COLUMN_grown) | COLUMN_BIT(COLUMN_pools) | COLUMN_BIT(COLUMN_vcsw),
		s->nnodes));
	s->columns[COLUMN_pools][3] = 4;
	s->columns[COLUMN_vcsw][5] = 5;
	s->measured = column_group("memory") | column_group("counters");
	for (enum mode mode = MODE_TRACE; mode <= MODE_COUNT; mode++) {
		s->targets[0].mode = mode;
		assert_ok(view_build(s, NULL, &v));
		expect_column(v, COLUMN_pools, "outer 0 4\ninner 4 4\nf 0 0\n");
		view_free(v);
	}
	s->columns[COLUMN_grown][3] = 3;
	s->columns[COLUMN_pools][3] = 0;
	assert_ok(view_build(s, NULL, &v));
	expect_column(v, COLUMN_grown, "outer 0 3\ninner 3 3\nf 0 0\n");
	view_free(v);
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* All of mode count are primitive, and callers that only hold their callees make no rows. */
Test(view, counted)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("f a.py:1 1 0\n"
								      "  f a.py:1 2 0\n"
								      "    g a.py:2 3 5 6\n"
								      "h a.py:3 0 0\n"
								      "  g a.py:2 4 0\n"
								      "k a.py:4 0 0 7\n");
	struct view *v;

	s->targets[0].mode = MODE_COUNT;
	assert_ok(view_build(s, NULL, &v));
	expect_rows(v, "f 3/3 0 6\n"
		       "g 7/7 6 6\n"
		       "k 0/0 7 7\n");
	expect_edges(v, "f f 2/2 0 6\n"
			"- f 1/1 0 6\n"
			"f g 3/3 6 6\n"
			"h g 4/4 0 0\n"
			"- k 0/0 7 7\n");
	view_free(v);
	s->nodes[6].self[SNAPSHOT_WALL] = 0;
	s->nodes[6].self[SNAPSHOT_CPU] = 7;
	assert_ok(view_build(s, NULL, &v));
	cr_assert(v->nrows == 3 && v->rows[2].tot[SNAPSHOT_CPU] == 7);
	view_free(v);
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

Test(view, many_edges)
{
	struct snapshot_builder *b = snapshot_builder_new();
	uint32_t parent = snapshot_builder_thread(b, 42, 42, "Main");
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	struct view *v;

	snapshot_builder_target(b, 42);
	for (int i = 0; i < 200; i++)
		parent = snapshot_builder_node(b, parent,
					       snapshot_builder_func(b, "a.py", i, "f", NULL),
					       (uint64_t)i + 1, 1, 1, 0);
	/* the first edge again, within itself */
	parent = snapshot_builder_node(b, parent, 0, 1, 1, 1, 0);
	snapshot_builder_node(b, parent, 1, 10, 1, 1, 0);
	s = snapshot_builder_finish(b);
	assert_ok(view_build(s, NULL, &v));
	cr_assert_eq(v->nedges, 201);
	cr_assert(v->edges[0].caller == 199 && v->edges[0].callee == 0);
	cr_assert(v->edges[1].caller == SNAPSHOT_NONE && v->edges[1].callee == 0);
	cr_assert(v->edges[2].ncalls == 12 && v->edges[2].pcalls == 2);
	cr_assert_eq(v->edges[2].cum[SNAPSHOT_WALL], 201);
	for (uint32_t i = 2; i < 200; i++)
		cr_assert(v->edges[i + 1].caller == i - 1 && v->edges[i + 1].callee == i &&
			  v->edges[i + 1].ncalls == i + 1);
	view_free(v);
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

struct visits {
	char text[64];
	uint32_t until; /* the walk ends when it enters this node */
};

static int visit(void *ctx, uint32_t node)
{
	struct visits *v = ctx;

	snprintf(v->text + strlen(v->text), sizeof(v->text) - strlen(v->text), "+%u", node);
	return node == v->until ? -ECANCELED : 0;
}

static void unvisit(void *ctx, uint32_t node)
{
	struct visits *v = ctx;

	snprintf(v->text + strlen(v->text), sizeof(v->text) - strlen(v->text), "-%u", node);
}

static void expect_walk(const struct tree *t, uint32_t root, uint32_t until, bool leaves,
			const char *expected)
{
	struct visits v = {.until = until};
	const struct tree_visitor visitor = {visit, leaves ? unvisit : NULL, &v};

	cr_assert_eq(tree_walk(t, root, &visitor), until == SNAPSHOT_NONE ? 0 : -ECANCELED);
	cr_assert_str_eq(v.text, expected);
}

Test(tree, walks)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("a a.py:1 1 1 10\n"
								      "  b a.py:2 1 2 20\n"
								      "    c a.py:3 1 4 40\n"
								      "  d a.py:4 1 8 80\n"
								      "e a.py:5 1 16 160\n");
	struct tree *t;

	assert_ok(tree_build(s, &t));
	cr_assert(t->nodes[1].cum[SNAPSHOT_CPU] == 15 && t->nodes[0].cum[SNAPSHOT_WALL] == 310);
	expect_walk(t, 0, SNAPSHOT_NONE, true, "+0+1+2+3-3-2+4-4-1+5-5-0");
	expect_walk(t, 1, SNAPSHOT_NONE, true, "+1+2+3-3-2+4-4-1");
	expect_walk(t, 3, SNAPSHOT_NONE, true, "+3-3");
	expect_walk(t, 0, SNAPSHOT_NONE, false, "+0+1+2+3+4+5");
	expect_walk(t, 0, 3, true, "+0+1+2+3");
	tree_free(t);
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* Durations and lines are known for all threads together only, too. */
Test(view, durations_and_lines_of_all_or_of_none)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("thread 42 42 Main\n"
								      "f a.py:1 1 5\n"
								      "thread 42 43 worker\n"
								      "g a.py:2 1 5\n");
	struct snapshot_durations durations[SNAPSHOT_CLOCKS] = {{.max = 1}};
	struct snapshot_line line = {.line = 1, .samples = 1};
	const struct view_filter pid = {.pid = 42}, tid = {.tid = 42};

	cr_assert(!view_has_durations(s, NULL) && !view_has_lines(s, NULL));
	s->funcs[1].durations = durations;
	cr_assert(view_has_durations(s, &pid) && !view_has_lines(s, &pid));
	cr_assert(!view_has_durations(s, &tid));
	s->funcs[1].durations = NULL;
	s->funcs[1].lines = &line;
	s->funcs[1].nlines = 1;
	cr_assert(!view_has_durations(s, &pid) && view_has_lines(s, &pid));
	cr_assert(!view_has_lines(s, &tid));
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
