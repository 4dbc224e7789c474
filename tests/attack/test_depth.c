// SPDX-License-Identifier: BSD-2-Clause
/*
 * A target 100,000 frames deep that calls as fast as possible at its deepest point, next to a busy
 * one: no event of either is lost, all calls are counted in the correct calling context, and an
 * event takes the daemon about as long as without the deep one.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "base/diag.h"
#include "harness/counts.h"
#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "snapshot/load.h"
#include "stats/view.h"

#define DEPTH  100000u
#define LEAVES 50000u
#define CALLS  50000u
#define WORK   "work 0 50000" /* CALLS */
#define RING   "128M"	      /* holds all events, so that none is lost on a slow machine */
#define MARGIN 20	      /* if each event took as long as a walk over the stack: thousands */

static struct pyprofd d;
static struct traced deep, busy;

/* An interpreter of 3.11 or later, in which calls between Python functions use no C stack */
static struct interpreter deep_one(void)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_interpreters(v);

	for (size_t i = n; i-- > 0;)
		if (v[i].minor >= 11)
			return v[i];
	cr_skip_test("needs CPython 3.11 or newer");
}

static void setup(void)
{
	const struct interpreter it = deep_one();
	char depth[16], leaves[16], pids[2][16];

	snprintf(depth, sizeof(depth), "%u", DEPTH);
	snprintf(leaves, sizeof(leaves), "%u", LEAVES);
	traced_ready(&deep, pids[0], it.exe, "run.py", "abyss", depth, leaves, NULL);
	traced_ready(&busy, pids[1], it.exe, "process_tree.py", NULL);
	pyprofd_start(&d, "--ring-size", RING, NULL);
	free(ctl_ok(&d, "attach", pids[0], pids[1], NULL));
}

static void teardown(void)
{
	if (d.pid)
		pyprofd_shutdown(&d);
	traced_stop(&deep);
	traced_stop(&busy);
}

TestSuite(depth, .init = setup, .fini = teardown);

static struct snapshot *take(void)
{
	char path[128];
	struct snapshot *s = NULL;
	struct diag diag = {0};

	pyprofd_file(&d, "taken.json", path, sizeof(path));
	free(ctl_ok(&d, "snapshot", "-f", "json", "-o", path, NULL));
	assert_ok(snapshot_load(path, &s, &diag));
	unlink(path);
	return s;
}

static void check_calls(const struct snapshot *s, pid_t pid, const char *name, uint64_t calls)
{
	const struct view_filter filter = {.pid = (uint32_t)pid};
	struct view *v = NULL;
	struct view_row row;

	assert_ok(view_build(s, &filter, &v));
	row = counts_named(v, name);
	cr_expect_eq(row.ncalls, calls, "%s: %" PRIu64 " calls, not %" PRIu64, name, row.ncalls,
		     calls);
	view_free(v);
}

static uint64_t result(const struct traced *t, const char *key)
{
	json_t *result = json_loads(t->result, 0, NULL);
	uint64_t ret = (uint64_t)json_integer_value(json_object_get(result, key));

	cr_assert(result, "%s", t->result);
	json_decref(result);
	return ret;
}

struct progress {
	double cpu_s;
	json_int_t events;
};

/* What the daemon has done when it has read all events. */
static struct progress progress(void)
{
	while (ctl_number_of(&d, busy.pid, "pending_bytes") ||
	       ctl_number_of(&d, deep.pid, "pending_bytes")) {
		cr_assert(!patience_over(), "the daemon does not read");
		patience_step();
	}
	return (struct progress){
		.cpu_s = patience_cpu_s(d.pid),
		.events = ctl_number_of(&d, busy.pid, "events") +
			  ctl_number_of(&d, deep.pid, "events"),
	};
}

/* CPU time of the daemon per event, seconds */
static double cost(const struct progress *from, const struct progress *to)
{
	cr_assert_gt(to->events, from->events);
	return (to->cpu_s - from->cpu_s) / (double)(to->events - from->events);
}

Test(depth, beside_a_busy_neighbour)
{
	struct progress before, alone, both;
	struct snapshot *s;

	before = progress();
	traced_say(&busy, WORK);
	traced_expect(&busy, "worked");
	alone = progress();
	traced_say(&busy, WORK);
	traced_go(&deep);
	traced_expect(&deep, "done");
	traced_expect(&busy, "worked");
	both = progress();
	s = take();
	cr_expect(traced_is_exact(s, "both"));
	check_calls(s, busy.pid, "work", 2 * CALLS);
	check_calls(s, deep.pid, "leaf", LEAVES);
	check_calls(s, deep.pid, "__init__", LEAVES);
	check_calls(s, deep.pid, "down", result(&deep, "depth"));
	snapshot_free(s);
	fprintf(stderr, "  %.0f ns per event, %.0f ns beside the deep one\n",
		cost(&before, &alone) * 1e9, cost(&alone, &both) * 1e9);
	cr_expect_lt(cost(&alone, &both), MARGIN * cost(&before, &alone));
	traced_say(&busy, "stop");
	traced_go(&deep);
	cr_expect_eq(traced_wait(&busy), 0);
	cr_expect_eq(traced_wait(&deep), 0);
}
