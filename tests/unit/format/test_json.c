// SPDX-License-Identifier: BSD-2-Clause
/* The JSON format: valid, complete, and equal to the snapshot. */
#include <jansson.h>

#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"
#include "harness/wholes.h"
#include "base/wait.h"
#include "snapshot/lines.h"
#include "snapshot/load.h"
#include "snapshot/pseudo.h"

static json_t *load(const struct snapshot *s, const struct format_opts *o)
{
	_cleanup_free_ char *report = NULL;
	json_error_t error;
	json_t *ret;
	size_t size;

	report = report_new("json", s, o, &size);
	cr_assert(report_harmless(report, size), "%s", report);
	ret = json_loadb(report, size, JSON_REJECT_DUPLICATES, &error);
	cr_assert(ret, "line %d: %s", error.line, error.text);
	return ret;
}

static uint64_t integer(const json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	cr_assert(json_is_integer(value), "'%s' is no integer", key);
	return (uint64_t)json_integer_value(value);
}

/* An unknown value is null, never 0. */
static uint64_t known(const json_t *object, const char *key)
{
	uint64_t ret = SNAPSHOT_MIN_UNKNOWN;

	if (json_is_null(json_object_get(object, key)))
		return ret;
	ret = integer(object, key);
	cr_assert_neq(ret, SNAPSHOT_MIN_UNKNOWN);
	return ret;
}

static const char *string(const json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	cr_assert(json_is_string(value), "'%s' is no string", key);
	return json_string_value(value);
}

static void assert_clocks(const json_t *object, const char *key, const uint64_t ns[SNAPSHOT_CLOCKS])
{
	json_t *clocks = json_object_get(object, key);

	cr_assert_eq(integer(clocks, "cpu"), ns[SNAPSHOT_CPU]);
	cr_assert_eq(integer(clocks, "wall"), ns[SNAPSHOT_WALL]);
}

static void assert_index(const json_t *object, const char *key, uint32_t index)
{
	json_t *value = json_object_get(object, key);

	if (index == SNAPSHOT_NONE)
		cr_assert(json_is_null(value), "'%s' is not null", key);
	else
		cr_assert_eq((uint32_t)json_integer_value(value), index);
}

static void assert_nodes(const json_t *j, const struct snapshot *s)
{
	json_t *nodes = json_object_get(j, "nodes"), *funcs = json_object_get(j, "functions");

	cr_assert_eq(json_array_size(nodes), s->nnodes);
	for (uint32_t i = 0; i < s->nnodes; i++) {
		const struct snapshot_node *n = &s->nodes[i];
		json_t *o = json_array_get(nodes, i), *f;

		assert_index(o, "parent", n->parent);
		assert_index(o, "thread", n->thread);
		cr_assert_eq(integer(o, "calls"), n->calls);
		cr_assert_eq(integer(o, "inflight"), n->inflight);
		assert_clocks(o, "self", n->self);
		cr_assert_eq(json_is_null(json_object_get(o, "min")),
			     n->min[SNAPSHOT_CPU] == UINT64_MAX);
		if (n->func == SNAPSHOT_NONE) {
			cr_assert(json_is_null(json_object_get(o, "func")));
			continue;
		}
		f = json_array_get(funcs, integer(o, "func"));
		cr_assert_str_eq(string(f, "name"), s->funcs[n->func].name);
		cr_assert_eq((int32_t)integer(f, "line"), s->funcs[n->func].firstlineno);
	}
}

static void assert_rows(const json_t *j, const struct view *v)
{
	json_t *funcs = json_object_get(j, "functions");
	uint64_t ncalls = 0, inflight = 0, tot[SNAPSHOT_CLOCKS] = {0}, min = UINT64_MAX, max = 0;

	for (size_t i = 0; i < json_array_size(funcs); i++) {
		json_t *f = json_array_get(funcs, i), *shortest = json_object_get(f, "min");

		ncalls += integer(f, "ncalls");
		inflight += integer(f, "inflight");
		tot[SNAPSHOT_CPU] += integer(json_object_get(f, "tottime"), "cpu");
		tot[SNAPSHOT_WALL] += integer(json_object_get(f, "tottime"), "wall");
		if (json_is_null(shortest))
			continue;
		if (known(shortest, "cpu") < min)
			min = known(shortest, "cpu");
		if (known(json_object_get(f, "max"), "cpu") > max)
			max = known(json_object_get(f, "max"), "cpu");
	}
	for (size_t i = 0; i < v->nrows; i++) {
		inflight -= v->rows[i].inflight;
		cr_assert(v->rows[i].min[SNAPSHOT_CPU] >= min);
		cr_assert(v->rows[i].max[SNAPSHOT_CPU] <= max);
	}
	cr_assert_eq(inflight, 0);
	cr_assert_eq(ncalls, v->ncalls);
	cr_assert_eq(tot[SNAPSHOT_CPU], v->total[SNAPSHOT_CPU]);
	cr_assert_eq(tot[SNAPSHOT_WALL], v->total[SNAPSHOT_WALL]);
	assert_clocks(json_object_get(j, "totals"), "tottime", v->total);
	cr_assert_eq(json_array_size(json_object_get(j, "edges")), v->nedges);
}

