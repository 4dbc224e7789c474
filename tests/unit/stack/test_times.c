// SPDX-License-Identifier: BSD-2-Clause
/* The rules of time, one script each: switches, run times, time that a hypervisor took. */
#include "harness/event_script.h"
#include "harness/test.h"

static void expect(const char *script, const char *expected)
{
	event_script_expect(NULL, script, expected);
}

Test(time, off_cpu)
{
	expect("T1 enter 1 f; T1 +5 out; T1 +100 in; T1 +5 leave 1; T1 +1 out; T1 +10 in",
	       "T1 11/121\n"
	       "  outside 1/11\n"
	       "  f 1 10/110\n");
}

/* The scheduler's run time is authoritative: the interval before a switch takes the difference. */
Test(time, authoritative_runtime)
{
	expect("T1 enter 1 f; T1 +5 out 1000; T1 +10 in 1000; T1 +10 leave 1; T1 +10 out 1017",
	       "T1 22/35\n"
	       "  outside 7/10\n"
	       "  f 1 15/25\n");
}

/*
 * If an interval is too short for the correction, the rest is carried over: totals agree in the
 * end.
 */
Test(time, never_backwards)
{
	expect("T1 enter 1 f; T1 +5 out 1000; T1 +10 in 1000; T1 +10 leave 1; T1 +10 out 1008\n"
	       "T1 +10 in 1008; T1 +10 out 1018",
	       "T1 23/55\n"
	       "  outside 8/30\n"
	       "  f 1 15/25\n");
}

/* A hypervisor took 2 ms of g's 3 ms. The time of g's callees and callers is not changed. */
Test(time, stolen)
{
	expect("T1 enter 1 f; T1 +5 out 1000; T1 +5 in 1000\n"
	       "T1 +5000 enter 2 g 1; T1 +3000000 enter 3 h 2; T1 +4000 leave 3; T1 +5 leave 2\n"
	       "T1 +5 out 1010005; T1 +5 in 1010005; T1 +10 out 1010015",
	       "T1 1009020/3009035\n"
	       "  f 1 5015/5030 *1\n"
	       "    g 1 1000005/3000005\n"
	       "      h 1 4000/4000\n");
}

/* The longest interval is too short, so the next longest one is also reduced. */
Test(time, stolen_twice)
{
	expect("T1 enter 1 f; T1 +5 out 1000; T1 +5 in 1000\n"
	       "T1 +50000 enter 2 g 1; T1 +70000 enter 3 h 2; T1 +10 leave 3; T1 +0 out 41010",
	       "T1 40015/120020\n"
	       "  f 1 40005/50010 *1\n"
	       "    g 1 0/70000 *1\n"
	       "      h 1 10/10\n");
}

/* An activation that has begun since then still has a duration. */
Test(time, stolen_before_a_call)
{
	struct event_script *es = event_script_new(NULL);
	struct snapshot *s;

	event_script_run(es, "T1 enter 1 f; T1 +5 out 1000; T1 +5 in 1000; T1 +300000 enter 2 g 1\n"
			     "T1 +7 out 101007; T1 +0 in 101007; T1 +8 leave 2");
	s = event_script_snapshot(es);
	cr_assert_eq(s->threads[0].total[SNAPSHOT_CPU], 100020);
	for (uint32_t i = 0; i < s->nnodes; i++)
		if (s->nodes[i].func != SNAPSHOT_NONE &&
		    strcmp(s->funcs[s->nodes[i].func].name, "g") == 0)
			cr_assert_eq(s->nodes[i].max[SNAPSHOT_CPU], 8);
	snapshot_free(s);
	event_script_free(es);
	check_no_leaks();
}

/* Before its first switch, a new thread's run time began at 0. */
Test(time, stolen_at_first)
{
	expect("T1 enter 1 f; T1 +5000 enter 2 g 1; T1 +3000000 enter 3 h 2; T1 +4000 leave 3\n"
	       "T1 +5 leave 2; T1 +5 out 1009010; T1 +5 in 1009010; T1 +10 out 1009020",
	       "T1 1009020/3009025\n"
	       "  f 1 5015/5020 *1\n"
	       "    g 1 1000005/3000005\n"
	       "      h 1 4000/4000\n");
}

