// SPDX-License-Identifier: BSD-2-Clause
/* snapshot/lines: lines of two sources add up, and stay sorted. */
#include "snapshot/lines.h"

#include "harness/snapshot_builder.h"
#include "harness/test.h"
#include "snapshot/merge.h"

#define LINE(l, n)                                                                                 \
	{                                                                                          \
		.line = (l), .samples = (n), .self_ns = 10 * (n), .variance = 100.0 * (n)          \
	}

static void assert_lines(const struct snapshot_func *f, const char *expected)
{
	char got[256] = "";

	for (uint32_t i = 0, at = 0; i < f->nlines; i++) {
		const struct snapshot_line *l = &f->lines[i];

		at += (uint32_t)snprintf(got + at, sizeof(got) - at, "%d:%d ", l->line,
					 (int)l->samples);
		cr_assert_eq(l->self_ns, 10 * l->samples);
		cr_assert_float_eq(l->variance, 100.0 * (double)l->samples, 1e-6);
	}
	cr_assert_str_eq(got, expected);
}

Test(lines, add_up)
{
	static const struct snapshot_line a[] = {LINE(2, 1), LINE(4, 2)},
					  b[] = {LINE(0, 5), LINE(2, 3), LINE(3, 1), LINE(9, 9)},
					  c[] = {LINE(4, 8)};
	struct snapshot *s = snapshot_build("thread 1 1 Main\nmain a.py:1 1 10\n  f a.py:2 1 10\n");
	struct snapshot_func *f = &s->funcs[1];

	cr_assert(!snapshot_has_lines(s));
	assert_ok(snapshot_add_lines(s, f, NULL, 0));
	cr_assert_eq(f->nlines, 0);
	assert_ok(snapshot_add_lines(s, f, a, 2));
	assert_lines(f, "2:1 4:2 ");
	assert_ok(snapshot_add_lines(s, f, b, 4));
	assert_lines(f, "0:5 2:4 3:1 4:2 9:9 ");
	assert_ok(snapshot_add_lines(s, f, c, 1));
	assert_lines(f, "0:5 2:4 3:1 4:10 9:9 ");
	cr_assert(snapshot_has_lines(s) && snapshot_valid(s));
	cr_assert_eq(snapshot_lines_sum(f).samples, 29);
	cr_assert_float_eq(snapshot_line_error(&f->lines[1]), 20, 1e-9);
	snapshot_free(s);
	check_no_leaks();
}

Test(lines, of_merged_snapshots)
{
	static const struct snapshot_line a[] = {LINE(2, 1)}, b[] = {LINE(1, 2), LINE(2, 2)};
	struct snapshot *one = snapshot_build("thread 1 1 Main\nmain a.py:1 1 10\n");
	struct snapshot *two = snapshot_build("thread 2 2 Main\nmain a.py:1 1 10\n");
	struct snapshot *sum = NULL;

	assert_ok(snapshot_add_lines(one, &one->funcs[0], a, 1));
	assert_ok(snapshot_add_lines(two, &two->funcs[0], b, 2));
	assert_ok(snapshot_merge((const struct snapshot *const[]){one, two}, 2, &sum));
	snapshot_free(two);
	assert_lines(&sum->funcs[0], "1:2 2:3 ");
	assert_lines(&one->funcs[0], "2:1 ");
	snapshot_free(one);
	snapshot_free(sum);
	check_no_leaks();
}
