// SPDX-License-Identifier: BSD-2-Clause
/* The rules of matching and of time, one script each: the events, and the resulting tree. */
#include "harness/event_script.h"
#include "harness/test.h"

static void expect_limited(const struct profile_limits *limits, const char *script,
			   const char *expected)
{
	struct event_script *es = event_script_new(limits);
	struct snapshot *s;
	char *tree;

	event_script_run(es, script);
	s = event_script_snapshot(es);
	cr_assert(snapshot_valid(s));
	tree = event_script_tree(s);
	cr_assert(strcmp(tree, expected) == 0, "%s\n--- gives\n%s--- not\n%s", script, tree,
		  expected);
	free(tree);
	snapshot_free(s);
	event_script_free(es);
}

static void expect(const char *script, const char *expected)
{
	expect_limited(NULL, script, expected);
	check_no_leaks();
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
	c = profile_counts(event_script_profile(es));
	cr_assert_eq(c.calls, 10000 + 4001);
	cr_assert_eq(c.unmatched, 903 * 2);
	cr_assert_eq(c.unstarted, 0);
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
Test(rebuild, resync_cpu_is_told_once)
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

/* Time ------------------------------------------------------------------------------------- */

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

Test(clear, forgets_stretches)
{
	expect("T1 enter 1 f; T1 +5 out 1000; T1 +5 in 1000; T1 +50000 enter 2 g 1; clear\n"
	       "T1 +7 out 1020; T1 +5 in 1020; T1 +5 out 1025",
	       "T1 0/17\n"
	       "  f 0 0/0 *1\n"
	       "    g 0 0/17 *1\n");
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

/* Initial stacks --------------------------------------------------------------------------- */

Test(seed, blocked_thread)
{
	expect("begin; T1 +10 seed blocked 700 2=accept 1=main; T1 +90 runtime 700",
	       "T1 0/100\n"
	       "  main 0 0/0 *1\n"
	       "    accept 0 0/100 *1\n");
}

Test(seed, running_thread)
{
	expect("begin; T1 +10 seed running 700 1=main; T1 +90 runtime 770; T1 +10 runtime 775",
	       "T1 85/110\n"
	       "  main 0 85/110 *1\n");
}

Test(seed, running_thread_shows_an_event)
{
	expect("begin; T1 +10 seed running 700 2=g 1=main; T1 +90 leave 2; T1 +5 leave 1",
	       "T1 105/105\n"
	       "  main 0 5/5\n"
	       "    g 0 100/100\n");
}

/* The next switch has the CPU time between the OS's run time and the first event. */
/* 2 of g's 3 ms; the run time of the initial stack was 690 when tracing began. */
Test(seed, stolen_from_a_running_thread)
{
	expect("begin; T1 +10 seed running 700 1=main; T1 +90 enter 2 g 1; T1 +3000000 leave 2\n"
	       "T1 +5 out 1000795; T1 +5 in 1000795",
	       "T1 1000105/3000110\n"
	       "  main 0 100/110 *1\n"
	       "    g 1 1000005/3000000\n");
}

/* The thread was runnable, but did not get a CPU. */
Test(seed, waits_for_a_cpu)
{
	expect("begin; T1 +10 seed running 700 2=g 1=main; T1 +50000 leave 2; T1 +10 out 720",
	       "T1 30/50020\n"
	       "  main 0 0/10 *1\n"
	       "    g 0 30/50010\n");
}

Test(seed, blocked_thread_shows_an_event)
{
	expect("begin; T1 +10 seed blocked 700 2=g 1=main; T1 +40 runtime 700\n"
	       "T1 +50 leave 2; T1 +5 leave 1; T1 +5 out 730",
	       "T1 30/110\n"
	       "  outside 5/5\n"
	       "  main 0 5/5\n"
	       "    g 0 20/100\n");
}

Test(seed, switches_take_over)
{
	expect("begin; T1 +10 seed blocked 700 1=main; T1 +90 in 700; T1 +20 out 720; T1 +5 "
	       "runtime 720",
	       "T1 20/125\n"
	       "  main 0 20/125 *1\n");
}

/*
 * The OS's run time is up to a tick old: an implausible excess at the first switch is accepted as
 * the new run time, and not charged.
 */
Test(seed, account_lags)
{
	expect("begin; T1 +10 seed blocked 700 1=main; T1 +90 in 5000700; T1 +20 out 5000720; T1 "
	       "+10 in 5000720",
	       "T1 120/130\n"
	       "  main 0 120/130 *1\n");
}

Test(seed, older_than_the_chain)
{
	expect("begin; T1 +10 seed blocked 700 2=g 1=main; T1 +50 chain 2=g 1=main; T1 +0 enter 3 "
	       "h 2\n"
	       "T1 +5 leave 3",
	       "T1 5/65\n"
	       "  main 0 0/0 *1\n"
	       "    g 0 0/60 *1\n"
	       "      h 1 5/5\n");
}

/* The initial stack was read after the event had been sent, but arrives first. */
Test(seed, newer_than_the_chain)
{
	struct event_script *es = event_script_new(NULL);
	struct pyp_chain_frame frame = {.frame = 1};
	struct event e = {.ts = 1005, .tid = 1, .type = PYP_REC_CHAIN};
	struct snapshot *s;
	char *tree;

	event_script_run(es, "begin; T1 +10 seed blocked 700 2=g 1=main; code main 0x500 2");
	frame.code = 0x500;
	e.u.chain = (struct event_chain){.count = 1, .flags = PYP_CHAIN_LAST, .frames = &frame};
	profile_event(event_script_profile(es), &e);
	event_script_run(es, "T1 +0 leave 1; +3 wait");
	s = event_script_snapshot(es);
	tree = event_script_tree(s);
	cr_assert_str_eq(tree, "T1 8/13\n"
			       "  outside 3/3\n"
			       "  main 0 5/10\n");
	free(tree);
	snapshot_free(s);
	event_script_free(es);
	check_no_leaks();
}

Test(seed, of_a_thread_already_seen)
{
	expect("begin; T1 +5 enter 1 f; T1 +5 seed blocked 700 9=g; T1 +5 leave 1",
	       "T1 10/10\n"
	       "  f 1 10/10\n");
}

/* Windows, clearing, limits ---------------------------------------------------------------- */

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

Test(caps, depth)
{
	const struct profile_limits limits = {.depth = 2};

	expect_limited(
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
	check_no_leaks();
}

Test(caps, depth_in_flight)
{
	const struct profile_limits limits = {.depth = 2};

	expect_limited(
		&limits,
		"T1 enter 1 f; T1 +1 enter 2 g 1; T1 +1 enter 3 h 2; T1 +1 enter 4 k 3; +1 wait",
		"T1 4/4\n"
		"  (truncated) 2 2/2 *2\n"
		"  f 1 1/1 *1\n"
		"    g 1 1/1 *1\n"
		"! truncated 2\n");
	check_no_leaks();
}

Test(caps, resync_ends_the_overflow)
{
	const struct profile_limits limits = {.depth = 2};

	expect_limited(&limits,
		       "T1 enter 1 f; T1 enter 2 g 1; T1 +1 enter 3 h 2; T1 +2 chain resync 2=g "
		       "1=f; +1 wait",
		       "T1 4/4\n"
		       "  (truncated) 1 0/0\n"
		       "  (lost) 0 2/2\n"
		       "  f 1 0/0 *1\n"
		       "    g 1 2/2 *1\n"
		       "! resyncs 1\n"
		       "! truncated 1\n");
	check_no_leaks();
}

Test(caps, nodes)
{
	const struct profile_limits limits = {.nodes = 2};

	expect_limited(&limits,
		       "T1 enter 1 f; T1 +1 enter 2 g 1; T1 +1 leave 2; T1 +1 enter 2 h 1\n"
		       "T1 +1 enter 3 g 2; T1 +1 leave 3; T1 +1 leave 2; T1 +1 enter 2 g 1; T1 +1 "
		       "leave 2\n"
		       "T1 +1 leave 1",
		       "T1 9/9\n"
		       "  (truncated) 2 3/3\n"
		       "  f 1 4/4\n"
		       "    g 2 2/2\n"
		       "! truncated 2\n");
	check_no_leaks();
}

Test(caps, funcs)
{
	const struct profile_limits limits = {.funcs = 1};

	expect_limited(&limits, "T1 enter 1 f; T1 +1 enter 2 g 1; T1 +1 leave 2; T1 +1 leave 1",
		       "T1 3/3\n"
		       "  (truncated) 1 1/1\n"
		       "  f 1 2/2\n"
		       "! truncated 1\n");
	check_no_leaks();
}

Test(caps, strings)
{
	const struct profile_limits limits = {.string_bytes = 8};

	expect_limited(&limits,
		       "T1 enter 1 f; T1 +1 enter 2 a_long_name 1; T1 +1 leave 2; T1 +1 leave 1",
		       "T1 3/3\n"
		       "  (truncated) 1 1/1\n"
		       "  f 1 2/2\n"
		       "! truncated 1\n");
	check_no_leaks();
}

Test(caps, threads)
{
	const struct profile_limits limits = {.threads = 1};

	expect_limited(
		&limits,
		"T1 enter 1 f; T2 enter 1 f; T2 +1 enter 2 g 1; T2 +1 leave 2; T3 +0 chain 1=f\n"
		"T1 +1 leave 1",
		"T0 0/0 dead\n"
		"  (truncated) 2 0/0\n"
		"T1 3/3\n"
		"  f 1 3/3\n"
		"! truncated 2\n");
	check_no_leaks();
}
