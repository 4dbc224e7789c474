// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tracing in windows (--max-overhead): a program with known shares is estimated; a program with low
 * overhead is traced all the time, with exact counts; and a program is stopped, started, cleared
 * and read while windows open and close. tests/bench measures the effect of the limit on the
 * target's speed.
 */
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>

#include "harness/counts.h"
#include "harness/patience.h"
#include "harness/sites.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "accuracy/finish.h"
#include "stats/view.h"

#define CYCLES 6
/* The error of an estimated share beyond the sampling error, as a fraction */
#define POINTS 0.03
/*
 * The number of standard errors allowed for sampling, which are known from 20 windows: Student's t
 * with 19 degrees of freedom exceeds it with a probability of 2.8e-8, and 5 figures are compared.
 */
#define ERRORS	9
#define ENOUGH	5 /* windows, where samples say what the shares are */
#define WINDOWS 20
/*
 * The limit, in percent, where only windows matter: with a smaller one they are rare where hits are
 * slow.
 */
#define LIMIT 30

static double total_cpu(const struct snapshot *s)
{
	double sum = 0;

	for (uint32_t i = 0; i < s->nthreads; i++)
		sum += (double)s->threads[i].total[SNAPSHOT_CPU] / 1e9;
	return sum;
}

static double error_of(const struct snapshot *s, const char *name)
{
	for (uint32_t i = 0; i < s->nfuncs; i++)
		if (strcmp(s->funcs[i].name, name) == 0)
			return snapshot_error(&s->funcs[i], SNAPSHOT_TOT_CPU) / 1e9;
	return -1;
}

/* Runs run.py shares until it has shown enough; returns its result. */
static json_t *run_shares(struct traced *t, const char *loops, unsigned int bound,
			  traced_cond is_enough, struct snapshot **ret)
{
	json_t *result;

	traced_start(t, traced_newest().exe, "run.py", "known_shares", "told", loops, NULL);
	t->max_overhead = bound;
	traced_expect(t, "ready");
	traced_attach(t);
	traced_go(t);
	traced_until(t, is_enough, NULL, "enough of it");
	traced_go(t);
	traced_expect(t, "done");
	*ret = traced_snapshot(t);
	result = json_loads(t->result, 0, NULL);
	cr_assert(result, "%s", t->result);
	return result;
}

static void check_share(const struct snapshot *s, const struct view *v, const char *name,
			double share, double cpu)
{
	struct view_row row = counts_named(v, name);
	double got = (double)row.tot[SNAPSHOT_CPU] / 1e9 / cpu, error = error_of(s, name) / cpu;

	fprintf(stderr, "    %s: %.1f %%, estimated %.1f %% with an error of %.1f\n", name,
		100 * share, 100 * got, 100 * error);
	cr_assert(row.ncalls > 0, "%s is missing", name);
	cr_assert(error >= 0, "the error of %s is not known", name);
	cr_assert(fabs(got - share) < POINTS + ERRORS * error, "%s is off", name);
}

static bool has_windows(struct traced *t, void *ctx)
{
	(void)ctx;
	return traced_status(t).windows.n >= ENOUGH && traced_status(t).windows.samples > 0;
}

/*
 * Bodies of 1 us and more, of which probes take a fifth with usual hits: too expensive for a limit of 4 %, on
 * machines with faster ones as well. (With bodies of 3 us and a limit of 10 %, it was traced all the time.)
 */
