// SPDX-License-Identifier: BSD-2-Clause
/* cli/top_history: which interval is shown, and when the next one is complete. */
#include "top_history.h"

#include "base/cleanup.h"
#include "harness/test.h"

#define S UINT64_C(1000000000)

static json_t *status(json_int_t interval_ns)
{
	return json_pack("{s:{s:I}, s:[{s:i, s:b}, {s:i}]}", "continuous", "interval_ns",
			 interval_ns, "targets", "pid", 7, "light", 1, "pid", 8);
}

Test(top_history, whose_figures)
{
	_cleanup_(json_decrefp) json_t *continuous = status(10 * S);
	_cleanup_(json_decrefp) json_t *other = json_pack("{s:n, s:[]}", "continuous", "targets");

	cr_assert(top_history_has(continuous, 0) && top_history_has(continuous, 7));
	cr_assert(top_history_has(continuous, 9), "it has ended");
	cr_assert(!top_history_has(continuous, 8), "a client has attached it");
	cr_assert(!top_history_has(other, 0) && !top_history_has(NULL, 0));
}

/* Complete: a tenth of its length after its end, so that all processes are cut. */
Test(top_history, last_interval)
{
	_cleanup_(json_decrefp) json_t *c = status(10 * S);
	struct when_span span = top_history_span(c, 1000 * S + S - 1);

	cr_assert(span.from_ns == 980 * S && span.to_ns == 990 * S);
	cr_assert_eq(top_history_wait_ns(c, 1000 * S + S - 1), 1);
	span = top_history_span(c, 1000 * S + S);
	cr_assert(span.from_ns == 990 * S && span.to_ns == 1000 * S);
	cr_assert_eq(top_history_wait_ns(c, 1000 * S + S), 10 * S);
	cr_assert_eq(top_history_wait_ns(c, 1005 * S), 6 * S);
}

Test(top_history, any_length)
{
	for (uint64_t length = S; length <= 3600 * S; length += 7 * S) {
		_cleanup_(json_decrefp) json_t *c = status((json_int_t)length);
		const uint64_t now = UINT64_C(1795000000) * S + length / 3;
		const struct when_span span = top_history_span(c, now);

		cr_assert_eq(span.to_ns - span.from_ns, length);
		cr_assert(span.to_ns % length == 0 && span.to_ns <= now);
		cr_assert_eq(top_history_span(c, now + top_history_wait_ns(c, now)).from_ns,
			     span.to_ns);
	}
	/* hostile */
	for (int i = 0; i < 2; i++) {
		_cleanup_(json_decrefp) json_t *c = status(i ? -1 : 0);

		cr_assert_eq(top_history_wait_ns(c, 1000 * S + S), 10 * S);
	}
}
