// SPDX-License-Identifier: BSD-2-Clause
/*
 * Deep stacks: the cost of an event does not grow with the depth of the stack, the rules are those
 * of shallow stacks, and memory is bounded. Costs are compared at two depths in one run, with a
 * wide margin: a cost that grows with the depth would be at least 60 times as high.
 */
#include <stdio.h>
#include <time.h>

#include "harness/event_script.h"
#include "harness/test.h"
#include "profile/profile.h"
#include "stack/watch.h"

#define CODE	 0x1000u
#define SHALLOW	 1000u
#define DEEP	 100000u
#define EVENTS	 5000u
#define MARGIN	 16.0
#define ROUNDS	 3
#define FRAME(i) (0x7f0000000000u + (uint64_t)(i)*0x60)

static uint64_t now;

static void call(struct profile *p, uint32_t tid, uint8_t type, uint64_t frame, uint64_t caller)
{
	struct event e = {.ts = now += 100, .tid = tid, .type = type};

	e.u.call.frame = frame;
	e.u.call.code = CODE;
	e.u.call.caller = caller;
	profile_event(p, &e);
}

/* Enter frames of a thread up to this depth. */
static void descend(struct profile *p, uint32_t tid, uint32_t depth)
{
	for (uint32_t i = 0; i < depth; i++)
		call(p, tid, PYP_REC_ENTER, FRAME(i), i ? FRAME(i - 1) : 0);
}

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/*
 * A small stack is parked, so each entered frame is also searched for there, as it may reuse memory
 * of that stack.
 */
static void beside_parked(struct profile *p, uint32_t depth)
{
	call(p, 1, PYP_REC_ENTER, FRAME(depth), FRAME(depth - 1));
	call(p, 1, PYP_REC_LEAVE, FRAME(depth), 0);
}

/*
 * Returns the seconds for EVENTS rounds of events on a stack of this depth; the fastest of several
 * measurements.
 */
typedef void (*burst_fn)(struct profile *p, uint32_t depth);

static double burst(burst_fn fn, const struct profile_limits *limits, uint32_t depth)
{
	_cleanup_(profile_freep) struct profile *p = profile_new(limits, NULL, NULL);
	double best = 1e9;

	cr_assert(p);
	if (fn == beside_parked)
		call(p, 1, PYP_REC_ENTER, 0x5000, 0);
	descend(p, 1, depth);
	for (int k = 0; k < ROUNDS; k++) {
		double from = cpu_seconds(), took;

		for (uint32_t i = 0; i < EVENTS; i++)
			fn(p, depth);
		took = cpu_seconds() - from;
		if (took < best)
			best = took;
	}
	return best;
}

static void expect_flat(burst_fn fn, const char *what)
{
	static const struct profile_limits limits = {.depth = 2 * DEEP};
	double shallow = burst(fn, &limits, SHALLOW), deep = burst(fn, &limits, DEEP);

	cr_log_info("%s: %.1f times as expensive at depth %u as at %u", what, deep / shallow, DEEP,
		    SHALLOW);
	cr_expect(deep < MARGIN * shallow,
		  "%s: %.0f ns at depth %u, %.0f ns at depth %u: %.1f times as expensive", what,
		  deep / EVENTS * 1e9, DEEP, shallow / EVENTS * 1e9, SHALLOW, deep / shallow);
}

/*
 * A call and its return, and the return of a frame that was not entered: the shim of __init__
 * (3.13).
 */
static void shim(struct profile *p, uint32_t depth)
{
	call(p, 1, PYP_REC_ENTER, FRAME(depth), FRAME(depth - 1));
	call(p, 1, PYP_REC_LEAVE, FRAME(depth), 0);
	call(p, 1, PYP_REC_LEAVE, 0x10, 0);
}

Test(depth, returns_of_unknown_frames)
{
	expect_flat(shim, "a return of a frame on no stack");
}