/* The clocks differ by up to 10 us from switch to switch; what is more was stolen. */
Test(time, hardly_stolen)
{
	expect("T1 enter 1 f; T1 +5 out 1000; T1 +5 in 1000; T1 +20000 enter 2 g 1; T1 +0 out "
	       "11000",
	       "T1 20005/20010\n"
	       "  f 1 20005/20010 *1\n"
	       "    g 1 0/0 *1\n");
	expect("T1 enter 1 f; T1 +5 out 1000; T1 +5 in 1000; T1 +20000 enter 2 g 1; T1 +0 out "
	       "10999",
	       "T1 10004/20010\n"
	       "  f 1 10004/20010 *1\n"
	       "    g 1 0/0 *1\n");
	expect("T1 enter 1 f; T1 +20000 enter 2 g 1; T1 +0 out 10000", "T1 20000/20000\n"
								       "  f 1 20000/20000 *1\n"
								       "    g 1 0/0 *1\n");
	expect("T1 enter 1 f; T1 +20000 enter 2 g 1; T1 +0 out 9999", "T1 9999/20000\n"
								      "  f 1 9999/20000 *1\n"
								      "    g 1 0/0 *1\n");
}

/* Up to 1 ms is carried over to the next interval; what is more was used between switches. */
Test(time, hardly_more_than_there_was_time)
{
	expect("T1 enter 1 f; T1 +5 out 1000; T1 +5 in 1001005", "T1 10/10\n"
								 "  f 1 10/10 *1\n");
	expect("T1 enter 1 f; T1 +5 out 1000; T1 +5 in 1001006",
	       "T1 1000011/10\n"
	       "  f 1 10/10 *1\n"
	       "  (switch not reported) 0 1000001/0\n");
}

/* What it used before tracing paused has no part in that. */
Test(time, stolen_in_the_next_window)
{
	expect("begin; T1 enter 1 f; T1 +5 out 1000; T1 +5 in 1000; T1 +300000 enter 2 g 1; +0 "
	       "end\n"
	       "+10 begin; T1 +0 chain 1=f; T1 +10 enter 2 g 1; T1 +5 out 1000",
	       "T1 300020/300025\n"
	       "  f 1 300015/300020 *1\n"
	       "    g 2 5/5 *1\n");
}

/* For a thread that had run before, the run time is unknown. */
Test(time, not_known_at_first)
{
	expect("T1 enter 1 f; T1 +3000000 enter 2 g 1; T1 +5 out 3000000; T1 +5 in 3000000",
	       "T1 3000005/3000010\n"
	       "  f 1 3000000/3000000 *1\n"
	       "    g 1 5/10 *1\n");
}

/* All intervals together are too short: the run time was restarted. */
Test(time, stolen_too_much)
{
	expect("T1 enter 1 f; T1 +5 out 9000000; T1 +5 in 9000000; T1 +50000 enter 2 g 1\n"
	       "T1 +7 out 1000; T1 +0 in 1000; T1 +8 out 1008",
	       "T1 50013/50025\n"
	       "  f 1 50005/50010 *1\n"
	       "    g 1 8/15 *1\n");
}

/* At a thread's end, its run time may lack up to one tick. */
Test(time, not_stolen_at_the_end)
{
	expect("T1 enter 1 f; T1 +5 out 1000; T1 +5 in 1000; T1 +50000 enter 2 g 1; T1 +5 leave 2\n"
	       "T1 +5 leave 1; T1 +0 exit 1000",
	       "T1 50015/50020 dead\n"
	       "  f 1 50010/50015\n"
	       "    g 1 5/5\n");
}

/* The switch in was not reported: f had the CPU for 2 of the 100 before g was called. */
Test(time, switch_in_lost)
{
	expect("T1 enter 1 f; T1 +5 out 1000; T1 +100 enter 2 g 1; T1 +5 leave 2; T1 +5 out 1012",
	       "T1 17/115\n"
	       "  f 1 12/110 *1\n"
	       "    g 1 5/5\n"
	       "! missed 1\n");
}

Test(time, switch_in_long_lost)
{
	expect("T1 enter 1 f; T1 +5 out 1000; T1 +5000000 enter 2 g 1; T1 +5 leave 2; T1 +5 out "
	       "3001010",
	       "T1 3000015/5000015\n"
	       "  f 1 3000010/5000010 *1\n"
	       "    g 1 5/5\n"
	       "! missed 1\n");
}

Test(time, switch_in_lost_without_events)
{
	expect("T1 enter 1 f; T1 +5 out 1000; T1 +100 out 1030; T1 +5 in 1030", "T1 35/110\n"
										"  f 1 35/110 *1\n"
										"! missed 1\n");
}

