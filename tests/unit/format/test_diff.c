// SPDX-License-Identifier: BSD-2-Clause
/* Comparisons: functions that got slower come first; functions that moved are matched. */
#include "format/diff.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "format/diff_rates.h"
#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"

static struct diff *build(const struct snapshot *a, const struct snapshot *b)
{
	struct diff *ret = NULL;

	assert_ok(diff_build((const struct diff_side[]){{.snapshot = a, .name = "a.json"},
							{.snapshot = b, .name = "b.json"}},
			     SNAPSHOT_CPU, &ret));
	return ret;
}

static char *written(const struct diff *d, int (*write)(const struct diff *, size_t, FILE *),
		     size_t limit)
{
	char *ret = NULL;
	size_t size;
	FILE *out = open_memstream(&ret, &size);

	cr_assert(out);
	assert_ok(write(d, limit, out));
	fclose(out);
	return ret;
}

static const char *const before = "main app.py:1 1 1000000\n"
				  "  parse app.py:10 100 50000000\n"
				  "    strip app.py:20 1000 20000000\n"
				  "  load app.py:30 10 30000000\n"
				  "  old app.py:40 1 5000000\n";
/*
 * `strip` takes three times as long; `load` has moved by two lines; one function is gone, one is
 * new.
 */
static const char *const after = "main app.py:1 1 1000000\n"
				 "  parse app.py:10 100 51000000\n"
				 "    strip app.py:20 1000 60000000\n"
				 "  load app.py:32 10 29000000\n"
				 "  fresh app.py:50 2 2000000\n";

Test(diff, the_planted_slowdown_comes_first)
{
	_cleanup_(snapshot_freep) struct snapshot *a = snapshot_build(before);
	_cleanup_(snapshot_freep) struct snapshot *b = snapshot_build(after);
	_cleanup_(diff_freep) struct diff *d = build(a, b);
	_cleanup_free_ char *text = written(d, diff_write_text, 0);

	cr_assert_str_eq(d->rows[0].func[DIFF_AFTER]->name, "strip");
	cr_assert_eq(d->rows[0].tot[DIFF_BEFORE], 20000000);
	cr_assert_eq(d->rows[0].tot[DIFF_AFTER], 60000000);
	cr_assert_str_eq(
		text,
		"   before: a.json, 1112 function calls in 0.106 seconds, python 3.13.0\n"
		"    after: b.json, 1113 function calls in 0.143 seconds, python 3.13.0\n"
		"\n"
		"   Ordered by: increase of internal time (cpu)\n"
		"\n"
		"   ncalls    change    tottime     change        %    cumtime     change        % "
		"filename:lineno(function)\n"
		"     1000        +0   0.060000  +0.040000  +200.0%   0.060000  +0.040000  +200.0% "
		"app.py:20(strip)\n"
		"        2        +2   0.002000  +0.002000      new   0.002000  +0.002000      new "
		"app.py:50(fresh)\n"
		"      100        +0   0.051000  +0.001000    +2.0%   0.111000  +0.041000   +58.6% "
		"app.py:10(parse)\n"
		"        1        +0   0.001000  +0.000000    +0.0%   0.143000  +0.037000   +34.9% "
		"app.py:1(main)\n"
		"       10        +0   0.029000  -0.001000    -3.3%   0.029000  -0.001000    -3.3% "
		"app.py:32(load)\n"
		"        0        -1   0.000000  -0.005000     gone   0.000000  -0.005000     gone "
		"app.py:40(old)\n"
		"\n"
		"   Per call, in us; ordered by the increase of internal time times calls\n"
		"\n"
		"     ncalls         %    tottime         %    cumtime         % "
		"filename:lineno(function)\n"
		"       1000     +0.0%     60.000   +200.0%     60.000   +200.0% app.py:20(strip)\n"
		"        100     +0.0%    510.000     +2.0%   1110.000    +58.6% app.py:10(parse)\n"
		"          1     +0.0%   1000.000     +0.0% 143000.000    +34.9% app.py:1(main)\n"
		"         10     +0.0%   2900.000     -3.3%   2900.000     -3.3% app.py:32(load)\n"
		"\n"
		"   Per second of 10.000 before and 10.000 after: calls, and times in ms; ordered "
		"by the increase of internal time\n"
		"\n"
		"     ncalls         %    tottime         %    cumtime         % "
		"filename:lineno(function)\n"
		"      100.0     +0.0%      6.000   +200.0%      6.000   +200.0% app.py:20(strip)\n"
		"        0.2       new      0.200       new      0.200       new app.py:50(fresh)\n"
		"       10.0     +0.0%      5.100     +2.0%     11.100    +58.6% app.py:10(parse)\n"
		"        0.1     +0.0%      0.100     +0.0%     14.300    +34.9% app.py:1(main)\n"
		"        1.0     +0.0%      2.900     -3.3%      2.900     -3.3% app.py:32(load)\n"
		"        0.0   -100.0%      0.000   -100.0%      0.000   -100.0% app.py:40(old)\n");
	free(TAKE_PTR(text));
	diff_free(TAKE_PTR(d));
	snapshot_free(TAKE_PTR(a));
	snapshot_free(TAKE_PTR(b));
	check_no_leaks();
}

