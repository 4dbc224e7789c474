// SPDX-License-Identifier: BSD-2-Clause
/* The rules of matching, one script each: the events, and the resulting tree. */
#include "harness/event_script.h"
#include "harness/test.h"

static void expect(const char *script, const char *expected)
{
	event_script_expect(NULL, script, expected);
}

Test(rebuild, nested_calls)
{
	expect("T1 enter 0x10 f; T1 +5 enter 0x20 g 0x10; T1 +7 leave 0x20; T1 +1 enter 0x20 g "
	       "0x10\n"
	       "T1 +7 leave 0x20; T1 +2 leave 0x10; +4 wait",
	       "T1 26/26\n"
	       "  outside 4/4\n"
	       "  f 1 8/8\n"
	       "    g 2 14/14\n");
}

Test(rebuild, recursion)
{
	expect("T1 enter 1 f; T1 +1 enter 2 f 1; T1 +2 enter 3 f 2; T1 +3 leave 3; T1 +4 leave 2\n"
	       "T1 +5 leave 1",
	       "T1 15/15\n"
	       "  f 1 6/6\n"
	       "    f 1 6/6\n"
	       "      f 1 3/3\n");
}

Test(rebuild, mutual_recursion)
{
	expect("T1 enter 1 f; T1 +1 enter 2 g 1; T1 +1 enter 3 f 2; T1 +1 enter 4 g 3\n"
	       "T1 +1 leave 4; T1 +1 leave 3; T1 +1 leave 2; T1 +1 leave 1",
	       "T1 7/7\n"
	       "  f 1 2/2\n"
	       "    g 1 2/2\n"
	       "      f 1 2/2\n"
	       "        g 1 1/1\n");
}

/* A resume is a call, a yield is a return; another function may resume the frame. */
Test(rebuild, generator)
{
	expect("T1 enter 1 f; T1 +1 enter 9 gen 1; T1 +2 yield 9; T1 +1 enter 9 gen 1; T1 +2 yield "
	       "9\n"
	       "T1 +1 enter 2 h 1; T1 +1 enter 9 gen 2; T1 +5 leave 9; T1 leave 2; T1 leave 1",
	       "T1 13/13\n"
	       "  f 1 3/3\n"
	       "    gen 2 4/4\n"
	       "    h 1 1/1\n"
	       "      gen 1 5/5\n");
}

Test(rebuild, generator_resumed_by_another_thread)
{
	expect("T1 enter 1 f; T1 +1 enter 9 gen 1; T1 +2 yield 9\n"
	       "T2 enter 5 h; T2 +1 enter 9 gen 5; T2 +3 yield 9; T2 leave 5; T1 leave 1",
	       "T1 7/7\n"
	       "  f 1 5/5\n"
	       "    gen 1 2/2\n"
	       "T2 4/4\n"
	       "  h 1 1/1\n"
	       "    gen 1 3/3\n");
}

Test(rebuild, throw_into_generator)
{
	expect("T1 enter 1 f; T1 enter 9 gen 1; T1 +2 yield 9; T1 throw 9 gen 1; T1 +3 leave 9\n"
	       "T1 leave 1",
	       "T1 5/5\n"
	       "  f 1 0/0\n"
	       "    gen 2 5/5\n");
}

/* Each frame that an exception passes through has its own leave, as usual. */
Test(rebuild, exception_through_frames)
{
	expect("T1 enter 1 f; T1 +1 enter 2 g 1; T1 +1 enter 3 h 2; T1 +1 leave 3; T1 leave 2\n"
	       "T1 +1 leave 1; +1 wait",
	       "T1 5/5\n"
	       "  outside 1/1\n"
	       "  f 1 2/2\n"
	       "    g 1 1/1\n"
	       "      h 1 1/1\n");
}

/* E1 */
Test(rebuild, same_entry_twice)
{
	expect("T1 enter 1 f; T1 +1 enter 2 g 1; T1 +1 enter 2 g 1; T1 +1 leave 2; T1 leave 1",
	       "T1 3/3\n"
	       "  f 1 1/1\n"
	       "    g 1 2/2\n");
}

