// SPDX-License-Identifier: BSD-2-Clause
/*
 * trigger: which conditions are valid, and when each is met: by an event, or by time alone while a
 * call runs or is suspended, and once only. From event scripts, whose times are known to the
 * nanosecond.
 */
#include "timeline/trigger.h"

#include <string.h>

#include "harness/event_script.h"
#include "harness/test.h"

struct rig {
	struct event_script *es;
	struct trigger *tr;
	uint64_t met_ts; /* of the event with which it was met; 0: it was not */
};

static bool on_watch(void *ctx, const struct watch_event *e)
{
	struct rig *r = ctx;

	if (trigger_event(r->tr, 0, e)) {
		cr_assert_eq(r->met_ts, 0, "met twice");
		r->met_ts = e->ts;
	}
	return true;
}

static bool on_ready(void *ctx)
{
	(void)ctx;
	return true;
}

/* script: what has happened before */
static void rig_init(struct rig *r, const char *condition, const char *script)
{
	const struct watcher w = {.fn = on_watch,
				  .ready = on_ready,
				  .ctx = r,
				  .from_ns = 1000,
				  .until_ns = UINT64_MAX};
	struct diag diag = {0};

	*r = (struct rig){.es = event_script_new(NULL)};
	event_script_run(r->es, script);
	assert_diag_ok(trigger_new(condition, &r->tr, &diag), &diag);
	assert_ok(trigger_add(r->tr, 0, 42, event_script_profile(r->es)));
	assert_ok(profile_watch(event_script_profile(r->es), &w));
}

static void rig_deinit(struct rig *r)
{
	profile_unwatch(event_script_profile(r->es), 1000000);
	trigger_end_source(r->tr, 0);
	trigger_free(r->tr);
	event_script_free(r->es);
}

/* The condition is met by these events, at this time; 0: it is not met. */
static void expect(const char *condition, const char *before, const char *script, uint64_t by_ns)
{
	struct rig r;

	rig_init(&r, condition, before);
	event_script_run(r.es, script);
	cr_assert_eq(r.met_ts, by_ns, "%s: %s: %lu", condition, script, r.met_ts);
	cr_assert_eq(trigger_hit(r.tr) != NULL, by_ns != 0);
	rig_deinit(&r);
}

Test(trigger, conditions)
{
	static const char *const good[] = {
		"slow:f:200ms", "slow:200ms", "slow:app.py:12:1.5", "slow:a|b:1h", "cpu:150%",
		"cpu:150",	"cpu:1",
	};
	static const char *const bad[] = {
		"",	    "slow",	  "slow:",   "slow::200ms", "slow:f", "slow:f:", "slow:f:0",
		"slow:(:1", "slow:f:-1",  "cpu",     "cpu:",	    "cpu:%",  "cpu:0",	 "cpu:-1",
		"cpu:1.5%", "cpu:100001", "cpu:1%%", "SLOW:1",	    "raise",
	};
	char text[2 * TRIGGER_TEXT];
	struct trigger *tr;

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		struct diag diag = {0};

		assert_diag_ok(trigger_new(good[i], &tr, &diag), &diag);
		cr_assert_str_eq(trigger_condition(tr), good[i]);
		cr_assert_eq(trigger_needs_cpu(tr), good[i][0] == 'c');
		cr_assert_eq(trigger_needs_raised(tr), good[i][0] == 'r');
		cr_assert_null(trigger_hit(tr));
		trigger_free(tr);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct diag diag = {0};

		cr_assert(trigger_new(bad[i], &tr, &diag) < 0, "%s", bad[i]);
		cr_assert(diag.exit == PYP_EXIT_USAGE && diag.msg[0], "%s", bad[i]);
	}
	snprintf(text, sizeof(text), "slow:%0*d:1", (int)TRIGGER_TEXT, 0);
	cr_assert(trigger_new(text, &tr, NULL) < 0);
	check_no_leaks();
}

/* Durations are written in ms; events of scripts are ns apart. */
#define LIMIT "1ms"

