// SPDX-License-Identifier: BSD-2-Clause
/* inspect/answer_details: names, local variables and tasks; invalid messages are refused. */
#include <errno.h>

#include "harness/test.h"
#include "inspect/answer.h"

static struct python_thread_name thread_names[] = {{0x1000, (char[]){"MainThread"}},
						   {0x2000, (char[]){"\xc3\xbc"}}};
static const struct python_names names = {.v = thread_names, .n = 2};

static struct python_local variables[] = {{(char[]){"a"}, "1"}, {(char[]){"b"}, "<list of 2>"}};
static const struct python_locals locals = {
	.code = 0x3000, .frame = 0x4000, .v = variables, .n = 2, .more = 3};

static struct python_task_frame frames[] = {{0x10, 0x20, 7}, {0x30, 0x40, 0}};
static uint64_t awaits[] = {0x6000};
static struct python_task task_rows[] = {
	{.task = 0x5000,
	 .name = (char[]){"Task-1"},
	 .frames = frames,
	 .n = 2,
	 .awaits = awaits,
	 .nawaits = 1},
	{.task = 0x6000, .tstate = 0x1000, .waits = "_asyncio.Future", .moving = true},
};
static const struct python_tasks tasks = {.v = task_rows, .n = 2, .unread = 1};

Test(answer_details, names)
{
	struct python_names n;
	size_t size;
	char *data = answer_encode_names(&names, &size);

	assert_ok(answer_decode_names(data, size, &n));
	cr_assert(n.n == 2 && !n.no_threading && n.v[1].tstate == 0x2000);
	cr_assert_str_eq(n.v[1].name, "\xc3\xbc");
	python_names_deinit(&n);
	for (size_t i = 0; i < size; i++)
		assert_err(answer_decode_names(data, i, &n), -EPROTO);
	data[size - 1] = '\xff'; /* not UTF-8 */
	assert_err(answer_decode_names(data, size, &n), -EPROTO);
	free(data);
	check_no_leaks();
}

Test(answer_details, locals)
{
	struct python_locals l;
	size_t size;
	char *data = answer_encode_locals(&locals, &size);

	assert_ok(answer_decode_locals(data, size, &l));
	cr_assert(l.n == 2 && l.more == 3 && l.code == 0x3000 && l.frame == 0x4000);
	cr_assert_str_eq(l.v[0].name, "a");
	cr_assert_str_eq(l.v[1].value, "<list of 2>");
	python_locals_deinit(&l);
	for (size_t i = 0; i < size; i++)
		assert_err(answer_decode_locals(data, i, &l), -EPROTO);
	data[3 * 8] = PYTHON_LOCALS_MAX + 1; /* the number of variables */
	assert_err(answer_decode_locals(data, size, &l), -EPROTO);
	free(data);
	check_no_leaks();
}

static void check_tasks(const struct python_tasks *t)
{
	cr_assert(t->n == 2 && t->unread == 1 && t->note == PYTHON_TASKS_READ);
	cr_assert(t->v[0].n == 2 && t->v[0].frames[0].line == 7 && t->v[0].frames[1].code == 0x40);
	cr_assert(t->v[0].nawaits == 1 && t->v[0].awaits[0] == 0x6000 && !t->v[0].moving);
	cr_assert_str_eq(t->v[0].name, "Task-1");
	cr_assert(!t->v[1].name && t->v[1].moving && t->v[1].n == 0 && t->v[1].tstate == 0x1000);
	cr_assert_str_eq(t->v[1].waits, "_asyncio.Future");
}

Test(answer_details, tasks)
{
	struct python_tasks t;
	size_t size;
	char *data = answer_encode_tasks(&tasks, &size);

	assert_ok(answer_decode_tasks(data, size, &t));
	check_tasks(&t);
	python_tasks_deinit(&t);
	for (size_t i = 0; i < size; i++)
		assert_err(answer_decode_tasks(data, i, &t), -EPROTO);
	for (size_t i = 0; i < size; i++) { /* any other bytes: refused, or other values */
		char was = data[i];

		data[i] = (char)~was;
		if (answer_decode_tasks(data, size, &t) == 0)
			python_tasks_deinit(&t);
		data[i] = was;
	}
	free(data);
	check_no_leaks();
}