Test(json, holds_what_the_snapshot_holds)
{
	for (unsigned int seed = 1; seed <= 100; seed++) {
		_cleanup_(snapshot_freep) struct snapshot *s = snapshot_random(seed);
		_cleanup_(view_freep) struct view *v = NULL;
		struct format_opts o = {0};
		json_t *j = load(s, &o);

		assert_ok(view_build(s, &o.filter, &v));
		assert_nodes(j, s);
		assert_rows(j, v);
		json_decref(j);
	}
	check_no_leaks();
}

Test(json, provenance)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("main app.py:1 1 1000\n");
	struct format_opts o = {.clock = SNAPSHOT_WALL};
	json_t *j, *t;

	s->targets[0].losses[PYP_LOSS_lost_events] = 17;
	s->targets[0].losses[PYP_LOSS_name_truncated] = 2;
	s->targets[0].stack_switches = 5;
	s->folded = true;
	j = load(s, &o);
	cr_assert_str_eq(string(j, "format"), "pyprofd-snapshot");
	cr_assert(json_is_true(json_object_get(j, "only_my_code")));
	cr_assert(json_is_false(json_object_get(j, "strip_dirs")));
	cr_assert(json_is_false(json_object_get(j, "estimated")));
	cr_assert_eq(integer(j, "version"), 1);
	cr_assert_str_eq(string(j, "program"), "pyprofd test");
	cr_assert_str_eq(string(j, "host"), "testhost");
	cr_assert_str_eq(string(j, "kernel"), "Linux 6.1.0");
	cr_assert_str_eq(string(j, "taken"), "2023-11-14T22:13:30.000Z");
	cr_assert_str_eq(string(j, "clock"), "wall");
	cr_assert(json_is_false(json_object_get(j, "exact")));
	t = json_array_get(json_object_get(j, "targets"), 0);
	cr_assert_eq(integer(t, "pid"), 42);
	cr_assert_str_eq(string(t, "cmdline"), "python app.py");
	cr_assert_str_eq(string(t, "start"), "2023-11-14T22:13:20.000Z");
	cr_assert_str_eq(string(json_object_get(t, "python"), "build_id"), "0123456789abcdef");
	cr_assert_eq(integer(t, "lost"), 17);
	cr_assert_eq(integer(t, "stack_switches"), 5);
	cr_assert_eq(integer(json_object_get(t, "losses"), "lost_events"), 17);
	cr_assert_eq(integer(json_object_get(t, "losses"), "name_truncated"), 2);
	cr_assert_eq(json_object_size(json_object_get(t, "losses")), PYP_LOSS_MAX);
	json_decref(j);
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

