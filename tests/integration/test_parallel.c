// SPDX-License-Identifier: BSD-2-Clause
/*
 * Threads that run at the same time: the ring and the caches in front of the maps, which probes on
 * several CPUs share, must not miss or duplicate a call. On free-threaded interpreters, and on the
 * newest other one.
 */
#include <inttypes.h>

#include "harness/counts.h"
#include "harness/test.h"
#include "harness/traced.h"

#define RUNS 3
/* Rounds of parallel.py: about 70,000 calls by four threads */
#define ROUNDS "60"

static bool run(const struct interpreter *py, enum mode mode, bool builtins)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	uint32_t differing;
	struct traced t;
	bool exact;

	traced_start(&t, py->exe, "run.py", "parallel", ROUNDS, NULL);
	t.mode.mode = mode;
	t.builtins = builtins;
	traced_expect(&t, "ready");
	traced_attach(&t);
	traced_go(&t);
	traced_expect(&t, "done");
	s = traced_snapshot(&t);
	differing = counts_differing(s, t.result);
	exact = traced_is_exact(s, py->exe);
	fprintf(stderr, "  %s, mode %d: %" PRIu32 " differ, %" PRIu64 " events\n", py->exe, mode,
		differing, s->targets[0].events);
	if (mode == MODE_TRACE)
		traced_check_times(s);
	traced_finish(&t);
	return exact && differing == 0;
}

static void everywhere(enum mode mode, bool builtins)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_interpreters(v), failed = 0;

	for (size_t i = 0; i < n; i++)
		for (int k = 0; k < RUNS && (v[i].abi || i + 1 == n); k++)
			failed += !run(&v[i], mode, builtins);
	cr_assert(failed == 0, "wrong in %zu runs", failed);
	check_no_leaks();
}

Test(parallel, traced)
{
	everywhere(MODE_TRACE, false);
}

Test(parallel, traced_with_builtins)
{
	everywhere(MODE_TRACE, true);
}

Test(parallel, counted)
{
	everywhere(MODE_COUNT, false);
}
