// SPDX-License-Identifier: BSD-2-Clause
/* The format waits, by thread, and threads' waits in JSON. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>

#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"

#define MS UINT64_C(1000000)

static void set(struct snapshot *s, int column, uint32_t node, uint64_t ns)
{
	if (!s->columns[column])
		s->columns[column] = snapshot_alloc(s, s->nnodes, sizeof(uint64_t));
	cr_assert(s->columns[column] && node < s->nnodes);
	s->columns[column][node] = ns;
}

/* Each thread's root precedes its functions. */
static struct snapshot *build(void)
{
	struct snapshot *s = snapshot_build("target 42\n"
					    "thread 42 42 MainThread\n"
					    "main app.py:1 1 1000000\n"
					    "  g b.py:3 4 7000000\n"
					    "thread 42 43 worker\n"
					    "f app.py:10 2 2000000 5000000\n");
	uint32_t root = s->threads[1].root;

	s->measured |= COLUMN_WAITS;
	set(s, COLUMN_gil, s->threads[0].root + 1, 250 * MS);
	set(s, COLUMN_io, s->threads[0].root + 2, 500 * MS);
	set(s, COLUMN_io_disk, s->threads[0].root + 2, 500 * MS);
	set(s, COLUMN_gil, root, 1000 * MS);
	set(s, COLUMN_gil, root + 1, 125 * MS);
	s->threads[0].total[SNAPSHOT_CPU] = 1000 * MS;
	s->threads[0].total[SNAPSHOT_WALL] = 1750 * MS;
	s->threads[1].total[SNAPSHOT_CPU] = 3000 * MS;
	s->threads[1].total[SNAPSHOT_WALL] = 4125 * MS;
	s->threads[1].alive = false;
	return s;
}

#define HEADER "    pid     tid     wall      cpu      gil       io  thread (-: ended)\n"
#define MAIN   "     42      42    1.750    1.000    0.250    0.500  MainThread\n"
#define WORKER "     42      43    4.125    3.000    1.125           worker -\n"

static void expect(const struct format_opts *o, const char *want)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build();
	_cleanup_free_ char *text = report_new("waits", s, o, NULL);

	cr_assert(strncmp(text, want, strlen(want)) == 0, "%s", text);
}

Test(waits, by_thread)
{
	const char *pattern = "Main";

	expect(&(struct format_opts){.by_thread = true},
	       "   Waiting: 1.875 s in all threads\n\n" HEADER WORKER MAIN "\n\n");
	expect(&(struct format_opts){.by_thread = true, .reverse = true},
	       "   Waiting: 1.875 s in all threads\n\n" HEADER MAIN WORKER "\n\n");
	expect(&(struct format_opts){.by_thread = true, .restrict_ = &pattern, .nrestrict = 1},
	       "   Waiting: 1.875 s in all threads\n   List reduced from 2 to 1");
	check_no_leaks();
}

/* Of the selected threads only, so a reason of other threads has no column. */
Test(waits, of_one_thread)
{
	expect(&(struct format_opts){.by_thread = true, .filter = {.tid = 43}},
	       "   Waiting: 1.125 s in all threads\n\n"
	       "    pid     tid     wall      cpu      gil  thread (-: ended)\n"
	       "     42      43    4.125    3.000    1.125  worker -\n\n\n");
}

Test(waits, by_thread_not_measured)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build();
	struct format_opts o = {.by_thread = true};
	struct diag diag = {0};

	s->measured = 0;
	cr_assert_eq(format_write(format_find("waits"), s, &o, stdout, &diag), -ENODATA);
	cr_assert(strstr(diag.msg, "not measured"), "%s", diag.msg);
}

Test(waits, threads_in_json)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build();
	struct format_opts o = {0};
	_cleanup_free_ char *text = report_new("json", s, &o, NULL);
	_cleanup_(json_decrefp) json_t *root = json_loads(text, 0, NULL);
	json_t *threads = json_object_get(root, "threads");
	json_int_t gil, io, disk, lock;

	cr_assert(root, "%s", text);
	assert_ok(json_unpack(json_array_get(threads, 0), "{s:{s:I, s:I, s:I, s:I}}", "waits",
			      "gil", &gil, "io", &io, "io_disk", &disk, "lock", &lock));
	cr_assert(gil == 250 * (json_int_t)MS && io == 500 * (json_int_t)MS && disk == io &&
		  lock == 0);
	assert_ok(json_unpack(json_array_get(threads, 1), "{s:{s:I, s:I}}", "waits", "gil", &gil,
			      "io", &io));
	cr_assert(gil == 1125 * (json_int_t)MS && io == 0);
	check_no_leaks();
}
