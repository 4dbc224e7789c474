// SPDX-License-Identifier: BSD-2-Clause
/*
 * Limited targets (--max-overhead): their times are those of samples, also before there is any window; windows add
 * numbers of calls, and calls per call of the caller from whole calls; a program with low overhead is traced
 * all the time, with exact counts, which remain exact when its load rises. The limit holds when a program that
 * was idle gets busy. And a program is stopped, started, cleared and read while windows open and close.
 * tests/bench measures the effect of the limit on the target's speed.
 */
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>

#include "accuracy/finish.h"
#include "harness/counts.h"
#include "harness/patience.h"
#include "harness/process_tree.h"
#include "harness/sites.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "stats/view.h"

#define CYCLES 6
/* The error of an estimated share beyond the sampling error, as a fraction */
#define POINTS 0.03
/* The same of a number of calls */
#define CALLS	0.1
#define CERTAIN 0.2
/* Of sums of times: samples are taken at random times, but their period is known */
#define SUMS 0.1
/*
 * The number of standard errors allowed for sampling, which are known from 20 windows: Student's t
 * with 19 degrees of freedom exceeds it with a probability of 2.8e-8, and 5 figures are compared.
 */
#define ERRORS	9
#define WINDOWS 20
#define SAMPLES 500 /* shares are compared */
#define FEW	10  /* samples that come in one gap, or windows, or calls */
#define TURNS	50  /* of the event loop, while a process idles */
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

static double error_of(const struct snapshot *s, const char *name, enum snapshot_figure figure)
{
	for (uint32_t i = 0; i < s->nfuncs; i++)
		if (strcmp(s->funcs[i].name, name) == 0)
			return snapshot_error(&s->funcs[i], figure);
	return -1;
}

/* How many calls of a function one call of another makes. */
static struct per_call per_call_named(const struct view *v, const char *caller, const char *callee)
{
	const struct snapshot_func *funcs = v->snapshot->funcs;

	for (size_t i = 0; i < v->nedges; i++)
		if (v->edges[i].caller != SNAPSHOT_NONE &&
		    strcmp(funcs[v->edges[i].caller].name, caller) == 0 &&
		    strcmp(funcs[v->edges[i].callee].name, callee) == 0)
			return v->edges[i].per_call;
	return (struct per_call){-1, -1};
}

static void check_per_call(const struct view *v, const char *caller, const char *callee,
			   double want)
{
	const struct per_call got = per_call_named(v, caller, callee);

	fprintf(stderr, "    %s calls %s %.3f times, with an error of %.3f\n", caller, callee,
		got.calls, got.error);
	cr_assert(got.calls == want && got.error == 0, "%s calls %s %f +- %f times", caller, callee,
		  got.calls, got.error);
}

/* Estimated calls have an error, and are as many as it says. */
static void check_calls(const struct snapshot *s, const struct view *v, const char *name,
			double want)
{
	const double got = (double)counts_named(v, name).ncalls;
	const double error = error_of(s, name, SNAPSHOT_CALLS);

	fprintf(stderr, "    %.0f calls of %s, estimated %.0f +- %.0f\n", want, name, got, error);
	cr_assert(got > 0 && error > 0 && fabs(got - want) < ERRORS * error + CALLS * want,
		  "%.0f calls of %s, estimated %.0f +- %.0f", want, name, got, error);
}

/* Runs run.py known_shares until it has shown enough; returns its result. */
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
	double got = (double)row.tot[SNAPSHOT_CPU] / 1e9 / cpu;
	double error = error_of(s, name, SNAPSHOT_TOT_CPU) / 1e9 / cpu;

	fprintf(stderr, "    %s: %.1f %%, estimated %.1f %% with an error of %.1f\n", name,
		100 * share, 100 * got, 100 * error);
	cr_assert(error > 0, "the error of %s is not known", name);
	/* It is as large as that of samples, and no larger. */
	cr_assert(error * error < 2 * (share + POINTS) * (double)s->targets[0].estimate.period_ns /
					  1e9 / cpu,
		  "the error of %s is %f", name, error);
	cr_assert(fabs(got - share) < POINTS + ERRORS * error, "%s is off", name);
}

/* Times add up to the CPU time that the process used without what observing took. */
static void check_sum(const struct snapshot *s, double cpu)
{
	const struct snapshot_target *t = &s->targets[0];
	const double own = (double)t->own_cpu_ns / 1e9, taken = (double)t->overhead_ns / 1e9;

	fprintf(stderr, "  %.3f s of CPU time, %.3f s of it taken; rows add up to %.3f s\n", cpu,
		taken, total_cpu(s));
	cr_assert(fabs(own + taken - cpu) < SUMS * cpu, "%.3f s and %.3f s", own, taken);
	cr_assert(fabs(total_cpu(s) - own) < SUMS * own, "%.3f s, not %.3f", total_cpu(s), own);
}