Test(json, a_filter_leaves_out_and_renumbers)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("target 42\nthread 42 42 Main\nmain a.py:1 1 5\n"
			       "thread 42 43 worker\nwork a.py:9 2 5\n  sub a.py:12 4 6\n"
			       "thread 77 77 Other\nmain a.py:1 1 5\n");
	struct format_opts o = {.filter = {.tid = 43}};
	json_t *j = load(s, &o), *nodes = json_object_get(j, "nodes");

	cr_assert_eq(json_array_size(json_object_get(j, "targets")), 1);
	cr_assert_eq(json_array_size(json_object_get(j, "threads")), 1);
	cr_assert_eq(json_array_size(json_object_get(j, "functions")), 2);
	cr_assert_eq(json_array_size(nodes), 3);
	assert_index(json_array_get(nodes, 0), "parent", SNAPSHOT_NONE);
	assert_index(json_array_get(nodes, 1), "parent", 0);
	assert_index(json_array_get(nodes, 2), "parent", 1);
	assert_index(json_array_get(nodes, 2), "func", 1);
	assert_index(json_array_get(nodes, 2), "thread", 0);
	json_decref(j);
	o.filter = (struct view_filter){.pid = 77};
	j = load(s, &o);
	cr_assert_eq(json_array_size(json_object_get(j, "targets")), 1);
	cr_assert_eq(json_array_size(json_object_get(j, "nodes")), 2);
	json_decref(j);
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* Coroutine lifetimes are loaded as they were saved. */
Test(json, coroutines_round_trip)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_hostile(), *back = NULL;
	struct snapshot_coro coros[] = {
		{.pid = 42,
		 .func = 0,
		 .kind = SNAPSHOT_COROUTINE,
		 .started = 3,
		 .ended = 2,
		 .steps = 9,
		 .running = {10, 20},
		 .suspended = 30,
		 .lifetimes = 2,
		 .total = 40,
		 .min = 15,
		 .max = 25},
		{.pid = 42, .func = 1, .kind = SNAPSHOT_GREENLET, .partial = 1, .steps = 1},
		{.pid = 42, .func = 1, .kind = SNAPSHOT_ASYNC_GENERATOR, .ends_hidden = true},
		{.pid = 42, .func = 1, .kind = SNAPSHOT_GENERATOR, .started = 1},
	};
	struct format_opts o = {0};
	struct diag diag = {0};
	size_t size;
	char *text;

	s->coros = coros;
	s->ncoros = 4;
	text = report_new("json", s, &o, &size);
	assert_diag_ok(snapshot_parse(text, size, "test", &back, &diag), &diag);
	cr_assert_eq(back->ncoros, 4);
	for (uint32_t i = 0; i < 4; i++) {
		cr_assert_str_eq(back->funcs[back->coros[i].func].name,
				 s->funcs[coros[i].func].name);
		back->coros[i].func = coros[i].func;
		cr_assert(memcmp(&back->coros[i], &coros[i], sizeof(coros[i])) == 0, "%u", i);
	}
	free(text);
	snapshot_free(TAKE_PTR(back));
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

static void assert_strings(const json_t *f, const char *const *fields)
{
	for (; fields[0]; fields += 2) {
		const json_t *v = json_object_get(f, fields[0]);

		cr_assert(fields[1] ? strcmp(json_string_value(v), fields[1]) == 0
				    : json_is_null(v),
			  "%s", fields[0]);
	}
}

/*
 * The C functions left out by --builtins-of are merged into their callers; the others have their
 * module or type.
 */
Test(json, builtins)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("f a.py:1 1 10\n"
			       "  <method_'append'_of_'list'_objects> ~:0 2 6\n"
			       "  <built-in_method_math.sqrt> ~:0 3 3\n"
			       "  <built-in_method_builtins.map> ~:0 3 3\n"
			       "    g a.py:9 1 1\n");
	struct format_opts o = {.builtins_of = "app.nd|sqrt"};
	json_t *j, *funcs;
	size_t native = 0;

	for (uint32_t i = 0; i < s->nfuncs; i++)
		for (char *p = (char *)s->funcs[i].name; *p; p++)
			*p = *p == '_' ? ' ' : *p;
	j = load(s, &o);
	funcs = json_object_get(j, "functions");
	cr_assert_str_eq(json_string_value(json_object_get(j, "builtins_of")), "app.nd|sqrt");
	cr_assert_eq(json_array_size(funcs), 4);
	for (size_t i = 0; i < json_array_size(funcs); i++) {
		const json_t *f = json_array_get(funcs, i);
		const char *name = json_string_value(json_object_get(f, "name"));

		cr_assert_eq(json_is_true(json_object_get(f, "native")), *name == '<', "%s", name);
		native += *name == '<';
		if (strstr(name, "append"))
			assert_strings(f,
				       (const char *const[]){"type", "list", "module", NULL, NULL});
		else if (strstr(name, "sqrt"))
			assert_strings(f,
				       (const char *const[]){"type", NULL, "module", "math", NULL});
		else
			assert_strings(f,
				       (const char *const[]){"type", NULL, "module", NULL, NULL});
	}
	cr_assert_eq(native, 2);
	/* the thread, f, append, sqrt, and g, which is now called by f */
	cr_assert_eq(json_array_size(json_object_get(j, "nodes")), 5);
	cr_assert_eq(integer(json_array_get(json_object_get(j, "nodes"), 4), "parent"), 1);
	json_decref(j);
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* The subtracted time, and the time outside of functions */
Test(json, overhead_and_outside)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_hostile();
	json_int_t before = 0, cpu = 0, clamped = 0, outside = 0;
	struct snapshot_target *t = &s->targets[0];
	struct format_opts o = {0};
	int subtracted = 0;
	json_t *j;

	t->cost = (struct cost){.known = true, .before = {300, 200, 250}, .after = {1, 2, 3}};
	t->corrected = true;
	t->subtracted[SNAPSHOT_CPU] = 4711;
	t->clamped = 7;
	s->nodes[s->threads[0].root].self[SNAPSHOT_WALL] = 99;
	j = load(s, &o);
	assert_ok(json_unpack(j, "{s:[{s:{s:{s:{s:I}}, s:b, s:I, s:I}}], s:[{s:{s:I}}]}", "targets",
			      "overhead", "hit_ns", "return", "before", &before, "subtracted",
			      &subtracted, "subtracted_cpu_ns", &cpu, "clamped", &clamped,
			      "threads", "outside", "wall", &outside));
	cr_assert(before == 200 && subtracted && cpu == 4711 && clamped == 7 && outside == 99);
	json_decref(j);
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