/* E1: another function in the same memory is not the same entry. */
Test(rebuild, frame_reused_without_leave)
{
	expect("T1 enter 1 f; T1 +1 enter 2 g 1; T1 +1 enter 2 h 1; T1 +1 leave 2; T1 leave 1",
	       "T1 3/3\n"
	       "  f 1 1/1\n"
	       "    g 1 1/1\n"
	       "    h 1 1/1\n"
	       "! unmatched 1\n");
}

/* E4 */
Test(rebuild, leaves_missed)
{
	expect("T1 enter 1 f; T1 +1 enter 2 g 1; T1 +1 enter 3 h 2; T1 +1 enter 4 k 1; T1 +1 leave "
	       "4\n"
	       "T1 +1 leave 1",
	       "T1 5/5\n"
	       "  f 1 2/2\n"
	       "    g 1 1/1\n"
	       "      h 1 1/1\n"
	       "    k 1 1/1\n"
	       "! unmatched 2\n");
}

/* L2 */
Test(rebuild, leave_below_top)
{
	expect("T1 enter 1 f; T1 +1 enter 2 g 1; T1 +1 enter 3 h 2; T1 +1 leave 1; +5 wait",
	       "T1 8/8\n"
	       "  outside 5/5\n"
	       "  f 1 1/1\n"
	       "    g 1 1/1\n"
	       "      h 1 1/1\n"
	       "! unmatched 2\n");
}

/* L4: the entry raised RecursionError before the frame began. */
Test(rebuild, leave_of_unstarted_frame)
{
	expect("T1 enter 1 f; T1 +1 leave 2; T1 +1 leave 1", "T1 2/2\n"
							     "  f 1 2/2\n"
							     "! unstarted 1\n");
}

/*
 * E7: a greenlet that was parked before the attach; further calls by it, and its own end, then find
 * its stack. The old stack continues later.
 */
Test(rebuild, unknown_caller)
{
	expect("T1 enter 1 f; T1 +1 enter 8 g 0x77; T1 +1 leave 8; T1 +1 enter 8 g 0x77; T1 +1 "
	       "leave 8;"
	       "T1 +1 leave 0x77; T1 +1 leave 1",
	       "T1 6/6\n"
	       "  outside 1/1\n"
	       "  f 1 1/1\n"
	       "  (unseen) 0 2/2\n"
	       "    g 2 2/2\n"
	       "! unseen 1\n"
	       "! switches 1\n");
}

/* The same after the other stack became empty. */
Test(rebuild, unknown_caller_on_empty_stack)
{
	expect("T1 enter 1 f; T1 +1 leave 1; T1 enter 8 g 0x77; T1 +1 leave 8; T1 leave 0x77",
	       "T1 2/2\n"
	       "  f 1 1/1\n"
	       "  (unseen) 0 0/0\n"
	       "    g 1 1/1\n"
	       "! unseen 1\n");
}

Test(rebuild, greenlets)
{
	expect("T1 enter 1 main; T1 +1 enter 2 switch 1\n"
	       "T1 +1 enter 0x101 a; T1 +1 enter 0x102 switch 0x101 # E3: greenlet a starts\n"
	       "T1 +1 enter 0x201 b                                # and starts b\n"
	       "T1 +1 leave 0x102; T1 +1 enter 0x102 work 0x101    # L3: back in a\n"
	       "T1 +1 enter 0x202 work 0x201                       # E5: on to b\n"
	       "T1 +1 leave 0x202; T1 +1 leave 0x201               # b ends\n"
	       "T1 +1 leave 0x102; T1 +1 leave 0x101; T1 +1 leave 2; T1 +1 leave 1",
	       "T1 13/13\n"
	       "  outside 2/2\n"
	       "  main 1 2/2\n"
	       "    switch 1 1/1\n"
	       "  a 1 3/3\n"
	       "    switch 1 1/1\n"
	       "    work 1 1/1\n"
	       "  b 1 2/2\n"
	       "    work 1 1/1\n"
	       "! switches 6\n");
}