static bool has_windows(struct traced *t, void *ctx)
{
	const struct session_status st = traced_status(t);

	(void)ctx;
	return st.windows.n >= WINDOWS && st.windows.samples >= SAMPLES;
}

/*
 * Bodies of 1 us and more, of which probes take a fifth with usual hits: too expensive for a limit of 4 %, on
 * machines with faster ones as well. (With bodies of 3 us and a limit of 10 %, it was traced all the time.)
 */
Test(windows, shares_are_those_of_samples)
{
	static const unsigned int calls[] = {1, 1, 5, 3};
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	_cleanup_(view_freep) struct view *v = NULL;
	const struct snapshot_windows *w;
	json_t *result, *share;
	const char *name;
	struct traced t;
	double rounds;
	size_t i = 0;

	result = run_shares(&t, "40", 4, has_windows, &s);
	rounds = (double)json_integer_value(json_object_get(result, "rounds"));
	cr_assert(snapshot_guesses_counts(s) && !snapshot_exact(s));
	assert_ok(snapshot_correct(s));
	w = &s->targets[0].windows;
	fprintf(stderr, "  %lu windows, %.1f %% seen, %lu samples, costs times %.3f\n",
		(unsigned long)w->n, 100.0 * (double)w->seen_cpu_ns / (double)w->all_cpu_ns,
		(unsigned long)w->samples, w->samples_factor);
	cr_assert_eq(w->max_overhead, 4);
	cr_assert(w->seen_cpu_ns < w->all_cpu_ns);
	cr_assert_str_eq(w->unsampled, "");
	cr_assert(w->samples_factor > 0.5 && w->samples_factor < 2);
	check_sum(s, json_real_value(json_object_get(result, "cpu")));
	assert_ok(view_build(s, NULL, &v));
	json_object_foreach(json_object_get(result, "shares"), name, share)
	{
		check_share(s, v, name, json_real_value(share), total_cpu(s));
		check_calls(s, v, name, calls[i++] * rounds);
	}
	check_per_call(v, "batch", "five", 5);
	check_per_call(v, "batch", "twelve", 3);
	check_per_call(v, "round_", "batch", 1);
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
	cr_assert(!snapshot_guesses_counts(s) && snapshot_exact(s));
	assert_ok(view_build(s, NULL, &v));
	cr_assert_eq(counts_named(v, "one").ncalls, rounds);
	cr_assert_eq(counts_named(v, "five").ncalls, 5 * rounds);
	cr_assert_eq(counts_named(v, "twelve").ncalls, 3 * rounds);
	cr_assert_eq(error_of(s, "five", SNAPSHOT_CALLS), 0);
	check_per_call(v, "batch", "five", 5);
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
	const struct snapshot_target *target = &s->targets[0];
	const double span = (double)(target->end_ns - target->start_ns);

	cr_assert_eq(target->unmatched, 0);
	assert_ok(snapshot_finish(s, false));
	cr_assert(snapshot_valid(s));
	traced_check_times(s);
	for (uint32_t i = 0; i < s->nthreads; i++)
		cr_assert_leq((double)s->threads[i].total[SNAPSHOT_WALL], (1 + SUMS) * span);
	for (uint32_t i = 0; i < s->nnodes; i++)
		cr_assert_leq(s->nodes[i].self[SNAPSHOT_CPU], s->nodes[i].self[SNAPSHOT_WALL]);
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

static bool has_so_many(struct traced *t, void *ctx)
{
	return traced_status(t).windows.n >= *(unsigned int *)ctx;
}

static double rounds_of(struct traced *t)
{
	traced_say(t, "rounds");
	return strtod(traced_answer(t, "rounds"), NULL);
}

/*
 * Rounds of 40 short calls: opcodes outside of them are counted all the time. Estimates get certain, after more
 * windows the more irregular these are, as on a busy machine. No command is obeyed meanwhile: that passes a hundred
 * marks at a time, and the test would decide in which window. A child that is forked meanwhile, and is not followed, keeps no
 * breakpoint of theirs.
 */
Test(windows, counts_by_marks)
{
	double rounds, calls, error;
	unsigned int n = WINDOWS;
	struct sites sites;
	struct traced t;
	bool whole;
	pid_t child;

	traced_start(&t, traced_newest().exe, "rounds.py", NULL);
	t.max_overhead = LIMIT;
	traced_expect(&t, "ready");
	sites_find(&sites, t.pid);
	traced_attach(&t);
	traced_until(&t, marks_are_kept, &sites, "marks and windows");
	do {
		_cleanup_(snapshot_freep) struct snapshot *s = NULL;
		_cleanup_(view_freep) struct view *v = NULL;

		rounds = rounds_of(&t);
		assert_ok(sessions_clear(t.sessions, 0, NULL));
		traced_until(&t, has_so_many, &n, "windows");
		s = traced_snapshot(&t);
		rounds = rounds_of(&t) - rounds;
		cr_assert(snapshot_guesses_counts(s));
		assert_ok(snapshot_correct(s));
		assert_ok(view_build(s, NULL, &v));
		check_calls(s, v, "handle", rounds);
		check_calls(s, v, "leaf", 40 * rounds);
		calls = (double)counts_named(v, "leaf").ncalls;
		error = error_of(s, "leaf", SNAPSHOT_CALLS);
		whole = per_call_named(v, "handle", "leaf").calls >= 0;
		if (whole)
			check_per_call(v, "handle", "leaf", 40);
		n *= 2;
	} while (!whole || error > CERTAIN * calls);
	traced_say(&t, "fork");
	child = (pid_t)strtol(traced_answer(&t, "child"), NULL, 10);
	traced_until_clean(&t, &sites, child);
	traced_halt(&t);
	cr_assert_eq(sites_changed(&sites, t.pid) + sites_marked(&sites, t.pid), 0);
	traced_say(&t, "stop");
	traced_finish(&t);
	check_no_leaks();
}

static bool has_samples(struct traced *t, void *ctx)
{
	const struct snapshot_windows w = traced_status(t).windows;

	(void)ctx;
	return w.samples >= FEW || w.n > 0;
}

/* Clears it until there are samples, but no window. */
static struct snapshot *before_windows(struct traced *t)
{
	struct snapshot *s = NULL;

	while (!s || s->targets[0].windows.n || s->targets[0].windows.samples < FEW) {
		snapshot_free(s);
		assert_ok(sessions_clear(t->sessions, 0, NULL));
		traced_until(t, has_samples, NULL, "samples");
		s = traced_snapshot(t);
	}
	return s;
}

/* Before the first window there are all times, with their errors, and no number of calls, which is not 0 either. */
Test(windows, none_yet)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	_cleanup_(view_freep) struct view *v = NULL;
	struct traced t;
	double samples;

	traced_start(&t, traced_newest().exe, "rounds.py", NULL);
	t.max_overhead = 2;
	traced_expect(&t, "ready");
	traced_attach(&t);
	traced_until(&t, is_sampled, NULL, "two windows");
	s = before_windows(&t);
	samples = (double)s->targets[0].windows.samples;
	assert_ok(snapshot_correct(s));
	cr_assert(snapshot_guesses_counts(s) && !snapshot_exact(s));
	cr_assert_float_eq(total_cpu(s), samples * (double)s->targets[0].estimate.period_ns / 1e9,
			   1e-6);
	assert_ok(view_build(s, NULL, &v));
	cr_assert_gt(counts_named(v, "handle").cum[SNAPSHOT_CPU], 0.5e9 * total_cpu(s));
	cr_assert_gt(counts_named(v, "leaf").tot[SNAPSHOT_CPU], 0);
	cr_assert_gt(error_of(s, "leaf", SNAPSHOT_TOT_CPU), 0);
	cr_assert_gt(error_of(s, "handle", SNAPSHOT_CUM_CPU), 0);
	cr_assert_eq(counts_named(v, "leaf").ncalls, 0);
	cr_assert_lt(error_of(s, "leaf", SNAPSHOT_CALLS), 0, "it is not known");
	cr_assert_lt(per_call_named(v, "handle", "leaf").calls, 0);
	traced_say(&t, "stop");
	traced_finish(&t);
	check_no_leaks();
}

