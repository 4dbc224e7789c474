// SPDX-License-Identifier: BSD-2-Clause
/*
 * Collections of the garbage collector, on an interpreter of each family, in modes trace and count.
 * (The self-test has them on every interpreter.) Their number per generation equals the
 * interpreter's own; their time agrees with gc.callbacks; functions that run during a collection
 * are its callees.
 */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>

#include "harness/test.h"
#include "harness/traced.h"
#include "stats/view.h"

#define SHARE 0.02 /* of the target's own measurement */
/* Its two readings of the clock lie outside of the probes' ones: see ATTEMPTS in test_times.c. */
#define ATTEMPTS 8

/* The target's own measurement of a generation */
struct reading {
	uint64_t n;
	double seconds, longest;
};

static double number_at(const json_t *result, const char *key, size_t generation)
{
	const json_t *v = json_array_get(json_object_get(result, key), generation);

	cr_assert(json_is_number(v), "%s of generation %zu", key, generation);
	return json_number_value(v);
}

static const struct view_row *row_named(const struct view *v, const char *name)
{
	for (size_t i = 0; i < v->nrows; i++)
		if (strcmp(v->snapshot->funcs[v->rows[i].func].name, name) == 0)
			return &v->rows[i];
	return NULL;
}

static const struct view_row *gc_row(const struct view *v, size_t generation)
{
	char name[32];

	snprintf(name, sizeof(name), "<gc generation %zu>", generation);
	return row_named(v, name);
}

/* Returns how often caller calls callee in total. */
static uint64_t calls_between(const struct view *v, const char *caller, const char *callee)
{
	uint64_t n = 0;

	for (size_t i = 0; i < v->nedges; i++) {
		const struct view_edge *e = &v->edges[i];

		if (e->caller != SNAPSHOT_NONE &&
		    strncmp(v->snapshot->funcs[e->caller].name, caller, strlen(caller)) == 0 &&
		    strcmp(v->snapshot->funcs[e->callee].name, callee) == 0)
			n += e->ncalls;
	}
	return n;
}

static bool near(const char *what, double ours, double theirs)
{
	bool ok = fabs(ours - theirs) <= theirs * SHARE;

	fprintf(stderr, "  %-12s %10.6f s, the target's own %10.6f s, ratio %.4f%s\n", what, ours,
		theirs, ours / theirs, ok ? "" : "  OFF");
	return ok;
}

static void check_counts(const struct view *v, const json_t *result, const char *exe)
{
	for (size_t g = 0; g < 3; g++) {
		const struct view_row *row = gc_row(v, g);
		double stats = number_at(result, "stats", g);

		cr_expect_eq((double)(row ? row->ncalls : 0), stats,
			     "%s: generation %zu: %" PRIu64 " collections, it counted %.0f", exe, g,
			     row ? row->ncalls : 0, stats);
	}
	cr_expect_null(row_named(v, "<gc>"), "%s: every generation is known", exe);
}

/* Compares the total CPU time, and the longest collection of the oldest generation. */
static bool check_times(const struct view *v, const json_t *result)
{
	double ours = 0, theirs = 0, longest = number_at(result, "longest", 2);

	for (size_t g = 0; g < 3; g++) {
		const struct view_row *row = gc_row(v, g);

		ours += row ? (double)row->tot[SNAPSHOT_CPU] / 1e9 : 0;
		theirs += number_at(result, "seconds", g);
	}
	return near("all", ours, theirs) &
	       near("longest", (double)gc_row(v, 2)->max[SNAPSHOT_CPU] / 1e9, longest);
}

/*
 * Checks that each "start" callback is called by a collection, each "stop" callback after it, and
 * finalizers by collections.
 */
static void check_callees(const struct view *v, const json_t *result, const char *exe)
{
	double n = 0;

	for (size_t g = 0; g < 3; g++)
		n += number_at(result, "n", g);
	cr_expect_eq((double)calls_between(v, "<gc", "on_collection"), n, "%s", exe);
	cr_expect_eq(calls_between(v, "<gc", "__del__"), row_named(v, "__del__")->ncalls, "%s",
		     exe);
	cr_expect_gt(row_named(v, "__del__")->ncalls, 0, "%s", exe);
	cr_expect_null(row_named(v, "(unseen)"), "%s", exe);
}

static json_t *run(struct traced *t, const char *exe, const char *how, enum mode mode,
		   struct snapshot **s)
{
	json_t *result;

	*t = (struct traced){0};
	traced_start(t, exe, "run.py", "collections_timed", how, NULL);
	traced_expect(t, "ready");
	t->mode.mode = mode;
	traced_attach(t);
	traced_go(t);
	traced_expect(t, "done");
	*s = traced_snapshot(t);
	result = json_loads(t->result, 0, NULL);
	cr_assert(result, "no result");
	traced_finish(t);
	return result;
}

static bool attempt(const char *exe)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	_cleanup_(view_freep) struct view *v = NULL;
	struct traced t;
	json_t *result = run(&t, exe, "called", MODE_TRACE, &s);
	bool ok;

	assert_ok(view_build(s, NULL, &v));
	fprintf(stderr, "%s\n", exe);
	cr_expect(traced_is_exact(s, exe));
	traced_check_times(s);
	check_counts(v, result, exe);
	check_callees(v, result, exe);
	ok = check_times(v, result);
	json_decref(result);
	return ok;
}

Test(gc, traced)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_in_turn(v, 0);

	for (size_t i = 0; i < n; i++) {
		int tries = 1;

		while (!attempt(v[i].exe))
			cr_assert(++tries <= ATTEMPTS, "%s: off %d times", v[i].exe, ATTEMPTS);
	}
	check_no_leaks();
}

/* Without callbacks, the sites of collections are hit all the same. */
static void check_without_callbacks(const char *exe, enum mode mode)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	_cleanup_(view_freep) struct view *v = NULL;
	struct traced t;
	json_t *result = run(&t, exe, "silent", mode, &s);

	assert_ok(view_build(s, NULL, &v));
	check_counts(v, result, exe);
	json_decref(result);
}

Test(gc, without_callbacks)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_in_turn(v, 1);

	for (size_t i = 0; i < n; i++)
		check_without_callbacks(v[i].exe, MODE_TRACE);
	n = traced_in_turn(v, 2);
	for (size_t i = 0; i < n; i++)
		check_without_callbacks(v[i].exe, MODE_COUNT);
	check_no_leaks();
}
