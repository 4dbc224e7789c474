// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reasons for waiting, by function, compared with programs that wait for one known reason and
 * measure the time: sleep, lock, socket, poll, pipe, file, child process, a CPU, the GIL. The time
 * from the wakeup until the thread gets a CPU depends on the machine's load, so it is added to the
 * known reason. In every context the reasons add up to wall time minus CPU time, to the nanosecond.
 */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>

#include "harness/counts.h"
#include "harness/cpu_group.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "snapshot/correct.h"
#include "stats/view.h"

#define SECONDS		"0.1"
#define LIMIT_US	30000 /* in 100 ms */
#define LIMITED_SECONDS "0.45"
#define ATTEMPTS	3    /* the machine may be busy */
#define SHARE		0.02 /* of the target's own measurement ... */
#define SLACK		1e-3 /* ... or seconds: the time between the two measurements */

static double figure(const struct view *v, int column, size_t row)
{
	return v->cum[column] ? (double)v->cum[column][row] / 1e9 : 0;
}

static size_t row_of(const struct view *v, const char *function)
{
	for (size_t i = 0; i < v->nrows; i++)
		if (strcmp(v->snapshot->funcs[v->rows[i].func].name, function) == 0)
			return i;
	cr_assert_fail("no row of %s", function);
	return 0;
}

static bool check_function(const struct view *v, const char *function, const json_t *own)
{
	const char *reason;
	double least, wait, all = 0, known, runnable;
	size_t row = row_of(v, function);
	bool ok;

	assert_ok(json_unpack((json_t *)own, "{s:s, s:F, s:F}", "reason", &reason, "least", &least,
			      "wait", &wait));
	for (int c = COLUMN_WAITS_FIRST; c < COLUMN_WAITS_END; c++)
		all += figure(v, c, row);
	known = figure(v, column_find("waits", reason), row);
	runnable = figure(v, COLUMN_runnable, row);
	ok = fabs(all - wait) <= fmax(SHARE * wait, SLACK);
	if (strcmp(reason, "runnable") != 0)
		known += runnable;
	ok &= known >= (1 - SHARE) * all - SLACK && known >= (1 - SHARE) * least;
	/*
	 * The time that the program measured must be charged to the known reason, not to waiting
	 * for a CPU.
	 */
	if (strcmp(reason, "runnable") != 0 && strcmp(reason, "gil") != 0)
		ok &= known - runnable >= (1 - SHARE) * least;
	fprintf(stderr,
		"  %-16s %9.6f s, its own %9.6f s, %s and runnable %9.6f s (runnable %9.6f s)%s\n",
		function, all, wait, reason, known, runnable, ok ? "" : "  OFF");
	return ok;
}

/* In every context; the reasons of I/O also add up to its total. */
static void check_sums(const struct snapshot *s)
{
	for (uint32_t i = 0; i < s->nnodes; i++) {
		const uint64_t *self = s->nodes[i].self;
		uint64_t sum = 0, io = 0;

		for (int c = COLUMN_WAITS_FIRST; c < COLUMN_WAITS_END; c++)
			sum += snapshot_figure(s, c, i);
		for (int c = COLUMN_io_disk; c <= COLUMN_io_device; c++)
			io += snapshot_figure(s, c, i);
		cr_assert_eq(io, snapshot_figure(s, COLUMN_io, i));
		cr_assert_eq(sum, self[SNAPSHOT_WALL] > self[SNAPSHOT_CPU]
					  ? self[SNAPSHOT_WALL] - self[SNAPSHOT_CPU]
					  : 0);
	}
}

/* Each of the two spinners held the GIL while the other one waited. */
static bool check_held(const struct snapshot *s, const struct view *v)
{
	size_t row = row_of(v, "spin");
	double held = (double)v->self[COLUMN_gil_held_ns][row] / 1e9, own = 0,
	       waited = figure(v, COLUMN_gil, row);

	for (uint32_t i = 0; i < s->ngil_pairs; i++) {
		const struct snapshot_gil_pair *p = &s->gil_pairs[i];

		if (p->holder == v->rows[row].func && p->waiter == p->holder)
			own += (double)p->ns / 1e9;
	}
	fprintf(stderr,
		"  spin held the GIL for %.6f s against others, %.6f s against itself; it "
		"waited for %.6f s\n",
		held, own, waited);
	/* A waiter that was woken additionally waits for a CPU before it runs. */
	return held > 0 && own <= 2 * held && own >= waited * (1 - SHARE) - SLACK;
}

/* which: what the program does; NULL: everything that needs no CPU limit */
static bool attempt(const char *exe, const char *seconds, const char *which)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	_cleanup_(view_freep) struct view *v = NULL;
	const char *function;
	struct traced t;
	json_t *result, *own;
	bool ok = true;

	traced_start(&t, exe, "run.py", "waits", seconds, which, NULL);
	traced_expect(&t, "ready");
	if (which)
		cpu_group_add(t.pid);
	traced_attach(&t);
	traced_go(&t);
	traced_expect(&t, "done");
	s = traced_snapshot(&t);
	check_sums(s);
	cr_assert(s->targets[0].waits.measured && s->targets[0].waits.gil_known);
	result = json_loads(t.result, 0, NULL);
	cr_assert(result, "no result");
	assert_ok(view_build(s, NULL, &v));
	fprintf(stderr, "%s\n", exe);
	json_object_foreach(result, function, own) ok &= check_function(v, function, own);
	if (!which)
		ok &= check_held(s, v);
	json_decref(result);
	assert_ok(snapshot_correct(s));
	check_sums(s);
	traced_finish(&t);
	return ok;
}

static void everywhere(const char *seconds, const char *which)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_interpreters(v);

	for (size_t i = 0; i < n; i++) {
		int tries = 1;

		while (!attempt(v[i].exe, seconds, which))
			cr_assert(++tries <= ATTEMPTS, "%s: off %d times", v[i].exe, ATTEMPTS);
	}
	check_no_leaks();
}

Test(waits, reasons_of_known_truth, .timeout = 900)
{
	everywhere(SECONDS, NULL);
}

/* A thread that its cgroup's limit keeps from a CPU waits for one. */
Test(waits, of_a_process_with_a_cpu_limit, .init = cpu_group_make, .fini = cpu_group_remove,
     .timeout = 300)
{
	cpu_group_quota(LIMIT_US);
	everywhere(LIMITED_SECONDS, "limited");
}

/* Estimates from windows do not apply to reasons, so they are left out instead of being wrong. */
Test(waits, not_in_windows, .timeout = 120)
{
	struct interpreter it = traced_newest();
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	struct traced t;

	traced_start(&t, it.exe, "run.py", "waits", "0.02", "sleep", NULL);
	traced_expect(&t, "ready");
	t.max_overhead = 5;
	traced_attach(&t);
	traced_go(&t);
	traced_expect(&t, "done");
	s = traced_snapshot(&t);
	cr_assert(!(s->measured & COLUMN_WAITS) && !s->targets[0].waits.measured);
	traced_finish(&t);
}