static uint64_t exact_calls(const struct snapshot *s, const char *name, uint64_t *ret_rest)
{
	uint64_t exact = 0;

	*ret_rest = 0;
	for (uint32_t i = 0; i < s->nnodes; i++) {
		const struct snapshot_node *n = &s->nodes[i];

		if (n->func == SNAPSHOT_NONE || strcmp(s->funcs[n->func].name, name) != 0)
			continue;
		exact += n->calls;
		*ret_rest += s->rest[i].calls;
	}
	return exact;
}

/* The process itself uses CPU time. Returns the number of rounds: calls of one(). */
static double burn(struct process_tree *f)
{
	char line[32];

	snprintf(line, sizeof(line), "burn %u 0", PATIENCE_WHILE_MS);
	traced_say(&f->t, line);
	return strtod(traced_answer(&f->t, "burned"), NULL);
}

/*
 * A process that idles is traced all the time, and then in windows: probes take 2 to 4 % of the time of burn(). The
 * calls that were counted until then are exact, and remain so.
 */
Test(windows, calls_before_them_are_exact)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL, *before = NULL;
	_cleanup_(view_freep) struct view *v = NULL;
	struct process_tree f;
	uint64_t exact, rest;
	double rounds = 0;

	process_tree_start(&f, traced_newest().exe);
	f.t.max_overhead = 1;
	traced_attach(&f.t);
	process_tree_ask(&f, "work", 0, FEW, "worked");
	before = traced_snapshot(&f.t);
	cr_assert(!snapshot_guesses_counts(before) && snapshot_exact(before));
	cr_assert_eq(exact_calls(before, "work", &rest), FEW);
	do
		rounds += burn(&f);
	while (traced_status(&f.t).windows.n < FEW);
	s = traced_snapshot(&f.t);
	cr_assert(snapshot_guesses_counts(s) && !snapshot_exact(s));
	cr_assert(exact_calls(s, "work", &rest) == FEW && rest == 0);
	exact = exact_calls(s, "one", &rest);
	cr_assert(exact > 0 && (double)exact < rounds && rest > 0);
	assert_ok(snapshot_correct(s));
	assert_ok(view_build(s, NULL, &v));
	cr_assert(counts_named(v, "work").ncalls == FEW &&
		  error_of(s, "work", SNAPSHOT_CALLS) == 0);
	check_calls(s, v, "one", rounds);
	check_calls(s, v, "three", rounds);
	cr_assert_lt(per_call_named(v, "burn", "one").calls, 0, "no call was seen as a whole");
	process_tree_finish(&f);
	check_no_leaks();
}

