// SPDX-License-Identifier: BSD-2-Clause
/* find/match: processes by what people call them. */
#include "find/match.h"

#include "harness/test.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct process v[] = {
	{.pid = 10,
	 .parent = 1,
	 .command = (char *)"python3 /srv/shop/app.py --port 80",
	 .place = {.unit = "web.service"}},
	{.pid = 11,
	 .parent = 10,
	 .command = (char *)"python3 /srv/shop/app.py --port 80",
	 .place = {.unit = "web.service"}},
	{.pid = 12, .parent = 11, .command = (char *)"python3 -m helper"},
	{.pid = 13,
	 .parent = 1,
	 .command = (char *)"gunicorn: master [shop.wsgi:api]",
	 .place = {.runtime = "docker", .container = ID}},
	{.pid = 14,
	 .parent = 15,
	 .command = (char *)"python3 worker.py",
	 .place = {.unit = "worker@1.service"}},
	{.pid = 15, .parent = 14, .command = (char *)"", .place = {.container = "shop"}},
};

#define N (sizeof(v) / sizeof(v[0]))

static const struct processes list = {.v = v, .n = N};

/* want: a character per process, '1' if it is hit */
static void check_hits(const bool *hit, const char *want, const char *what)
{
	for (size_t i = 0; i < N; i++)
		cr_assert_eq(hit[i], want[i] == '1', "%s: process %d", what, (int)v[i].pid);
}

#define CHECK(fn, name, want)                                                                      \
	do {                                                                                       \
		bool hit[N] = {false};                                                             \
		fn(&list, name, hit);                                                              \
		check_hits(hit, want, name);                                                       \
	} while (0)

Test(match, name)
{
	CHECK(match_name, "app.py", "110000");
	CHECK(match_name, "app", "110000");
	CHECK(match_name, "/srv/shop/app.py", "110000");
	CHECK(match_name, "helper", "001000");
	CHECK(match_name, "api", "000100");
	CHECK(match_name, "shop.wsgi:api", "000000");
	CHECK(match_name, "[shop.wsgi:api]", "000100");
	CHECK(match_name, "shop.wsgi", "000100");
	CHECK(match_name, "gunicorn", "000100");
	CHECK(match_name, "web", "110000");
	CHECK(match_name, "worker.py", "000010");
	CHECK(match_name, "python3", "111010");
	CHECK(match_name, "ap", "000000");
	CHECK(match_name, "shop", "000000");
	CHECK(match_name, "", "000000");
}

Test(match, unit)
{
	CHECK(match_unit, "web", "110000");
	CHECK(match_unit, "web.service", "110000");
	CHECK(match_unit, "worker@1", "000010");
	CHECK(match_unit, "we", "000000");
	CHECK(match_unit, "web.servic", "000000");
	CHECK(match_unit, "", "000000");
}

Test(match, container)
{
	CHECK(match_container, "0123", "000100");
	CHECK(match_container, ID, "000100");
	CHECK(match_container, "012", "000000");
	CHECK(match_container, "0124", "000000");
	CHECK(match_container, "shop", "000001");
	CHECK(match_container, "", "000000");
}

/* Grandchildren count, also of a child that is not hit; circles of parents end. */
Test(match, drop_children)
{
	bool tree[N] = {true, true, true}, grandchild[N] = {true, false, true};
	bool strangers[N] = {false, true, false, true}, circle[N] = {[4] = true};
	bool none[N] = {false};

	cr_assert_eq(match_drop_children(&list, tree), 1);
	check_hits(tree, "100000", "tree");
	cr_assert_eq(match_drop_children(&list, grandchild), 1);
	check_hits(grandchild, "100000", "grandchild");
	cr_assert_eq(match_drop_children(&list, strangers), 2);
	check_hits(strangers, "010100", "strangers");
	cr_assert_eq(match_drop_children(&list, circle), 1);
	cr_assert_eq(match_drop_children(&list, none), 0);
	check_no_leaks();
}
