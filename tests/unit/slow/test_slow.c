// SPDX-License-Identifier: BSD-2-Clause
/*
 * slow: which calls are kept, what their trees contain, and what is counted: from event scripts,
 * whose times are known to the nanosecond.
 */
#include "slow/slow.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "harness/event_script.h"
#include "harness/reports.h"
#include "harness/test.h"
#include "slow/slow_priv.h"
#include "timeline/timeline.h"

#define OWN "(own code)" /* for no pattern */

struct rig {
	struct event_script *es;
	struct slow *slow;
	uint32_t source;
};

static struct rig rig_on(enum snapshot_clock clock, const struct slow_opts *opts)
{
	struct rig r = {.es = event_script_new(NULL)};
	struct slow_opts o = *opts;
	struct diag diag = {0};

	o.clock = clock;
	o.from_ns = 1000;
	o.from_unix_ns = 500000;
	if (o.match && strcmp(o.match, OWN) == 0)
		o.match = NULL;
	else if (!o.match)
		o.match = "f";
	assert_diag_ok(slow_new(&o, &r.slow, &diag), &diag);
	assert_ok(profile_keep_waits(event_script_profile(r.es)));
	assert_ok(slow_add(r.slow, 42, event_script_profile(r.es), &r.source));
	return r;
}

static struct rig rig_new(const struct slow_opts *opts)
{
	return rig_on(SNAPSHOT_WALL, opts);
}

static void rig_free(struct rig *r)
{
	slow_end_source(r->slow, r->source, 100000);
	slow_free(r->slow);
	event_script_free(r->es);
}

static json_int_t get(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	cr_assert(json_is_integer(v), "%s", key);
	return json_integer_value(v);
}

/* " lock 5" for each reason */
static void put_waits(FILE *out, json_t *node)
{
	const char *why;
	json_t *ns;

	json_object_foreach(json_object_get(node, "waits"), why, ns)
		fprintf(out, " %s %" JSON_INTEGER_FORMAT, why, json_integer_value(ns));
}

/* "(f 1 wall/cpu waits (g …))": a node and those below it */
static void put_node(FILE *out, const json_t *root, const json_t *nodes, json_int_t at)
{
	json_t *node = json_array_get(nodes, (size_t)at), *other;
	const json_t *f =
		json_array_get(json_object_get(root, "functions"), (size_t)get(node, "function"));
	size_t i;

	fprintf(out, "(%s %" JSON_INTEGER_FORMAT " %" JSON_INTEGER_FORMAT "/%" JSON_INTEGER_FORMAT,
		json_string_value(json_object_get(f, "name")), get(node, "calls"),
		get(node, "wall_ns"), get(node, "cpu_ns"));
	put_waits(out, node);
	json_array_foreach(nodes, i, other)
	{
		if (get(other, "parent") != at)
			continue;
		fputc(' ', out);
		put_node(out, root, nodes, (json_int_t)i);
	}
	fputc(')', out);
}

/* "wall/cpu suspended (tree); …" of all calls */
static char *calls_at(struct rig *r, uint64_t now_ns)
{
	json_t *root = slow_json(r->slow, now_ns, SLOW_TREES), *c;
	char *text = NULL;
	size_t size, i;
	FILE *out = open_memstream(&text, &size);

	cr_assert(root);
	json_array_foreach(json_object_get(root, "calls"), i, c)
	{
		cr_assert_eq(get(c, "pid"), 42);
		fprintf(out,
			"%s%s%" JSON_INTEGER_FORMAT "/%" JSON_INTEGER_FORMAT
			" %" JSON_INTEGER_FORMAT " ",
			i ? "; " : "",
			json_is_true(json_object_get(c, "running")) ? "running " : "",
			get(c, "wall_ns"), get(c, "cpu_ns"), get(c, "suspended_ns"));
		put_node(out, root, json_object_get(c, "nodes"), 0);
	}
	fclose(out);
	json_decref(root);
	return text;
}

static void expect_calls(struct rig *r, uint64_t now_ns, const char *want)
{
	char *text = calls_at(r, now_ns);

	cr_assert_str_eq(text, want);
	free(text);
}