/*
 * Rows with the same change of internal time: by cumulative time, then calls, then name. A limit
 * applies to each table.
 */
Test(diff, order_and_limit)
{
	_cleanup_(snapshot_freep) struct snapshot *a = snapshot_build("c a.py:1 1 5\n"
								      "  a a.py:2 1 0\n"
								      "  d a.py:3 2 0\n"
								      "  b a.py:4 1 0\n"
								      "  k a.py:5 1 0\n"
								      "  same a.py:6 1 5\n");
	_cleanup_(snapshot_freep) struct snapshot *b = snapshot_build("c a.py:1 1 5\n"
								      "  a a.py:2 2 0\n"
								      "  d a.py:3 3 0\n"
								      "  b a.py:4 3 0\n"
								      "  k a.py:5 1 5000000\n"
								      "  same a.py:6 1 5\n");
	_cleanup_(diff_freep) struct diff *d = build(a, b);
	_cleanup_free_ char *three = written(d, diff_write_text, 3);
	_cleanup_free_ char *all = written(d, diff_write_text, 5), *json = NULL;
	char names[16] = "", *line;
	json_t *j;

	for (size_t i = 0; i < d->nrows; i++)
		strncat(names, d->rows[i].func[DIFF_AFTER]->name, 1);
	cr_assert_str_eq(names, "kcbads");
	cr_assert(strstr(three, "(b)\n\n   Per call"), "%s", three);
	cr_assert(strstr(all, "(d)\n\n   Per call"), "what has not changed is not counted: %s",
		  all);
	line = strstr(all,
		      "        1        +0   0.005000  +0.005000        -   0.005000  +0.005000 "
		      "       - a.py:5(k)\n");
	cr_assert(line, "%s", all);
	json = written(d, diff_write_json, 7);
	j = json_loads(json, 0, NULL);
	cr_assert_eq(json_array_size(json_object_get(j, "functions")), 6);
	json_decref(j);
}

/* Twice the load in half the time: nothing changed per call. */
Test(diff, rates)
{
	_cleanup_(snapshot_freep) struct snapshot *a = snapshot_build("f a.py:1 10 1000000\n");
	_cleanup_(snapshot_freep) struct snapshot *b = snapshot_build("f a.py:1 20 2000000\n");
	_cleanup_(diff_freep) struct diff *d = NULL;
	_cleanup_free_ char *text = NULL, *json = NULL;
	json_t *j, *row, *rate;

	b->targets[0].traced_ns = 5000000000;
	d = build(a, b);
	text = written(d, diff_write_text, 0);
	cr_assert(!strstr(text, "Per call"), "%s", text);
	cr_assert(strstr(text, "        4.0   +300.0%      0.400   +300.0%      0.400   +300.0% "),
		  "%s", text);
	json = written(d, diff_write_json, 0);
	j = json_loads(json, JSON_REJECT_DUPLICATES, NULL);
	row = json_array_get(json_object_get(j, "functions"), 0);
	rate = json_object_get(json_object_get(row, "per_call"), "tottime");
	cr_assert_eq(json_real_value(json_object_get(rate, "before")), 100000.0);
	cr_assert_eq(json_real_value(json_object_get(rate, "ratio")), 1.0);
	rate = json_object_get(json_object_get(row, "per_second"), "ncalls");
	cr_assert_eq(json_real_value(json_object_get(rate, "before")), 1.0);
	cr_assert_eq(json_real_value(json_object_get(rate, "after")), 4.0);
	cr_assert_eq(json_real_value(json_object_get(json_object_get(j, "after"), "seconds")), 5.0);
	json_decref(j);
	free(text);
	b->targets[0].traced_ns = 0; /* unknown */
	text = written(d, diff_write_text, 0);
	cr_assert(!strstr(text, "Per second"), "%s", text);
}

