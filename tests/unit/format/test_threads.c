// SPDX-License-Identifier: BSD-2-Clause
/* The formats threads and rows. */
#include <jansson.h>

#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"

static struct snapshot *build(void)
{
	struct snapshot *s = snapshot_build("target 42\n"
					    "thread 42 42 MainThread\n"
					    "main app.py:1 1 1000000\n"
					    "  g b.py:3 4 7000000\n"
					    "thread 42 43 worker\n"
					    "f app.py:10 2 2000000 5000000\n");

	s->threads[0].total[SNAPSHOT_CPU] = 1000000000;
	s->threads[0].total[SNAPSHOT_WALL] = 1500000000;
	s->threads[1].total[SNAPSHOT_CPU] = 3000000000;
	s->threads[1].total[SNAPSHOT_WALL] = 2000000000;
	s->threads[1].alive = false;
	return s;
}

Test(threads, largest_first)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build();
	struct format_opts o = {0};
	_cleanup_free_ char *text = report_new("threads", s, &o, NULL);
	const char *want =
		"   Ordered by: cumulative time\n"
		"\n"
		"    pid     tid     calls       cpu      wall      wait  share thread (-: ended)\n"
		"     42      43         2     3.000     2.000     0.000  75.0% worker -\n"
		"     42      42         5     1.000     1.500     0.500  25.0% MainThread\n"
		"\n\n";

	cr_assert(strncmp(text, want, strlen(want)) == 0, "%s", text);
	check_no_leaks();
}

Test(threads, sorted_and_restricted)
{
	const char *pattern = "^42:4\\d\\(M";
	_cleanup_(snapshot_freep) struct snapshot *s = build();
	struct format_opts o = {.sort = "calls", .restrict_ = &pattern, .nrestrict = 1};
	_cleanup_free_ char *text = report_new("threads", s, &o, NULL);

	cr_assert(strstr(text, "Ordered by: call count\n   List reduced from 2 to 1"), "%s", text);
	cr_assert(strstr(text, "MainThread") && !strstr(text, "worker"));
	free(text);
	o = (struct format_opts){.filter = {.tid = 43}};
	text = report_new("threads", s, &o, NULL);
	cr_assert(strstr(text, " 100.0% worker -\n") || strstr(text, "100.0% worker -\n"), "%s",
		  text);
	cr_assert_null(strstr(text, "MainThread"));
}

/* Collections are no calls, and what takes little is dim. */
Test(threads, calls_and_shares)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build();
	struct format_opts o = {.colour = true, .clock = SNAPSHOT_WALL};
	_cleanup_free_ char *text = NULL;

	s->funcs[1].pseudo = true;
	s->funcs[1].name = "<gc>";
	s->threads[0].total[SNAPSHOT_WALL] = 20000000;
	s->threads[0].total[SNAPSHOT_CPU] = 20000000;
	s->threads[1].total[SNAPSHOT_WALL] = 1980000000;
	s->threads[0].name = "a name that is too long for a column";
	s->threads[1].name = "another name that is too long";
	text = report_new("threads", s, &o, NULL);
	cr_assert(strstr(text,
			 "     42      43         2     3.000     1.980     0.000  99.0%\033[0m "
			 "another...too long -\n"
			 "     42      42         1     0.020     0.020     0.000   1.0%\033[0m "
			 "a name t... a column\n"),
		  "%s", text);
	s->threads[0].total[SNAPSHOT_WALL] = 19000000;
	free(text);
	text = report_new("threads", s, &o, NULL);
	cr_assert(strstr(text, "     0.019     0.000 \033[2m  1.0%\033[0m "), "%s", text);
}

/* Everything behind the provenance; restrictions choose the functions whose callers are there. */
Test(rows, to_the_digit)
{
	static const char *const pattern[] = {"g|f"};
	_cleanup_(snapshot_freep) struct snapshot *s = build();
	struct format_opts o = {.restrict_ = pattern, .nrestrict = 1, .filter = {.pid = 42}};
	_cleanup_free_ char *text = NULL, *one = NULL;
	const char *at;

	s->funcs[0].qualname = "M.main";
	s->funcs[2].pseudo = true;
	s->threads[0].name = NULL;
	text = report_new("rows", s, &o, NULL);
	at = strstr(text, "\"functions\":[");
	cr_assert(at, "%s", text);
	cr_assert_str_eq(
		at, "\"functions\":[\n"
		    "[\"app.py\",1,\"main\",\"M.main\",1,1,1000000,8000000,1000000,8000000,null],\n"
		    "[\"b.py\",3,\"g\",null,4,4,7000000,7000000,7000000,7000000,null],\n"
		    "[\"~\",0,\"f\",null,2,2,2000000,2000000,5000000,5000000,null]],\n"
		    "\"callers\":[\n"
		    "[\"app.py\",1,\"main\",null,4,4,7000000,7000000,7000000,7000000,null]],\n"
		    "\"thread_columns\":[\"pid\",\"tid\",\"name\",\"alive\",\"calls\",\"cpu\","
		    "\"wall\",\"waits\"],\n"
		    "\"threads\":[\n"
		    "[42,42,\"\",true,5,1000000000,1500000000,null],\n"
		    "[42,43,\"worker\",false,2,3000000000,2000000000,null]]\n}\n");
	o = (struct format_opts){.filter = {.tid = 43}};
	one = report_new("rows", s, &o, NULL);
	at = strstr(one, "\"threads\":[");
	cr_assert(at, "%s", one);
	cr_assert_str_eq(at, "\"threads\":[\n[42,43,\"worker\",false,2,3000000000,2000000000,null]]"
			     "\n}\n");
	cr_assert_null(strstr(one, "\"callers\""));
}