static void expect_count(struct rig *r, const char *key, json_int_t want)
{
	json_t *root = slow_json(r->slow, 2000, SLOW_COUNTERS);

	cr_assert_null(json_object_get(root, "calls"));
	cr_assert_eq(get(root, key), want, "%s is %" JSON_INTEGER_FORMAT, key, get(root, key));
	json_decref(root);
}

Test(slow, a_call_has_its_own_tree)
{
	struct rig r = rig_new(&(struct slow_opts){0});

	event_script_run(r.es, "T1 enter 1 main; T1 +5 enter 2 f 1; T1 +7 enter 3 g 2");
	event_script_run(r.es, "T1 +2 enter 4 h 3; T1 +3 leave 4; T1 +1 leave 3");
	event_script_run(r.es, "T1 +1 enter 3 g 2; T1 +9 leave 3; T1 +2 leave 2; T1 +50 leave 1");
	expect_calls(&r, 2000, "25/25 0 (f 1 10/10 (g 2 12/12 (h 1 3/3)))");
	expect_count(&r, "seen", 1);
	rig_free(&r);
	check_no_leaks();
}

Test(slow, the_slowest_are_kept)
{
	struct rig r = rig_new(&(struct slow_opts){.n = 2});

	event_script_run(r.es, "T1 enter 1 f; T1 +30 leave 1; T1 enter 1 f; T1 +10 leave 1");
	event_script_run(r.es, "T1 enter 1 f; T1 +50 leave 1; T1 enter 1 f; T1 +20 leave 1");
	event_script_run(r.es, "T1 enter 1 f; T1 +40 leave 1");
	expect_calls(&r, 2000, "50/50 0 (f 1 50/50); 40/40 0 (f 1 40/40)");
	expect_count(&r, "seen", 5);
	expect_count(&r, "over", 5);
	rig_free(&r);
	check_no_leaks();
}

Test(slow, shorter_ones_are_not)
{
	struct rig r = rig_new(&(struct slow_opts){.over_ns = 30});

	event_script_run(r.es, "T1 enter 1 f; T1 +29 leave 1; T1 enter 1 f; T1 +30 leave 1");
	event_script_run(r.es, "T1 enter 1 g; T1 +90 leave 1");
	expect_calls(&r, 2000, "30/30 0 (f 1 30/30)");
	expect_count(&r, "seen", 2);
	expect_count(&r, "over", 1);
	rig_free(&r);
	check_no_leaks();
}

/* On the CPU clock, a call that waits is not slow. */
Test(slow, by_cpu_time)
{
	struct rig r = rig_on(SNAPSHOT_CPU, &(struct slow_opts){.over_ns = 20});

	event_script_run(r.es, "T1 enter 1 f; T1 +5 out lock; T1 +90 in; T1 +5 leave 1");
	event_script_run(r.es, "T1 enter 1 f; T1 +25 leave 1");
	expect_calls(&r, 2000, "25/25 0 (f 1 25/25)");
	expect_count(&r, "seen", 2);
	rig_free(&r);
	check_no_leaks();
}

Test(slow, waiting_has_its_reason)
{
	struct rig r = rig_new(&(struct slow_opts){0});

	event_script_run(r.es, "T1 enter 1 f; T1 +5 out lock; T1 +90 in; T1 +1 enter 2 g 1");
	event_script_run(r.es, "T1 +1 out sleep; T1 +40 in; T1 +2 leave 2; T1 +3 leave 1");
	expect_calls(&r, 2000, "142/12 0 (f 1 99/9 lock 90 (g 1 43/3 sleep 40))");
	rig_free(&r);
	check_no_leaks();
}

/* That the thread got a CPU was not reported: its next event or switch shows that it had one. */
Test(slow, waiting_that_ends_unreported)
{
	struct rig r = rig_new(&(struct slow_opts){0});

	event_script_run(r.es, "T1 enter 1 f; T1 +5 out lock 5; T1 +20 in 5; T1 +1 out gil 6");
	event_script_run(r.es, "T1 +90 enter 2 g 1; T1 +1 out sleep 7; T1 +40 out cpu 8");
	event_script_run(r.es, "T1 +3 in 8; T1 +2 leave 2; T1 +3 leave 1");
	expect_calls(&r, 2000,
		     "165/13 0 (f 1 119/9 gil 90 lock 20 (g 1 46/4 runnable 3 sleep 39))");
	rig_free(&r);
	check_no_leaks();
}