/* Of several processes, the longest time; of windows, the span. What is unknown is null. */
Test(diff, rates_of_several_processes)
{
	_cleanup_(snapshot_freep) struct snapshot *a =
		snapshot_build("thread 42 42 a\nf a.py:1 0 1000000 1000000 1\nthread 7 7 b\n");
	_cleanup_(diff_freep) struct diff *d = NULL;
	_cleanup_free_ char *json = NULL;
	json_t *j, *rate;

	a->targets[1].traced_ns = 20000000000;
	cr_assert_eq(diff_seconds(a), 20);
	a->targets[0].windows.span_ns = 40000000000;
	cr_assert_eq(diff_seconds(a), 20);
	a->targets[0].windows.sampled = true;
	cr_assert_eq(diff_seconds(a), 40);
	d = build(a, a);
	json = written(d, diff_write_json, 0);
	j = json_loads(json, 0, NULL);
	rate = json_array_get(json_object_get(j, "functions"), 0);
	rate = json_object_get(json_object_get(rate, "per_call"), "tottime");
	cr_assert(rate && json_is_null(json_object_get(rate, "before")));
	cr_assert(json_is_null(json_object_get(rate, "ratio")));
	json_decref(j);
}

Test(diff, json)
{
	_cleanup_(snapshot_freep) struct snapshot *a = snapshot_build(before);
	_cleanup_(snapshot_freep) struct snapshot *b = snapshot_build(after);
	_cleanup_(diff_freep) struct diff *d = build(a, b);
	_cleanup_free_ char *text = written(d, diff_write_json, 5);
	json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, NULL), *row, *functions;

	cr_assert(j, "%s", text);
	cr_assert(strstr(text,
			 "\"not_compared\":[],\n\"functions\":[\n"
			 "{\"file\":\"app.py\",\"line\":20,\"name\":\"strip\",\"qualname\":null,"
			 "\"line_before\":20,\"is_new\":false,\"is_gone\":false,\"ncalls\":{"
			 "\"before\":1000,\"after\":1000,\"change\":0,\"ratio\":1.0},"
			 "\"tottime\":{\"before\":20000000,\"after\":60000000,"
			 "\"change\":40000000,\"ratio\":3.0},"),
		  "%s", text);
	cr_assert(strstr(text, "\"line_before\":null,\"is_new\":true,\"is_gone\":false,\"ncalls\":{"
			       "\"before\":0,\"after\":2,\"change\":2,\"ratio\":null}"),
		  "%s", text);
	cr_assert(strstr(text, ",\n\"before\":{\"file\":\"a.json\",\"ncalls\":1112,"
			       "\"tottime\":106000000,\"seconds\":10.000000000,"),
		  "%s", text);
	functions = json_object_get(j, "functions");
	cr_assert_eq(json_array_size(functions), 5);
	row = json_array_get(functions, 0);
	cr_assert_str_eq(json_string_value(json_object_get(row, "name")), "strip");
	row = json_object_get(row, "tottime");
	cr_assert_eq(json_integer_value(json_object_get(row, "change")), 40000000);
	cr_assert_eq(json_real_value(json_object_get(row, "ratio")), 3.0);
	row = json_array_get(functions, 4);
	cr_assert_eq(json_integer_value(json_object_get(row, "line")), 32);
	cr_assert_eq(json_integer_value(json_object_get(row, "line_before")), 30);
	cr_assert(json_object_get(json_object_get(json_object_get(j, "before"), "provenance"),
				  "targets"));
	json_decref(j);
}

/* Nodes 1 to 3 after the root are main, f and g. */
static struct snapshot *with_bytes(const char *text, uint64_t f, uint64_t g)
{
	struct snapshot *s = snapshot_build(text);

	s->measured = COLUMN_BIT(COLUMN_rbytes) | COLUMN_BIT(COLUMN_vcsw);
	cr_assert_eq(s->nnodes, 4);
	assert_ok(snapshot_reserve_columns(s, COLUMN_BIT(COLUMN_rbytes), s->nnodes));
	s->columns[COLUMN_rbytes][1] = 5;
	s->columns[COLUMN_rbytes][2] = f;
	s->columns[COLUMN_rbytes][3] = g;
	return s;
}

