// SPDX-License-Identifier: BSD-2-Clause
/* cli/top_model: rates from two responses, order, filter, selection, lines. */
#include "top_model.h"

#include <errno.h>

#include "harness/test.h"

/* A response taken at this second; f and g in a.py have these figures. */
static json_t *answer(int second, int f_calls, int f_ms, int g_calls, int g_ms)
{
	const json_int_t ms = 1000000;

	return json_pack("{s:I, s:[{s:I}], s:[[s,i,s,n,i,i,I,I,I,I],[s,i,s,n,i,i,I,I,I,I]],"
			 " s:[[i,i,s,b,i,I,I]]}",
			 "taken_unix_ns", second * 1000 * ms, "targets", "start_unix_ns",
			 10 * 1000 * ms, "functions", "/x/a.py", 1, "f", f_calls, f_calls,
			 f_ms * ms, f_ms * 2 * ms, f_ms * 3 * ms, f_ms * 4 * ms, "/x/a.py", 9, "g",
			 g_calls, g_calls, g_ms * ms, g_ms * ms, g_ms * ms, g_ms * ms, "threads",
			 42, 43, "worker", 0, f_calls + g_calls, (f_ms + g_ms) * ms, 1000 * ms);
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

Test(top_model, order)
{
	_cleanup_(top_model_freep) struct top_model *m = top_model_new();
	static const char firsts[TOP_SORTS] = {
		[TOP_BY_SELF] = 'g',  [TOP_BY_CUM] = 'g',     [TOP_BY_RATE] = 'f',
		[TOP_BY_CALLS] = 'f', [TOP_BY_TOTTIME] = 'g', [TOP_BY_CUMTIME] = 'g',
		[TOP_BY_NAME] = 'f',
	};

	update(m, answer(11, 10, 10, 1, 1));
	update(m, answer(12, 100, 100, 2, 900));
	for (int sort = 0; sort < TOP_SORTS; sort++) {
		top_model_set_sort(m, (enum top_sort)sort, false);
		cr_assert(strchr(row(m, 0)->name, firsts[sort]), "%s", top_sort_names[sort]);
		top_model_set_sort(m, (enum top_sort)sort, true);
		cr_assert(strchr(row(m, 1)->name, firsts[sort]), "%s", top_sort_names[sort]);
		cr_assert(top_model_reversed(m) && (int)top_model_sort(m) == sort);
	}
	cr_assert_null(top_sort_names[TOP_SORTS]);
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

static char *line_of(const struct top_row *r, size_t columns)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	top_print_row(r, columns, out);
	fclose(out);
	return text;
}

Test(top_model, lines)
{
	struct top_row r = {.name = "a.py:1(\033[2J\n)",
			    .calls = 1234567890,
			    .tottime = 1500000000,
			    .cumtime = 99999000000000,
			    .rate = 25.4,
			    .self = 12.34,
			    .cum = 100};
	_cleanup_free_ char *line = line_of(&r, 79);

	cr_assert_str_eq(line,
			 "     25  12.3 100.0    1.2G     1.50 99999.00 a.py:1(\\x1b[2J\\x0a)");
	for (size_t columns = 0; columns < 100; columns++) {
		_cleanup_free_ char *fitted = line_of(&r, columns);

		cr_assert(strlen(fitted) <= columns, "%zu: %s", columns, fitted);
	}
}

Test(top_model, status_line)
{
	json_t *status = json_loads("{\"targets\": [{\"state\": \"tracing\", \"events\": 1000,"
				    " \"events_per_s\": 100000, \"overhead\": 0.06, \"lost\": 3},"
				    " {\"state\": \"ended\", \"events\": 1}]}",
				    0, NULL);
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	top_print_status(status, 100, out);
	fclose(out);
	cr_assert_str_eq(text, "1 traced, 1 ended | 1001 events, 100000/s, 3 lost | "
			       "overhead about 6.0%");
	free(text);
	json_decref(status);
	check_no_leaks();
}