/*
 * Frames of a killed greenlet never leave; when their memory is reused they are known to be dead.
 */
Test(rebuild, greenlet_killed)
{
	expect("T1 enter 1 main; T1 +1 enter 0x101 a; T1 +1 enter 0x102 b 0x101; T1 +1 leave 1\n"
	       "T1 enter 1 main; T1 +1 enter 0x102 c 1; T1 +1 leave 0x102; T1 leave 1",
	       "T1 5/5\n"
	       "  main 2 2/2\n"
	       "    c 1 1/1\n"
	       "  a 1 1/1 *1\n"
	       "    b 1 1/1\n"
	       "! unmatched 1\n"
	       "! switches 2\n");
}

/* Activations of a parked stack only last while the stack is current. */
Test(rebuild, greenlet_durations)
{
	struct event_script *es = event_script_new(NULL);
	struct snapshot *s;

	event_script_run(es,
			 "T1 enter 1 f; T1 +5 enter 0x101 g; T1 +100 leave 0x101; T1 +3 leave 1");
	s = event_script_snapshot(es);
	for (uint32_t i = 0; i < s->nnodes; i++) {
		const struct snapshot_node *n = &s->nodes[i];
		uint64_t want = n->func != SNAPSHOT_NONE && s->funcs[n->func].name[0] == 'f' ? 5
											     : 100;

		if (n->parent == SNAPSHOT_NONE)
			continue;
		cr_assert_eq(n->min[SNAPSHOT_WALL], want);
		cr_assert_eq(n->max[SNAPSHOT_CPU], want);
	}
	snapshot_free(s);
	event_script_free(es);
	check_no_leaks();
}

static const struct snapshot_func *func_named(const struct snapshot *s, const char *name)
{
	for (uint32_t i = 0; i < s->nfuncs; i++)
		if (strcmp(s->funcs[i].name, name) == 0)
			return &s->funcs[i];
	cr_assert_fail("no %s", name);
	return NULL;
}

/* The shortest and the longest of three, one of which waits. */
Test(rebuild, shortest_and_longest)
{
	struct event_script *es = event_script_new(NULL);
	struct snapshot *s;

	event_script_run(es, "T1 enter 1 f; T1 +5 leave 1; T1 enter 1 f; T1 +3 leave 1\n"
			     "T1 enter 1 f; T1 +2 out; T1 +7 in; T1 +2 leave 1; T1 enter 1 f");
	s = event_script_snapshot(es);
	cr_assert(s->nodes[1].min[SNAPSHOT_CPU] == 3 && s->nodes[1].max[SNAPSHOT_CPU] == 5);
	cr_assert(s->nodes[1].min[SNAPSHOT_WALL] == 3 && s->nodes[1].max[SNAPSHOT_WALL] == 11);
	snapshot_free(s);
	event_script_free(es);
	check_no_leaks();
}

/*
 * Durations do not contain the time of hits: of g's, 1 and 20 ns; of f's, the same, and 11 and 22 or 33 of
 * its callees; of a generator's, 1 and 30. What is shorter has none left.
 */
Test(rebuild, durations_without_probes)
{
	const struct cost cost = {.known = true, .before = {10, 20, 30}, .after = {1, 2, 3}};
	struct event_script *es = event_script_new(NULL);
	struct snapshot *s;

	profile_set_cost(event_script_profile(es), &cost);
	event_script_run(es, "T1 enter 1 f; T1 +100 enter 2 g 1; T1 +200 leave 2\n"
			     "T1 +100 enter 9 gen first 1; T1 +150 yield 9\n"
			     "T1 +100 enter 3 h 1; T1 +15 leave 3; T1 +10 c-instant 1 abs\n"
			     "T1 +25 leave 1; T1 enter 1 k; T1 +5 chain resync 1=k; T1 +5 leave 1");
	s = event_script_snapshot(es);
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
		cr_assert_eq(func_named(s, "g")->durations[c].max, 200 - 21);
		cr_assert_eq(func_named(s, "gen")->durations[c].max, 150 - 31);
		cr_assert_eq(func_named(s, "h")->durations[c].max, 0);
		cr_assert_eq(func_named(s, "f")->durations[c].max,
			     700 - (1 + 33 + 44 + 33 + 11 + 20));
	}
	cr_assert(!func_named(s, "<built-in method abs>")->durations, "it has no end");
	snapshot_free(s);
	event_script_free(es);
	check_no_leaks();
}