static const char *const reading = "main a.py:1 1 5\n  f a.py:2 1 5\n  g a.py:3 1 5\n";

Test(diff, resources)
{
	_cleanup_(snapshot_freep) struct snapshot *a = with_bytes(reading, 1000, 50);
	_cleanup_(snapshot_freep) struct snapshot *b =
		with_bytes("main a.py:1 1 5\n  f a.py:2 1 5\n  g a.py:7 1 5\n", 900, 80);
	_cleanup_(diff_freep) struct diff *d = build(a, b);
	_cleanup_free_ char *text = written(d, diff_write_text, 0);
	_cleanup_free_ char *first = written(d, diff_write_text, 1);
	_cleanup_free_ char *json = written(d, diff_write_json, 0);
	json_t *j = json_loads(json, 0, NULL), *row, *figures;
	size_t i;

	cr_assert(strstr(text, "\n   nothing changed\n\n"
			       "   voluntary context switches (vcsw): 0 before, 0 after\n\n"
			       "   bytes read (rbytes): 1055 before, 985 after\n\n"
			       "        self       change        % filename:lineno(function)\n"
			       "          80          +30   +60.0% a.py:7(g)\n"
			       "         900         -100   -10.0% a.py:2(f)\n"),
		  "%s", text);
	cr_assert(!strstr(text, "not compared"));
	cr_assert(strstr(first, "(g)") && !strstr(first, "(f)"), "%s", first);
	json_array_foreach(json_object_get(j, "functions"), i, row)
	{
		if (strcmp(json_string_value(json_object_get(row, "name")), "main") != 0)
			continue;
		figures = json_object_get(json_object_get(row, "counters"), "rbytes");
		cr_assert_eq(json_integer_value(
				     json_object_get(json_object_get(figures, "self"), "after")),
			     5);
		cr_assert_eq(json_integer_value(
				     json_object_get(json_object_get(figures, "cum"), "change")),
			     -70);
		break;
	}
	cr_assert_lt(i, 3, "main is there");
	cr_assert_eq(json_array_size(json_object_get(j, "not_compared")), 0);
	json_decref(j);
}

Test(diff, what_is_not_compared_is_reported)
{
	_cleanup_(snapshot_freep) struct snapshot *a = with_bytes(reading, 1000, 50);
	_cleanup_(snapshot_freep) struct snapshot *b = snapshot_build(reading);
	struct snapshot_coro coro = {0};
	_cleanup_(diff_freep) struct diff *d = build(a, b);
	_cleanup_free_ char *text = written(d, diff_write_text, 0), *more = NULL, *json = NULL;
	json_t *j;

	cr_assert(strstr(text, "\n   not compared: counters_vcsw, counters_rbytes\n"), "%s", text);
	cr_assert(!strstr(text, "bytes read"));
	b->coros = &coro;
	b->ncoros = 1;
	more = written(d, diff_write_text, 0);
	cr_assert(strstr(more, "\n   not compared: counters_vcsw, counters_rbytes, coroutines\n"),
		  "%s", more);
	json = written(d, diff_write_json, 0);
	j = json_loads(json, 0, NULL);
	cr_assert_eq(json_array_size(json_object_get(j, "not_compared")), 3);
	cr_assert_null(
		json_object_get(json_array_get(json_object_get(j, "functions"), 0), "counters"));
	json_decref(j);
	b->ncoros = 0;
}

