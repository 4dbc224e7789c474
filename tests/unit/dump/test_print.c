// SPDX-License-Identifier: BSD-2-Clause
/* dump/print, dump/print_json: a dump that the test defines. */
#include <jansson.h>

#include "dump/dump.h"
#include "harness/test.h"

static struct python_local variables[] = {{(char[]){"x"}, "1"}};
static struct dump_frame frames[] = {
	{.filename = (char[]){"/a.py"},
	 .name = (char[]){"f"},
	 .line = 3,
	 .locals_state = DUMP_LOCALS_READ,
	 .locals = {.v = variables, .n = 1, .more = 2}},
	{.filename = (char[]){"/a.py"}, .name = (char[]){"g"}, .moving = true},
};
static struct dump_thread threads[] = {
	{.tid = 7,
	 .name = "python3",
	 .python_name = (char[]){"Main"},
	 .state = 'S',
	 .python = true,
	 .frames = frames,
	 .n = 2,
	 .doing = {DOING_GIL, "wait for the GIL (futex)"}},
	{.tid = 8, .name = "native", .state = 'R', .python = true},
	{.tid = 9, .name = "other", .state = 'S'},
};
/* The first two wait for each other. */
static size_t second[] = {1}, first[] = {0};
static struct dump_task tasks[] = {
	{.name = (char[]){"A"}, .tid = 7, .awaited = true, .awaits = second, .nawaits = 1},
	{.name = (char[]){"B"},
	 .tid = 7,
	 .awaited = true,
	 .awaits = first,
	 .nawaits = 1,
	 .moving = true},
	{.tid = 7, .running = true, .waits = "x.Future"},
};
static const struct dump dump = {
	.pid = 7,
	.cmdline = (char[]){"python3 a.py"},
	.version = (char[]){"3.11.2"},
	.file = (char[]){"/usr/bin/python3"},
	.threads = threads,
	.nthreads = 3,
	.tasks = {.v = tasks, .n = 3, .unread = 2},
};

static char *printed(int (*print)(const struct dump *d, FILE *out))
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_ok(print(&dump, out));
	(void)fclose(out);
	return text;
}

Test(print, text)
{
	static const char want[] =
		"process 7: python3 a.py\n"
		"Python 3.11.2, /usr/bin/python3\n"
		"\n"
		"thread 7 \"Main\", waiting for the GIL (futex)\n"
		"    f (/a.py:3)\n"
		"        x = 1\n"
		"        ... and 2 more\n"
		"  ~ g (/a.py)\n"
		"\n"
		"thread 8 [native], running or waiting for a CPU\n"
		"    (runs no Python function)\n"
		"\n"
		"asyncio tasks of thread 7\n"
		"  task, running in thread 7\n"
		"  task \"A\", waits for 1 task\n"
		"      task \"B\", waits for 1 task\n"
		"          task \"A\" (see above)\n"
		"\n"
		"2 asyncio tasks could not be read\n"
		"\n"
		"1 other thread of the process runs no Python (see --json)\n"
		"\n"
		"[name]: the kernel's name of a thread\n"
		"\n"
		"~ changed while it was read (the process is not stopped): may be wrong\n";
	char *text = printed(dump_print_text);

	cr_assert_str_eq(text, want, "%s", text);
	free(text);
	check_no_leaks();
}

Test(print, json)
{
	char *text = printed(dump_print_json);
	json_t *all = json_loads(text, 0, NULL), *thread, *task, *frame;

	cr_assert(all);
	thread = json_array_get(json_object_get(all, "threads"), 0);
	frame = json_array_get(json_object_get(thread, "frames"), 0);
	task = json_array_get(json_object_get(all, "tasks"), 1);
	cr_assert_str_eq(json_string_value(json_object_get(all, "format")), "pyprofd-dump");
	cr_assert_str_eq(json_string_value(json_object_get(thread, "kind")), "gil");
	cr_assert_str_eq(json_string_value(json_object_get(thread, "python_name")), "Main");
	cr_assert_eq(
		json_array_size(json_object_get(json_object_get(frame, "locals"), "variables")), 1);
	cr_assert(json_is_null(json_object_get(all, "no_tasks")));
	cr_assert(json_is_true(json_object_get(task, "moving")));
	cr_assert_eq(json_integer_value(json_array_get(json_object_get(task, "awaits"), 0)), 0);
	json_decref(all);
	free(text);
	check_no_leaks();
}
