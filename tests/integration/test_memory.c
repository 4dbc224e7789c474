// SPDX-License-Identifier: BSD-2-Clause
/*
 * A thread calls an empty function as fast as it can: no event is lost, every call is counted, and
 * the daemon's memory does not grow. (Longer runs and other rates are in the benchmark.)
 */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "harness/counts.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "stats/view.h"

/*
 * Calls on one interpreter, and after how many memory is measured; the others differ in their
 * sites, not in what the daemon stores. The smallest block of 32 bytes per call would grow by 32
 * MiB.
 */
#define CALLS		1000000u
#define CALLS_OF_OTHERS 400000u
#define CALLS_AT_FIRST	100000u
#define GROWTH_MAX	(8u * 1024) /* KiB */

static unsigned long resident_kib(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	unsigned long kib = 0;
	char line[256];

	cr_assert(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %lu kB", &kib) == 1)
			break;
	fclose(f);
	cr_assert(kib > 0);
	return kib;
}

static uint64_t printed_calls(const struct traced *t, const char *what)
{
	json_t *result = json_loads(t->result, 0, NULL);
	json_int_t n = 0;

	assert_ok(json_unpack(result, "{s:I}", what, &n));
	json_decref(result);
	return (uint64_t)n;
}

static bool has_events(struct traced *t, void *ctx)
{
	return traced_status(t).events >= *(const uint64_t *)ctx;
}

static void until_called(struct traced *t, uint64_t calls)
{
	uint64_t events = 2 * calls;

	traced_until(t, has_events, &events, "calls");
}

static void busy(const char *exe)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	_cleanup_(view_freep) struct view *v = NULL;
	const bool newest = strcmp(exe, traced_newest().exe) == 0;
	unsigned long at_first, at_end;
	struct traced t;

	traced_start(&t, exe, "run.py", "busy_empty", "told", NULL);
	traced_expect(&t, "ready");
	traced_attach(&t);
	traced_go(&t);
	until_called(&t, CALLS_AT_FIRST);
	at_first = resident_kib();
	until_called(&t, newest ? CALLS : CALLS_OF_OTHERS);
	traced_go(&t);
	traced_expect(&t, "done");
	at_end = resident_kib();
	s = traced_snapshot(&t);
	assert_ok(view_build(s, NULL, &v));
	fprintf(stderr, "%s\n  %" PRIu64 " calls, %" PRIu64 " lost, %lu KiB, then %lu\n", exe,
		counts_named(v, "empty").ncalls, s->targets[0].losses[PYP_LOSS_lost_events],
		at_first, at_end);
	cr_assert(traced_is_exact(s, exe));
	cr_assert(counts_named(v, "empty").ncalls == printed_calls(&t, "calls"));
	cr_assert(counts_named(v, "batch").ncalls == printed_calls(&t, "batches"));
	cr_assert(at_end < at_first + GROWTH_MAX, "grown from %lu to %lu KiB", at_first, at_end);
	traced_finish(&t);
}

Test(memory, constant_at_full_rate)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_few(v);

	for (size_t i = 0; i < n; i++)
		busy(v[i].exe);
	check_no_leaks();
}