/* Variants of a function, of which each has figures on both sides; waiting on its clock only */
Test(diff, columns_of_variants)
{
	_cleanup_(snapshot_freep) struct snapshot *a =
		snapshot_build("f a.py:1 1 5\nv a.py:1 1 5\n  g a.py:9 1 5\n");
	_cleanup_(diff_freep) struct diff *d = NULL, *wall = NULL;
	_cleanup_free_ char *text = NULL, *waits = NULL, *json = NULL;
	struct snapshot b = *a;
	struct diff_side side[] = {{.snapshot = a, .name = "a.json"},
				   {.snapshot = &b, .name = "b.json"}};
	uint64_t gil[] = {0, 7, 70, 700}, held[] = {0, 1, 10, 1000};

	a->funcs[1].name = "f";
	a->funcs[1].variant = 1;
	b.measured = a->measured = COLUMN_BIT(COLUMN_gil) | COLUMN_BIT(COLUMN_vcsw) |
				   COLUMN_BIT(COLUMN_gil_held_ns);
	assert_ok(snapshot_reserve_columns(a, a->measured, a->nnodes));
	for (uint32_t i = 0; i < a->nnodes; i++)
		a->columns[COLUMN_gil][i] = a->columns[COLUMN_vcsw][i] = i;
	memcpy(b.columns, a->columns, sizeof(b.columns));
	b.columns[COLUMN_gil] = gil;
	b.columns[COLUMN_gil_held_ns] = held;
	b.clock = SNAPSHOT_WALL;
	d = build(a, &b);
	text = written(d, diff_write_text, 0);
	cr_assert(strstr(text,
			 "   nothing changed\n\n   voluntary context switches (vcsw): 6 before, "
			 "6 after\n") &&
			  !strstr(text, "gil"),
		  "%s", text);
	assert_ok(diff_build(side, SNAPSHOT_WALL, &wall));
	waits = written(wall, diff_write_text, 0);
	cr_assert(strstr(waits, "   waited for the GIL (gil): 6 before, 777 after\n\n"
				"        self       change        % filename:lineno(function)\n"
				"         700         +697 +23233.3% a.py:9(g)\n"
				"          77          +74 +2466.7% a.py:1(f)\n"),
		  "%s", waits);
	cr_assert(strstr(waits, "(gil_held_ns): 0 before, 1011 after\n\n"
				"        self       change        % filename:lineno(function)\n"
				"        1000        +1000        - a.py:9(g)\n"
				"          11          +11        - a.py:1(f)\n"),
		  "%s", waits);
	json = written(wall, diff_write_json, 0);
	cr_assert(strstr(json,
			 "\"gil_held_ns\":{\"self\":{\"before\":0,\"after\":1000,\"change\":1000,"
			 "\"ratio\":null},\"cum\":{\"before\":0,\"after\":1000,"),
		  "%s", json);
	cr_assert(strstr(json,
			 "\"cum\":{\"before\":6,\"after\":777,\"change\":771,\"ratio\":129.5}"),
		  "%s", json);
}

/* What a side is and how exact it is */
Test(diff, sides)
{
	_cleanup_(snapshot_freep) struct snapshot *a = snapshot_build("f a.py:1 1 5\n");
	_cleanup_(snapshot_freep) struct snapshot *b = snapshot_build("f a.py:1 1 5\n");
	_cleanup_(diff_freep) struct diff *d = build(a, b);
	_cleanup_free_ char *text = NULL, *none = NULL;

	a->targets[0].truncated = 1;
	a->targets[0].python_version = "";
	b->targets[0].windows.sampled = true;
	text = written(d, diff_write_text, 0);
	cr_assert(strstr(text, "seconds, python unknown, INCOMPLETE: counts are lower bounds\n"),
		  "%s", text);
	cr_assert(strstr(text, "seconds, python 3.13.0, estimated\n"), "%s", text);
	b->ntargets = 0;
	none = written(d, diff_write_text, 0);
	cr_assert(strstr(none,
			 "   after: b.json, 1 function calls in 0.000 seconds, python unknown\n"),
		  "%s", none);
}

/* Pseudo functions are known by their name. */
Test(diff, pseudo_functions)
{
	_cleanup_(snapshot_freep) struct snapshot *a =
		snapshot_build("f a.py:1 1 5\nf b.py:1 1 5\n(lost) a.py:3 0 5000\n");
	_cleanup_(snapshot_freep) struct snapshot *b =
		snapshot_build("f a.py:1 1 5\nf c.py:1 1 5\n(lost) b.py:3 0 7000\n");
	_cleanup_(diff_freep) struct diff *d = NULL;
	_cleanup_free_ char *text = NULL;

	a->funcs[2].pseudo = b->funcs[2].pseudo = true;
	d = build(a, b);
	cr_assert_eq(d->nrows, 4);
	text = written(d, diff_write_text, 0);
	cr_assert(strstr(text,
			 "        0        +0   0.000007  +0.000002   +40.0%   0.000007  +0.000002 "
			 "  +40.0% (lost)\n"),
		  "%s", text);
	cr_assert(strstr(text, "   +40.0%      0.001    +40.0% (lost)\n"), "%s", text);
}

