// SPDX-License-Identifier: BSD-2-Clause
/* cli/top_model: rates from two responses, order, filter, selection, lines. */
#include "top_model.h"

#include <errno.h>

#include "top_lines.h"

#include "harness/test.h"

/*
 * A response taken at this second; f and g in a.py have these figures. f waits for the GIL, a tenth
 * of its time, and for I/O, a fifth.
 */
static json_t *answer(int second, int f_calls, int f_ms, int g_calls, int g_ms)
{
	const json_int_t ms = 1000000;

	return json_pack("{s:I, s:[{s:I, s:i, s:s}], s:[[s,i,s,n,i,i,I,I,I,I,[I,i,i,I]],"
			 "[s,i,s,n,i,i,I,I,I,I,n]], s:[[i,i,s,b,i,I,I]]}",
			 "taken_unix_ns", second * 1000 * ms, "targets", "start_unix_ns",
			 10 * 1000 * ms, "pid", 42, "cmdline", "/usr/bin/python3 /srv/app.py",
			 "functions", "/x/a.py", 1, "f", f_calls, f_calls, f_ms * ms, f_ms * 2 * ms,
			 f_ms * 3 * ms, f_ms * 4 * ms, f_ms * ms / 10, 0, 0, f_ms * ms / 5,
			 "/x/a.py", 9, "g", g_calls, g_calls, g_ms * ms, g_ms * ms, g_ms * ms,
			 g_ms * ms, "threads", 42, 43, "worker", 0, f_calls + g_calls,
			 (f_ms + g_ms) * ms, 1000 * ms);
}

static void update(struct top_model *m, json_t *rows)
{
	struct diag diag = {0};

	cr_assert(rows);
	assert_diag_ok(top_model_update(m, rows, &diag), &diag);
	json_decref(rows);
}

static const struct top_row *row(const struct top_model *m, size_t i)
{
	size_t n;
	const struct top_row *rows = top_model_rows(m, &n);

	cr_assert(i < n, "row %zu of %zu", i, n);
	return &rows[i];
}

static size_t count(const struct top_model *m)
{
	size_t n;

	top_model_rows(m, &n);
	return n;
}

#define NEAR(a, b) ((a) > (b)-1e-6 && (a) < (b) + 1e-6)

Test(top_model, rates)
{
	_cleanup_(top_model_freep) struct top_model *m = top_model_new();

	/* first response: rates since tracing began, two seconds ago */
	update(m, answer(12, 200, 1000, 10, 100));
	cr_assert_str_eq(row(m, 0)->name, "a.py:1(f)");
	cr_assert_str_eq(row(m, 0)->key, "/x/a.py:1(f)");
	cr_assert(NEAR(row(m, 0)->rate, 100) && NEAR(row(m, 0)->self, 50) &&
		  NEAR(row(m, 0)->cum, 100));
	/* next response: rates since the previous one */
	update(m, answer(16, 240, 1000, 50, 1100));
	cr_assert_str_eq(row(m, 0)->name, "a.py:9(g)");
	cr_assert(NEAR(row(m, 0)->rate, 10) && NEAR(row(m, 0)->self, 25));
	cr_assert(NEAR(row(m, 1)->rate, 10) && NEAR(row(m, 1)->self, 0));
	cr_assert(row(m, 1)->calls == 240 && row(m, 1)->tottime == 1000000000);
	/* cleared meanwhile: all figures are new */
	update(m, answer(17, 7, 100, 0, 0));
	cr_assert(NEAR(row(m, 0)->rate, 7) && NEAR(row(m, 0)->self, 10));
	top_model_set_clock(m, SNAPSHOT_WALL);
	cr_assert(NEAR(row(m, 0)->self, 30) && NEAR(row(m, 0)->cum, 40));
}

/* A response that includes the callers of f: g, with this number of calls and time */
static json_t *answer_callers(int second, int calls, int ms)
{
	json_t *rows = answer(second, 1000, 1000, 10, 100);

	json_object_set_new(rows, "callers",
			    json_pack("[[s,i,s,n,i,i,I,I,I,I]]", "/x/a.py", 9, "g", calls, calls,
				      (json_int_t)ms * 1000000, (json_int_t)ms * 2000000,
				      (json_int_t)ms * 3000000, (json_int_t)ms * 4000000));
	return rows;
}