/* A call by two callers, and one of a function that is not selected */
Test(rows, callers)
{
	static const char *const pattern[] = {"^a.py:2"};
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("main a.py:1 1 1 10\n"
								      "  f a.py:2 2 2 20\n"
								      "  h a.py:3 4 4 40\n"
								      "    f a.py:2 8 8 80\n"
								      "      f a.py:2 16 16 160\n");
	struct format_opts o = {.restrict_ = pattern, .nrestrict = 1};
	_cleanup_free_ char *text = report_new("rows", s, &o, NULL);

	cr_assert(strstr(text, "\"callers\":[\n"
			       "[\"a.py\",1,\"main\",null,2,2,2,2,20,20,null],\n"
			       "[\"a.py\",2,\"f\",null,16,16,16,16,160,160,null],\n"
			       "[\"a.py\",3,\"h\",null,8,8,8,24,80,240,null]],\n"),
		  "%s", text);
}

Test(rows, functions_and_threads)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build();
	struct format_opts o = {0};
	_cleanup_free_ char *text = report_new("rows", s, &o, NULL);
	_cleanup_(json_decrefp) json_t *root = json_loads(text, 0, NULL);
	json_t *functions = json_object_get(root, "functions");
	json_t *threads = json_object_get(root, "threads"), *row = json_array_get(functions, 1);

	cr_assert(root, "%s", text);
	cr_assert_eq(json_array_size(functions), 3);
	cr_assert_eq(json_array_size(row),
		     json_array_size(json_object_get(root, "function_columns")));
	cr_assert_str_eq(json_string_value(json_array_get(row, 0)), "b.py");
	cr_assert_eq(json_integer_value(json_array_get(row, 1)), 3);
	cr_assert_eq(json_integer_value(json_array_get(row, 4)), 4);
	cr_assert_eq(json_integer_value(json_array_get(row, 6)), 7000000);
	cr_assert_eq(json_array_size(threads), 2);
	row = json_array_get(threads, 1);
	cr_assert_eq(json_array_size(row),
		     json_array_size(json_object_get(root, "thread_columns")));
	cr_assert_eq(json_integer_value(json_array_get(row, 1)), 43);
	cr_assert(json_is_false(json_array_get(row, 3)));
	cr_assert_eq(json_integer_value(json_array_get(row, 4)), 2);
	cr_assert(json_is_null(json_array_get(row, 7)), "waits are not measured");
	cr_assert_null(json_object_get(root, "nodes"));
}

/* The i-th function's or thread's waiting for this reason, which is the last element of its row */
static json_int_t waited(const json_t *root, const char *list, size_t i, int reason)
{
	const json_t *row = json_array_get(json_object_get(root, list), i);
	const json_t *waits = json_array_get(row, json_array_size(row) - 1);

	cr_assert_eq(json_array_size(waits), COLUMN_WAITS_END - COLUMN_WAITS_FIRST);
	return json_integer_value(json_array_get(waits, (size_t)(reason - COLUMN_WAITS_FIRST)));
}

/* Nodes: root, main, g (thread 42), root, f (thread 43). A root waits outside Python. */
Test(rows, waits)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build();
	struct format_opts o = {0};
	_cleanup_free_ char *text = NULL;
	json_t *root, *names;

	assert_ok(snapshot_reserve_columns(s, COLUMN_BIT(COLUMN_gil) | COLUMN_BIT(COLUMN_io),
					   s->nnodes));
	s->measured = COLUMN_WAITS;
	for (uint32_t i = 0; i < s->nnodes; i++) {
		s->columns[COLUMN_gil][i] = 10 + i;
		s->columns[COLUMN_io][i] = s->nodes[i].thread == 1 ? 7 : 0;
	}
	text = report_new("rows", s, &o, NULL);
	root = json_loads(text, 0, NULL);
	cr_assert(root, "%s", text);
	names = json_object_get(root, "wait_columns");
	cr_assert_str_eq(json_string_value(json_array_get(names, 0)), "gil");
	cr_assert_str_eq(json_string_value(json_array_get(names, 3)), "io");
	cr_assert_eq(waited(root, "functions", 0, COLUMN_gil), 11);
	cr_assert_eq(waited(root, "functions", 1, COLUMN_gil), 12);
	cr_assert_eq(waited(root, "functions", 0, COLUMN_lock), 0);
	cr_assert_eq(waited(root, "threads", 0, COLUMN_gil), 33);
	cr_assert_eq(waited(root, "threads", 0, COLUMN_io), 0);
	cr_assert_eq(waited(root, "threads", 1, COLUMN_gil), 27);
	cr_assert_eq(waited(root, "threads", 1, COLUMN_io), 14);
	json_decref(root);
}
