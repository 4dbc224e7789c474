// SPDX-License-Identifier: BSD-2-Clause
/* Windows, cleared profiles, and limits of a profile, one script each. */
#include "harness/event_script.h"
#include "harness/test.h"

static void expect(const char *script, const char *expected)
{
	event_script_expect(NULL, script, expected);
}

Test(window, stop_and_start)
{
	expect("begin; T1 enter 1 f; T1 +5 enter 2 g 1; +5 end; +1000 begin\n"
	       "T1 +5 chain 1=f; T1 +0 enter 2 g 1; T1 +1 leave 2; T1 +1 leave 1",
	       "T1 12/12\n"
	       "  f 1 6/6\n"
	       "    g 2 6/6\n");
}

Test(window, first_event_of_the_next_is_a_call)
{
	expect("begin; T1 enter 1 f; +5 end; +1000 begin; T1 +5 enter 1 f; T1 +1 leave 1",
	       "T1 6/6\n"
	       "  f 2 6/6\n");
}

Test(window, nothing_is_running_after_the_end)
{
	expect("begin; T1 enter 1 f; +5 end; +1000 wait; T1 +1 enter 1 f; T1 +1 in; T1 +1 exit",
	       "T1 5/5 dead\n"
	       "  f 1 5/5\n");
}

Test(clear, keeps_stacks)
{
	expect("T1 enter 1 f; T1 +5 enter 2 g 1; T2 enter 1 f; T2 exit; +5 clear\n"
	       "T1 +1 enter 3 h 2; T1 +1 leave 3; T1 +1 leave 2; T1 +1 enter 2 g 1",
	       "T1 4/4\n"
	       "  f 0 1/1 *1\n"
	       "    g 1 2/2 *1\n"
	       "      h 1 1/1\n");
}

Test(clear, forgets_intervals)
{
	expect("T1 enter 1 f; T1 +5 out 1000; T1 +5 in 1000; T1 +50000 enter 2 g 1; clear\n"
	       "T1 +7 out 1020; T1 +5 in 1020; T1 +5 out 1025",
	       "T1 0/17\n"
	       "  f 0 0/0 *1\n"
	       "    g 0 0/17 *1\n");
}

Test(clear, with_switches_and_greenlets)
{
	expect("T1 enter 1 f; T1 +5 out 900; T1 +5 in 900; T1 +5 enter 0x101 g; T1 +5 enter 0x102 "
	       "h 0x101\n"
	       "+1 clear; T1 +5 leave 1; T1 +5 leave 0x102; T1 +7 out 926",
	       "T1 15/17\n"
	       "  outside 5/5\n"
	       "  g 0 5/7 *1\n"
	       "    h 0 5/5\n"
	       "! switches 2\n");
}

/* Every count of what happened to stacks and switches begins anew. */
Test(clear, counts)
{
	const struct profile_limits limits = {.depth = 2};
	struct event_script *es = event_script_new(&limits);
	struct profile_counts c;
	struct snapshot *s;

	event_script_run(es, "T1 enter 1 f; T1 +1 enter 2 g 1; T1 +1 enter 3 h 1; T1 leave 99\n"
			     "T1 +1 enter 8 g 0x77; T1 +1 leave 1\n"
			     "T2 enter 1 f; T2 enter 2 g 1; T2 enter 3 h 2\n"
			     "T3 enter 1 f; T3 +1 out 1000; T3 +1 delay-wrong; T3 +5 leave 1\n"
			     "T4 enter 1 f; T4 +5 chain resync 1=f");
	s = event_script_snapshot(es);
	cr_assert(s->targets[0].unmatched == 2 && s->targets[0].unstarted == 1);
	cr_assert(s->targets[0].unseen == 1 && s->targets[0].stack_switches == 1);
	cr_assert(s->targets[0].truncated == 1 && s->targets[0].missed_switches == 1);
	cr_assert(s->targets[0].unsplit_waits == 1 && s->targets[0].resyncs == 1);
	cr_assert_eq(s->targets[0].events, 12);
	snapshot_free(s);
	event_script_run(es, "+7 clear");
	s = event_script_snapshot(es);
	for (const struct snapshot_fact *f = snapshot_facts; f->key; f++)
		cr_assert_eq(snapshot_fact_of(&s->targets[0], f), 0, "%s", f->key);
	cr_assert_eq(s->nthreads, 4);
	for (uint32_t i = 0; i < s->nthreads; i++)
		cr_assert(s->threads[i].start_ns == s->threads[i].end_ns &&
			  !s->threads[i].total[SNAPSHOT_WALL]);
	c = profile_counts(event_script_profile(es));
	cr_assert(!c.events && !c.calls && !c.unmatched && !c.unseen && !c.unstarted &&
		  !c.stack_switches && !c.resyncs && !c.truncated);
	snapshot_free(s);
	event_script_free(es);
	check_no_leaks();
}