Test(top_model, callers)
{
	_cleanup_(top_model_freep) struct top_model *m = top_model_new();

	update(m, answer(12, 200, 1000, 10, 100));
	assert_ok(top_model_set_filter(m, "f", NULL));
	assert_ok(top_model_set_callers(m, "/x/a.py:1(f)"));
	cr_assert_str_eq(top_model_callers(m), "/x/a.py:1(f)");
	cr_assert(top_model_view(m) == TOP_CALLERS && count(m) == 0);
	/*
	 * the first response with callers: rates since tracing began; the filter applies to
	 * functions only
	 */
	update(m, answer_callers(20, 500, 1000));
	cr_assert_eq(count(m), 1);
	cr_assert_str_eq(row(m, 0)->name, "a.py:9(g)");
	cr_assert(NEAR(row(m, 0)->rate, 50) && NEAR(row(m, 0)->self, 10));
	/* next response: rates since the previous one */
	update(m, answer_callers(22, 700, 2000));
	cr_assert(NEAR(row(m, 0)->rate, 100) && NEAR(row(m, 0)->self, 50) &&
		  NEAR(row(m, 0)->cum, 100) && row(m, 0)->calls == 700);
	/* back to the previous view and selection */
	assert_ok(top_model_set_callers(m, NULL));
	cr_assert(top_model_view(m) == TOP_FUNCTIONS && !top_model_callers(m));
	cr_assert_str_eq(row(m, top_model_selected(m))->key, "/x/a.py:1(f)");
}

/* Sort keys, and the function that comes first by them */
Test(top_model, order)
{
	static const struct {
		const char *keys;
		char first;
	} orders[] = {
		{"self", 'g'},	  {"cum", 'g'},	  {"rate", 'f'},
		{"wait", 'f'},	  {"calls", 'f'}, {"tottime", 'g'},
		{"cumtime", 'g'}, {"name", 'f'},  {"pcalls", 'f'},
		{"line", 'f'},	  {"nfl", 'f'},	  {"stdname", 'f'},
		{"file,ti", 'g'}, {"time", 'g'},  {"filename,ncalls", 'f'},
	};
	_cleanup_(top_model_freep) struct top_model *m = top_model_new();
	struct top_order order;

	update(m, answer(11, 10, 10, 1, 1));
	update(m, answer(12, 100, 100, 2, 900));
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		assert_ok(top_order_parse(orders[i].keys, &order, NULL));
		top_model_set_order(m, &order, false);
		cr_assert(strchr(row(m, 0)->name, orders[i].first), "%s", orders[i].keys);
		top_model_set_order(m, &order, true);
		cr_assert(strchr(row(m, 1)->name, orders[i].first), "%s", orders[i].keys);
		cr_assert(top_model_reversed(m));
		cr_assert_str_eq(top_order_text(top_model_order(m)), orders[i].keys);
	}
}

Test(top_order, keys)
{
	struct top_order order = {0};
	struct diag diag = {0};

	cr_assert_str_eq(top_order_text(&order), "self");
	assert_err(top_order_parse("cu,nothing", &order, &diag), -EINVAL);
	cr_assert(diag.exit == PYP_EXIT_USAGE && strstr(diag.msg, "'nothing'"), "%s", diag.msg);
	cr_assert(strstr(diag.hint, "wait"), "%s", diag.hint);
	cr_assert_str_eq(top_order_text(&order), "self");
	assert_err(top_order_parse("", &order, NULL), -EINVAL);
	for (int i = 0; i < 8; i++) { /* all common orders, and the first again */
		top_order_step(&order, 1);
		cr_assert(strcmp(top_order_text(&order), "self") != 0 || i == 7, "%d", i);
	}
	cr_assert_str_eq(top_order_text(&order), "self");
	top_order_step(&order, -1);
	cr_assert_str_eq(top_order_text(&order), "name");
	/* an order that is not common: step from the first one */
	assert_ok(top_order_parse("pcalls,line", &order, NULL));
	top_order_step(&order, 1);
	cr_assert_str_eq(top_order_text(&order), "cum");
	check_no_leaks();
}

/* Percentages of CPU time can be those of all CPUs; of wall time and waiting they cannot. */
Test(top_model, share_of_all_cpus)
{
	_cleanup_(top_model_freep) struct top_model *m = top_model_new();

	update(m, answer(12, 200, 1000, 10, 100));
	cr_assert(top_model_cpus(m) == 1);
	top_model_set_cpus(m, 4);
	cr_assert(NEAR(row(m, 0)->self, 12.5) && NEAR(row(m, 0)->cum, 25));
	cr_assert(NEAR(row(m, 0)->waiting, 15), "%f", row(m, 0)->waiting);
	top_model_set_clock(m, SNAPSHOT_WALL);
	cr_assert(NEAR(row(m, 0)->self, 150));
	top_model_set_clock(m, SNAPSHOT_CPU);
	top_model_set_view(m, TOP_THREADS);
	cr_assert(NEAR(row(m, 0)->self, 1100 / 2000. / 4 * 100));
	cr_assert(NEAR(row(m, 0)->cum, 50), "wall time is not divided");
	top_model_set_cpus(m, 0);
	cr_assert(top_model_cpus(m) == 1);
}