Test(slow, recursion_is_one_call)
{
	struct rig r = rig_new(&(struct slow_opts){0});

	event_script_run(r.es, "T1 enter 1 f; T1 +5 enter 2 f 1; T1 +6 leave 2; T1 +7 leave 1");
	expect_calls(&r, 2000, "18/18 0 (f 1 12/12 (f 1 6/6))");
	expect_count(&r, "seen", 1);
	rig_free(&r);
	check_no_leaks();
}

/* A coroutine that is awaited: suspended in an inner one, resumed on another thread */
Test(slow, a_coroutine_is_one_call)
{
	struct rig r = rig_new(&(struct slow_opts){0});

	event_script_run(r.es, "T1 enter 1 loop; T1 +5 enter 2 f 1; T1 +3 enter 3 g 2");
	event_script_run(r.es, "T1 +4 yield 3; T1 +1 yield 2; T2 +100 enter 9 loop");
	event_script_run(r.es,
			 "T2 +20 enter 2 f 9; T2 +2 enter 3 g 2; T2 +2 leave 3; T2 +6 leave 2");
	event_script_run(r.es, "T1 +1 leave 1");
	expect_calls(&r, 2000, "138/18 120 (f 1 12/12 (g 1 6/6))");
	expect_count(&r, "seen", 1);
	rig_free(&r);
	check_no_leaks();
}

/* The frame of a coroutine that was never finished is used again. */
Test(slow, an_abandoned_coroutine_is_counted)
{
	struct rig r = rig_new(&(struct slow_opts){0});

	event_script_run(r.es, "T1 enter 1 f; T1 +4 yield 1; T1 +5 enter 1 g; T1 +5 leave 1");
	expect_calls(&r, 2000, "");
	expect_count(&r, "interrupted", 1);
	rig_free(&r);
	check_no_leaks();
}

Test(slow, of_each_thread)
{
	struct rig r = rig_new(&(struct slow_opts){0});

	event_script_run(r.es, "T1 enter 1 f; T2 +5 enter 9 f; T1 +5 leave 1; T2 +9 leave 9");
	expect_calls(&r, 2000, "14/14 0 (f 1 14/14); 10/10 0 (f 1 10/10)");
	rig_free(&r);
	check_no_leaks();
}

/* A running call is shown if it has taken long enough, but not if it began before the recording. */
Test(slow, running_and_begun_before)
{
	struct rig r = {.es = event_script_new(NULL)};
	struct diag diag = {0};

	event_script_run(r.es, "T1 enter 1 f; T1 +10 enter 2 g 1");
	assert_diag_ok(slow_new(&(struct slow_opts){.match = "f",
						    .over_ns = 50,
						    .clock = SNAPSHOT_WALL,
						    .from_ns = 1010},
				&r.slow, &diag),
		       &diag);
	assert_ok(slow_add(r.slow, 42, event_script_profile(r.es), &r.source));
	event_script_run(r.es, "T1 +100 leave 2; T1 leave 1; T2 +10 enter 9 f; T2 +10 enter 8 g 9");
	expect_count(&r, "unknown_start", 1);
	expect_calls(&r, 1160, "");
	expect_calls(&r, 1170, "running 50/10 0 (f 1 10/10 (g 1 40/0))");
	expect_count(&r, "seen", 0);
	slow_end_source(r.slow, r.source, 1200);
	expect_count(&r, "interrupted", 1);
	rig_free(&r);
	check_no_leaks();
}

