// SPDX-License-Identifier: BSD-2-Clause
/* server/totals: counters that only grow, and which functions are shown. */
#include "server/totals.h"

#include <string.h>

#include "base/clock.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"

static bool shown[6];

/* Choose by these scores, and remember. */
static void choose(size_t top, const double score[6])
{
	struct total_function v[6] = {0};

	for (int i = 0; i < 6; i++) {
		v[i].score = score[i];
		v[i].shown = shown[i];
	}
	assert_ok(totals_choose(v, 6, top));
	for (int i = 0; i < 6; i++)
		shown[i] = v[i].shown;
}

static void are_shown(const char *expected)
{
	char text[7] = "";

	for (int i = 0; i < 6; i++)
		text[i] = shown[i] ? '1' : '0';
	cr_assert_str_eq(text, expected);
}

/* Once shown, a function stays until it falls out of the first 2 N. */
Test(totals, hysteresis)
{
	choose(2, (double[]){6, 5, 4, 3, 2, 1});
	are_shown("110000");
	choose(2, (double[]){3, 4, 6, 5, 2, 1});
	are_shown("111100");
	choose(2, (double[]){1, 3, 6, 5, 4, 2});
	are_shown("011100");
	choose(2, (double[]){4, 3, 6, 5, 1, 2});
	are_shown("011100");
	choose(2, (double[]){0, 0, 1, 0, 0, 0});
	are_shown("001000");
	choose(0, (double[]){6, 5, 4, 3, 2, 1});
	are_shown("000000");
	check_no_leaks();
}

/* Equal scores do not make series change places. */
Test(totals, ties)
{
	choose(2, (double[]){1, 1, 1, 1, 1, 1});
	are_shown("110000");
	for (int i = 0; i < 3; i++)
		choose(2, (double[]){1, 1, 1, 1, 1, 1});
	are_shown("110000");
	check_no_leaks();
}

/* ---- counters ---- */

static struct totals totals;

static void scrape(const char *text, uint64_t start_ns, uint64_t events, uint64_t now_ns)
{
	struct snapshot *s = text ? snapshot_build(text) : NULL;

	totals_begin(&totals);
	if (s) {
		s->targets[0].start_ns = start_ns;
		s->targets[0].events = events;
		s->targets[0].traced_ns = 1;
		assert_ok(totals_add(&totals, s, now_ns));
	}
	totals_end(&totals, 2, now_ns);
}

static const struct total_function *function(const char *name)
{
	for (uint32_t i = 0; totals.n && i < totals.v[0].n; i++)
		if (strcmp(strtab_get(&totals.v[0].names, i), name) == 0)
			return &totals.v[0].functions[i];
	cr_assert_fail("%s", name);
	return NULL;
}

#define PROGRAM(calls, cpu)                                                                        \
	"target 42\nthread 42 43 worker\nmain app.py:1 1 1000\n  f app.py:10 " calls " " cpu "\n"

Test(totals, counters)
{
	scrape(PROGRAM("3", "2000"), 1, 10, CLOCK_NS_PER_S);
	cr_assert(function("app.py:10(f)")->calls == 3);
	cr_assert(function("app.py:10(f)")->self[SNAPSHOT_CPU] == 2000);
	scrape(PROGRAM("5", "2500"), 1, 20, 2 * CLOCK_NS_PER_S);
	cr_assert(function("app.py:10(f)")->calls == 5);
	cr_assert(function("app.py:10(f)")->self[SNAPSHOT_CPU] == 2500);
	cr_assert(function("app.py:1(main)")->calls == 1);
	/* figures that are corrected downwards do not make a counter fall */
	scrape(PROGRAM("5", "2400"), 1, 20, 3 * CLOCK_NS_PER_S);
	cr_assert(function("app.py:10(f)")->self[SNAPSHOT_CPU] == 2500);
	/* a clear: what there is since */
	scrape(PROGRAM("2", "100"), 1, 4, 4 * CLOCK_NS_PER_S);
	cr_assert(function("app.py:10(f)")->calls == 7);
	cr_assert(function("app.py:10(f)")->self[SNAPSHOT_CPU] == 2600);
	/* another attach */
	scrape(PROGRAM("2", "100"), 2, 4, 5 * CLOCK_NS_PER_S);
	cr_assert(totals.n == 1 && function("app.py:10(f)")->calls == 2);
	scrape(NULL, 0, 0, 6 * CLOCK_NS_PER_S);
	cr_assert(totals.n == 0, "it has ended");
	totals_deinit(&totals);
	check_no_leaks();
}

/* What was busy long ago does not hide what is busy now. */
Test(totals, recent)
{
	scrape(PROGRAM("1", "1000000"), 1, 10, CLOCK_NS_PER_S);
	scrape("target 42\nthread 42 43 worker\nmain app.py:1 1 1000\n  f app.py:10 1 1000000\n"
	       "  g app.py:20 1 1000\n  h app.py:30 1 1000\n  i app.py:40 1 1000\n",
	       1, 20, 7200 * CLOCK_NS_PER_S);
	cr_assert(function("app.py:20(g)")->score > function("app.py:10(f)")->score);
	cr_assert(function("app.py:20(g)")->shown && function("app.py:30(h)")->shown);
	cr_assert(!function("app.py:40(i)")->shown, "2 of them");
	totals_deinit(&totals);
	check_no_leaks();
}

Test(totals, memory_is_limited)
{
	totals.max = 1;
	scrape(PROGRAM("3", "2000"), 1, 10, CLOCK_NS_PER_S);
	cr_assert(totals.n == 0 && totals.skipped == 1);
	totals_deinit(&totals);
	check_no_leaks();
}

Test(totals, durations)
{
	struct snapshot *s = snapshot_build(PROGRAM("3", "2000"));
	struct histogram_sum some = {.n = {[80] = 3}, .count = 3};

	for (uint32_t i = 0; i < s->nfuncs; i++)
		assert_ok(snapshot_add_durations(s, &s->funcs[i], SNAPSHOT_WALL, &some, 1000));
	totals_begin(&totals);
	assert_ok(totals_add(&totals, s, 1));
	totals_end(&totals, 2, 1);
	some = (struct histogram_sum){0};
	histogram_add(&some, &function("app.py:10(f)")->durations[SNAPSHOT_WALL]);
	cr_assert(some.n[80] == 3 && some.count == 3 && totals.durations_bytes > 0);
	totals_deinit(&totals);
	check_no_leaks();
}
