// SPDX-License-Identifier: BSD-2-Clause
/* Callgrind's format: names, own costs, calls; totals that a reader finds again. */
#include <inttypes.h>

#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"

Test(callgrind, layout)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("main app.py:1 1 1000\n  f b.py:10 3 2000 2500\n");
	struct format_opts o = {0};
	_cleanup_free_ char *report = report_new("callgrind", s, &o, NULL);

	cr_assert(strncmp(report, "# callgrind format\nversion: 1\ncreator: pyprofd test\n", 51) ==
		  0);
	cr_assert(strstr(report, "\ndesc: command: python app.py\n"));
	cr_assert_str_eq(strstr(report, "positions:"),
			 "positions: line\n"
			 "event: Cpu : CPU time (ns)\n"
			 "event: Wall : Wall time (ns)\n"
			 "events: Cpu Wall\n"
			 "summary: 3000 3500\n"
			 "\n"
			 "fl=(1) app.py\nfn=(1) main:1\n1 1000 1000\n"
			 "\n"
			 "fl=(2) b.py\nfn=(2) f:10\n10 2000 2500\n"
			 "\n"
			 "fl=(1)\nfn=(1)\ncfi=(2)\ncfn=(2)\ncalls=3 10\n1 2000 2500\n"
			 "\n");
}

Test(callgrind, the_clock_asked_for_comes_first)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("main app.py:1 1 10 20\n");
	struct format_opts o = {.clock = SNAPSHOT_WALL};
	_cleanup_free_ char *report = report_new("callgrind", s, &o, NULL);

	cr_assert(strstr(report, "\nevents: Wall Cpu\nsummary: 20 10\n"));
	cr_assert(strstr(report, "\n1 20 10\n"));
}

/* Own costs follow fn=, inclusive ones calls=: a reader's totals are the view's. */
static void assert_adds_up(const char *report, const struct view *v)
{
	uint64_t self = 0, calls = 0, expected = 0, n, a, b;
	bool inclusive = false;

	for (const char *p = strstr(report, "\nsummary:") + 1; *p; p = strchr(p, '\n') + 1) {
		if (sscanf(p, "calls=%" SCNu64, &n) == 1) {
			calls += n;
			inclusive = true;
		} else if (sscanf(p, "%*d %" SCNu64 " %" SCNu64, &a, &b) == 2) {
			self += inclusive ? 0 : a;
			inclusive = false;
		}
	}
	for (size_t i = 0; i < v->nedges; i++)
		if (v->edges[i].caller != SNAPSHOT_NONE)
			expected += v->edges[i].ncalls;
	cr_assert_eq(calls, expected);
	cr_assert_eq(self, v->total[SNAPSHOT_CPU]);
}

Test(callgrind, totals_are_found_again)
{
	for (unsigned int seed = 1; seed <= 50; seed++) {
		_cleanup_(snapshot_freep) struct snapshot *s = snapshot_random(seed);
		_cleanup_(view_freep) struct view *v = NULL;
		struct format_opts o = {0};
		_cleanup_free_ char *report = report_new("callgrind", s, &o, NULL);

		assert_ok(view_build(s, &o.filter, &v));
		assert_adds_up(report, v);
	}
	check_no_leaks();
}

Test(callgrind, hostile_names_stay_on_their_line)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_hostile();
	_cleanup_(view_freep) struct view *v = NULL;
	struct format_opts o = {0};
	size_t size;
	_cleanup_free_ char *report = report_new("callgrind", s, &o, &size);

	cr_assert(report_harmless(report, size), "%s", report);
	assert_ok(view_build(s, &o.filter, &v));
	assert_adds_up(report, v);
	cr_assert(strstr(report, "\nfn=(1) two\\x0alines:0\n"));
}
