// SPDX-License-Identifier: BSD-2-Clause
/* Initial stacks: their threads' events and run times follow, or came before. */
#include "harness/event_script.h"
#include "harness/test.h"

static void expect(const char *script, const char *expected)
{
	event_script_expect(NULL, script, expected);
}

Test(initial, blocked_thread)
{
	expect("begin; T1 +10 initial blocked 700 2=accept 1=main; T1 +90 runtime 700",
	       "T1 0/100\n"
	       "  main 0 0/0 *1\n"
	       "    accept 0 0/100 *1\n");
}

Test(initial, running_thread)
{
	expect("begin; T1 +10 initial running 700 1=main; T1 +90 runtime 770; T1 +10 runtime 775",
	       "T1 85/110\n"
	       "  main 0 85/110 *1\n");
}

Test(initial, running_thread_shows_an_event)
{
	expect("begin; T1 +10 initial running 700 2=g 1=main; T1 +90 leave 2; T1 +5 leave 1",
	       "T1 105/105\n"
	       "  main 0 5/5\n"
	       "    g 0 100/100\n");
}

/* The next switch has the CPU time between the OS's run time and the first event. */
/* 2 of g's 3 ms; the run time of the initial stack was 690 when tracing began. */
Test(initial, stolen_from_a_running_thread)
{
	expect("begin; T1 +10 initial running 700 1=main; T1 +90 enter 2 g 1; T1 +3000000 leave 2\n"
	       "T1 +5 out 1000795; T1 +5 in 1000795",
	       "T1 1000105/3000110\n"
	       "  main 0 100/110 *1\n"
	       "    g 1 1000005/3000000\n");
}

/* The thread was runnable, but did not get a CPU. */
Test(initial, waits_for_a_cpu)
{
	expect("begin; T1 +10 initial running 700 2=g 1=main; T1 +50000 leave 2; T1 +10 out 720",
	       "T1 30/50020\n"
	       "  main 0 0/10 *1\n"
	       "    g 0 30/50010\n");
}

Test(initial, blocked_thread_shows_an_event)
{
	expect("begin; T1 +10 initial blocked 700 2=g 1=main; T1 +40 runtime 700\n"
	       "T1 +50 leave 2; T1 +5 leave 1; T1 +5 out 730",
	       "T1 30/110\n"
	       "  outside 5/5\n"
	       "  main 0 5/5\n"
	       "    g 0 20/100\n");
}

Test(initial, switches_take_over)
{
	expect("begin; T1 +10 initial blocked 700 1=main; T1 +90 in 700; T1 +20 out 720; T1 +5 "
	       "runtime 720",
	       "T1 20/125\n"
	       "  main 0 20/125 *1\n");
}

/*
 * The OS's run time is up to a tick old: an implausible excess at the first switch is accepted as
 * the new run time, and not charged.
 */
Test(initial, account_lags)
{
	expect("begin; T1 +10 initial blocked 700 1=main; T1 +90 in 5000700; T1 +20 out 5000720; "
	       "T1 "
	       "+10 in 5000720",
	       "T1 120/130\n"
	       "  main 0 120/130 *1\n");
}

Test(initial, older_than_the_chain)
{
	expect("begin; T1 +10 initial blocked 700 2=g 1=main; T1 +50 chain 2=g 1=main; T1 +0 enter "
	       "3 "
	       "h 2\n"
	       "T1 +5 leave 3",
	       "T1 5/65\n"
	       "  main 0 0/0 *1\n"
	       "    g 0 0/60 *1\n"
	       "      h 1 5/5\n");
}

/* The initial stack was read after the event had been sent, but arrives first. */
Test(initial, newer_than_the_chain)
{
	struct event_script *es = event_script_new(NULL);
	struct pyp_chain_frame frame = {.frame = 1};
	struct event e = {.ts = 1005, .tid = 1, .type = PYP_REC_CHAIN};
	struct snapshot *s;
	char *tree;

	event_script_run(es, "begin; T1 +10 initial blocked 700 2=g 1=main; code main 0x500 2");
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

Test(initial, of_a_thread_already_seen)
{
	expect("begin; T1 +5 enter 1 f; T1 +5 initial blocked 700 9=g; T1 +5 leave 1",
	       "T1 10/10\n"
	       "  f 1 10/10\n");
}
