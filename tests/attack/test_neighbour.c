// SPDX-License-Identifier: BSD-2-Clause
/*
 * A target with more events than the daemon can read, next to one with fewer whose events exceed its
 * ring in total: only the first one loses events. The test stops the daemon while both make events, and
 * then lets it work for a while, so that the ratio of events to the daemon's CPU time does not depend on
 * the machine.
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

#define QUOTA_US (CPU_GROUP_PERIOD / 100) /* 1 %: the test sees in time how much it has worked */
#define RING	 "8M"			  /* some 200,000 events; one call of work() makes 4 */

/*
 * In each round, one target fills its ring, the other one a sixth of it, and the daemon has the CPU time
 * for three times as many events as the other one's: it never empties the first ring.
 */
#define FLOOD  "work 0 60000"
#define CALLS  8000
#define ROUND  "work 0 8000"
#define READ   96000
#define ROUNDS 12

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

/* Let targets make events while the daemon is stopped. other: NULL: only the first. */
static void make_events(struct traced *other)
{
	assert_ok(kill(d.pid, SIGSTOP));
	traced_say(&loud, FLOOD);
	if (other)
		traced_say(other, ROUND);
	traced_expect(&loud, "worked");
	if (other)
		traced_expect(other, "worked");
	assert_ok(kill(d.pid, SIGCONT));
}

/* CPU time of the daemon for one event, seconds. It is asked rarely, as that takes CPU time, too. */
static double cost(void)
{
	const json_int_t from = ctl_number_of(&d, loud.pid, "events");
	const double begun = patience_cpu_s(d.pid);

	make_events(NULL);
	do {
		cr_assert(!patience_over(), "the daemon does not read");
		patience_pass(PATIENCE_WHILE_MS);
	} while (ctl_number_of(&d, loud.pid, "pending_bytes"));
	return (patience_cpu_s(d.pid) - begun) /
	       (double)(ctl_number_of(&d, loud.pid, "events") - from);
}

/* Not by its status, which it only answers between two turns of reading. */
static void let_it_work(double cpu_s)
{
	const double until = patience_cpu_s(d.pid) + cpu_s;

	while (patience_cpu_s(d.pid) < until) {
		cr_assert(!patience_over(), "the daemon does not work");
		patience_step();
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

Test(neighbour, of_an_overload_loses_nothing)
{
	const char *exe = traced_newest().exe;
	char pids[2][16];
	json_int_t theirs, its;
	double event;

	traced_ready(&loud, pids[0], exe, "process_tree.py", NULL);
	traced_ready(&paced, pids[1], exe, "process_tree.py", NULL);
	pyprofd_launch(&d, "--ring-size", RING, NULL);
	pyprofd_ready(&d);
	free(ctl_ok(&d, "attach", pids[0], pids[1], NULL));
	/* Excludes helper processes, which still measure costs. */
	cpu_group_add(d.pid);
	cpu_group_quota(QUOTA_US);
	event = cost();
	for (int i = 0; i < ROUNDS; i++) {
		make_events(&paced);
		let_it_work(READ * event);
	}
	cpu_group_quota(-1);
	theirs = ctl_number_of(&d, loud.pid, "lost");
	its = ctl_number_of(&d, paced.pid, "lost");
	fprintf(stderr, "  lost: %lld of the overload, %lld of its neighbour; %.0f ns per event\n",
		(long long)theirs, (long long)its, event * 1e9);
	cr_assert_gt(theirs, 0, "there was no overload");
	cr_expect_eq(its, 0, "the neighbour has lost %lld events", (long long)its);
	cr_expect_eq(seen_calls(&paced), ROUNDS * CALLS);
}
