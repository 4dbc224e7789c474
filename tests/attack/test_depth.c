// SPDX-License-Identifier: BSD-2-Clause
/*
 * A target 100,000 frames deep that calls as fast as possible at its deepest point, next to a busy
 * one: no event of either is lost, and all calls are counted in the correct calling context.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "base/diag.h"
#include "harness/counts.h"
#include "harness/daemon.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "snapshot/load.h"
#include "stats/view.h"

#define DEPTH  100000u
#define LEAVES 150000u
#define BUSY_S "5"

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

static void start(struct traced *t, const char *program, const char *arg, const char *more)
{
	struct interpreter it = deep_one();

	traced_ready(t, NULL, it.exe, "run.py", program, arg, more, NULL);
}

static void setup(void)
{
	char depth[16], leaves[16], pids[2][16];

	snprintf(depth, sizeof(depth), "%u", DEPTH);
	snprintf(leaves, sizeof(leaves), "%u", LEAVES);
	start(&deep, "abyss", depth, leaves);
	start(&busy, "busy_empty", BUSY_S, NULL);
	pyprofd_start(&d, NULL);
	free(ctl_ok(&d, "attach", pid_text(pids[0], deep.pid), pid_text(pids[1], busy.pid), NULL));
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

Test(depth, beside_a_busy_neighbour)
{
	struct snapshot *s;

	traced_go(&busy);
	traced_go(&deep);
	traced_expect(&deep, "done");
	traced_expect(&busy, "done");
	s = take();
	cr_expect(traced_is_exact(s, "both"));
	check_calls(s, busy.pid, "empty", result(&busy, "calls"));
	check_calls(s, deep.pid, "leaf", LEAVES);
	check_calls(s, deep.pid, "__init__", LEAVES);
	check_calls(s, deep.pid, "down", result(&deep, "depth"));
	snapshot_free(s);
	traced_go(&busy);
	traced_go(&deep);
	cr_expect_eq(traced_wait(&busy), 0);
	cr_expect_eq(traced_wait(&deep), 0);
}
