// SPDX-License-Identifier: BSD-2-Clause
/* Calls of C functions: the rules C1 to C6 of rebuild.c. */
#include "harness/event_script.h"
#include "harness/test.h"

static void expect(const char *script, const char *expected)
{
	event_script_expect(NULL, script, expected);
}

/* The time of a C function is charged to it and not to its caller. */
Test(native, call)
{
	expect("T1 enter 0x10 f; T1 +2 c-enter 0x10 len; T1 +5 c-leave 0x10; T1 +1 leave 0x10",
	       "T1 8/8\n"
	       "  f 1 3/3\n"
	       "    <built-in method len> 1 5/5\n");
}

Test(native, instant)
{
	expect("T1 enter 0x10 f; T1 +2 c-instant 0x10 append; T1 +3 c-instant 0x10 append\n"
	       "T1 +1 leave 0x10",
	       "T1 6/6\n"
	       "  f 1 6/6\n"
	       "    <built-in method append> 2 0/0\n");
}

/* C3: sorted(key=g); g's time is not part of sorted's self time. */
Test(native, calls_back)
{
	expect("T1 enter 0x10 f; T1 +1 c-enter 0x10 sorted; T1 +2 enter 0x20 g 0x10\n"
	       "T1 +4 leave 0x20; T1 +8 enter 0x20 g 0x10; T1 +4 leave 0x20; T1 +1 c-leave 0x10\n"
	       "T1 +1 leave 0x10",
	       "T1 21/21\n"
	       "  f 1 2/2\n"
	       "    <built-in method sorted> 1 11/11\n"
	       "      g 2 8/8\n");
}

/* A function called by a C function calls C functions, too. */
Test(native, nested)
{
	expect("T1 enter 0x10 f; T1 c-enter 0x10 map; T1 enter 0x20 g 0x10\n"
	       "T1 +1 c-enter 0x20 len; T1 +3 c-leave 0x20; T1 +1 leave 0x20; T1 c-leave 0x10\n"
	       "T1 +1 c-enter 0x10 len; T1 +1 c-leave 0x10; T1 leave 0x10",
	       "T1 7/7\n"
	       "  f 1 1/1\n"
	       "    <built-in method map> 1 0/0\n"
	       "      g 1 2/2\n"
	       "        <built-in method len> 1 3/3\n"
	       "    <built-in method len> 1 1/1\n");
}

/* E4 with C3: the end of the called function was not observed, but the C function continues. */
Test(native, called_back_is_unwound)
{
	expect("T1 enter 0x10 f; T1 c-enter 0x10 map; T1 enter 0x20 g 0x10; T1 enter 0x30 h 0x20\n"
	       "T1 +2 enter 0x40 g 0x10; T1 +1 leave 0x40; T1 c-leave 0x10; T1 leave 0x10",
	       "T1 3/3\n"
	       "  f 1 0/0\n"
	       "    <built-in method map> 1 0/0\n"
	       "      g 2 1/1\n"
	       "        h 1 2/2\n"
	       "! unmatched 2\n");
}

/* C1 */
Test(native, end_unseen)
{
	expect("T1 enter 0x10 f; T1 c-enter 0x10 len; T1 +2 c-enter 0x10 abs; T1 +3 c-leave 0x10\n"
	       "T1 leave 0x10",
	       "T1 5/5\n"
	       "  f 1 0/0\n"
	       "    <built-in method len> 1 2/2\n"
	       "    <built-in method abs> 1 3/3\n");
}

/* C2, as E4: the end of g was not seen. */
Test(native, caller_below_the_top)
{
	expect("T1 enter 0x10 f; T1 +1 enter 0x20 g 0x10; T1 +1 c-enter 0x10 len; T1 +1 c-leave "
	       "0x10\n"
	       "T1 +1 leave 0x10",
	       "T1 4/4\n"
	       "  f 1 2/2\n"
	       "    g 1 1/1\n"
	       "    <built-in method len> 1 1/1\n"
	       "! unmatched 1\n");
}

