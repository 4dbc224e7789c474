// SPDX-License-Identifier: BSD-2-Clause
/*
 * A target with more events than the daemon can read, next to one with a moderate rate whose events
 * exceed its ring in total: only the first one loses events. The second one's rate is relative to
 * the events of the first one that the daemon reads, so that it does not depend on the machine.
 */
#include <jansson.h>
#include <signal.h>
#include <string.h>

#include "harness/caps.h"
#include "harness/cpu_group.h"
#include "harness/daemon.h"
#include "harness/patience.h"
#include "harness/test.h"
#include "harness/traced.h"

#define QUOTA_US (CPU_GROUP_PERIOD / 50) /* 2 % */
#define RING	 "2M"			 /* some 50,000 events; one call of work() makes 4 */
#define FLOOD	 "work 0 50000"		 /* four rings */
#define FOREVER	 "work 0 1000000000"
/* A round fills a tenth of the ring. Meanwhile the daemon reads twice as many of the other's events. */
#define ROUNDS	 25
#define CALLS	 1000
#define ROUND	 "work 0 1000"
#define OF_OTHER 8000

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

static json_int_t number(const struct traced *t, const char *name)
{
	json_t *one = ctl_target_of(&d, t->pid);
	json_int_t n = json_integer_value(json_object_get(one, name));

	cr_assert(one);
	json_decref(one);
	return n;
}

static void wait_for_events(const struct traced *t, json_int_t n)
{
	while (number(t, "events") < n) {
		cr_assert(!patience_over(), "the daemon does not read");
		patience_pass(PATIENCE_MOMENT_MS);
	}
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
		if (strcmp(json_string_value(json_object_get(f, "name")), "work") == 0)
			n += json_integer_value(json_object_get(f, "ncalls"));
	}
	cr_expect(json_is_true(json_object_get(root, "exact")));
	json_decref(root);
	free(text);
	return n;
}

/* The daemon is stopped until the target has lost events: then its ring is full. */
static void overload(struct traced *t)
{
	assert_ok(kill(d.pid, SIGSTOP));
	traced_say(t, FLOOD);
	traced_expect(t, "worked");
	traced_say(t, FOREVER);
	assert_ok(kill(d.pid, SIGCONT));
}

Test(neighbour, of_an_overload_loses_nothing)
{
	const char *exe = traced_newest().exe;
	char pids[2][16];
	json_int_t theirs, its;

	traced_ready(&loud, pids[0], exe, "process_tree.py", NULL);
	traced_ready(&paced, pids[1], exe, "process_tree.py", NULL);
	pyprofd_launch(&d, "--ring-size", RING, NULL);
	pyprofd_ready(&d);
	free(ctl_ok(&d, "attach", pids[0], pids[1], NULL));
	/* Excludes helper processes, which still measure costs. */
	cpu_group_add(d.pid);
	cpu_group_quota(QUOTA_US);
	overload(&loud);
	for (int i = 0; i < ROUNDS; i++) {
		traced_say(&paced, ROUND);
		traced_expect(&paced, "worked");
		wait_for_events(&loud, number(&loud, "events") + OF_OTHER);
	}
	cpu_group_quota(-1);
	theirs = number(&loud, "lost");
	its = number(&paced, "lost");
	fprintf(stderr, "  lost: %lld of the overload, %lld of its neighbour\n", (long long)theirs,
		(long long)its);
	cr_assert_gt(theirs, 0, "there was no overload");
	cr_expect_eq(its, 0, "the neighbour has lost %lld events", (long long)its);
	cr_expect_eq(seen_calls(&paced), ROUNDS * CALLS);
}
