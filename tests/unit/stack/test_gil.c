// SPDX-License-Identifier: BSD-2-Clause
/* Holders of the GIL while other threads wait: the rules of stack/gil.c, one script each. */
#include "stack/gil.h"

#include "harness/event_script.h"
#include "harness/test.h"

/* Writes "f 10" for each function that held the GIL, then "f>g 10" for each pair. */
static const char *name_of(const struct snapshot *s, uint32_t func)
{
	return func == SNAPSHOT_NONE ? "outside" : s->funcs[func].name;
}

static void check(const char *script, const char *expected)
{
	struct event_script *es = event_script_new(NULL);
	struct snapshot *s;
	char text[1024] = "";
	size_t at = 0;

	assert_ok(profile_keep_waits(event_script_profile(es)));
	event_script_run(es, script);
	s = event_script_snapshot(es);
	for (uint32_t i = 0; i < s->nnodes; i++)
		if (snapshot_figure(s, COLUMN_gil_held_ns, i))
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s %lu\n",
					       name_of(s, s->nodes[i].func),
					       snapshot_figure(s, COLUMN_gil_held_ns, i));
	for (uint32_t i = 0; i < s->ngil_pairs; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s>%s %lu\n",
				       name_of(s, s->gil_pairs[i].holder),
				       name_of(s, s->gil_pairs[i].waiter), s->gil_pairs[i].ns);
	cr_assert_str_eq(text, expected, "%s", text);
	snapshot_free(s);
	event_script_free(es);
	check_no_leaks();
}

/* T1 runs f and g while T2 waits in w. */
Test(gil, events_prove)
{
	check("T2 +1 enter 0x90 w\n"
	      "T1 +1 enter 0x10 f\n"
	      "T2 +10 out gil\n"
	      "T1 +100 enter 0x20 g 0x10\n"
	      "T1 +30 leave 0x20\n"
	      "T1 +5 enter 0x20 g 0x10\n",
	      "f 105\ng 30\nf>w 105\ng>w 30\n");
	/* No thread waits, so no time is charged to a holder. */
	check("T2 +1 enter 0x90 w\n"
	      "T1 +1 enter 0x10 f\n"
	      "T2 +10 out lock\n"
	      "T1 +100 enter 0x20 g 0x10\n",
	      "");
}

/* Two threads without events: only their switches give information. */
Test(gil, spinners)
{
	check("T1 +1 enter 0x10 f\n"
	      "T2 +1 enter 0x90 w\n"
	      "T1 +10 out gil 1000\n"	   /* since then w has been running */
	      "T1 +5000000 in 1000\n"	   /* timed out, requests the GIL, ... */
	      "T1 +2000 out gil 3000\n"	   /* ... and waits again */
	      "T1 +3000 in 3000\n"	   /* has the GIL */
	      "T2 +1000 out gil 5010000\n" /* not released earlier, according to T2's run time */
	      "T1 +5000000 out gil 5005000\n", /* has run for long: the time is charged to it */
	      "f 5000000\nw 5003000\nw>f 5003000\nf>w 5000000\n");
}

/* A waiter that runs after a timeout changes nothing. */
Test(gil, timeouts)
{
	check("T2 +1 enter 0x90 w\n"
	      "T1 +1 enter 0x10 f\n"
	      "T2 +10 out gil 1000\n"
	      "T2 +5000 in 1000\n"
	      "T2 +10 out gil 1010\n"
	      "T2 +5000 in 1010\n"
	      "T2 +10 out gil 1020\n"
	      "T1 +1000 leave 0x10\n",
	      "f 11000\nf>w 11000\n");
}

/* When the waiter waits again, the time meanwhile is the holder's at once; another one has waited on. */
Test(gil, timeout_while_another_waits)
{
	check("T2 +1 enter 0x90 w\n"
	      "T3 +1 enter 0x80 x\n"
	      "T1 +1 enter 0x10 f\n"
	      "T2 +10 out gil 1000\n"
	      "T3 +1 out gil 1000\n"
	      "T2 +5000 in 1000\n"
	      "T2 +10 out gil 1010\n",
	      "f 5011\nf>x 5010\nf>w 5001\n");
}

/* It has held the GIL if it has run for 50 us before it waits again, and not if for less. */
Test(gil, waiters_that_have_run_for_long)
{
	check("T2 +1 enter 0x90 w\n"
	      "T3 +1 enter 0x80 x\n"
	      "T1 +1 enter 0x10 f\n"
	      "T2 +10 out gil 1000\n"
	      "T3 +1 out gil 1000\n"
	      "T2 +5 in 1000\n"
	      "T2 +60000 out gil 50999\n",
	      "f 60006\nf>x 60005\nf>w 6\n");
	check("T2 +1 enter 0x90 w\n"
	      "T3 +1 enter 0x80 x\n"
	      "T1 +1 enter 0x10 f\n"
	      "T2 +10 out gil 1000\n"
	      "T3 +1 out gil 1000\n"
	      "T2 +5 in 1000\n"
	      "T2 +60000 out gil 51000\n",
	      "w 60000\nf 6\nw>x 60000\nf>w 6\nf>x 5\n");
}

