// SPDX-License-Identifier: BSD-2-Clause
/*
 * Times on both clocks, compared with the target's own measurements: a function that works, one
 * that sleeps, one that does half of each, one that waits for a lock. The target measures the same
 * calls that the tracer does, so a busy machine changes both alike.
 */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>

#include "harness/counts.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "stats/view.h"

#define SECONDS "0.3"
#define SHARE	0.03 /* of the target's own measurement ... */
#define SLACK	2e-3 /* ... or seconds, if that is almost 0 */
/*
 * On a busy machine the target may lose its CPU between a measurement of its own and the call that
 * it measures. Beside 15 runnable threads on 2 CPUs, none of 28 attempts was off (of both programs):
 * fewer than one in 9 is, with 95 % certainty. All of these are with a probability below 3e-8.
 */
#define ATTEMPTS 8

struct times {
	double cpu, wall;
};

static struct times seconds(const uint64_t ns[SNAPSHOT_CLOCKS])
{
	return (struct times){(double)ns[SNAPSHOT_CPU] / 1e9, (double)ns[SNAPSHOT_WALL] / 1e9};
}

static bool near(const char *what, const char *clock, double ours, double theirs)
{
	double off = fabs(ours - theirs);
	bool ok = off <= SLACK || off <= theirs * SHARE;

	fprintf(stderr, "  %-14s %-4s %9.6f s, the target's own %9.6f s, %+.3f ms%s\n", what, clock,
		ours, theirs, (ours - theirs) * 1e3, ok ? "" : "  OFF");
	return ok;
}

static bool near_all(const char *what, struct times ours, struct times theirs)
{
	bool ok = near(what, "cpu", ours.cpu, theirs.cpu);

	ok &= near(what, "wall", ours.wall, theirs.wall);
	return ok & near(what, "wait", ours.wall - ours.cpu, theirs.wall - theirs.cpu);
}

static struct times reading(const json_t *result, const char *function)
{
	struct times t = {0};

	assert_ok(json_unpack((json_t *)result, "{s:{s:F, s:F}}", function, "cpu", &t.cpu, "wall",
			      &t.wall));
	return t;
}

/*
 * Checks that `timed` called each function once, and that the time is in these functions and
 * spin_inner.
 */
static bool check_all(const struct view *v, const json_t *result)
{
	static const char *const functions[] = {"spin_nested", "sleep", "spin_sleep",
						"wait_for_lock"};
	struct times spin = seconds(counts_named(v, "spin_inner").tot);
	struct times half = seconds(counts_named(v, "spin_sleep").tot);
	struct times nested = reading(result, "spin_nested"), mixed = reading(result, "spin_sleep");
	bool ok = true;

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		struct view_row row = counts_named(v, functions[i]);

		cr_assert(row.ncalls == 1, "%s: %" PRIu64 " calls", functions[i], row.ncalls);
		ok &= near_all(functions[i], seconds(row.cum), reading(result, functions[i]));
	}
	/* The CPU time is in spin_inner itself; the remaining time of spin_sleep is its sleep. */
	ok &= near("tottime: spins", "cpu", spin.cpu, nested.cpu + mixed.cpu);
	ok &= near("tottime: half", "wall", half.wall, nested.wall + mixed.wall - spin.wall);
	ok &= near("tottime: nested", "cpu", seconds(counts_named(v, "spin_nested").tot).cpu, 0);
	ok &= near("tottime: sleep", "wall", seconds(counts_named(v, "sleep").tot).wall,
		   reading(result, "sleep").wall);
	return ok;
}

static bool attempt(const char *exe)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	_cleanup_(view_freep) struct view *v = NULL;
	struct traced t;
	json_t *result;
	bool ok;

	traced_start(&t, exe, "run.py", "timing", SECONDS, NULL);
	traced_expect(&t, "ready");
	traced_attach(&t);
	traced_go(&t);
	traced_expect(&t, "done");
	s = traced_snapshot(&t);
	result = json_loads(t.result, 0, NULL);
	cr_assert(result, "no result");
	assert_ok(view_build(s, NULL, &v));
	cr_assert(traced_is_exact(s, exe));
	fprintf(stderr, "%s\n", exe);
	ok = check_all(v, result);
	json_decref(result);
	traced_finish(&t);
	return ok;
}

Test(times, both_clocks_within_three_percent)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_few(v);

	for (size_t i = 0; i < n; i++) {
		int tries = 1;

		while (!attempt(v[i].exe))
			cr_assert(++tries <= ATTEMPTS, "%s: off %d times", v[i].exe, ATTEMPTS);
	}
	check_no_leaks();
}
