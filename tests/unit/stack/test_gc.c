// SPDX-License-Identifier: BSD-2-Clause
/* Collections of the garbage collector: the rules G1 to G5 of rebuild.c. */
#include "harness/event_script.h"
#include "harness/test.h"

static void expect(const char *script, const char *expected)
{
	event_script_expect(NULL, script, expected);
}

/* The time of a collection is charged to the collection, by generation. */
Test(gc, collection)
{
	expect("T1 enter 0x10 f; T1 +2 gc-start 0 0x10; T1 +5 gc-stop 0; T1 +1 gc-start 2 0x10\n"
	       "T1 +9 gc-stop 2; T1 +1 gc-start 0; T1 +1 gc-stop 0; T1 +1 leave 0x10",
	       "T1 20/20\n"
	       "  f 1 5/5\n"
	       "    <gc generation 0> 2 6/6\n"
	       "    <gc generation 2> 1 9/9\n");
}

/* Callbacks and finalizers are callees of the collection, although their caller is the frame. */
Test(gc, calls_back)
{
	expect("T1 enter 0x10 f; T1 +1 gc-start 1 0x10; T1 +1 enter 0x20 g 0x10; T1 +3 leave 0x20\n"
	       "T1 +1 enter 0x20 g 0x10; T1 +3 enter 0x30 h 0x20; T1 +1 leave 0x30; T1 leave 0x20\n"
	       "T1 +2 gc-stop 1; T1 +1 enter 0x20 g 0x10; T1 leave 0x20; T1 leave 0x10",
	       "T1 13/13\n"
	       "  f 1 2/2\n"
	       "    <gc generation 1> 1 4/4\n"
	       "      g 2 6/6\n"
	       "        h 1 1/1\n"
	       "    g 1 0/0\n");
}

/*
 * gc.collect() is a C function, and the collection its callee; the same holds for any C function
 * that allocates.
 */
Test(gc, in_a_c_function)
{
	expect("T1 enter 0x10 f; T1 +1 c-enter 0x10 collect; T1 +1 gc-start 2 0x10\n"
	       "T1 +1 enter 0x20 g 0x10; T1 +1 c-enter 0x20 len; T1 +1 c-leave 0x20\n"
	       "T1 +1 leave 0x20; T1 +8 gc-stop 2; T1 +1 c-leave 0x10; T1 +1 leave 0x10",
	       "T1 16/16\n"
	       "  f 1 2/2\n"
	       "    <built-in method collect> 1 2/2\n"
	       "      <gc generation 2> 1 9/9\n"
	       "        g 1 2/2\n"
	       "          <built-in method len> 1 1/1\n");
}

/* An unknown generation, or an unknown frame */
Test(gc, unknown)
{
	expect("T1 enter 0x10 f; T1 +1 gc-start 3; T1 +4 gc-stop 3; T1 leave 0x10",
	       "T1 5/5\n"
	       "  f 1 1/1\n"
	       "    <gc> 1 4/4\n");
}

/* Without a frame: a collection by a program that embeds Python. */
Test(gc, outside)
{
	expect("T1 enter 0x10 f; T1 +1 leave 0x10; T1 +1 gc-start 2; T1 +4 gc-stop 2; T1 +1 out",
	       "T1 7/7\n"
	       "  outside 2/2\n"
	       "  f 1 1/1\n"
	       "  <gc generation 2> 1 4/4\n");
}

/* G1: a new collection ends the previous one, whose end was not recorded. */
Test(gc, end_unseen)
{
	expect("T1 enter 0x10 f; T1 gc-start 0 0x10; T1 +2 gc-start 0 0x10; T1 +3 gc-stop 0\n"
	       "T1 +1 leave 0x10",
	       "T1 6/6\n"
	       "  f 1 1/1\n"
	       "    <gc generation 0> 2 5/5\n");
}

/* G2: a leave was not observed: its frame did not trigger the collection. */
Test(gc, unwinds_to_its_frame)
{
	expect("T1 enter 0x10 f; T1 enter 0x20 g 0x10; T1 +1 gc-start 0 0x10; T1 +2 gc-stop 0\n"
	       "T1 +1 leave 0x10",
	       "T1 4/4\n"
	       "  f 1 1/1\n"
	       "    g 1 1/1\n"
	       "    <gc generation 0> 1 2/2\n"
	       "! unmatched 1\n");
}