/*
 * Expected text, per function that runs in several steps: "a started partial ended steps running suspended total",
 * where the running time is CPU/wall.
 */
static void expect_coros(enum snapshot_coro_kind kind, const char *script, const char *expected)
{
	struct event_script *es = event_script_new(NULL);
	struct snapshot *s;
	char text[256] = "";
	size_t at = 0;

	event_script_run(es, script);
	s = event_script_snapshot(es);
	for (uint32_t i = 0; i < s->ncoros; i++) {
		const struct snapshot_coro *c = &s->coros[i];

		cr_assert_eq(c->kind, kind);
		at += (size_t)snprintf(text + at, sizeof(text) - at,
				       "%s %lu %lu %lu %lu %lu/%lu %lu %lu\n",
				       s->funcs[c->func].name, c->started, c->partial, c->ended,
				       c->steps, c->running[SNAPSHOT_CPU],
				       c->running[SNAPSHOT_WALL], c->suspended, c->total);
	}
	cr_assert_str_eq(text, expected, "%s\n--- gives\n%s", script, text);
	snapshot_free(s);
	event_script_free(es);
	check_no_leaks();
}

static void expect_greenlets(const char *script, const char *expected)
{
	expect_coros(SNAPSHOT_GREENLET, script, expected);
}

static void expect_generators(const char *script, const char *expected)
{
	expect_coros(SNAPSHOT_GENERATOR, script, expected);
}

#define BEGUN "T1 enter 1 f; T1 +1 enter 9 gen first 1; T1 +2 "
Test(rebuild, generator_lifetimes)
{
	expect_generators(BEGUN "yield 9; T1 +3 enter 9 gen again 1; T1 +4 leave 9; T1 leave 1",
			  "gen 1 0 1 2 6/6 3 9\n");
	/* Suspended, running, waiting; and with a callee */
	expect_generators(BEGUN "yield 9; +5 wait", "gen 1 0 0 1 2/2 5 0\n");
	expect_generators(BEGUN "yield 9; T1 enter 9 gen again 1; +5 wait",
			  "gen 1 0 0 2 7/7 0 0\n");
	expect_generators(BEGUN "out; T1 +5 in; T1 +1 yield 9", "gen 1 0 0 1 3/8 0 0\n");
	expect_generators(BEGUN "enter 2 g 9; T1 +2 leave 2; T1 +3 yield 9",
			  "gen 1 0 0 1 7/7 0 0\n");
	/* Another thread resumes it. */
	expect_generators(BEGUN "yield 9; T2 enter 5 h; T2 +1 enter 9 gen again 5; T2 +3 leave 9",
			  "gen 1 0 1 2 5/5 1 6\n");
	/* Its first step was not seen; its end was not seen. */
	expect_generators("T1 enter 1 f; T1 enter 9 gen again 1; T1 +2 leave 9",
			  "gen 0 1 1 1 2/2 0 0\n");
	expect_generators(BEGUN "enter 9 g 1", "gen 1 0 1 1 2/2 0 2\n");
	/* Tracing ends: what happens to it later is not known. */
	expect_generators(BEGUN "yield 9; +5 end; +7 wait", "gen 1 0 0 1 2/2 5 0\n");
}

/* What has begun before a clear has no running time of its step, but is suspended afterwards. */
Test(rebuild, generators_cleared)
{
	expect_generators(
		"T1 enter 1 f; T1 +1 enter 9 gen first 1; +2 clear; T1 +3 yield 9; +4 wait",
		"gen 0 1 0 0 0/0 4 0\n");
	expect_generators("T1 enter 1 f; T1 +1 enter 9 gen first 1; +2 clear; +3 wait",
			  "gen 0 1 0 0 0/0 0 0\n");
	expect_generators(BEGUN "yield 9; +1 clear; +4 wait", "gen 0 1 0 0 0/0 4 0\n");
}