Test(trigger, by_an_event)
{
	/* by its return, or anything that it does after the limit */
	expect("slow:f:" LIMIT, "", "T1 enter 1 f; T1 +999999 leave 1", 0);
	expect("slow:f:" LIMIT, "", "T1 enter 1 f; T1 +1000000 leave 1", 1001000);
	expect("slow:f:" LIMIT, "", "T1 enter 1 f; T1 +1500000 enter 2 g 1", 1501000);
	/* another function, another thread */
	expect("slow:f:" LIMIT, "", "T1 enter 1 g; T1 +1500000 leave 1", 0);
	expect("slow:f:" LIMIT, "", "T1 enter 1 f; T2 +1500000 enter 2 g; T2 leave 2", 0);
	/* of nested calls the outer one */
	expect("slow:f:" LIMIT, "",
	       "T1 enter 1 f; T1 +600000 enter 2 f 1; T1 +399999 leave 2; T1 leave 1", 0);
	expect("slow:f:" LIMIT, "", "T1 enter 1 f; T1 +600000 enter 2 f 1; T1 +600000 leave 2",
	       1201000);
	/* each call has its own time */
	expect("slow:f:" LIMIT, "",
	       "T1 enter 1 f; T1 +900000 leave 1; T1 +900000 enter 1 f; T1 +900000 leave 1", 0);
	/* it had begun before: nobody knows when */
	expect("slow:f:" LIMIT, "T1 enter 1 f", "T1 +1500000 leave 1", 0);
	expect("slow:f:" LIMIT, "T1 enter 1 f", "T1 +1500000 enter 2 f 1; T1 +1500000 leave 2",
	       3001000);
	check_no_leaks();
}

Test(trigger, suspended_calls)
{
	/* a generator's time goes on while it is suspended, and on another thread */
	expect("slow:f:" LIMIT, "", "T1 enter 1 f; T1 +5 yield 1; T1 +999994 enter 1 f; T1 leave 1",
	       0);
	expect("slow:f:" LIMIT, "", "T1 enter 1 f; T1 +5 yield 1; T1 +999995 enter 1 f", 1001000);
	expect("slow:f:" LIMIT, "",
	       "T1 enter 1 f; T1 +5 yield 1; T2 +5 enter 1 f; T2 +1000000 leave 1", 1001010);
	check_no_leaks();
}

Test(trigger, gaps)
{
	/* it ended in the gap, or not: what is on the stack afterwards was on it all the time */
	expect("slow:f:" LIMIT, "", "T1 enter 1 f; T1 +1500000 chain resync 9=h", 0);
	expect("slow:f:" LIMIT, "", "T1 enter 1 f; T1 +1500000 chain resync 2=g 1=f; T1 +1 leave 2",
	       1501001);
	check_no_leaks();
}

Test(trigger, by_time)
{
	struct rig r;

	rig_init(&r, "slow:f:" LIMIT, "");
	event_script_run(r.es, "T1 enter 5 a; T1 enter 1 f 5; T2 +10 enter 2 f");
	cr_assert(!trigger_time(r.tr, 0, 1000999));
	cr_assert(trigger_time(r.tr, 0, 1000000000));
	cr_assert(trigger_hit(r.tr)->tid == 1 && trigger_hit(r.tr)->ts == 1001000);
	cr_assert_str_eq(trigger_hit(r.tr)->text, "a call of f (t.py:2) has taken 1 ms");
	cr_assert(!trigger_time(r.tr, 0, 1000000000), "met twice");
	event_script_run(r.es, "T1 +2000000 leave 1");
	cr_assert_eq(r.met_ts, 0);
	rig_deinit(&r);
	/* suspended */
	rig_init(&r, "slow:f:" LIMIT, "");
	event_script_run(r.es, "T1 enter 1 f; T1 +5 yield 1");
	cr_assert(!trigger_time(r.tr, 0, 1000999));
	cr_assert(trigger_time(r.tr, 0, 1001000));
	rig_deinit(&r);
	/* returned, or its process has ended */
	rig_init(&r, "slow:f:" LIMIT, "");
	event_script_run(r.es, "T1 enter 1 f; T1 +5 leave 1; T2 enter 2 f");
	trigger_end_source(r.tr, 0);
	cr_assert(!trigger_time(r.tr, 0, 1000000000));
	rig_deinit(&r);
	check_no_leaks();
}

