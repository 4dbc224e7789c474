// SPDX-License-Identifier: BSD-2-Clause
/* server/spans: the limits of their number and size. */
#include "server/spans.h"

#include <errno.h>

#include "harness/test.h"

static struct spans spans;

static int begin(size_t bytes, uint32_t *ret)
{
	struct snapshot *s = snapshot_new();
	struct diag diag = {0};
	int r;

	cr_assert(!bytes || snapshot_alloc(s, 1, bytes));
	r = spans_begin(&spans, s, 7, ret, &diag);
	cr_assert(r == 0 || (r == -EBUSY && diag.exit == PYP_EXIT_NO_DAEMON));
	return r;
}

Test(spans, number)
{
	uint32_t id[SPANS_MAX], more;

	for (size_t i = 0; i < SPANS_MAX; i++)
		assert_ok(begin(0, &id[i]));
	cr_assert(begin(0, &more) == -EBUSY);
	cr_assert(spans_find(&spans, id[3])->end_ns == 7);
	spans_end(&spans, id[3]);
	cr_assert(!spans_find(&spans, id[3]));
	spans_end(&spans, id[3]);
	assert_ok(begin(0, &more));
	cr_assert(more != id[3], "an id is not used again");
	cr_assert(!spans_find(&spans, 0), "0 is none");
	spans_end(&spans, 0);
	spans_deinit(&spans);
	check_no_leaks();
}

Test(spans, size)
{
	uint32_t id, more;

	spans.max = 1 << 20;
	assert_ok(begin(800 << 10, &id));
	cr_assert(begin(800 << 10, &more) == -EBUSY);
	assert_ok(begin(0, &more));
	spans_end(&spans, id);
	assert_ok(begin(800 << 10, &id));
	spans_deinit(&spans);
	check_no_leaks();
}