/* E6: an awaited object is entered by a generator that is suspended. */
Test(rebuild, suspended_generator_calls)
{
	expect(BEGUN "yield 9; T1 +1 enter 8 g 9; T1 +2 leave 8; T1 leave 1", "T1 6/6\n"
									      "  f 1 2/2\n"
									      "    gen 1 2/2\n"
									      "    g 1 2/2\n");
}

Test(rebuild, suspensions_are_counted)
{
	struct event_script *es = event_script_new(NULL);
	struct snapshot *s;

	event_script_run(es, BEGUN "yield 9; T1 enter 9 gen again 1; T1 yield 9\n"
				   "T1 enter 9 gen again 1; T1 leave 9; T1 leave 1");
	s = event_script_snapshot(es);
	cr_assert_eq(s->nnodes, 3);
	cr_assert(s->nodes[1].yields == 0 && s->nodes[2].yields == 2 && s->nodes[2].calls == 3);
	snapshot_free(s);
	event_script_free(es);
	check_no_leaks();
}

/* main is none; a begins, then b; a continues and ends, then b. */
#define TWO "T1 enter 1 main; T1 +1 enter 0x101 a; T1 +2 enter 0x201 b\n"
Test(rebuild, greenlet_lifetimes)
{
	expect_greenlets(TWO "T1 +3 leave 0x101; T1 +4 leave 0x201; T1 +5 leave 1",
			 "a 1 0 1 2 2/2 3 5\n"
			 "b 1 0 1 2 3/3 4 7\n");
	/* Both are still there. */
	expect_greenlets(TWO "+3 wait", "a 1 0 0 1 2/2 3 0\n"
					"b 1 0 0 1 3/3 0 0\n");
	/* main continues, and a's frame has another owner. */
	expect_greenlets(TWO "T1 +3 enter 2 f 1; T1 +4 enter 0x101 g 2; +5 wait",
			 "a 1 0 1 1 2/2 0 2\n"
			 "b 1 0 0 1 3/3 9 0\n");
	/* Stacks that begin when there is no other one are no greenlets. */
	expect_greenlets("T1 enter 1 main; T1 +1 enter 0x101 a; T1 +2 leave 0x101; T1 +1 leave 1\n"
			 "T1 +1 enter 5 b; T1 +1 leave 5",
			 "a 1 0 1 1 2/2 0 2\n");
	expect_greenlets("T1 enter 1 main; T1 +1 leave 1; T1 +1 enter 2 main; T1 +1 leave 2", "");
}

/* After a clear, both are as if they had been first seen then; main is none of them. */
Test(rebuild, greenlets_cleared)
{
	expect_greenlets(TWO "+3 clear; T1 +4 leave 0x101; T1 +1 leave 0x201; T1 +1 leave 1",
			 "a 0 1 1 1 0/0 4 0\n"
			 "b 0 1 1 1 4/4 1 0\n");
	expect_greenlets(TWO "+3 clear; +6 wait", "a 0 1 0 0 0/0 6 0\n"
						  "b 0 1 0 0 6/6 0 0\n");
}

/* They end with their thread; with tracing, they are no longer seen. */
Test(rebuild, greenlets_of_a_thread_that_ends)
{
	expect_greenlets(TWO "T1 +3 exit", "a 1 0 1 1 2/2 3 5\n"
					   "b 1 0 1 1 3/3 0 3\n");
	expect_greenlets(TWO "+3 end; +5 wait", "a 1 0 0 1 2/2 3 0\n"
						"b 1 0 0 1 3/3 0 0\n");
}