/* A call whose caller is several frames above the known top, and its return. */
static void above(struct profile *p, uint32_t depth)
{
	call(p, 1, PYP_REC_ENTER, FRAME(depth + 5), FRAME(depth + 4));
	call(p, 1, PYP_REC_ENTER, FRAME(depth + 6), FRAME(depth + 5));
	call(p, 1, PYP_REC_LEAVE, FRAME(depth + 6), 0);
	call(p, 1, PYP_REC_LEAVE, FRAME(depth + 5), 0);
}

/* Both depths are above the limit. */
Test(depth, above_the_limit)
{
	static const struct profile_limits shallow = {.depth = 512}, deep = {.depth = 65536};
	double few = burst(above, &shallow, SHALLOW), many = burst(above, &deep, DEEP);

	cr_expect(many < MARGIN * few, "above a limit of 65536: %.1f times as expensive as of 512",
		  many / few);
}

Test(depth, calls_beside_parked_stacks)
{
	expect_flat(beside_parked, "a call beside a parked stack");
}

/* Each frame of a recursion has its own context, and each call its function. */
Test(depth, counts_are_exact)
{
	_cleanup_(profile_freep) struct profile *p = profile_new(NULL, NULL, NULL);
	struct profile_counts counts;

	descend(p, 1, DEEP);
	for (uint32_t i = DEEP; i-- > 0;)
		call(p, 1, PYP_REC_LEAVE, FRAME(i), 0);
	counts = profile_counts(p);
	cr_expect_eq(counts.calls, DEEP);
	cr_expect_eq(counts.truncated, 0);
	cr_expect_eq(counts.unmatched + counts.unstarted + counts.unseen, 0);
	cr_expect_eq(counts.nodes, DEEP);
}

/* All threads have deep stacks: their memory is bounded, and their calls are counted. */
Test(depth, frames_are_bounded)
{
	static const struct profile_limits limits = {.frames = 4096};
	_cleanup_(profile_freep) struct profile *p = profile_new(&limits, NULL, NULL);
	const uint32_t depth = 1000, threads = 16;
	struct profile_counts counts;

	for (uint32_t tid = 1; tid <= threads; tid++)
		descend(p, tid, depth);
	counts = profile_counts(p);
	cr_expect_eq(counts.calls, (uint64_t)depth * threads);
	cr_expect_geq(counts.truncated, (uint64_t)depth * threads - 4096);
	for (uint32_t tid = 1; tid <= threads; tid++)
		for (uint32_t i = depth; i-- > 0;)
			call(p, tid, PYP_REC_LEAVE, FRAME(i), 0);
	counts = profile_counts(p);
	cr_expect_eq(counts.unmatched + counts.unseen, 0);
	/* Threads that have ended release their memory. */
	for (uint32_t tid = 1; tid <= threads; tid++)
		profile_event(p,
			      &(struct event){.ts = now, .tid = tid, .type = PYP_REC_THREAD_EXIT});
	counts = profile_counts(p);
	descend(p, threads + 1, depth);
	cr_expect_eq(profile_counts(p).truncated, counts.truncated, "the room is not given back");
}

/* Scripts on top of a stack that is deep enough to be indexed: the rules are the same ------- */

#define BASE 100

struct outcome {
	struct profile_counts counts;
	uint64_t base;
};

static struct outcome outcome_of(const char *script, uint32_t base)
{
	struct event_script *es = event_script_new(NULL);
	struct outcome ret = {.base = base};
	char line[64];

	/* Frame 1 is the innermost frame of the base; scripts call from there. */
	for (uint32_t i = base; i > 0; i--) {
		int n = snprintf(line, sizeof(line), "T1 +1 enter %u b", i);

		if (i < base)
			snprintf(line + n, sizeof(line) - (size_t)n, " %u", i + 1);
		event_script_run(es, line);
	}
	event_script_run(es, script);
	ret.counts = profile_counts(event_script_profile(es));
	event_script_free(es);
	return ret;
}