/* G2: the collection runs on the stack of another greenlet, which continues after it. */
Test(gc, on_a_parked_stack)
{
	expect("T1 enter 0x10 f; T1 +1 enter 0x20 g; T1 +1 gc-start 0 0x10; T1 +4 gc-stop 0\n"
	       "T1 +1 leave 0x10; T1 +1 leave 0x20",
	       "T1 8/8\n"
	       "  outside 1/1\n"
	       "  f 1 2/2\n"
	       "    <gc generation 0> 1 4/4\n"
	       "  g 1 1/1\n"
	       "! switches 3\n");
}

/* G2, G3: a frame that is being created is on no stack; its calls are still counted. */
Test(gc, while_a_generator_is_made)
{
	expect("T1 enter 0x10 f; T1 +1 gc-start 0 0x99; T1 +1 enter 0x20 g 0x99; T1 +3 leave 0x20\n"
	       "T1 +1 gc-stop 0; T1 +1 leave 0x10",
	       "T1 7/7\n"
	       "  f 1 2/2\n"
	       "    <gc generation 0> 1 2/2\n"
	       "      g 1 3/3\n");
}

/* G4: the collection ends when the frame continues. */
Test(gc, over_when_the_frame_goes_on)
{
	expect("T1 enter 0x10 f; T1 gc-start 0 0x10; T1 +2 c-enter 0x10 len; T1 +1 c-leave 0x10\n"
	       "T1 gc-start 0 0x10; T1 +1 leave 0x10; T1 gc-stop 0",
	       "T1 4/4\n"
	       "  f 1 0/0\n"
	       "    <gc generation 0> 2 3/3\n"
	       "    <built-in method len> 1 1/1\n");
}

/* G5: the collection began before the attach. */
Test(gc, unknown_end)
{
	expect("T1 enter 0x10 f; T1 +1 gc-stop 2; T1 +1 enter 0x20 g 0x10; T1 +1 gc-stop 2\n"
	       "T1 leave 0x20; T1 leave 0x10",
	       "T1 3/3\n"
	       "  f 1 2/2\n"
	       "    g 1 1/1\n");
}

/* After a loss: a collection between two frames that continue is kept, one at the top is not. */
Test(gc, loss)
{
	expect("T1 enter 0x10 f; T1 gc-start 2 0x10; T1 enter 0x20 g 0x10; T1 +1 enter 0x30 h "
	       "0x20\n"
	       "T1 +5 chain resync 0x20=g 0x10=f; T1 +1 leave 0x20; T1 +2 gc-stop 2\n"
	       "T1 +1 gc-start 0 0x10; T1 +5 chain resync 0x10=f; T1 +1 gc-stop 0; T1 leave 0x10",
	       "T1 16/16\n"
	       "  (lost) 0 10/10\n"
	       "  f 1 2/2\n"
	       "    <gc generation 2> 1 2/2\n"
	       "      g 1 2/2\n"
	       "        h 1 0/0\n"
	       "    <gc generation 0> 1 0/0\n"
	       "! resyncs 2\n");
}

/* A running collection is not counted as complete, but its time so far is. */
Test(gc, in_flight)
{
	expect("T1 enter 0x10 f; T1 gc-start 2 0x10; T1 +3 out",
	       "T1 3/3\n"
	       "  f 1 0/0 *1\n"
	       "    <gc generation 2> 1 3/3 *1\n");
}

/* Collections are not calls: the number of calls equals cProfile's. */
Test(gc, no_calls)
{
	struct event_script *es = event_script_new(NULL);
	struct snapshot *s;

	event_script_run(es, "T1 enter 0x10 f; T1 gc-start 0 0x10; T1 +3 gc-stop 0; T1 leave 0x10");
	s = event_script_snapshot(es);
	for (uint32_t i = 0; i < s->nfuncs; i++)
		cr_assert_eq(snapshot_func_is_gc(&s->funcs[i]), s->funcs[i].name[0] == '<', "%s",
			     s->funcs[i].name);
	snapshot_free(s);
	event_script_free(es);
	check_no_leaks();
}