/* Calls beyond the limit of nodes are booked to their callers: no time is missing. */
Test(slow, a_large_tree_is_truncated)
{
	struct rig r = rig_new(&(struct slow_opts){0});
	const unsigned int side = 64; /* 1 + 64 + 64 * 64 contexts */
	json_int_t sum = 0;
	json_t *root, *c, *n;
	char line[128];
	size_t i;

	event_script_run(r.es, "T1 enter 1 f");
	for (unsigned int k = 0; k < side * side; k++) {
		snprintf(line, sizeof(line),
			 "T1 +1 enter 2 g%u 1; T1 +1 enter 3 g%u 2; T1 +2 leave 3; T1 leave 2",
			 k % side, k / side);
		event_script_run(r.es, line);
	}
	event_script_run(r.es, "T1 +1 leave 1");
	root = slow_json(r.slow, 100000, SLOW_TREES);
	c = json_array_get(json_object_get(root, "calls"), 0);
	cr_assert_eq(json_array_size(json_object_get(c, "nodes")), SLOW_NODES_MAX);
	cr_assert_eq(get(c, "truncated"), 1 + 64 + 64 * 64 - SLOW_NODES_MAX);
	json_array_foreach(json_object_get(c, "nodes"), i, n) sum += get(n, "wall_ns");
	cr_assert_eq(sum, get(c, "wall_ns"));
	json_decref(root);
	rig_free(&r);
	check_no_leaks();
}

/* Large trees: fewer calls are kept than were asked for, the slowest ones. */
Test(slow, kept_calls_are_bounded)
{
	struct rig r = rig_new(&(struct slow_opts){.n = SLOW_KEPT_MAX});
	const unsigned int side = 60, calls = 30;
	size_t i, steps = 0;
	char line[128];
	json_t *root, *list, *c;

	for (unsigned int k = 0; k < calls * side * side; k++) {
		if (k % (side * side) == 0)
			event_script_run(r.es, "T1 enter 1 f");
		snprintf(line, sizeof(line),
			 "T1 enter 2 g%u 1; T1 enter 3 g%u 2; T1 +%u leave 3; T1 leave 2", k % side,
			 k / side % side, 1 + k / (side * side));
		event_script_run(r.es, line);
		if (k % (side * side) == side * side - 1)
			event_script_run(r.es, "T1 leave 1");
	}
	expect_count(&r, "over", calls);
	root = slow_json(r.slow, 100000, SLOW_STEPS);
	list = json_object_get(root, "calls");
	cr_assert_eq(json_array_size(list), SLOW_KEPT_NODES / (1 + side + side * side));
	cr_assert_eq(get(json_array_get(list, 0), "wall_ns"), calls * side * side);
	json_array_foreach(list, i, c) steps += json_array_size(json_object_get(c, "steps"));
	cr_assert(steps > SLOW_KEPT_STEPS / 2 && steps <= SLOW_KEPT_STEPS);
	json_decref(root);
	rig_free(&r);
	check_no_leaks();
}

/* Threads without end: each followed call takes a place, and what has none is counted. */
Test(slow, too_many_at_a_time)
{
	struct rig r = rig_new(&(struct slow_opts){0});
	char line[64];

	for (unsigned int k = 0; k < SLOW_FOLLOWED + 5; k++) {
		snprintf(line, sizeof(line), "T1 +1 enter %u f; T1 +1 yield %u", 16 * k + 16,
			 16 * k + 16);
		event_script_run(r.es, line);
	}
	expect_count(&r, "refused", 5);
	slow_end_source(r.slow, r.source, 100000);
	expect_count(&r, "interrupted", SLOW_FOLLOWED);
	rig_free(&r);
	check_no_leaks();
}

/* Events were lost inside: it is kept, and marked. */
Test(slow, a_gap_is_reported)
{
	struct rig r = rig_new(&(struct slow_opts){0});
	json_t *root, *c;

	event_script_run(r.es, "T1 enter 1 f; T1 +5 chain resync 1=f; T1 +5 leave 1");
	root = slow_json(r.slow, 2000, SLOW_TREES);
	c = json_array_get(json_object_get(root, "calls"), 0);
	cr_assert(json_is_true(json_object_get(c, "gap")));
	json_decref(root);
	rig_free(&r);
	check_no_leaks();
}

/* ---- random programs ---- */

struct program {
	struct rig *r;
	unsigned int seed;
	unsigned int stack[3][12], depth[3]; /* per thread: frames, which are also functions */
	bool off[3];
};