Test(rebuild, thousands_of_greenlets)
{
	struct event_script *es = event_script_new(NULL);
	struct profile_counts c;
	char line[64];

	for (int i = 1; i <= 5000; i++) {
		snprintf(line, sizeof(line), "T1 +1 enter %d f; T1 +1 enter %d g %d", i * 10,
			 i * 10 + 1, i * 10);
		event_script_run(es, line);
	}
	/* Each kept stack continues; the oldest 903 have been dropped. */
	for (int i = 1000; i <= 5000; i++) {
		snprintf(line, sizeof(line), "T1 +1 leave %d; T1 +1 enter %d h %d", i * 10 + 1,
			 i * 10 + 1, i * 10);
		event_script_run(es, line);
	}
	cr_assert_eq(profile_counts(event_script_profile(es)).unstarted, 0);
	/* No stack has the frame of a dropped one, although another has its slot. */
	event_script_run(es, "T1 +1 leave 11");
	c = profile_counts(event_script_profile(es));
	cr_assert_eq(c.unstarted, 1);
	cr_assert_eq(c.calls, 10000 + 4001);
	cr_assert_eq(c.unmatched, 903 * 2);
	cr_assert_eq(c.nodes, 3);
	event_script_free(es);
	check_no_leaks();
}

Test(rebuild, attach_in_the_middle)
{
	expect("T1 +0 chain 2=g 1=f; T1 enter 3 h 2; T1 +2 leave 3; T1 +1 leave 2; T1 +4 leave 1; "
	       "+1 wait",
	       "T1 8/8\n"
	       "  outside 1/1\n"
	       "  f 0 4/4\n"
	       "    g 0 1/1\n"
	       "      h 1 2/2\n");
}

Test(rebuild, chain_in_parts)
{
	expect("T1 +0 chain more 4=h 3=h; T1 +0 chain more 2=g; T1 +0 chain 1=f; T1 +1 leave 4",
	       "T1 1/1\n"
	       "  f 0 0/0 *1\n"
	       "    g 0 0/0 *1\n"
	       "      h 0 0/0 *1\n"
	       "        h 0 1/1\n");
}

Test(rebuild, chain_never_finished)
{
	expect("T1 +0 chain more 4=h 3=h; T1 enter 7 g 3; T1 +1 leave 7; T2 +0 chain 1=f; T2 +1 "
	       "leave 1",
	       "T1 2/2\n"
	       "  (unseen) 0 1/1 *1\n"
	       "    g 1 1/1\n"
	       "T2 1/1\n"
	       "  f 0 1/1\n"
	       "! unseen 1\n");
}

/* The call invalidated the first part of the chain; the second part alone cannot be used. */
Test(rebuild, chain_broken_by_a_call)
{
	expect("T1 +0 chain more 4=h 3=h; T1 enter 7 g 3; T1 +1 chain 1=f; T1 +1 leave 7",
	       "T1 2/2\n"
	       "  (unseen) 0 0/0 *1\n"
	       "    g 1 2/2\n"
	       "! unseen 1\n");
}

Test(rebuild, loss_and_resync)
{
	expect("T1 enter 1 f; T1 +1 enter 2 g 1; T1 +1 enter 3 h 2\n"
	       "T1 +50 chain resync 7=k 2=g 1=f; T1 +3 leave 7; T1 +1 leave 2; T1 +1 leave 1",
	       "T1 57/57\n"
	       "  (lost) 0 50/50\n"
	       "  f 1 2/2\n"
	       "    g 1 2/2\n"
	       "      h 1 0/0\n"
	       "      k 0 3/3\n"
	       "! resyncs 1\n");
}

Test(rebuild, resync_to_nothing)
{
	expect("T1 enter 1 f; T1 +1 enter 2 g 1; T1 +50 chain resync; T1 +1 enter 1 f; T1 +1 leave "
	       "1",
	       "T1 53/53\n"
	       "  outside 1/1\n"
	       "  (lost) 0 50/50\n"
	       "  f 2 2/2\n"
	       "    g 1 0/0\n"
	       "! resyncs 1\n");
}

/* The next run time from the scheduler determines the CPU time of a gap. */
Test(rebuild, resync_cpu)
{
	expect("T1 enter 1 f; T1 +10 out 1010; T1 +10 in 1010\n"
	       "T1 +100 chain resync 1=f; T1 +5 leave 1; T1 +5 out 1050",
	       "T1 50/130\n"
	       "  outside 5/5\n"
	       "  (lost) 0 30/100\n"
	       "  f 1 15/25\n"
	       "! resyncs 1\n");
}