/* In an interval of 4 s, f waits 100 ms for the GIL and 200 ms for I/O more. */
Test(top_model, waits)
{
	_cleanup_(top_model_freep) struct top_model *m = top_model_new();
	const int gil = 0, io = COLUMN_io - COLUMN_gil;

	update(m, answer(12, 200, 1000, 10, 100));
	cr_assert(NEAR(row(m, 0)->wait[gil], 5) && NEAR(row(m, 0)->wait[io], 10));
	update(m, answer(16, 300, 2000, 10, 100));
	cr_assert(NEAR(row(m, 0)->wait[gil], 2.5) && NEAR(row(m, 0)->wait[io], 5) &&
		  NEAR(row(m, 0)->waiting, 7.5));
	cr_assert(NEAR(row(m, 1)->waiting, 0));
	cr_assert(NEAR(top_bar_full(m), 100));
}

Test(top_model, full_names)
{
	_cleanup_(top_model_freep) struct top_model *m = top_model_new();

	update(m, answer(11, 10, 10, 1, 1));
	top_model_set_full_names(m, true);
	cr_assert_str_eq(row(m, 0)->name, "/x/a.py:1(f)");
	top_model_set_view(m, TOP_PROCESSES);
	cr_assert_str_eq(row(m, 0)->name, "42 /usr/bin/python3 /srv/app.py");
	top_model_set_full_names(m, false);
	cr_assert_str_eq(row(m, 0)->name, "42 python3 /srv/app.py");
}

/* A process is the sum of its threads. */
Test(top_model, processes)
{
	_cleanup_(top_model_freep) struct top_model *m = top_model_new();
	const json_int_t s = 1000000000;
	json_t *rows = answer(12, 10, 10, 1, 1);

	json_object_set_new(rows, "threads",
			    json_pack("[[i,i,s,b,i,I,I,[I,i]],[i,i,s,b,i,I,I,[I,i]],"
				      "[i,i,s,b,i,I,I,n]]",
				      42, 42, "a", 1, 5, s, 2 * s, s, 0, 42, 43, "b", 1, 7, s, s, s,
				      0, 7, 7, "c", 1, 1, s / 2, s));
	top_model_set_view(m, TOP_PROCESSES);
	update(m, rows);
	cr_assert_eq(count(m), 2);
	cr_assert(row(m, 0)->calls == 12 && NEAR(row(m, 0)->self, 100) &&
		  NEAR(row(m, 0)->cum, 150) && NEAR(row(m, 0)->wait[0], 100));
	cr_assert(row(m, 0)->entry->pid == 42 && row(m, 0)->entry->tid == 0);
	cr_assert_str_eq(row(m, 1)->name, "7 ", "no command is known");
	top_model_set_view(m, TOP_THREADS);
	cr_assert(row(m, 0)->entry->pid == 42 && row(m, 0)->entry->tid > 0);
}

/* A response of continuous mode: the sum of an interval of ten seconds, in which process 42 ran. */
static json_t *answer_interval(int second, int ms)
{
	const json_int_t s = 1000000000;
	json_t *rows = answer(second + 3, 0, ms, 0, 0);

	json_object_set_new(rows, "interval", json_pack("[I, I]", (second - 10) * s, second * s));
	json_object_set_new(rows, "uncounted", json_true());
	json_object_set_new(rows, "processes",
			    json_pack("[[i,s,i,i,s,i,s],[i,s,i,i,s,i,s]]", 42, "web", 19, 100,
				      "/x/a.py", 1, "f", 42, "old", 3, 50, "/x/a.py", 9, "g"));
	return rows;
}