static void assert_dumps(const json_t *object, const char *key, const char *expected)
{
	_cleanup_free_ char *text =
		json_dumps(json_object_get(object, key), JSON_COMPACT | JSON_ENCODE_ANY);

	cr_assert(text ? strcmp(text, expected) == 0 : !*expected, "%s: %s, not %s", key, text,
		  expected);
}

/* Of what is not known or did not happen, there is nothing. */
Test(json, targets)
{
	static const char *const optional[] = {"estimate",  "windows",	   "waits",
					       "since",	    "children",	   "forked_from",
					       "folded",    "fork_gap_ns", "mechanism",
					       "self_test", "warnings",	   "execs",
					       "columns",   "builtins_of", "exec_gap_ns"};
	struct snapshot_call other[] = {{"poll", 5, 6}, {"wait4", 7, 8}};
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("target 42\ntarget 7\n");
	struct snapshot_target *t = &s->targets[1];
	struct format_opts o = {.filter = {.pid = 7}};
	json_t *j = load(s, &o), *target;

	target = json_array_get(json_object_get(j, "targets"), 0);
	for (size_t i = 0; i < sizeof(optional) / sizeof(optional[0]); i++) {
		assert_dumps(target, optional[i], "");
		assert_dumps(j, optional[i], "");
	}
	assert_dumps(target, "overhead",
		     "{\"ratio\":null,\"overhead_ns\":0,\"own_cpu_ns\":0,\"hit_ns\":null,"
		     "\"subtracted\":false,\"subtracted_cpu_ns\":0,"
		     "\"subtracted_wall_ns\":0,\"clamped\":0}");
	assert_dumps(j, "filter", "{\"pid\":7,\"tid\":null}");
	json_decref(j);

	s->taken_unix_ns = 1700000010007000000;
	s->measured = COLUMN_BIT(COLUMN_vcsw) | COLUMN_BIT(COLUMN_rbytes) |
		      COLUMN_BIT(COLUMN_gil_held_ns);
	s->targets[0].truncated = 1;
	t->estimate = (struct snapshot_estimate){
		.rate = 99, .period_ns = 10, .samples = 4, .of_probes = 2, .before = 3};
	t->windows = (struct snapshot_windows){.max_overhead = 5,
					       .n = 9,
					       .span_ns = 40000000000,
					       .whole_ns = 3000000000,
					       .seen_cpu_ns = 1,
					       .all_cpu_ns = 4,
					       .samples = 7,
					       .samples_factor = 1.25,
					       .failed = 2,
					       .unsampled = "why"};
	t->waits = (struct snapshot_waits){.measured = true,
					   .gil_known = true,
					   .other = other,
					   .nother = 2,
					   .pairs_dropped = 8};
	t->cost = (struct cost){.known = true, .before = {1, 2, 3}, .after = {4, 5, 6}};
	t->cost_scale = 1.5;
	t->overhead_ns = 2, t->own_cpu_ns = 8;
	t->corrected = t->since = t->follows = true;
	t->subtracted[SNAPSHOT_CPU] = 10;
	t->subtracted[SNAPSHOT_WALL] = 20;
	t->clamped = 3;
	t->children = (struct snapshot_children){1, 2, 3, 4};
	t->folded = 12, t->fork_gap_ns = 7, t->execs = 2, t->exec_gap_ns = 9;
	t->mechanism = "a", t->self_test = "b", t->warnings = "c";
	t->start_unix_ns = 0;
	t->unmatched = UINT64_MAX;
	j = load(s, &o);
	target = json_array_get(json_object_get(j, "targets"), 0);
	assert_dumps(j, "taken", "\"2023-11-14T22:13:30.007Z\"");
	assert_dumps(j, "columns", "{\"counters\":[\"vcsw\",\"rbytes\"],\"\":[\"gil_held_ns\"]}");
	assert_dumps(j, "exact", "true");
	assert_dumps(target, "estimate",
		     "{\"rate_hz\":99,\"period_ns\":10,\"samples\":4,\"samples_of_probes\":2,"
		     "\"samples_before\":3,\"relative_error\":0.5}");
	assert_dumps(target, "windows",
		     "{\"max_overhead_percent\":5,\"sampled\":false,\"count\":9,\"failed\":2,"
		     "\"span_ns\":40000000000,\"whole_ns\":3000000000,\"seen_cpu_ns\":1,\"all_cpu_"
		     "ns\":4,"
		     "\"cpu_share\":0.25,\"time_share\":0.25,\"samples\":7,"
		     "\"samples_factor\":1.25,\"unsampled\":\"why\"}");
	assert_dumps(target, "waits",
		     "{\"gil_known\":true,\"gil_pairs_dropped_ns\":8,\"other\":[{\"syscall\":"
		     "\"poll\",\"ns\":5,\"count\":6},{\"syscall\":\"wait4\",\"ns\":7,"
		     "\"count\":8}]}");
	assert_dumps(target, "overhead",
		     "{\"ratio\":0.25,\"overhead_ns\":2,\"own_cpu_ns\":8,"
		     "\"hit_ns\":{\"call\":{\"before\":1,\"after\":4},\"return\":{"
		     "\"before\":2,\"after\":5},\"yield\":{\"before\":3,\"after\":6}},"
		     "\"scale\":1.5,\"subtracted\":true,"
		     "\"subtracted_cpu_ns\":10,\"subtracted_wall_ns\":20,\"clamped\":3}");
	assert_dumps(target, "children",
		     "{\"followed\":1,\"over_limit\":2,\"ended_first\":3,\"failed\":4}");
	assert_dumps(target, "folded", "12");
	assert_dumps(target, "forked_from", "");
	assert_dumps(target, "fork_gap_ns", "7");
	assert_dumps(target, "execs", "2");
	assert_dumps(target, "exec_gap_ns", "9");
	assert_dumps(target, "since", "true");
	assert_dumps(target, "start", "\"unknown\"");
	assert_dumps(target, "mechanism", "\"a\"");
	assert_dumps(target, "self_test", "\"b\"");
	assert_dumps(target, "warnings", "\"c\"");
	assert_dumps(target, "unmatched", "9223372036854775807");
	json_decref(j);

	t->folded = 0, t->parent = 42;
	t->waits.walked = true, t->waits.walks = 12, t->waits.nother = 0;
	t->estimate = (struct snapshot_estimate){0};
	t->mode = MODE_SAMPLE;
	t->windows = (struct snapshot_windows){.sampled = true};
	o = (struct format_opts){0};
	j = load(s, &o);
	target = json_array_get(json_object_get(j, "targets"), 1);
	cr_assert_eq(integer(j, "version"), 2);
	assert_dumps(j, "exact", "false");
	assert_dumps(j, "estimated", "true");
	assert_dumps(target, "forked_from", "42");
	assert_dumps(target, "fork_gap_ns", "7");
	assert_dumps(target, "waits",
		     "{\"gil_known\":true,\"gil_pairs_dropped_ns\":8,\"other\":[],\"walks\":12}");
	assert_dumps(target, "estimate",
		     "{\"rate_hz\":0,\"period_ns\":0,\"samples\":0,\"relative_error\":1.0}");
	assert_dumps(
		target, "windows",
		"{\"max_overhead_percent\":0,\"sampled\":true,\"count\":0,\"failed\":0,"
		"\"span_ns\":0,\"whole_ns\":0,\"seen_cpu_ns\":0,\"all_cpu_ns\":0,\"cpu_share\":1.0,"
		"\"time_share\":1.0,\"samples\":0}");
	json_decref(j);
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* Their time outside Python is the same whether or not it is a context of its own. */
Test(json, threads)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("target 42\n"
								      "thread 42 42 Main\n"
								      "main a.py:1 1 5\n"
								      "thread 42 0 worker\n"
								      "f a.py:9 1 5\n");
	struct format_opts o = {0};

	s->nodes[s->threads[0].root].self[SNAPSHOT_WALL] = 99;
	s->nodes[s->threads[1].root].self[SNAPSHOT_CPU] = 3;
	s->nodes[s->threads[1].root].self[SNAPSHOT_WALL] = 7;
	s->threads[1].folded = 12;
	s->threads[1].entry = "f";
	for (int i = 0; i < 2; i++) {
		json_t *j = load(s, &o), *threads = json_object_get(j, "threads");

		assert_dumps(json_array_get(threads, 0), "outside", "{\"cpu\":0,\"wall\":99}");
		assert_dumps(json_array_get(threads, 0), "folded", "");
		assert_dumps(json_array_get(threads, 0), "waits", "");
		assert_dumps(json_array_get(threads, 1), "outside", "{\"cpu\":3,\"wall\":7}");
		assert_dumps(json_array_get(threads, 1), "folded", "12");
		assert_dumps(json_array_get(threads, 1), "entry", i ? "null" : "\"f\"");
		json_decref(j);
		s->threads[1].entry = NULL;
		assert_ok(snapshot_pseudo(s));
	}
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

static void assert_has(const char *text, const char *part)
{
	cr_assert(strstr(text, part), "'%s' is missing in:\n%s", part, text);
}

/* Functions without a context among the selected ones are there if something else refers to them. */
Test(json, pairs_and_waits)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("target 7\nthread 7 7 b\n"
			       "waited b.py:1 1 5\nheld b.py:2 1 5\nwaiter b.py:3 1 5\n"
			       "coro b.py:4 1 5\nnone b.py:5 1 5\n"
			       "target 42\nthread 42 42 a\nmain a.py:1 1 5\n");
	struct snapshot_gil_pair pairs[] = {{42, 1, SNAPSHOT_NONE, 10},
					    {7, 4, 4, 20},
					    {42, SNAPSHOT_NONE, 2, 30},
					    {42, 5, 2, 40}};
	struct snapshot_wait waits[] = {{.pid = 42,
					 .tid = 42,
					 .func = 0,
					 .why = WAIT_gil,
					 .ns = 5,
					 .end_ns = 100,
					 .fd = SNAPSHOT_NONE},
					{.pid = 7, .tid = 7, .func = 4, .why = WAIT_lock},
					{.pid = 42,
					 .tid = 43,
					 .func = SNAPSHOT_NONE,
					 .why = WAIT_lock,
					 .ns = 6,
					 .end_ns = 200,
					 .syscall = "futex",
					 .fd = 3}};
	struct snapshot_coro coros[] = {{.pid = 42, .func = 3}, {.pid = 7, .func = 4}};
	struct format_opts o = {.filter = {.pid = 42}};
	char *pid, *tid, *unmeasured;
	json_t *j;

	s->gil_pairs = pairs, s->ngil_pairs = 4;
	s->waits = waits, s->nwaits = 3;
	s->coros = coros, s->ncoros = 2;
	unmeasured = report_new("json", s, &o, NULL);
	cr_assert(!strstr(unmeasured, "gil_pairs") && !strstr(unmeasured, "longest_waits"));
	s->measured = COLUMN_WAITS;
	pid = report_new("json", s, &o, NULL);
	assert_has(pid, "\"gil_pairs\":[\n"
			"{\"pid\":42,\"holder\":1,\"waiter\":null,\"ns\":10},\n"
			"{\"pid\":42,\"holder\":null,\"waiter\":2,\"ns\":30},\n"
			"{\"pid\":42,\"holder\":4,\"waiter\":2,\"ns\":40}\n]");
	assert_has(pid, "\"longest_waits\":[\n"
			"{\"pid\":42,\"tid\":42,\"function\":0,\"reason\":\"gil\","
			"\"end_ns\":100,\"ns\":5},\n"
			"{\"pid\":42,\"tid\":43,\"function\":null,\"reason\":\"lock\","
			"\"syscall\":\"futex\",\"fd\":3,\"end_ns\":200,\"ns\":6}\n]");
	assert_has(pid, "\"coroutines\":[\n{\"func\":3,\"pid\":42,");
	j = load(s, &o);
	cr_assert_eq(json_array_size(json_object_get(j, "functions")), 5);
	assert_dumps(json_array_get(json_object_get(j, "functions"), 4), "name", "\"main\"");
	json_decref(j);
	o.filter = (struct view_filter){.tid = 42};
	tid = report_new("json", s, &o, NULL);
	assert_has(tid, "\"coroutines\":[\n],\n\"gil_pairs\":[\n],\n\"longest_waits\":[\n"
			"{\"pid\":42,\"tid\":42,\"function\":0,");
	j = load(s, &o);
	cr_assert_eq(json_array_size(json_object_get(j, "functions")), 2);
	cr_assert_eq(json_array_size(json_object_get(j, "longest_waits")), 1);
	json_decref(j);
	free(pid);
	free(tid);
	free(unmeasured);
	s->gil_pairs = NULL, s->waits = NULL, s->coros = NULL;
	s->ngil_pairs = s->nwaits = s->ncoros = 0;
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* Of all threads together only */
Test(json, durations_and_lines)
{
	static const struct snapshot_line lines[] = {{0, 1, 10, 2}, {3, 4, 30, 3}};
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("thread 42 42 Main\nmain a.py:1 1 5\n"
			       "thread 42 43 worker\nf a.py:9 1 5\n");
	struct format_opts o = {0};
	struct histogram_sum sum = {.count = 3};
	char *all, *one;

	sum.n[histogram_bucket(1 << 10)] = 2;
	sum.n[histogram_bucket(1 << 20)] = 1;
	assert_ok(snapshot_add_durations(s, &s->funcs[1], SNAPSHOT_CPU, &sum, 1 << 20));
	assert_ok(snapshot_add_lines(s, &s->funcs[0], lines, 2));
	all = report_new("json", s, &o, NULL);
	assert_has(all, ",\"max\":{\"cpu\":5,\"wall\":5},\"lines\":[[0,10,1,1],[3,30,2,4]]},\n");
	assert_has(all, ",\"max\":{\"cpu\":5,\"wall\":5},\"durations\":{\"cpu\":{\"p50\":982,"
			"\"p90\":1005062,\"p99\":1005062,\"max\":1048576,\"buckets\":"
			"[[1024,2],[1048576,1]]},\"wall\":{\"p50\":null,\"p90\":null,"
			"\"p99\":null,\"max\":null,\"buckets\":[]}}}\n]");
	o.filter.tid = 43;
	one = report_new("json", s, &o, NULL);
	cr_assert(!strstr(one, "durations\":{") && !strstr(one, "lines\":["), "%s", one);
	free(all);
	free(one);
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* Measured columns by group, of functions with their callees' too; a function may have no row. */
Test(json, columns)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("main a.py:1 1 5\n"
								      "  f a.py:2 1 5\n"
								      "idle a.py:3 0 0\n");
	struct format_opts o = {0};
	char *text;

	s->measured = COLUMN_BIT(COLUMN_minflt) | COLUMN_BIT(COLUMN_rbytes) |
		      COLUMN_BIT(COLUMN_gil_held_ns);
	assert_ok(snapshot_reserve_columns(
		s, COLUMN_BIT(COLUMN_rbytes) | COLUMN_BIT(COLUMN_gil_held_ns), s->nnodes));
	for (uint32_t i = 0; i < 3; i++) {
		s->columns[COLUMN_rbytes][i] = 10 + i;
		s->columns[COLUMN_gil_held_ns][i] = 100 + i;
	}
	text = report_new("json", s, &o, NULL);
	assert_has(text, "\"max\":{\"cpu\":5,\"wall\":5},\"counters\":{\"minflt\":0,\"rbytes\":11},"
			 "\"gil_held_ns\":101,\"counters_cum\":{\"minflt\":0,\"rbytes\":23},"
			 "\"gil_held_ns_cum\":203}");
	assert_has(text, "\"max\":null,\"counters\":{\"minflt\":0,\"rbytes\":0},"
			 "\"gil_held_ns\":0,\"counters_cum\":{\"minflt\":0,\"rbytes\":0},"
			 "\"gil_held_ns_cum\":0}\n]");
	assert_has(text, "\"self\":{\"cpu\":0,\"wall\":0},\"min\":null,\"max\":null,"
			 "\"counters\":{\"minflt\":0,\"rbytes\":10},\"gil_held_ns\":100},\n");
	free(text);
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* Errors are saved and loaded; null if unknown. Folded functions have none. */
Test(json, standard_errors)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_hostile(), *back = NULL;
	struct format_opts o = {0};
	struct diag diag = {0};
	size_t size;
	char *text;

	s->targets[0].windows = (struct snapshot_windows){
		.sampled = true,
		.n = 9,
		.samples = 77,
		.samples_factor = 1.25,
		.failed = 12345678901,
		.unsampled = "no \xc3\xa9",
	};
	for (uint32_t i = 0; i < s->nfuncs; i++)
		for (int k = 0; k < SNAPSHOT_FIGURES; k++)
			s->funcs[i].variance[k] = k == SNAPSHOT_CUM_CPU ? -1 : 100.0 * k * k;
	s->funcs[1].variance[SNAPSHOT_CALLS] = 2;
	s->funcs[1].variance[SNAPSHOT_TOT_CPU] = 3;
	text = report_new("json", s, &o, &size);
	cr_assert(strstr(text, "\"error\":{\"ncalls\":1,\"tottime\":{\"cpu\":2,\"wall\":20},"
			       "\"cumtime\":{\"cpu\":null,\"wall\":40}}"),
		  "%s", text);
	assert_diag_ok(snapshot_parse(text, size, "test", &back, &diag), &diag);
	cr_assert(back->targets[0].windows.sampled && back->targets[0].windows.n == 9);
	cr_assert_eq(back->targets[0].windows.samples, 77);
	cr_assert_float_eq(back->targets[0].windows.samples_factor, 1.25, 1e-9);
	cr_assert_eq(back->targets[0].windows.failed, 12345678901);
	cr_assert_str_eq(back->targets[0].windows.unsampled, "no \xc3\xa9");
	for (int k = 0; k < SNAPSHOT_FIGURES; k++)
		cr_assert_float_eq(snapshot_error(&back->funcs[0], (enum snapshot_figure)k),
				   k == SNAPSHOT_CUM_CPU ? -1 : 10.0 * k, 1e-9);
	free(text);
	s->folded = true;
	text = report_new("json", s, &o, &size);
	cr_assert_null(strstr(text, "\"error\""));
	free(text);
	snapshot_free(TAKE_PTR(back));
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

static void assert_per_call(const json_t *of, double calls, double error)
{
	const json_t *n = json_object_get(of, "calls_per_call"),
		     *e = json_object_get(of, "calls_per_call_error");

	if (calls < 0) {
		cr_assert(!n && !e);
		return;
	}
	cr_assert_float_eq(json_number_value(n), calls, 1e-6);
	cr_assert_float_eq(json_number_value(e), error, 0.05);
}

/* Only where it is known; nodes also have what it is made of, if windows have shown that. */
Test(json, calls_per_call)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("thread 42 42 Main\nall a.py:1 3 1\n  item a.py:2 9 1\n");
	json_t *j = load(s, &(struct format_opts){0}), *whole;

	assert_per_call(json_array_get(json_object_get(j, "edges"), 0), -1, 0);
	assert_per_call(json_array_get(json_object_get(j, "edges"), 1), 3, 0);
	assert_per_call(json_array_get(json_object_get(j, "nodes"), 1), -1, 0);
	assert_per_call(json_array_get(json_object_get(j, "nodes"), 2), 3, 0);
	cr_assert(!json_object_get(json_array_get(json_object_get(j, "nodes"), 2), "whole"));
	json_decref(j);
	WHOLES_ADD_WINDOW(s, 0, {1, 0, 1}, {2, 30, 0});
	WHOLES_ADD_WINDOW(s, 0, {1, 0, 1}, {2, 40, 0});
	j = load(s, &(struct format_opts){0});
	assert_per_call(json_array_get(json_object_get(j, "edges"), 1), 35, 18.25);
	assert_per_call(json_array_get(json_object_get(j, "nodes"), 2), 35, 18.25);
	whole = json_object_get(json_array_get(json_object_get(j, "nodes"), 2), "whole");
	cr_assert(json_array_size(whole) == 5 &&
		  json_number_value(json_array_get(whole, 2)) == 2500);
	cr_assert(!json_object_get(json_array_get(json_object_get(j, "nodes"), 0), "whole"));
	json_decref(j);
}

Test(json, hostile_names_are_valid_utf8)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_hostile();
	struct format_opts o = {0};
	json_t *j = load(s, &o), *funcs = json_object_get(j, "functions");

	cr_assert_eq(json_array_size(funcs), s->nfuncs);
	cr_assert_str_eq(string(json_array_get(funcs, 0), "name"), "two\nlines");
	cr_assert_str_eq(string(json_array_get(funcs, 4), "qualname"),
			 "right-to-left \xe2\x80\xaetxet");
	cr_assert_str_eq(string(json_array_get(funcs, 12), "name"), "surrogate \xef\xbf\xbd");
	cr_assert(json_is_null(json_object_get(json_array_get(funcs, s->nfuncs - 1), "file")));
	json_decref(j);
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

Test(json, an_empty_snapshot_is_valid)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("target 42\n");
	struct format_opts o = {0};
	json_t *j = load(s, &o);

	cr_assert_eq(json_array_size(json_object_get(j, "functions")), 0);
	cr_assert_eq(json_array_size(json_object_get(j, "nodes")), 0);
	json_decref(j);
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}
