// SPDX-License-Identifier: BSD-2-Clause
/* Calls per call of callers between which and the callee functions are folded. */
#include "stats/fold_wholes.h"

#include <math.h>

#include "harness/snapshot_builder.h"
#include "harness/test.h"
#include "harness/wholes.h"
#include "stats/reduce.h"
#include "stats/view.h"

#define LIB "/usr/lib/python3.11/"

/* root 0, boot 1, main 2, map 3, apply 4, item 5, map 6, item 7, item 8 */
static const char *const example = "target 42\nthread 42 42 Main\n"
				   "boot " LIB "a.py:1 1 1\n"
				   "  main /srv/app.py:1 1 1\n"
				   "    map " LIB "a.py:2 1 1\n"
				   "      apply " LIB "a.py:3 1 1\n"
				   "        item /srv/app.py:2 1 1\n"
				   "        map " LIB "a.py:2 1 1\n"
				   "          item /srv/app.py:2 1 1\n"
				   "    item /srv/app.py:2 1 1\n";

static struct per_call folded(const struct snapshot *s)
{
	const struct reduce_opts opts = {.only_my_code = true};
	_cleanup_(snapshot_freep) struct snapshot *to = NULL;
	_cleanup_(view_freep) struct view *v = NULL;

	assert_ok(reduce_snapshot(s, &opts, &to));
	assert_ok(view_build(to, NULL, &v));
	for (size_t i = 0; i < v->nedges; i++)
		if (strcmp(to->funcs[v->edges[i].callee].name, "item") == 0)
			return v->edges[i].per_call;
	return (struct per_call){.calls = -1};
}

/* 2 × 3 × 5 calls of map, apply and item, 2 × 3 × 1 × 7 by the second map, and 4 without any. */
Test(fold_wholes, calls_multiply_on_the_way_and_add_up)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example);
	struct per_call p;

	for (int i = 0; i < 3; i++)
		WHOLES_ADD_WINDOW(s, 0, {1, 0, 0}, {2, 0, 1}, {3, 2, 2}, {4, 6, 6}, {5, 30, 30},
				  {6, 6, 6}, {7, 42, 42}, {8, 4, 4});
	p = folded(s);
	cr_assert_float_eq(p.calls, 2 * 3 * 5 + 2 * 3 * 1 * 7 + 4, 1e-9);
	cr_assert_eq(p.error, 0);
	check_no_leaks();
}

/* Of a function that is called on two ways, the deviations of both add up. */
Test(fold_wholes, errors)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example);
	_cleanup_(snapshot_freep) struct snapshot *d =
		snapshot_build("target 42\nthread 42 42 Main\n"
			       "main /srv/app.py:1 1 1\n"
			       "  item /srv/app.py:2 1 1\n");
	double direct, both;

	for (int i = 0; i < 40; i++) {
		double one = i % 2 ? 10 : 6, other = i % 4 / 2 ? 5 : 3;

		WHOLES_ADD_WINDOW(s, 0, {2, 0, 1}, {3, 2, 2}, {4, 2, 2}, {5, one, one},
				  {8, other, other});
		WHOLES_ADD_WINDOW(d, 0, {1, 0, 1}, {2, one + other, 0});
	}
	direct = folded(d).error;
	both = folded(s).error;
	cr_assert_float_eq(folded(s).calls, 12, 1e-9);
	cr_assert_float_eq(folded(d).calls, 12, 1e-9);
	cr_assert(direct > 0.3 && fabs(both / direct - 1) < 0.02, "%f %f", both, direct);
	/* errors on the way multiply with what follows */
	snapshot_free(s);
	s = snapshot_build(example);
	for (int i = 0; i < 40; i++)
		WHOLES_ADD_WINDOW(s, 0, {2, 0, 1}, {3, i % 2 ? 1 : 3, i % 2 ? 1 : 3},
				  {4, i % 2 ? 1 : 3, i % 2 ? 1 : 3}, {5, i % 2 ? 5 : 15, 0});
	cr_assert_float_eq(folded(s).calls, 10, 1e-9);
	cr_assert(fabs(folded(s).error - 5 / sqrt(40)) < 0.1, "%f", folded(s).error);
	check_no_leaks();
}

/* Of exact counts and of what windows have not shown there is nothing to fold. */
Test(fold_wholes, nothing_was_seen)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example);

	cr_assert_eq(folded(s).calls, 3);
	WHOLES_ADD_WINDOW(s, 0, {3, 2, 2}, {4, 6, 6}, {5, 30, 30});
	WHOLES_ADD_WINDOW(s, 0, {3, 2, 2}, {4, 6, 6}, {5, 30, 30});
	cr_assert(folded(s).calls < 0);
	check_no_leaks();
}