/* A waiter that runs again and blocks in something else has held the GIL; one that lost its CPU may not. */
Test(gil, waiters_that_block)
{
	check("T2 +1 enter 0x90 w\n"
	      "T3 +1 enter 0x80 x\n"
	      "T1 +1 enter 0x10 f\n"
	      "T2 +10 out gil\n"
	      "T3 +1 out gil\n"
	      "T2 +5 in\n"
	      "T2 +7 out sync\n",
	      "w 7\nf 6\nw>x 7\nf>w 6\nf>x 5\n");
	check("T2 +1 enter 0x90 w\n"
	      "T3 +1 enter 0x80 x\n"
	      "T1 +1 enter 0x10 f\n"
	      "T2 +10 out gil\n"
	      "T3 +1 out gil\n"
	      "T2 +5 in\n"
	      "T2 +7 out cpu\n"
	      "T1 +3 leave 0x10\n",
	      "f 16\nf>x 15\nf>w 6\n");
}

/* Waiters of more functions than are told apart: the last ones count as that of the last one before. */
Test(gil, many_functions_wait)
{
	struct event_script *es = event_script_new(NULL);
	struct snapshot *s;
	uint64_t sum = 0;
	char line[64];

	assert_ok(profile_keep_waits(event_script_profile(es)));
	for (unsigned int i = 0; i < GIL_GROUPS + 4; i++) {
		snprintf(line, sizeof(line), "T%u +0 enter 0x%x w%u; T%u +0 out gil", 10 + i,
			 0x1000 + i, i, 10 + i);
		event_script_run(es, line);
	}
	event_script_run(es, "T1 +0 enter 0x10 f; T1 +100 leave 0x10");
	s = event_script_snapshot(es);
	cr_assert_eq(s->ngil_pairs, GIL_GROUPS);
	for (uint32_t i = 0; i < s->ngil_pairs; i++) {
		const char *waiter = name_of(s, s->gil_pairs[i].waiter);

		cr_assert_eq(s->gil_pairs[i].ns, strcmp(waiter, "w15") == 0 ? 500 : 100, "%s",
			     waiter);
		sum += s->gil_pairs[i].ns;
	}
	cr_assert_eq(sum, (GIL_GROUPS + 4) * 100);
	snapshot_free(s);
	event_script_free(es);
	check_no_leaks();
}

/* The holder blocks for another reason: it keeps the GIL unless a waiter gets it. */
Test(gil, blocked_holder)
{
	check("T2 +1 enter 0x90 w\n"
	      "T1 +1 enter 0x10 f\n"
	      "T2 +10 out gil\n"
	      "T1 +100 out sync\n"
	      "T1 +5000 in\n"
	      "T1 +10 leave 0x10\n",
	      "f 5110\nf>w 5110\n");
	check("T2 +1 enter 0x90 w\n"
	      "T1 +1 enter 0x10 f\n"
	      "T2 +10 out gil\n"
	      "T1 +100 out sync\n"
	      "T2 +3 in\n"
	      "T2 +40 leave 0x90\n"
	      "T1 +5000 in\n"
	      "T1 +10 leave 0x10\n",
	      "f 103\nf>w 103\n");
}

/* Pairs count each waiter, the holder's time counts once; each interpreter can have its own GIL. */
Test(gil, several_waiters)
{
	check("T2 +1 enter 0x90 w\n"
	      "T3 +1 enter 0x80 w\n"
	      "T4 +1 enter 0x70 x\n"
	      "T1 +1 enter 0x10 f\n"
	      "T2 +10 out gil\n"
	      "T3 +10 out gil\n"
	      "T4 +10 out gil1\n"
	      "T1 +100 leave 0x10\n",
	      "f 120\nf>w 230\n");
}

/* After an end, a clear or a stop, no earlier time is charged to another thread. */
Test(gil, ends)
{
	check("T2 +1 enter 0x90 w\n"
	      "T1 +1 enter 0x10 f\n"
	      "T2 +10 out gil\n"
	      "T1 +100 exit\n"
	      "T3 +50 enter 0x30 h\n"
	      "T3 +20 leave 0x30\n"
	      "T2 +5 exit\n"
	      "T3 +50 enter 0x30 h\n",
	      "f 100\noutside 55\nh 20\nf>w 100\noutside>w 55\nh>w 20\n");
	check("T2 +1 enter 0x90 w\n"
	      "T1 +1 enter 0x10 f\n"
	      "T2 +10 out gil\n"
	      "T1 +100 enter 0x20 g 0x10\n"
	      "clear\n"
	      "T1 +7 leave 0x20\n",
	      "g 7\ng>w 7\n");
}