/* Each interval stands for itself: nothing is a difference to the one before. */
Test(top_model, intervals)
{
	_cleanup_(top_model_freep) struct top_model *m = top_model_new();
	struct when_span span;

	update(m, answer(12, 200, 1000, 10, 100));
	cr_assert(!top_model_interval(m, &span) && !row(m, 0)->uncounted);
	for (int i = 0; i < 2; i++) {
		update(m, answer_interval(30 + 10 * i, 1000));
		cr_assert(top_model_interval(m, &span) && row(m, 0)->uncounted);
		cr_assert_eq(span.to_ns - span.from_ns, 10000000000);
		cr_assert(NEAR(row(m, 0)->self, 10), "%f", row(m, 0)->self);
	}
	top_model_set_view(m, TOP_PROCESSES);
	cr_assert_eq(count(m), 1);
	cr_assert_str_eq(row(m, 0)->entry->service, "web");
	cr_assert_str_eq(row(m, 0)->name, "a.py:1(f)");
	cr_assert(row(m, 0)->entry->samples == 22 && NEAR(row(m, 0)->self, 10));
	/* by service, function or pid */
	assert_ok(top_model_set_filter(m, "^web$", NULL));
	cr_assert_eq(count(m), 1);
	assert_ok(top_model_set_filter(m, "/x/.*f", NULL));
	cr_assert_eq(count(m), 1);
	assert_ok(top_model_set_filter(m, "^42$", NULL));
	cr_assert_eq(count(m), 1);
	assert_ok(top_model_set_filter(m, "old", NULL));
	cr_assert_eq(count(m), 0);
	/* rates of a response that is no interval are since the start, then since the one before */
	top_model_set_view(m, TOP_FUNCTIONS);
	assert_ok(top_model_set_filter(m, "", NULL));
	update(m, answer(60, 200, 5000, 10, 100));
	cr_assert(!top_model_interval(m, NULL));
}

/* Other processes: nothing is a difference to what was shown before. */
Test(top_model, forget)
{
	_cleanup_(top_model_freep) struct top_model *m = top_model_new();

	update(m, answer(12, 200, 1000, 10, 100));
	top_model_forget(m);
	cr_assert_eq(count(m), 0);
	update(m, answer(14, 100, 1000, 10, 100));
	cr_assert(NEAR(row(m, 0)->rate, 25) && NEAR(row(m, 0)->self, 25));
}

Test(top_model, filter)
{
	_cleanup_(top_model_freep) struct top_model *m = top_model_new();
	struct diag diag = {0};

	update(m, answer(11, 10, 10, 1, 1));
	assert_ok(top_model_set_filter(m, "\\(g\\)", &diag));
	cr_assert(count(m) == 1 && row(m, 0)->calls == 1);
	assert_err(top_model_set_filter(m, "(", &diag), -EINVAL);
	cr_assert(diag.exit == PYP_EXIT_USAGE && count(m) == 1);
	cr_assert_str_eq(top_model_filter(m), "\\(g\\)");
	assert_ok(top_model_set_filter(m, "nothing", NULL));
	cr_assert(count(m) == 0 && top_model_selected(m) == 0);
	top_model_move(m, 1);
	assert_ok(top_model_set_filter(m, "", NULL));
	cr_assert(count(m) == 2);
	cr_assert_str_eq(top_model_filter(m), "");
}

/* The selection stays on its function. */
Test(top_model, selection)
{
	_cleanup_(top_model_freep) struct top_model *m = top_model_new();

	top_model_move(m, 1);
	update(m, answer(11, 10, 10, 1, 1));
	top_model_move(m, 1);
	cr_assert(strchr(row(m, top_model_selected(m))->name, 'g'));
	update(m, answer(12, 10, 10, 1, 500));
	cr_assert(top_model_selected(m) == 0 && strchr(row(m, 0)->name, 'g'));
	top_model_move(m, 100);
	cr_assert(top_model_selected(m) == 1);
	top_model_move(m, -100);
	cr_assert(top_model_selected(m) == 0);
}

Test(top_model, threads)
{
	_cleanup_(top_model_freep) struct top_model *m = top_model_new();

	top_model_set_view(m, TOP_THREADS);
	update(m, answer(11, 10, 10, 1, 1));
	cr_assert(count(m) == 1);
	cr_assert_str_eq(row(m, 0)->name, "42/43 worker (ended)");
	cr_assert(row(m, 0)->calls == 11 && row(m, 0)->cumtime == 1000000000);
}

/* A server may send anything. */
Test(top_model, odd_answers)
{
	static const char *const odd[] = {
		"{}",
		"{\"functions\": 1}",
		"[]",
		"{\"functions\": [1, {}, [], [null, -5, 7, null, -1, \"x\"]], \"threads\": [[]]}",
		"{\"functions\": [], \"threads\": {}, \"targets\": [7], \"taken_unix_ns\": -1}",
	};
	_cleanup_(top_model_freep) struct top_model *m = top_model_new();

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		json_t *rows = json_loads(odd[i], 0, NULL);

		cr_assert(rows);
		top_model_update(m, rows, NULL);
		json_decref(rows);
	}
	check_no_leaks();
}
