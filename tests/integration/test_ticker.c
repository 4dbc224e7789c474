// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sampling timers: targets with the same rate share them, others do not, and a process that is
 * sampled twice gets all samples twice.
 */
#include <inttypes.h>
#include <unistd.h>

#include "harness/test.h"
#include "harness/traced.h"

#define SAMPLES 100u

static unsigned int cpus;

static void start(struct traced *t)
{
	traced_start(t, traced_newest().exe, "shares.py", "plain", NULL);
	traced_expect(t, "ready");
	cpus = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
	cr_assert_eq(traced_timers(), 0);
}

static void attach(struct traced *t, uint32_t rate)
{
	t->mode = (struct mode_choice){MODE_SAMPLE, rate};
	traced_attach(t);
}

static bool is_sampled(struct traced *t, void *ctx)
{
	(void)ctx;
	return traced_status(t).events >= SAMPLES;
}

static void until_sampled(struct traced *t)
{
	traced_until(t, is_sampled, NULL, "samples");
}

Test(ticker, targets_share_timers)
{
	struct traced a, b, c;

	start(&a);
	start(&b);
	start(&c);
	attach(&a, 499);
	traced_until_timers(&a, cpus);
	attach(&b, 499);
	traced_until_timers(&b, cpus);
	attach(&c, 997);
	/* another rate needs other timers */
	traced_until_timers(&c, 2 * cpus);
	until_sampled(&a);
	until_sampled(&b);
	until_sampled(&c);
	traced_halt(&a);
	traced_halt(&c);
	cr_assert_eq(traced_timers(), cpus, "those of the other rate are not used any more");
	assert_ok(sessions_clear(b.sessions, 0, NULL));
	until_sampled(&b);
	traced_halt(&b);
	cr_assert_eq(traced_timers(), 0);
	traced_stop(&a);
	traced_stop(&b);
	traced_stop(&c);
	check_no_leaks();
}

/* Two sets of targets, as of two daemons, with the same process. */
Test(ticker, a_process_that_is_sampled_twice)
{
	struct traced a, b;

	start(&a);
	attach(&a, 499);
	b = a;
	b.sessions = NULL;
	attach(&b, 499);
	traced_until_timers(&b, 2 * cpus);
	until_sampled(&a);
	until_sampled(&b);
	traced_halt(&a);
	cr_assert_eq(traced_timers(), cpus);
	assert_ok(sessions_clear(b.sessions, 0, NULL));
	until_sampled(&b);
	sessions_free(b.sessions);
	cr_assert_eq(traced_timers(), 0);
	traced_stop(&a);
	check_no_leaks();
}

/* What is loaded for its timers is not kept either. */
Test(ticker, a_target_that_is_never_started)
{
	struct traced t;

	start(&t);
	t.idle = true;
	attach(&t, 499);
	cr_assert_gt(traced_bpf_objects(), 0);
	cr_assert_eq(traced_timers(), 0);
	traced_stop(&t);
	cr_assert_eq(traced_bpf_objects(), 0);
	check_no_leaks();
}