/* Far more CPU time than fits into the interval: it was used between unreported switches. */
Test(time, more_than_there_was_time)
{
	expect("T1 enter 1 f; T1 +5 out 1000; T1 +5 in 3001000; T1 +5 out 3001005",
	       "T1 3000010/15\n"
	       "  f 1 15/15 *1\n"
	       "  (switch not reported) 0 2999995/0\n");
}

/* The same after a loss of events. */
Test(time, more_than_there_was_time_after_a_loss)
{
	expect("T1 enter 1 f; T1 +5 out 1000; T1 +5 in lost 3001000", "T1 3000005/10\n"
								      "  (lost) 0 3000000/5\n"
								      "  f 1 5/5 *1\n");
}

/* If the run time decreases by a large amount, it was restarted: the new one is used. */
Test(time, account_starts_anew)
{
	expect("T1 enter 1 f; T1 +5 out 10000000; T1 +5 in 10000000; T1 +5 out 5; T1 +5 in 5; T1 "
	       "+5 out 10",
	       "T1 10/25\n"
	       "  f 1 10/25 *1\n");
}

Test(time, goes_back)
{
	struct event_script *es = event_script_new(NULL);
	struct event e = {.ts = 10, .tid = 1, .type = PYP_REC_LEAVE, .u.call.frame = 1};
	struct snapshot *s;

	event_script_run(es, "T1 enter 1 f; T1 +5 enter 2 g 1");
	profile_event(event_script_profile(es), &e);
	event_script_run(es, "T1 +5 enter 1 f; T1 +1 leave 1");
	s = event_script_snapshot(es);
	cr_assert_eq(s->threads[0].total[SNAPSHOT_WALL], 11);
	snapshot_free(s);
	event_script_free(es);
	check_no_leaks();
}

static void begin_stretch(struct profile *p, const struct cost *cost)
{
	profile_in_windows(p, 1000);
	profile_set_cost(p, cost);
	profile_begin(p, 1000);
	profile_limit(p, &(struct profile_limit){0, cost, false});
}

/*
 * If probes are limited, what hits of marks take is nobody's time. If that seems to be longer than the interval between two
 * calls, the next interval is shorter. The scheduler's run time includes it.
 */
Test(time, of_marks)
{
	const struct cost cost = {
		.known = true, .before = {300, 300, 300}, .after = {200, 200, 200}};
	struct event_script *es = event_script_new(NULL);
	struct profile *p = event_script_profile(es);
	struct snapshot *s;

	begin_stretch(p, &cost);
	event_script_run(es, "T1 enter 1 f; T1 +5 out 1000; T1 +5 in 1000\n"
			     "T1 +1000 mark; T1 +800 enter 2 g 1; T1 +100 mark; T1 +200 leave 2\n"
			     "T1 +700 leave 1; T1 +10 out 3810");
	s = event_script_snapshot(es);
	cr_assert_eq(s->threads[0].total[SNAPSHOT_CPU], 5 + 1300 + 500 + 10);
	for (uint32_t i = 0; i < s->nnodes; i++) {
		const struct snapshot_node *n = &s->nodes[i];
		const char *name = n->func == SNAPSHOT_NONE ? "" : s->funcs[n->func].name;

		if (strcmp(name, "g") == 0)
			cr_assert_eq(n->self[SNAPSHOT_CPU], 0);
		if (strcmp(name, "f") == 0)
			cr_assert_eq(n->self[SNAPSHOT_CPU], 5 + 1300 + 500);
	}
	snapshot_free(s);
	event_script_free(es);
	check_no_leaks();
}

/* A mark at the time of a call counts, too; one that comes before the thread's state was read does not. */
Test(time, of_a_mark_at_once)
{
	const struct cost cost = {.known = true, .before = {300}, .after = {200}};
	struct event_script *es = event_script_new(NULL);
	struct profile *p = event_script_profile(es);
	struct event e = {.ts = 1100, .tid = 1, .type = PYP_REC_MARK};
	struct snapshot *s;

	begin_stretch(p, &cost);
	event_script_run(es, "T1 enter 1 f; T1 +0 mark; T1 +800 enter 2 g 1");
	profile_event(p, &e);
	event_script_run(es, "T1 +100 leave 2");
	s = event_script_snapshot(es);
	cr_assert_eq(s->threads[0].total[SNAPSHOT_CPU], 300 + 100);
	snapshot_free(s);
	event_script_free(es);
	check_no_leaks();
}