Test(trigger, too_many_calls)
{
	struct rig r;
	char line[64];

	rig_init(&r, "slow:f:" LIMIT, "");
	for (int i = 1; i <= 5000; i++) {
		snprintf(line, sizeof(line), "T%d enter %d f", i, 16 * i);
		event_script_run(r.es, line);
	}
	cr_assert_eq(trigger_refused(r.tr), 5000 - 4096);
	for (int i = 1; i <= 5000; i++) {
		snprintf(line, sizeof(line), "T%d leave %d", i, 16 * i);
		event_script_run(r.es, line);
	}
	cr_assert(!trigger_time(r.tr, 0, 1000000000));
	event_script_run(r.es, "T1 enter 1 f; T1 +1000000 leave 1");
	cr_assert(r.met_ts);
	rig_deinit(&r);
	check_no_leaks();
}

Test(trigger, by_an_exception)
{
	expect("raise:f", "", "T1 enter 1 f; T1 +5 leave 1", 0);
	expect("raise:f", "", "T1 enter 1 f; T1 +5 leave 1 raised", 1005);
	/* also if the call had begun before, and not from the callee */
	expect("raise:f", "T1 enter 1 f; T1 enter 2 g 1",
	       "T1 +5 leave 2 raised; T1 +5 leave 1 raised", 1010);
	expect("raise:f", "T1 enter 1 f; T1 enter 2 g 1", "T1 +5 leave 2 raised; T1 +5 leave 1", 0);
	/* deduced, suspended, or unknown: not known to be one */
	expect("raise:g", "", "T1 enter 1 f; T1 enter 2 g 1; T1 +5 leave 1 raised", 0);
	expect("raise:f", "", "T1 enter 1 f; T1 +5 yield 1; T1 +5 enter 1 f", 0);
	expect("raise:f", "", "T1 enter 1 f; T1 +5 chain resync 9=h", 0);
	check_no_leaks();
}

#define MS UINT64_C(1000000)

/* The CPU time at each 100 ms. Returns the time at which it is met, ms; 0: it is not. */
static uint64_t run_cpu(const char *condition, const unsigned int *cpu_ms, size_t n)
{
	struct trigger *tr;
	uint64_t at = 0;

	assert_ok(trigger_new(condition, &tr, NULL));
	assert_ok(trigger_add(tr, 0, 42, NULL));
	for (size_t i = 0; i < n && !at; i++)
		if (trigger_cpu(tr, 0, 5000 * MS + i * 100 * MS, cpu_ms[i] * MS + 1))
			at = i * 100;
	if (at) {
		cr_assert(trigger_hit(tr)->tid == 42 && trigger_hit(tr)->func == WATCH_NO_FUNC);
		cr_assert(strstr(trigger_hit(tr)->text, "process 42 has used "));
	}
	trigger_free(tr);
	return at;
}

Test(trigger, by_cpu_time)
{
	unsigned int cpu[40];

	/* half a CPU, from 1 s on one and a half */
	for (unsigned int i = 0; i < 40; i++)
		cpu[i] = i <= 10 ? 50 * i : 500 + 150 * (i - 10);
	cr_assert_eq(run_cpu("cpu:50%", cpu, 40), 1000);
	cr_assert_eq(run_cpu("cpu:51%", cpu, 40), 1100);
	cr_assert_eq(run_cpu("cpu:100%", cpu, 40), 1500);
	cr_assert_eq(run_cpu("cpu:150%", cpu, 40), 2000);
	cr_assert_eq(run_cpu("cpu:151", cpu, 40), 0);
	/* not before a whole second has passed */
	cr_assert_eq(run_cpu("cpu:1", cpu, 10), 0);
	check_no_leaks();
}