/* Above the depth limit it is one more call. */
Test(native, above_the_limit)
{
	const struct profile_limits limits = {.depth = 2};

	event_script_expect(
		&limits,
		"T1 enter 1 f; T1 +1 enter 2 g 1; T1 +1 enter 3 h 2; T1 +1 c-enter 3 len\n"
		"T1 +1 c-leave 3; T1 +1 leave 3; T1 +1 leave 2; T1 +1 leave 1",
		"T1 7/7\n"
		"  (truncated) 2 3/3\n"
		"  f 1 2/2\n"
		"    g 1 2/2\n"
		"! truncated 2\n");
}

/* C4: this is not an error. */
Test(native, ends_with_its_caller)
{
	expect("T1 enter 0x10 f; T1 enter 0x20 g 0x10; T1 c-enter 0x20 len; T1 +2 leave 0x20\n"
	       "T1 +1 leave 0x10",
	       "T1 3/3\n"
	       "  f 1 1/1\n"
	       "    g 1 0/0\n"
	       "      <built-in method len> 1 2/2\n");
}

/* C5: the end of an unknown call, or of a C function that was entered before the attach. */
Test(native, unknown_end)
{
	expect("T1 enter 0x10 f; T1 +1 c-leave 0x10; T1 +1 c-enter 0x10 len; T1 c-leave 0x10\n"
	       "T1 c-leave 0x10; T1 leave 0x10; T1 c-leave 0x10",
	       "T1 2/2\n"
	       "  f 1 2/2\n"
	       "    <built-in method len> 1 0/0\n");
}

/* next(gen): the generator's caller is the C function, and its yield leaves that on the stack. */
Test(native, resumes_a_generator)
{
	expect("T1 enter 0x10 f; T1 c-enter 0x10 next; T1 +1 enter 0x90 gen 0x10; T1 +2 yield "
	       "0x90\n"
	       "T1 +1 c-leave 0x10; T1 c-enter 0x10 next; T1 enter 0x90 gen 0x10; T1 +3 leave "
	       "0x90\n"
	       "T1 c-leave 0x10; T1 leave 0x10",
	       "T1 7/7\n"
	       "  f 1 0/0\n"
	       "    <built-in method next> 2 2/2\n"
	       "      gen 2 5/5\n");
}

/* greenlet.switch is a C function: it returns on a stack that was parked. */
Test(native, switches_stacks)
{
	expect("T1 enter 0x10 f; T1 c-enter 0x10 switch; T1 +1 enter 0x50 g\n"
	       "T1 +2 c-enter 0x50 switch; T1 +4 c-leave 0x10; T1 +8 c-enter 0x10 switch\n"
	       "T1 c-leave 0x50; T1 +16 leave 0x50; T1 c-leave 0x10; T1 leave 0x10",
	       "T1 31/31\n"
	       "  f 1 8/8\n"
	       "    <built-in method switch> 2 1/1\n"
	       "  g 1 18/18\n"
	       "    <built-in method switch> 1 4/4\n"
	       "! switches 4\n");
}

/* C6: a chain contains no C functions; those between frames that continue are kept. */
Test(native, chain_after_a_loss)
{
	expect("T1 enter 0x10 f; T1 c-enter 0x10 map; T1 +1 enter 0x20 g 0x10\n"
	       "T1 +2 chain resync 0x20=g 0x10=f; T1 +1 leave 0x20; T1 +1 c-leave 0x10\n"
	       "T1 leave 0x10",
	       "T1 5/5\n"
	       "  (lost) 0 2/2\n"
	       "  f 1 0/0\n"
	       "    <built-in method map> 1 2/2\n"
	       "      g 1 1/1\n"
	       "! resyncs 1\n");
}

/* C6: a C function at the top of the stack is not kept. */
Test(native, chain_drops_the_last)
{
	expect("T1 enter 0x10 f; T1 c-enter 0x10 len; T1 +2 chain resync 0x10=f; T1 +1 c-leave "
	       "0x10\n"
	       "T1 leave 0x10",
	       "T1 3/3\n"
	       "  (lost) 0 2/2\n"
	       "  f 1 1/1\n"
	       "    <built-in method len> 1 0/0\n"
	       "! resyncs 1\n");
}
