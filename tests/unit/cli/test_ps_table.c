// SPDX-License-Identifier: BSD-2-Clause
/* cli/ps_table: the table letter for letter, and JSON. */
#include "ps_table.h"

#include "base/cleanup.h"
#include "harness/test.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct process v[] = {
	{.pid = 42,
	 .parent = 1,
	 .uid = 0,
	 .threads = 3,
	 .implementation = IMPLEMENTATION_CPYTHON,
	 .version = "3.13.5",
	 .cpu = 12.34,
	 .traceable = PROCESS_TRACEABLE,
	 .command = (char *)"/usr/bin/python3 /srv/app.py --a-long-option",
	 .place = {.unit = "web.service"}},
	{.pid = 43,
	 .uid = 7,
	 .threads = 1,
	 .implementation = IMPLEMENTATION_PYPY,
	 .version = "3.10",
	 .traceable = PROCESS_UNTRACEABLE,
	 .why = "it runs PyPy",
	 .command = (char *)"pypy3\033[2J \xff\xc3\xa9",
	 .place = {.runtime = "docker", .container = ID}},
	{.pid = 4194304,
	 .uid = 7,
	 .threads = 1,
	 .implementation = IMPLEMENTATION_CPYTHON,
	 .cpu = -1,
	 .why = "no permission",
	 .command = (char *)"python3"},
	{.pid = 4194305,
	 .uid = 7,
	 .threads = 1,
	 .implementation = IMPLEMENTATION_CPYTHON,
	 .cpu = -1,
	 .why = "no permission",
	 .command = (char *)"python3"},
};

static const struct processes list = {.v = v, .n = 4, .unreadable = 2, .late = 1};

static const char *user(uid_t uid, char out[PS_USER_MAX])
{
	snprintf(out, PS_USER_MAX, "%s", uid ? "a-long-user-name" : "root");
	return out;
}

static char *print(const struct processes *l, const struct ps_style *style)
{
	char *out = NULL;
	size_t n;
	FILE *f = open_memstream(&out, &n);

	ps_table_print(l, style, f);
	fclose(f);
	return out;
}

Test(ps_table, whole)
{
	_cleanup_free_ char *out = print(&list, &(struct ps_style){.user = user});

	cr_assert_str_eq(
		out,
		"    PID PYTHON   USER              CPU%  THR TRACE UNIT/CONTAINER      COMMAND\n"
		"     42 3.13.5   root              12.3    3 yes   web.service         python3 "
		"/srv/app.py --a-long-option\n"
		"     43 PyPy3.10 a-long-user-name   0.0    1 no    docker:0123456789ab pypy3?[2J "
		"?\xc3\xa9\n"
		"4194304 ?        a-long-user-name     ?    1 ?     -                   python3\n"
		"4194305 ?        a-long-user-name     ?    1 ?     -                   python3\n"
		"     43: it runs PyPy\n"
		"4194304 and 1 more: unknown: no permission\n"
		"not listed: 2 that could not be read; root can see which of them run Python\n"
		"not listed: 1 that could not be read in time\n");
	check_no_leaks();
}

/* Lines are cut, but the command keeps some columns. */
Test(ps_table, cut)
{
	_cleanup_free_ char *narrow = print(&list, &(struct ps_style){.user = user, .width = 40});
	_cleanup_free_ char *wide = print(&list, &(struct ps_style){.user = user, .width = 99});

	cr_assert(strstr(narrow, " python3 /srv/app.py \n"), "%s", narrow);
	cr_assert(strstr(wide, " python3 /srv/app.py --a-long\n"), "%s", wide);
	for (const char *line = wide; *line; line = strchr(line, '\n') + 1)
		cr_assert(strcspn(line, "\n") <= 99, "%s", line);
}

Test(ps_table, nothing)
{
	_cleanup_free_ char *out = print(&(struct processes){.unreadable = 1},
					 &(struct ps_style){.user = user, .root = true});

	cr_assert_str_eq(out, "no Python processes\nnot listed: 1 that could not be read\n");
}

static const json_t *member(const json_t *root, size_t i, const char *key)
{
	return json_object_get(json_array_get(json_object_get(root, "processes"), i), key);
}

Test(ps_table, json)
{
	json_t *root = ps_table_json(&list, &(struct ps_style){.user = user});

	cr_assert_eq(json_integer_value(json_object_get(root, "unreadable")), 2);
	cr_assert_eq(json_integer_value(json_object_get(root, "late")), 1);
	cr_assert_eq(json_integer_value(member(root, 0, "pid")), 42);
	cr_assert_str_eq(json_string_value(member(root, 0, "unit")), "web.service");
	cr_assert(json_is_true(member(root, 0, "traceable")));
	cr_assert(json_is_null(member(root, 0, "reason")));
	cr_assert(json_is_null(member(root, 0, "container")));
	cr_assert(json_is_false(member(root, 1, "traceable")));
	cr_assert_str_eq(json_string_value(member(root, 1, "command")), "pypy3\033[2J ?\xc3\xa9");
	cr_assert_str_eq(json_string_value(json_object_get(member(root, 1, "container"), "id")),
			 ID);
	cr_assert(json_is_null(member(root, 2, "traceable")));
	cr_assert(json_is_null(member(root, 2, "cpu_percent")));
	cr_assert(json_is_null(member(root, 2, "version")));
	json_decref(root);
	check_no_leaks();
}
