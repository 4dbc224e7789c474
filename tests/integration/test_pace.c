// SPDX-License-Identifier: BSD-2-Clause
/* Marks before and during a trace, whose hits show how much CPU time its work takes undisturbed. */
#include <signal.h>

#include "harness/patience.h"
#include "harness/sites.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "session/set.h"
#include "session/tracee.h"

/*
 * How many times longer the calls of rounds.py are, so that a round takes 25 times as long as a
 * slow hit of 3.4 us: marks that are passed once in a round are cheap then. If they were rarer,
 * they could not be chosen in time on a busy machine.
 */
#define LONGER "4"

static const struct pace *pace_of(const struct traced *t)
{
	return &t->sessions->v[0]->tracee->pace;
}

static pid_t fork_child(struct traced *t)
{
	traced_say(t, "fork");
	return (pid_t)strtol(traced_answer(t, "child"), NULL, 10);
}

static bool cost_is_known(struct traced *t, void *ctx)
{
	(void)ctx;
	return t->sessions->v[0]->tracee->cost_taken;
}

/*
 * What a hit costs here is measured while a trace with self-test goes on, and kept for the next attach. With the
 * usual cost, which the first one assumes, marks that are too frequent would be chosen where hits are slow.
 */
static void learn_cost(struct traced *t)
{
	const struct mode_choice mode = t->mode;

	t->mode = (struct mode_choice){.mode = MODE_TRACE};
	traced_attach_verified(t);
	traced_until(t, cost_is_known, NULL, "the cost of a hit");
	sessions_free(TAKE_PTR(t->sessions)); /* which keep the mode */
	t->mode = mode;
}

/* On a busy machine marks are not always chosen in time. They are attached while it is traced. */
static void attach_until_known(struct traced *t, const struct sites *sites)
{
	t->idle = true;
	for (;;) {
		cr_assert(!patience_over(), "the pace of a steady program is unknown");
		traced_attach_verified(t);
		cr_assert_eq(sites_changed(sites, t->pid) + sites_marked(sites, t->pid), 0);
		if (pace_of(t)->known) {
			assert_ok(sessions_start(t->sessions, 0, NULL));
			cr_assert(pace_of(t)->counting);
			return;
		}
		assert_ok(sessions_detach(t->sessions, t->pid, NULL));
	}
}

static void check_snapshot(struct traced *t)
{
	_cleanup_(snapshot_freep) struct snapshot *s = traced_snapshot(t);

	cr_assert(snapshot_exact(s));
	traced_check_times(s);
}

static bool has_settled(struct traced *t, void *ctx)
{
	(void)ctx;
	return !pace_of(t)->again;
}

/* Its pace is measured again, after which no marks are attached. */
static void halt(struct traced *t, const struct sites *sites)
{
	const unsigned int n = pace_of(t)->after.n;

	cr_assert(pace_of(t)->known, "its marks were given up");
	traced_halt(t);
	cr_assert_eq(sites_changed(sites, t->pid), 0);
	traced_until(t, has_settled, NULL, "the pace after a trace");
	cr_assert_eq(sites_marked(sites, t->pid), 0);
	cr_assert_gt(pace_of(t)->after.n, n);
}

/* A process that gets no CPU meanwhile passes no marks. */
static void halt_until_measured(struct traced *t, const struct sites *sites)
{
	for (;;) {
		traced_work(t, PATIENCE_MOMENT_MS);
		halt(t, sites);
		if (pace_of(t)->after.h > 0)
			return;
		cr_assert(!patience_over(), "no marks are passed after a trace");
		assert_ok(sessions_start(t->sessions, 0, NULL));
	}
}

/*
 * Rounds of 40 calls. Marks are attached while it is traced and briefly afterwards, not while it is
 * stopped, and again after that; a forked child keeps none.
 */
static void check_marks(struct mode_choice mode)
{
	struct sites sites;
	struct traced t;
	double hits;

	traced_start(&t, traced_newest().exe, "rounds.py", LONGER, NULL);
	t.mode = mode;
	t.observe = true;
	traced_expect(&t, "ready");
	sites_find(&sites, t.pid);
	learn_cost(&t);
	attach_until_known(&t, &sites);
	cr_assert_gt(sites_marked(&sites, t.pid), 0);
	traced_work(&t, PATIENCE_MOMENT_MS);
	traced_until_clean(&t, &sites, fork_child(&t));
	check_snapshot(&t);
	halt_until_measured(&t, &sites);
	hits = pace_of(&t)->hits;
	cr_assert_gt(hits, 0);
	assert_ok(sessions_start(t.sessions, 0, NULL));
	cr_assert_gt(sites_marked(&sites, t.pid), 0);
	traced_work(&t, PATIENCE_MOMENT_MS);
	traced_halt(&t);
	cr_assert_gt(pace_of(&t)->hits, hits);
	assert_ok(sessions_clear(t.sessions, 0, NULL));
	cr_assert_eq(pace_of(&t)->hits, 0);
	assert_ok(sessions_start(t.sessions, 0, NULL));
	traced_work(&t, PATIENCE_MOMENT_MS);
	check_snapshot(&t);
	cr_assert_eq(kill(t.pid, SIGKILL), 0);
	traced_wait(&t);
	traced_stop(&t);
	check_no_leaks();
}

Test(pace, marks_are_counted_in_traces)
{
	check_marks((struct mode_choice){.mode = MODE_TRACE, .rate = TARGET_OPTS_RATE_AUTO});
}

Test(pace, marks_are_counted_beside_counts)
{
	check_marks((struct mode_choice){.mode = MODE_COUNT, .rate = 499});
}

/* Sampling before the trace ends before marks are counted: it would slow them down. */
Test(pace, nothing_samples_after_the_reference)
{
	_cleanup_(reference_freep) struct reference *r = NULL;
	const struct tracee *tracee;
	struct traced t;

	traced_start(&t, traced_newest().exe, "rounds.py", NULL);
	t.idle = true;
	traced_expect(&t, "ready");
	traced_attach(&t);
	tracee = t.sessions->v[0]->tracee;
	traced_until_timers(&t, 0);
	assert_ok(reference_begin(tracee->target, tracee->python, &r));
	assert_ok(reference_start(r));
	cr_assert_gt(traced_timers(), 0);
	traced_work(&t, PATIENCE_MOMENT_MS);
	reference_end(r);
	cr_assert_eq(traced_timers(), 0);
	cr_assert_gt(reference_take(r, tracee->profile), 0);
	traced_finish(&t);
}

/* A process that waits is not kept from being traced. */
Test(pace, none_of_a_process_that_waits)
{
	struct sites sites;
	struct traced t;

	traced_start(&t, traced_newest().exe, "run.py", "mixed", NULL);
	t.mode.rate = TARGET_OPTS_RATE_AUTO;
	t.observe = true;
	traced_expect(&t, "ready");
	sites_find(&sites, t.pid);
	traced_attach(&t);
	cr_assert(!pace_of(&t)->known);
	cr_assert_eq(sites_marked(&sites, t.pid), 0);
	traced_go(&t);
	traced_expect(&t, "done");
	traced_finish(&t);
	check_no_leaks();
}
