// SPDX-License-Identifier: BSD-2-Clause
/* The JSON format: valid, complete, and equal to the snapshot. */
#include <jansson.h>

#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"
#include "snapshot/load.h"

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
	text = report_new("json", s, &o, &size);
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
