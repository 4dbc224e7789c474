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
