// SPDX-License-Identifier: BSD-2-Clause
/* Named moments of the profile: their number and memory are bounded. */
#include "server/marks.h"

#include <errno.h>
#include <stdio.h>

#include "harness/snapshot_builder.h"
#include "harness/test.h"

static struct marks m;

static void teardown(void)
{
	marks_deinit(&m);
	check_no_leaks();
}

TestSuite(marks, .fini = teardown);

/* Returns the pid of the former snapshot's first target; 0: there was none. */
static uint32_t exchange(const char *name, uint32_t pid)
{
	_cleanup_(snapshot_freep) struct snapshot *s = NULL, *before = NULL;
	struct diag diag = {0};
	char text[32];

	snprintf(text, sizeof(text), "target %u\n", pid);
	s = snapshot_build(text);
	assert_diag_ok(marks_exchange(&m, name, s, &before, &diag), &diag);
	return before ? before->targets[0].pid : 0;
}

Test(marks, names_are_independent)
{
	cr_assert_eq(exchange("a", 1), 0);
	cr_assert_eq(exchange("b", 2), 0);
	cr_assert_eq(exchange("a", 3), 1);
	cr_assert_eq(exchange("a", 4), 3);
	cr_assert_eq(exchange("b", 5), 2);
}

/* The least recently used mark is dropped. */
Test(marks, bounded_number)
{
	char name[16];

	for (uint32_t i = 0; i < MARKS_MAX; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		exchange(name, i + 1);
	}
	cr_assert_eq(exchange("n0", 77), 1);
	cr_assert_eq(exchange("new", 88), 0);
	cr_assert_eq(exchange("n0", 99), 77);
	cr_assert_eq(exchange("n1", 99), 0);
}

Test(marks, bounded_memory)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("target 1\n"), *before = NULL;
	struct diag diag = {0};

	exchange("a", 1);
	m.max = m.v[0].bytes * 2;
	exchange("b", 2);
	exchange("c", 3); /* a is dropped */
	cr_assert_eq(exchange("b", 2), 2);
	cr_assert_eq(exchange("a", 2), 0);
	m.max = 10;
	cr_assert_eq(marks_exchange(&m, "b", s, &before, &diag), -EFBIG);
	cr_assert(!before && diag.exit == PYP_EXIT_FAILURE && diag.hint[0]);
	diag_clear(&diag);
	m.max = 0;
	cr_assert_eq(exchange("b", 5), 2, "a refused one changes nothing");
}

Test(marks, names)
{
	static const char *const bad[] = {
		"", "a b", "a/b", "\xc3\xa4",
		"0123456789012345678901234567890123456789012345678901234567890123"};
	struct diag diag = {0};

	assert_diag_ok(marks_check("user-0_session.1", &diag), &diag);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_assert_eq(marks_check(bad[i], &diag), -EINVAL, "%s", bad[i]);
		cr_assert_eq(diag.exit, PYP_EXIT_USAGE);
		diag_clear(&diag);
	}
}