Test(caps, depth)
{
	const struct profile_limits limits = {.depth = 2};

	event_script_expect(
		&limits,
		"T1 enter 1 f; T1 +1 enter 2 g 1; T1 +1 enter 3 h 2; T1 +1 enter 4 k 3; T1 enter 4 "
		"k 3\n"
		"T1 +1 leave 4; T1 +1 enter 4 k 3; T1 +1 leave 4; T1 +1 leave 3; T1 +1 leave 2\n"
		"T1 +1 leave 1",
		"T1 9/9\n"
		"  (truncated) 3 5/5\n"
		"  f 1 2/2\n"
		"    g 1 2/2\n"
		"! truncated 3\n");
}

Test(caps, depth_in_flight)
{
	const struct profile_limits limits = {.depth = 2};

	event_script_expect(
		&limits,
		"T1 enter 1 f; T1 +1 enter 2 g 1; T1 +1 enter 3 h 2; T1 +1 enter 4 k 3; +1 wait",
		"T1 4/4\n"
		"  (truncated) 2 2/2 *2\n"
		"  f 1 1/1 *1\n"
		"    g 1 1/1 *1\n"
		"! truncated 2\n");
}

Test(caps, resync_ends_the_overflow)
{
	const struct profile_limits limits = {.depth = 2};

	event_script_expect(
		&limits,
		"T1 enter 1 f; T1 enter 2 g 1; T1 +1 enter 3 h 2; T1 +2 chain resync 2=g "
		"1=f; +1 wait",
		"T1 4/4\n"
		"  (truncated) 1 0/0\n"
		"  (lost) 0 2/2\n"
		"  f 1 0/0 *1\n"
		"    g 1 2/2 *1\n"
		"! resyncs 1\n"
		"! truncated 1\n");
}

Test(caps, nodes)
{
	const struct profile_limits limits = {.nodes = 2};

	event_script_expect(
		&limits,
		"T1 enter 1 f; T1 +1 enter 2 g 1; T1 +1 leave 2; T1 +1 enter 2 h 1\n"
		"T1 +1 enter 3 g 2; T1 +1 leave 3; T1 +1 leave 2; T1 +1 enter 2 g 1; T1 +1 "
		"leave 2\n"
		"T1 +1 leave 1",
		"T1 9/9\n"
		"  (truncated) 2 3/3\n"
		"  f 1 4/4\n"
		"    g 2 2/2\n"
		"! truncated 2\n");
}

Test(caps, funcs)
{
	const struct profile_limits limits = {.funcs = 1};

	event_script_expect(&limits,
			    "T1 enter 1 f; T1 +1 enter 2 g 1; T1 +1 leave 2; T1 +1 leave 1",
			    "T1 3/3\n"
			    "  (truncated) 1 1/1\n"
			    "  f 1 2/2\n"
			    "! truncated 1\n");
}

Test(caps, strings)
{
	const struct profile_limits limits = {.string_bytes = 8};

	event_script_expect(
		&limits, "T1 enter 1 f; T1 +1 enter 2 a_long_name 1; T1 +1 leave 2; T1 +1 leave 1",
		"T1 3/3\n"
		"  (truncated) 1 1/1\n"
		"  f 1 2/2\n"
		"! truncated 1\n");
}

Test(caps, threads)
{
	const struct profile_limits limits = {.threads = 1};

	event_script_expect(
		&limits,
		"T1 enter 1 f; T2 enter 1 f; T2 +1 enter 2 g 1; T2 +1 leave 2; T3 +0 chain 1=f\n"
		"T1 +1 leave 1",
		"T0 0/0 dead\n"
		"  (truncated) 2 0/0\n"
		"T1 3/3\n"
		"  f 1 3/3\n"
		"! truncated 2\n");
}