Test(windows, shares)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	_cleanup_(view_freep) struct view *v = NULL;
	struct snapshot_windows *w;
	json_t *result, *share;
	const char *name;
	struct traced t;
	double cpu;

	result = run_shares(&t, "40", 4, has_windows, &s);
	cr_assert(snapshot_estimated(s) && !snapshot_exact(s));
	assert_ok(snapshot_correct(s));
	w = &s->targets[0].windows;
	cpu = json_real_value(json_object_get(result, "cpu"));
	fprintf(stderr, "  %lu windows, %.1f %% of %.3f s seen, estimated %.3f s\n",
		(unsigned long)w->n, 100.0 * (double)w->seen_cpu_ns / (double)w->all_cpu_ns, cpu,
		total_cpu(s));
	cr_assert_eq(w->max_overhead, 4);
	cr_assert(w->seen_cpu_ns < w->all_cpu_ns);
	fprintf(stderr, "    %lu samples between them: costs times %.3f\n",
		(unsigned long)w->samples, w->samples_factor);
	cr_assert_str_eq(w->unsampled, "");
	cr_assert(w->samples_factor > 0.5 && w->samples_factor < 2);
	cr_assert(fabs(total_cpu(s) / cpu - 1) < 0.1, "rows add up to what was used");
	assert_ok(view_build(s, NULL, &v));
	json_object_foreach(json_object_get(result, "shares"), name, share)
		check_share(s, v, name, json_real_value(share), total_cpu(s));
	json_decref(result);
	traced_finish(&t);
	check_no_leaks();
}

static bool has_rounds(struct traced *t, void *ctx)
{
	(void)ctx;
	return traced_status(t).events >= 300;
}

/* Bodies of half a millisecond: their overhead is a hundredth of the limit of 50 %. */
Test(windows, all_the_time_is_exact)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	_cleanup_(view_freep) struct view *v = NULL;
	json_t *result;
	struct traced t;
	json_int_t rounds;

	result = run_shares(&t, "20000", 50, has_rounds, &s);
	rounds = json_integer_value(json_object_get(result, "rounds"));
	cr_assert(!snapshot_estimated(s) && snapshot_exact(s));
	assert_ok(view_build(s, NULL, &v));
	cr_assert_eq(counts_named(v, "one").ncalls, rounds);
	cr_assert_eq(counts_named(v, "five").ncalls, 5 * rounds);
	cr_assert_eq(counts_named(v, "twelve").ncalls, 3 * rounds);
	json_decref(result);
	traced_finish(&t);
	check_no_leaks();
}

static bool is_sampled(struct traced *t, void *ctx)
{
	(void)ctx;
	return traced_status(t).windows.n >= 2;
}

static bool has_ended(struct traced *t, void *ctx)
{
	(void)ctx;
	return traced_status(t).state == SESSION_ENDED;
}

static void look(struct traced *t)
{
	_cleanup_(snapshot_freep) struct snapshot *s = traced_snapshot(t);

	cr_assert(snapshot_valid(s));
	cr_assert_eq(s->targets[0].unmatched, 0);
	for (uint32_t i = 0; i < s->nthreads; i++) {
		uint64_t sum = 0;

		for (uint32_t k = 0; k < s->nnodes; k++)
			sum += s->nodes[k].thread == i ? s->nodes[k].self[SNAPSHOT_WALL] : 0;
		cr_assert_eq(sum, s->threads[i].total[SNAPSHOT_WALL]);
	}
}

/* Six threads that call functions all the time and check their own results. */
Test(windows, any_moment_is_right)
{
	struct diag diag = {0};
	struct sites sites;
	struct traced t;

	traced_start(&t, traced_newest().exe, "load.py", NULL);
	t.max_overhead = LIMIT;
	traced_expect(&t, "ready");
	sites_find(&sites, t.pid);
	traced_attach(&t);
	for (unsigned int i = 0; i < CYCLES; i++) {
		const unsigned int moment = 7 * i;

		traced_work(&t, moment);
		look(&t);
		assert_ok(sessions_clear(t.sessions, 0, &diag));
		traced_until(&t, is_sampled, NULL, "two windows");
		look(&t);
		cr_assert_gt(traced_timers(), 0);
		traced_halt(&t);
		cr_assert_eq(sites_changed(&sites, t.pid), 0, "stopped: no breakpoint is left");
		cr_assert_eq(sites_marked(&sites, t.pid), 0);
		cr_assert_eq(traced_timers(), 0, "nor a clock");
		look(&t);
		assert_ok(sessions_start(t.sessions, 0, &diag));
	}
	assert_ok(sessions_detach(t.sessions, t.pid, &diag));
	cr_assert_eq(sites_changed(&sites, t.pid) + sites_marked(&sites, t.pid), 0);
	traced_say(&t, "stop");
	traced_expect(&t, "checked ok");
	traced_finish(&t);
	check_no_leaks();
}