static bool has_idled(struct traced *t, void *ctx)
{
	(void)t;
	return ++*(unsigned int *)ctx > TURNS;
}

/* However long it has idled, what calls cost in the second after that is within the limit. */
Test(windows, the_limit_holds_after_idling)
{
	struct session_status idle, busy;
	unsigned int turns = 0;
	struct traced t;
	double taken, own;

	traced_start(&t, traced_newest().exe, "run.py", "known_shares", "told", "40", NULL);
	t.max_overhead = 10;
	traced_expect(&t, "ready");
	traced_attach(&t);
	traced_until(&t, has_idled, &turns, "idling");
	idle = traced_status(&t);
	traced_go(&t);
	traced_work(&t, PATIENCE_WHILE_MS);
	traced_work(&t, PATIENCE_WHILE_MS);
	busy = traced_status(&t);
	taken = (double)(busy.overhead_ns - idle.overhead_ns) / 1e9;
	own = (double)(busy.own_cpu_ns - idle.own_cpu_ns) / 1e9;
	fprintf(stderr, "  %.3f s taken, %.3f s its own; %lu windows\n", taken, own,
		(unsigned long)busy.windows.n);
	cr_assert_lt(taken, 1.5 * 0.1 * own);
	traced_go(&t);
	traced_expect(&t, "done");
	traced_finish(&t);
	check_no_leaks();
}

static bool has_hit_probes(struct traced *t, void *ctx)
{
	_cleanup_(snapshot_freep) struct snapshot *s = traced_snapshot(t);

	(void)ctx;
	return s->targets[0].estimate.of_probes >= 40;
}

/*
 * What hits cost is learnt from the samples that hit them, and from the number of hits. Both are of the same time
 * also if everything is forgotten in a stretch: 40 samples without their hits would be three times the cost.
 */
Test(windows, a_clear_spoils_nothing)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	struct traced t;

	traced_start(&t, traced_newest().exe, "run.py", "known_shares", "told", "400", NULL);
	t.max_overhead = 50;
	traced_expect(&t, "ready");
	traced_attach(&t);
	traced_go(&t);
	traced_until(&t, has_hit_probes, NULL, "samples of probes");
	assert_ok(sessions_clear(t.sessions, 0, NULL));
	assert_ok(sessions_stop(t.sessions, 0, NULL));
	s = traced_snapshot(&t);
	fprintf(stderr, "  hits cost %.2f times as much as measured\n",
		s->targets[0].windows.samples_factor);
	cr_assert(s->targets[0].windows.samples_factor < 2);
	traced_go(&t);
	traced_expect(&t, "done");
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