/* If one side has two functions with the same name, they are matched by line only. */
Test(diff, ambiguous_names_are_not_guessed)
{
	_cleanup_(snapshot_freep) struct snapshot *a =
		snapshot_build("f a.py:1 1 5\nf a.py:9 1 5\n");
	_cleanup_(snapshot_freep) struct snapshot *b =
		snapshot_build("f a.py:1 1 5\nf a.py:10 1 5\nf a.py:20 1 6\n");
	_cleanup_(diff_freep) struct diff *d = build(a, b);

	cr_assert_eq(d->nrows, 4);
}

/* Several code objects of the same function are one row. */
Test(diff, variants_are_one_function)
{
	_cleanup_(snapshot_freep) struct snapshot *a =
		snapshot_build("f a.py:1 1 5\ng a.py:1 1 5\n");
	_cleanup_(diff_freep) struct diff *d = NULL;

	a->funcs[1].name = "f";
	a->funcs[1].variant = 1;
	d = build(a, a);
	cr_assert_eq(d->nrows, 1);
	cr_assert_eq(d->rows[0].tot[DIFF_BEFORE], 10);
	cr_assert_eq(d->rows[0].tot[DIFF_AFTER], 10);
}

Test(diff, equal_and_empty)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_random(1);
	_cleanup_(snapshot_freep) struct snapshot *none = snapshot_build("thread 42 42 Main\n");
	_cleanup_(diff_freep) struct diff *same = build(s, s), *empty = build(none, none);
	_cleanup_free_ char *text = written(same, diff_write_text, 0);
	_cleanup_free_ char *nothing = written(empty, diff_write_text, 0);

	cr_assert(strstr(text, "\n   nothing changed\n"), "%s", text);
	cr_assert(strstr(nothing, "\n   nothing changed\n"));
}

Test(diff, mismatched_clocks_are_refused)
{
	_cleanup_(snapshot_freep) struct snapshot *a = snapshot_build(before);
	_cleanup_(snapshot_freep) struct snapshot *b = snapshot_build(after);
	const struct diff_side side[] = {{.snapshot = a, .name = "a"},
					 {.snapshot = b, .name = "b"}};
	const struct diff_check none = {0}, given = {.clock_given = true};
	struct diag diag = {0};

	assert_diag_ok(diff_check(side, &none, &diag), &diag);
	b->clock = SNAPSHOT_WALL;
	assert_err(diff_check(side, &none, &diag), -EINVAL);
	cr_assert_eq(diag.exit, PYP_EXIT_USAGE);
	cr_assert_str_eq(diag.msg, "'a' shows cpu time and 'b' wall time");
	assert_ok(diff_check(side, &given, NULL));
}

/* Figures of different modes cannot be compared: the error names both sides' modes. */
Test(diff, different_figures_are_refused)
{
	_cleanup_(snapshot_freep) struct snapshot *a = snapshot_build(before);
	_cleanup_(snapshot_freep) struct snapshot *b = snapshot_build(after);
	const struct diff_side side[] = {{.snapshot = a, .name = "a"},
					 {.snapshot = b, .name = "b"}};
	const struct diff_check given = {.clock_given = true}, force = {.force = true};
	struct diag diag = {0};

	b->folded = true;
	assert_err(diff_check(side, &given, &diag), -EINVAL);
	cr_assert(diag.exit == PYP_EXIT_USAGE && strstr(diag.msg, "'b' has it folded"), "%s",
		  diag.msg);
	assert_ok(diff_check(side, &force, NULL));
	a->folded = true;
	assert_ok(diff_check(side, &given, NULL));
	a->stripped = true;
	diag_clear(&diag);
	assert_err(diff_check(side, &given, &diag), -EINVAL);
	cr_assert(strstr(diag.msg, "without directories"), "%s", diag.msg);
	b->stripped = true;
	cr_assert(b->ntargets > 0);
	b->targets[0].corrected = !a->targets[0].corrected;
	diag_clear(&diag);
	assert_err(diff_check(side, &given, &diag), -EINVAL);
	cr_assert_str_eq(diag.msg, "'a' has the probes' own time in its figures and 'b' has it "
				   "subtracted");
	assert_ok(diff_check(side, &force, NULL));
	a->targets[0].corrected = true;
	assert_ok(diff_check(side, &given, NULL));
	a->builtins_of = "app";
	diag_clear(&diag);
	assert_err(diff_check(side, &given, &diag), -EINVAL);
	cr_assert_str_eq(diag.msg,
			 "'a' has some of them folded into their callers and 'b' has rows of "
			 "all C functions");
}