static void run_line(struct program *p, unsigned int t, const char *what, unsigned int frame,
		     unsigned int below)
{
	char line[96];

	if (strcmp(what, "enter") == 0)
		snprintf(line, sizeof(line), "T%u +%u enter %u %c%u %u", t + 1,
			 random_below(&p->seed, 9), frame, frame % 3 ? 'g' : 'f', frame % 5, below);
	else
		snprintf(line, sizeof(line), "T%u +%u %s %u", t + 1, random_below(&p->seed, 9),
			 what, frame);
	event_script_run(p->r->es, line);
}

/* Frames that are suspended may be entered again on any thread, or never. */
static void step(struct program *p)
{
	const unsigned int t = random_below(&p->seed, 3);
	unsigned int *depth = &p->depth[t], frame = 16 * (1 + random_below(&p->seed, 40));
	char line[64];

	if (random_below(&p->seed, 6) == 0 || p->off[t]) {
		snprintf(line, sizeof(line), "T%u +%u %s", t + 1, random_below(&p->seed, 90),
			 p->off[t]		     ? "in"
			 : random_below(&p->seed, 2) ? "out lock"
						     : "out sleep");
		event_script_run(p->r->es, line);
		p->off[t] = !p->off[t];
		return;
	}
	for (unsigned int k = 0; k < 3; k++)
		for (unsigned int i = 0; i < p->depth[k]; i++)
			if (p->stack[k][i] == frame)
				return;
	if (*depth < 12 && (!*depth || random_below(&p->seed, 2))) {
		run_line(p, t, "enter", frame, *depth ? p->stack[t][*depth - 1] : 0);
		p->stack[t][(*depth)++] = frame;
	} else {
		run_line(p, t, random_below(&p->seed, 3) ? "leave" : "yield", p->stack[t][--*depth],
			 0);
	}
}

/* A kept call's times are those of its nodes, and its waiting is its reasons'. */
static void check_sums(const json_t *c)
{
	json_int_t wall = get(c, "suspended_ns"), cpu = 0, waits = 0;
	json_t *n, *ns;
	const char *why;
	size_t i;

	json_array_foreach(json_object_get(c, "nodes"), i, n)
	{
		cr_assert_lt(get(n, "parent"), (json_int_t)i);
		wall += get(n, "wall_ns");
		cpu += get(n, "cpu_ns");
		json_object_foreach(json_object_get(n, "waits"), why, ns)
			waits += json_integer_value(ns);
	}
	cr_assert_eq(wall, get(c, "wall_ns"));
	cr_assert_eq(cpu, get(c, "cpu_ns"));
	cr_assert_leq(waits, wall - get(c, "suspended_ns"));
}

Test(slow, times_add_up)
{
	unsigned int kept = 0;

	for (unsigned int seed = 1; seed <= 40; seed++) {
		struct rig r = rig_new(&(struct slow_opts){.match = "[(]f", .n = SLOW_KEPT_MAX});
		struct program p = {.r = &r, .seed = seed};
		json_t *root, *c;
		size_t i;

		for (unsigned int k = 0; k < 1200; k++)
			step(&p);
		root = slow_json(r.slow, 1000000, SLOW_TREES);
		json_array_foreach(json_object_get(root, "calls"), i, c) check_sums(c);
		kept += (unsigned int)i;
		json_decref(root);
		rig_free(&r);
	}
	cr_assert_gt(kept, 400, "%u calls were kept", kept);
	check_no_leaks();
}

Test(slow, patterns)
{
	const struct slow_opts bad = {.match = "(f"}, none = {.match = ""},
			       many = {.match = "f", .n = SLOW_KEPT_MAX + 1};
	struct slow *s;

	for (int i = 0; i < 3; i++) {
		struct diag diag = {0};
		const struct slow_opts *o = i == 0 ? &bad : i == 1 ? &none : &many;

		cr_assert_eq(slow_new(o, &s, &diag), -EINVAL);
		cr_assert_eq(diag.exit, PYP_EXIT_USAGE);
	}
	check_no_leaks();
}