static bool marks_are_kept(struct traced *t, void *ctx)
{
	const struct sites *sites = ctx;
	int n = sites_marked(sites, t->pid);

	/* While marks are chosen, many are attached. */
	return traced_status(t).windows.n >= 3 && n > 0 && n < (int)sites->nmarks / 2;
}

/*
 * Windows say how many calls there were, if at least eight marks are passed in them, which takes more windows where
 * hits are slow. One is passed in 800 calls, or thereabouts; here, forty.
 */
static bool has_counted(struct traced *t, void *ctx)
{
	const struct session_status st = traced_status(t);

	(void)ctx;
	return st.windows.n >= WINDOWS && st.events >= UINT64_C(64000);
}

static double rounds_of(struct traced *t)
{
	traced_say(t, "rounds");
	return strtod(traced_answer(t, "rounds"), NULL);
}

static double calls_error(const struct snapshot *s, const char *name)
{
	for (uint32_t i = 0; i < s->nfuncs; i++)
		if (strcmp(s->funcs[i].name, name) == 0)
			return snapshot_error(&s->funcs[i], SNAPSHOT_CALLS);
	return -1;
}

/*
 * Rounds of 40 short calls: opcodes outside of them are counted all the time. A child that is forked
 * meanwhile, and is not followed, keeps no breakpoint of theirs.
 */
Test(windows, counts_by_marks)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	_cleanup_(view_freep) struct view *v = NULL;
	double before, rounds, error, calls;
	struct sites sites;
	struct traced t;
	pid_t child;

	traced_start(&t, traced_newest().exe, "rounds.py", NULL);
	t.max_overhead = LIMIT;
	traced_expect(&t, "ready");
	sites_find(&sites, t.pid);
	traced_attach(&t);
	traced_until(&t, marks_are_kept, &sites, "marks and windows");
	assert_ok(sessions_clear(t.sessions, 0, NULL));
	before = rounds_of(&t);
	traced_until(&t, has_counted, NULL, "windows");
	traced_say(&t, "fork");
	child = (pid_t)strtol(traced_answer(&t, "child"), NULL, 10);
	rounds = rounds_of(&t) - before;
	s = traced_snapshot(&t);
	cr_assert(snapshot_estimated(s));
	assert_ok(view_build(s, NULL, &v));
	calls = (double)counts_named(v, "handle").ncalls;
	error = calls_error(s, "handle");
	fprintf(stderr, "  %.0f rounds, estimated %.0f +- %.0f\n", rounds, calls, error);
	cr_assert(error >= 0 && fabs(calls - rounds) < ERRORS * error + 0.1 * rounds,
		  "%.0f rounds, estimated %.0f +- %.0f", rounds, calls, error);
	traced_until_clean(&t, &sites, child);
	traced_halt(&t);
	cr_assert_eq(sites_changed(&sites, t.pid) + sites_marked(&sites, t.pid), 0);
	traced_say(&t, "stop");
	traced_finish(&t);
	check_no_leaks();
}

/* The target ends while it is traced in windows: the data is kept. */
Test(windows, target_ends)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	struct traced t;

	traced_start(&t, traced_newest().exe, "load.py", NULL);
	t.max_overhead = LIMIT;
	traced_expect(&t, "ready");
	traced_attach(&t);
	traced_until(&t, is_sampled, NULL, "two windows");
	cr_assert_eq(kill(t.pid, SIGKILL), 0);
	traced_until(&t, has_ended, NULL, "its end");
	s = traced_snapshot(&t);
	cr_assert(snapshot_valid(s));
	cr_assert(s->nnodes > 10, "%u contexts", s->nnodes);
	cr_assert(!s->targets[0].alive);
	traced_wait(&t);
	traced_stop(&t);
	check_no_leaks();
}