/* Of some processes only, which is comparable with neither. */
Test(diff, subtracted_for_some)
{
	_cleanup_(snapshot_freep) struct snapshot *a = snapshot_build("target 1\ntarget 2\n");
	_cleanup_(snapshot_freep) struct snapshot *b = snapshot_build("target 1\ntarget 2\n");
	const struct diff_side side[] = {{.snapshot = a, .name = "a"},
					 {.snapshot = b, .name = "b"}};
	struct diag diag = {0};

	a->targets[1].corrected = true;
	assert_err(diff_check(side, &(struct diff_check){0}, &diag), -EINVAL);
	cr_assert_str_eq(diag.msg,
			 "'a' has it subtracted for some processes and 'b' has the probes' "
			 "own time in its figures");
	b->targets[0].corrected = b->targets[1].corrected = true;
	diag_clear(&diag);
	assert_err(diff_check(side, &(struct diff_check){0}, &diag), -EINVAL);
	a->targets[0].corrected = true;
	assert_ok(diff_check(side, &(struct diff_check){0}, NULL));
}

Test(diff, mismatched_modes_are_refused)
{
	_cleanup_(snapshot_freep) struct snapshot *a = snapshot_build(before);
	_cleanup_(snapshot_freep) struct snapshot *b = snapshot_build(after);
	const struct diff_side side[] = {{.snapshot = a, .name = "a"},
					 {.snapshot = b, .name = "b"}};
	struct diag diag = {0};

	b->targets[0].mode = MODE_COUNT;
	assert_err(diff_check(side, &(struct diff_check){.force = true}, &diag), -EINVAL);
	cr_assert_eq(diag.exit, PYP_EXIT_USAGE);
	cr_assert_str_eq(diag.msg, "'a' was traced and 'b' was counted");
	a->targets[0].mode = MODE_COUNT;
	assert_ok(diff_check(side, &(struct diff_check){0}, NULL));
	a->targets[0].mode = b->targets[0].mode = MODE_SAMPLE;
	assert_ok(diff_check(side, &(struct diff_check){0}, NULL));
	b->targets[0].mode = MODE_COUNT;
	b->targets[0].estimate.rate = 99;
	diag_clear(&diag);
	assert_err(diff_check(side, &(struct diff_check){0}, &diag), -EINVAL);
	cr_assert_str_eq(diag.msg, "'a' was sampled and 'b' was made in several modes");
	a->targets[0].mode = MODE_TRACE;
	b->ntargets = 0;
	assert_ok(diff_check(side, &(struct diff_check){0}, NULL));
}

/* If C functions have rows on one side only, own times are not comparable. */
Test(diff, c_functions_on_one_side_are_refused)
{
	_cleanup_(snapshot_freep) struct snapshot *a = snapshot_build(before);
	_cleanup_(snapshot_freep) struct snapshot *b = snapshot_build(after);
	const struct diff_side side[] = {{.snapshot = a, .name = "a"},
					 {.snapshot = b, .name = "b"}};
	struct diag diag = {0};

	for (uint32_t i = 0; i < b->ntargets; i++)
		b->targets[i].builtins = true;
	assert_err(diff_check(side, &(struct diff_check){.force = true}, &diag), -EINVAL);
	cr_assert_eq(diag.exit, PYP_EXIT_USAGE);
	cr_assert_str_eq(diag.msg,
			 "'a' has no rows of C functions and 'b' has rows of C functions");
	for (uint32_t i = 0; i < a->ntargets; i++)
		a->targets[i].builtins = true;
	assert_ok(diff_check(side, &(struct diff_check){0}, NULL));
}

Test(diff, hostile_names_do_no_harm)
{
	_cleanup_(snapshot_freep) struct snapshot *a = snapshot_hostile(), *b = snapshot_random(2);
	_cleanup_(diff_freep) struct diff *d = build(a, b);
	_cleanup_free_ char *text = written(d, diff_write_text, 0);
	_cleanup_free_ char *json = written(d, diff_write_json, 0);

	cr_assert(report_harmless(text, strlen(text)));
	cr_assert(report_harmless(json, strlen(json)));
}
