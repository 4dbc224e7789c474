// SPDX-License-Identifier: BSD-2-Clause
/*
 * A window's cost depends on the contexts it touched, not on those of earlier windows. Both cases
 * are measured in one run and compared with a wide margin: looking at all contexts would be 100
 * times as expensive.
 */
#include <time.h>

#include "accuracy/evidence.h"
#include "harness/test.h"
#include "profile/profile.h"

#define SMALL	1000u
#define LARGE	300000u
#define WINDOWS 200
#define MARGIN	16.0
#define ROUNDS	3

static const struct cost no_cost;
static uint64_t now;

static void call(struct profile *p, uint8_t type, uint64_t frame, uint64_t code, uint64_t caller)
{
	struct event e = {.ts = now += 100, .tid = 1, .type = type};

	e.u.call.frame = frame;
	e.u.call.code = code;
	e.u.call.caller = caller;
	profile_event(p, &e);
}

static void begin(struct profile *p)
{
	profile_begin(p, now);
	profile_limit(p, &(struct profile_limit){UINT64_MAX, &no_cost, true});
}

static void end(struct profile *p)
{
	const uint64_t shown = profile_window_end(p, now += 100, 1);

	profile_fold(p, &(struct evidence_window){(double)shown, 1e6, &no_cost, 1});
}

/* A window in which f calls n functions, beginning with this one. */
static void window(struct profile *p, uint32_t from, uint32_t n)
{
	begin(p);
	call(p, PYP_REC_ENTER, 0x10, 0x10, 0);
	for (uint32_t i = from; i < from + n; i++) {
		call(p, PYP_REC_ENTER, 0x20, 0x10000 + 0x10 * (uint64_t)i, 0x10);
		call(p, PYP_REC_LEAVE, 0x20, 0, 0);
	}
	call(p, PYP_REC_LEAVE, 0x10, 0, 0);
	end(p);
	profile_gap(p, 1000);
}

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/*
 * Returns the seconds for small windows in a profile with this many contexts; the fastest of
 * several rounds.
 */
static double small_windows(uint32_t contexts)
{
	_cleanup_(profile_freep) struct profile *p = profile_new(NULL, NULL, NULL);
	double best = 1e9;

	now = 1000;
	profile_in_windows(p, now);
	window(p, 0, contexts);
	cr_assert_geq(profile_counts(p).nodes, contexts);
	for (int k = 0; k < ROUNDS; k++) {
		double from = cpu_seconds(), took;

		for (uint32_t i = 0; i < WINDOWS; i++)
			window(p, i, 10);
		took = cpu_seconds() - from;
		if (took < best)
			best = took;
	}
	return best;
}

Test(window_cost, what_it_touched)
{
	double small = small_windows(SMALL), large = small_windows(LARGE);

	cr_log_info("%.2f times as expensive", large / small);
	cr_expect(large < MARGIN * small,
		  "%.1f us a window with %u contexts, %.1f us with %u: %.0f times as expensive",
		  large / WINDOWS * 1e6, LARGE, small / WINDOWS * 1e6, SMALL, large / small);
}

/* Nested distinct functions: the search whether a function is among its own callers is bounded. */
Test(window_cost, deeply_nested_functions)
{
	_cleanup_(profile_freep) struct profile *p = profile_new(NULL, NULL, NULL);
	double took[2];

	for (int large = 0; large < 2; large++) {
		uint32_t depth = large ? 60000 : 3000;
		double from;

		profile_free(p);
		p = profile_new(NULL, NULL, NULL);
		now = 1000;
		profile_in_windows(p, now);
		begin(p);
		for (uint32_t i = 1; i <= depth; i++)
			call(p, PYP_REC_ENTER, i, 0x10000 + 0x10 * (uint64_t)i, i - 1);
		from = cpu_seconds();
		end(p);
		took[large] = cpu_seconds() - from;
	}
	cr_log_info("%.1f times as long", took[1] / took[0]);
	cr_expect(took[1] < 100 * took[0], "20 times as deep takes %.0f times as long",
		  took[1] / took[0]);
}
