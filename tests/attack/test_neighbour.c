// SPDX-License-Identifier: BSD-2-Clause
/*
 * A target with more events than the daemon can read, next to one with a moderate rate whose events
 * exceed its ring in total: only the first one loses events.
 */
#include <jansson.h>
#include <string.h>

#include "harness/caps.h"
#include "harness/cpu_group.h"
#include "harness/daemon.h"
#include "harness/test.h"
#include "harness/traced.h"

#define QUOTA_US (CPU_GROUP_PERIOD_US / 100) /* 1 %: an overload also where probes are slow */
#define RING	 "2M"
/* 200,000 calls and returns in about 10 s; the ring holds a quarter of them */
#define ROUNDS "100"
#define CALLS  "1000"
#define PAUSE  "0.1"

static struct pyprofd d;
static struct traced loud, paced;

static void setup(void)
{
	caps_require_bpf();
	cpu_group_make();
	pyprofd_init(&d);
}

static void teardown(void)
{
	if (!cpu_group_made())
		return;
	if (d.pid) {
		cpu_group_quota(-1);
		pyprofd_shutdown(&d);
	}
	traced_stop(&loud);
	traced_stop(&paced);
	cpu_group_remove();
}

TestSuite(neighbour, .init = setup, .fini = teardown);

static json_int_t lost(const struct traced *t)
{
	json_t *root = ctl_status(&d), *one;
	json_int_t n = -1;
	size_t i;

	json_array_foreach(json_object_get(root, "targets"), i, one)
	{
		if (json_integer_value(json_object_get(one, "pid")) == t->pid)
			n = json_integer_value(json_object_get(one, "lost"));
	}
	json_decref(root);
	return n;
}

static json_int_t reported_calls(const struct traced *t)
{
	json_t *result = json_loads(t->result, 0, NULL);
	json_int_t n = json_integer_value(json_object_get(result, "calls"));

	cr_assert(result, "%s", t->result);
	json_decref(result);
	return n;
}

static json_int_t seen_calls(const struct traced *t)
{
	char pid[16],
		*text = ctl_ok(&d, "snapshot", "-f", "json", "--pid", pid_text(pid, t->pid), NULL);
	json_t *root = json_loads(text, 0, NULL), *f;
	json_int_t n = 0;
	size_t i;

	json_array_foreach(json_object_get(root, "functions"), i, f)
	{
		if (strcmp(json_string_value(json_object_get(f, "name")), "empty") == 0)
			n += json_integer_value(json_object_get(f, "ncalls"));
	}
	cr_expect(json_is_true(json_object_get(root, "exact")));
	json_decref(root);
	free(text);
	return n;
}

Test(neighbour, of_an_overload_loses_nothing)
{
	struct interpreter it = traced_newest();
	char pids[2][16];
	json_int_t theirs, its;

	traced_start(&loud, it.exe, "run.py", "busy_empty", "1000", NULL);
	traced_start(&paced, it.exe, "run.py", "paced", ROUNDS, CALLS, PAUSE, NULL);
	traced_expect(&loud, "ready");
	traced_expect(&paced, "ready");
	pyprofd_launch(&d, "--ring-size", RING, NULL);
	pyprofd_ready(&d);
	free(ctl_ok(&d, "attach", pid_text(pids[0], loud.pid), pid_text(pids[1], paced.pid), NULL));
	/* Excludes helper processes, which still measure costs. */
	cpu_group_add(d.pid);
	cpu_group_quota(QUOTA_US);
	traced_go(&loud);
	traced_go(&paced);
	traced_expect(&paced, "done");
	cpu_group_quota(-1);
	theirs = lost(&loud);
	its = lost(&paced);
	fprintf(stderr, "  lost: %lld of the overload, %lld of its neighbour\n", (long long)theirs,
		(long long)its);
	/* Where traps are slow, a busy target may have no more events than 1 % of a CPU reads. */
	cr_assert(theirs > 0 || caps_slow_traps(), "there was no overload");
	cr_expect_eq(its, 0, "the neighbour has lost %lld events", (long long)its);
	cr_expect_eq(seen_calls(&paced), reported_calls(&paced));
}