static const char *const scripts[] = {
	/* L4; the following events match. */
	"T1 +1 leave 9999; T1 +1 enter 1001 f 1; T1 +1 leave 9999; T1 +1 leave 1001; T1 +1 leave 1",
	/* E4 and L2: the frames above are removed. */
	"T1 leave 9999; T1 +1 enter 1001 f 1; T1 +1 enter 1002 g 1001; T1 +1 enter 1003 h 1\n"
	"T1 +1 enter 1004 h 1003; T1 +1 leave 1; T1 leave 9999",
	/* E3, L3, E5: greenlets */
	"T1 leave 9999; T1 +1 enter 1001 f; T1 +1 leave 1; T1 +1 enter 1002 g 1001\n"
	"T1 +1 leave 1001; T1 leave 9999",
	"T1 +1 enter 1001 f 1; T1 leave 9999; T1 +1 enter 1100 g; T1 +1 enter 1002 g 1\n"
	"T1 +1 leave 1100; T1 +1 leave 1; T1 leave 9999",
	/* A frame of a parked stack is used again. */
	"T1 +1 enter 1001 f 1; T1 leave 9999; T1 +1 enter 1100 g; T1 +1 enter 1001 f 1100\n"
	"T1 +1 enter 1002 f 1; T1 +1 leave 1002; T1 +1 leave 1",
	/* E6, E7, E1 */
	"T1 leave 9999; T1 +1 throw 1001 f 777; T1 +1 leave 1001; T1 +1 enter 1002 g 888\n"
	"T1 +1 leave 1002; T1 +1 leave 888; T1 +1 leave 1",
	"T1 leave 9999; T1 +1 enter 1001 f 1; T1 +1 enter 1001 f 1; T1 +1 enter 1001 g 1\n"
	"T1 +1 leave 1001; T1 +1 leave 1; T1 leave 1",
};

Test(depth, rules_are_the_same)
{
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		struct profile_counts few = outcome_of(scripts[i], 1).counts;
		struct profile_counts many = outcome_of(scripts[i], BASE).counts;

		cr_expect_eq(many.calls - BASE, few.calls - 1, "%s: calls", scripts[i]);
		cr_expect_eq(many.unmatched, few.unmatched, "%s: unmatched", scripts[i]);
		cr_expect_eq(many.unstarted, few.unstarted, "%s: unstarted", scripts[i]);
		cr_expect_eq(many.unseen, few.unseen, "%s: unseen", scripts[i]);
		cr_expect_eq(many.stack_switches, few.stack_switches, "%s: switches", scripts[i]);
	}
	check_no_leaks();
}

/* Watching --------------------------------------------------------------------------------- */

static bool reported(void *ctx, const struct watch_event *e)
{
	(void)e;
	++*(uint64_t *)ctx;
	return true;
}

static bool ready(void *ctx)
{
	(void)ctx;
	return true;
}

static double watched_burst(uint32_t depth)
{
	static const struct profile_limits limits = {.depth = 2 * DEEP};
	_cleanup_(profile_freep) struct profile *p = profile_new(&limits, NULL, NULL);
	uint64_t n = 0;
	struct watcher w = {.fn = reported, .ready = ready, .ctx = &n, .until_ns = UINT64_MAX};
	double best = 1e9;

	cr_assert_eq(profile_watch(p, &w), 0);
	descend(p, 1, depth);
	for (int k = 0; k < ROUNDS; k++) {
		double from = cpu_seconds(), took;

		/* Each event removes two frames, so not only the top changes. */
		for (uint32_t i = 0; i < EVENTS; i++) {
			call(p, 1, PYP_REC_ENTER, FRAME(depth), FRAME(depth - 1));
			call(p, 1, PYP_REC_ENTER, FRAME(depth + 1), FRAME(depth));
			call(p, 1, PYP_REC_ENTER, FRAME(depth + 2), FRAME(depth + 1));
			call(p, 1, PYP_REC_LEAVE, FRAME(depth), 0);
		}
		took = cpu_seconds() - from;
		if (took < best)
			best = took;
	}
	cr_expect_eq(n, depth + (uint64_t)ROUNDS * EVENTS * 6 + 1, "%llu reported",
		     (unsigned long long)n);
	return best;
}

Test(depth, watchers_get_the_differences)
{
	double shallow = watched_burst(SHALLOW), deep = watched_burst(DEEP);

	cr_expect(deep < MARGIN * shallow, "%.1f times as expensive", deep / shallow);
}