/*
 * Until a thread's stack is known again, its switches determine its CPU time, but not the
 * functions.
 */
Test(rebuild, switches_in_a_gap)
{
	expect("T1 enter 1 f; T1 +10 out 1010; T1 +10 in 1010\n"
	       "T1 +100 out lost 1070; T1 +30 in lost 1070; T1 +20 chain resync 1=f\n"
	       "T1 +5 leave 1; T1 +5 out 1090",
	       "T1 90/180\n"
	       "  outside 5/5\n"
	       "  (lost) 0 70/150\n"
	       "  f 1 15/25\n"
	       "! resyncs 1\n");
}

Test(rebuild, end_in_a_gap)
{
	expect("T1 enter 1 f; T1 +10 out 1010; T1 +10 in 1010; T1 +50 exit lost",
	       "T1 60/70 dead\n"
	       "  (lost) 0 50/50\n"
	       "  f 1 10/20\n");
}

/* The CPU time of a gap is charged once. */
Test(rebuild, resync_cpu_is_reported_once)
{
	expect("T1 enter 1 f; T1 +10 out 1010; T1 +10 in 1010\n"
	       "T1 +100 chain resync 1=f; T1 +5 out 1045; T1 +10 in 1045; T1 +5 out 1055",
	       "T1 50/140\n"
	       "  (lost) 0 30/100\n"
	       "  f 1 20/40 *1\n"
	       "! resyncs 1\n");
}

Test(rebuild, truncated_chain_keeps_what_is_below)
{
	expect("T1 enter 1 f; T1 enter 2 g 1; T1 enter 3 h 2\n"
	       "T1 +5 chain resync truncated 9=k 2=g; T1 +1 leave 9; T1 +1 leave 2; T1 +1 leave 1",
	       "T1 8/8\n"
	       "  (lost) 0 5/5\n"
	       "  f 1 1/1\n"
	       "    g 1 1/1\n"
	       "      h 1 0/0\n"
	       "      k 0 1/1\n"
	       "! resyncs 1\n");
}

Test(rebuild, resync_in_another_greenlet)
{
	expect("T1 enter 1 main; T1 +1 enter 0x101 a; T1 +1 enter 0x102 b 0x101\n"
	       "T1 +9 chain resync 1=main; T1 +1 leave 1; T1 +1 leave 0x102",
	       "T1 13/13\n"
	       "  outside 1/1\n"
	       "  (lost) 0 9/9\n"
	       "  main 1 2/2\n"
	       "  a 1 1/1 *1\n"
	       "    b 1 0/0\n"
	       "! switches 3\n"
	       "! resyncs 1\n");
}

Test(rebuild, two_threads)
{
	expect("T1 enter 1 f; T2 enter 1 f; T1 +1 enter 2 g 1; T2 +1 leave 1; T1 +1 leave 2; T1 "
	       "leave 1",
	       "T1 3/3\n"
	       "  f 1 1/1\n"
	       "    g 1 2/2\n"
	       "T2 3/3\n"
	       "  outside 1/1\n"
	       "  f 1 2/2\n");
}

Test(rebuild, thread_ends_and_tid_is_reused)
{
	expect("T1 enter 1 f; T1 +3 exit worker; T1 +5 enter 1 f; T1 +2 leave 1", "T1 3/3 dead\n"
										  "  f 1 3/3\n"
										  "T1 2/2\n"
										  "  f 1 2/2\n");
}

Test(rebuild, code_address_reused)
{
	expect("code f 0x500; T1 enter 1 f; T1 +1 leave 1; free f; code g 0x500; T1 enter 1 g; T1 "
	       "+2 leave 1\n"
	       "code f 0x600; T1 enter 1 f; T1 +4 leave 1",
	       "T1 7/7\n"
	       "  f 2 5/5\n"
	       "  g 1 2/2\n");
}

Test(rebuild, code_never_announced)
{
	expect("T1 enter 1 0xabc; T1 +1 leave 1", "T1 1/1\n"
						  "  <unknown 0xabc> 1 1/1\n");
}