/* Each call and return inside, in order: "f 0 +5 g 5 -8 -9" */
static void expect_steps(struct rig *r, const char *want)
{
	json_t *root = slow_json(r->slow, 2000, SLOW_STEPS), *p;
	const json_t *c = json_array_get(json_object_get(root, "calls"), 0), *f;
	char text[512] = "";
	size_t i, n = 0;

	json_array_foreach(json_object_get(c, "steps"), i, p)
	{
		const json_t *func = json_array_get(p, 1);

		f = json_array_get(json_object_get(root, "functions"),
				   (size_t)json_integer_value(func));
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%" JSON_INTEGER_FORMAT " %s",
				      i ? ", " : "", json_integer_value(json_array_get(p, 0)),
				      func ? json_string_value(json_object_get(f, "name")) : "end");
	}
	cr_assert_str_eq(text, want);
	cr_assert_eq(get(c, "steps_missing"), 0);
	json_decref(root);
}

Test(slow, steps)
{
	struct rig r = rig_new(&(struct slow_opts){0});

	event_script_run(r.es, "T1 enter 1 loop; T1 +5 enter 2 f 1; T1 +3 enter 3 g 2");
	event_script_run(r.es, "T1 +4 yield 3; T1 +1 yield 2; T2 +100 enter 9 loop");
	event_script_run(r.es,
			 "T2 +20 enter 2 f 9; T2 +2 enter 3 g 2; T2 +2 leave 3; T2 +6 leave 2");
	expect_steps(&r, "0 f, 3 g, 7 end, 8 end, 128 f, 130 g, 132 end, 138 end");
	rig_free(&r);
	check_no_leaks();
}

/* A call with more steps than are kept: its tree is complete. */
Test(slow, more_steps_than_are_kept)
{
	struct rig r = rig_new(&(struct slow_opts){0});
	json_t *root, *c, *g;

	event_script_run(r.es, "T1 enter 1 f");
	for (unsigned int k = 0; k < SLOW_STEPS_MAX; k++)
		event_script_run(r.es, "T1 +1 enter 2 g 1; T1 +1 leave 2");
	event_script_run(r.es, "T1 leave 1");
	root = slow_json(r.slow, 100000, SLOW_STEPS);
	c = json_array_get(json_object_get(root, "calls"), 0);
	g = json_array_get(json_object_get(c, "nodes"), 1);
	cr_assert_eq(json_array_size(json_object_get(c, "steps")), SLOW_STEPS_MAX);
	cr_assert_eq(get(c, "steps_missing"), SLOW_STEPS_MAX + 2);
	cr_assert_eq(get(g, "calls"), SLOW_STEPS_MAX);
	json_decref(root);
	rig_free(&r);
	check_no_leaks();
}

/* Without a pattern: the outermost calls of the program's own code, above what runs already */
Test(slow, own_code)
{
	struct rig r = rig_new(&(struct slow_opts){.match = OWN});

	event_script_run(r.es, "T1 enter 1 main; T1 +5 enter 2 g 1; T1 +3 leave 2; T1 +1 leave 1");
	expect_calls(&r, 2000, "9/9 0 (main 1 6/6 (g 1 3/3))");
	rig_free(&r);
	check_no_leaks();
}

/* A pattern that backtracks without end is given up, and that is reported. */
Test(slow, a_pattern_that_takes_too_long)
{
	struct rig r = rig_new(&(struct slow_opts){.match = "(a+)+$"});
	char line[64];

	for (unsigned int k = 0; k < 40; k++) {
		snprintf(line, sizeof(line),
			 "T1 enter 1 %uaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; T1 leave 1", k);
		event_script_run(r.es, line);
	}
	expect_count(&r, "unsearched", 40);
	expect_count(&r, "seen", 0);
	rig_free(&r);
	check_no_leaks();
}

/* A profile reports to one: a timeline or this. */
Test(slow, one_watcher_at_a_time)
{
	struct rig r = rig_new(&(struct slow_opts){0});
	struct timeline *tl =
		timeline_new(&(struct timeline_opts){.from_ns = 1000, .until_ns = 9000});
	uint32_t source;

	cr_assert_eq(timeline_add(tl, 42, event_script_profile(r.es), &source), -EBUSY);
	timeline_free(tl);
	rig_free(&r);
	check_no_leaks();
}
