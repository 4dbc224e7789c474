// SPDX-License-Identifier: BSD-2-Clause
/* One window: the program's own time in it, and its end. */
#include "accuracy/window.h"

#include "harness/test.h"

static const struct cost eleven = {.known = true, .before = {10, 20, 30}, .after = {1, 2, 3}};

/* Calls take 11 ns, returns 22, suspensions 33; at least 25 ns are left for each of these. */
static void open_window(struct window *w, uint64_t length_ns)
{
	uint64_t end;

	*w = (struct window){.begin_ts = 1000};
	window_open(w, length_ns, &eleven);
	cr_assert_eq(window_shown(w, 999), 0);
	cr_assert(window_admit(w, 1100, COST_ENTER, &end));
	cr_assert_eq(window_shown(w, 1100), 100 - 11);
	cr_assert(window_admit(w, 1110, COST_LEAVE, &end));
	cr_assert_eq(window_shown(w, 1110), 110 - 33);
	for (int i = 0; i < 3; i++)
		cr_assert(window_admit(w, 1111, COST_YIELD, &end));
	cr_assert_eq(window_shown(w, 1111), 111, "not more than has passed");
	cr_assert_eq(window_shown(w, 1200), 5 * 25);
	cr_assert_eq(window_shown(w, 1300), 300 - 132);
	cr_assert(w->events == 5 && w->taken == 132 && w->taken_ever == 132);
}

Test(window, ends_at_its_limit)
{
	struct window w;
	uint64_t end = 0;

	open_window(&w, 500);
	cr_assert(window_close(&w, 1500, &end) == 368 && end == 1500);
	cr_assert(window_close(&w, 1632, &end) == 500 && end == 1632);
	cr_assert(window_close(&w, 2000, &end) == 500 && end == 1632);
	cr_assert(window_admit(&w, 1631, COST_ENTER, &end));
	w.events--, w.taken -= 11;
	cr_assert(!window_admit(&w, 1632, COST_LEAVE, &end) && end == 1632);
	cr_assert(!window_admit(&w, 2000, COST_YIELD, &end) && end == 1632);
	cr_assert(w.shown_ns == 500 && w.events == 5 && w.taken == 132);
	window_discard(&w, COST_ENTER);
	cr_assert_eq(w.taken_ever, 132 + 11 + 22 + 33 + 11, "whether it was shown or not");
	window_open(&w, 0, &eleven);
	cr_assert(w.limit_ns == UINT64_MAX && !w.shown_ns && !w.events && !w.taken);
	cr_assert_eq(w.taken_ever, 209);
}

/* What was shown so far is forgotten, the window stays open. */
Test(window, cleared)
{
	struct window w;
	uint64_t end;

	open_window(&w, 500);
	window_clear(&w);
	cr_assert(!w.events && !w.taken && w.taken_ever == 132 && w.limit_ns == 500);
	w.begin_ts = 1300;
	cr_assert(window_close(&w, 1700, &end) == 400 && end == 1700);
}

/* If hits cost more than assumed, less was shown. */
Test(window, rescaled)
{
	struct window w;

	open_window(&w, 0);
	cr_assert_eq(window_rescale(&w, 1000, 1.5), 1000 - 66);
	cr_assert_eq(window_rescale(&w, 1000, 0.5), 1000 + 66);
	cr_assert_eq(window_rescale(&w, 258, 2), 126);
	cr_assert_eq(window_rescale(&w, 256, 2), 125, "25 ns for each event");
}
