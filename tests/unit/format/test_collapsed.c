// SPDX-License-Identifier: BSD-2-Clause
/* Collapsed stacks: one line per context, times that add up, no frame split by its name. */
#include <inttypes.h>

#include "format/stacks.h"
#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"

/* Returns the part after the comments. */
static const char *stacks(const char *report)
{
	while (*report == '#')
		report = strchr(report, '\n') + 1;
	return report;
}

Test(collapsed, one_line_per_context_with_own_time)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("main app.py:1 1 1000\n  f b.py:10 3 0 2500\n    f b.py:10 2 500\n"
			       "thread 42 43 worker\nmain app.py:1 1 7\n");
	struct format_opts o = {0};
	_cleanup_free_ char *cpu = report_new("collapsed", s, &o, NULL);
	_cleanup_free_ char *wall = NULL, *one = NULL;

	cr_assert_str_eq(stacks(cpu),
			 "MainThread (42);main (app.py:1) 1000\n"
			 "MainThread (42);main (app.py:1);f (b.py:10);f (b.py:10) 500\n"
			 "worker (43);main (app.py:1) 7\n");
	o.clock = SNAPSHOT_WALL;
	wall = report_new("collapsed", s, &o, NULL);
	cr_assert(strstr(wall, "MainThread (42);main (app.py:1);f (b.py:10) 2500\n"));
	o.filter.tid = 43;
	one = report_new("collapsed", s, &o, NULL);
	cr_assert_str_eq(stacks(one), "worker (43);main (app.py:1) 7\n");
}

Test(collapsed, pseudo_functions_have_no_file)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("main app.py:1 1 5\n  (lost) app.py:3 1 7\n    f app.py:4 1 8\n");
	struct format_opts o = {0};
	_cleanup_free_ char *report = NULL;

	s->funcs[1].pseudo = true;
	report = report_new("collapsed", s, &o, NULL);
	cr_assert_str_eq(stacks(report), "MainThread (42);main (app.py:1) 5\n"
					 "MainThread (42);main (app.py:1);(lost) 7\n"
					 "MainThread (42);main (app.py:1);(lost);f (app.py:4) 8\n");
}

Test(collapsed, comments_are_no_stacks)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("target 42\n");
	struct format_opts o = {0};
	_cleanup_free_ char *report = NULL;

	s->targets[0].cmdline = "python -m app 8080";
	report = report_new("collapsed", s, &o, NULL);
	cr_assert(strstr(report, "# command: \"python -m app 8080\"\n"));
	for (const char *p = report; *p; p = strchr(p, '\n') + 1)
		cr_assert(*p == '#' && strchr(p, '\n')[-1] == '"', "%s", p);
}

Test(collapsed, several_processes_are_distinguished)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(
		"thread 42 42 Main\nmain a.py:1 1 5\nthread 77 77 Main\nmain a.py:1 1 6\n");
	struct format_opts o = {0};
	_cleanup_free_ char *report = report_new("collapsed", s, &o, NULL);

	cr_assert_str_eq(stacks(report), "process 42;Main (42);main (a.py:1) 5\n"
					 "process 77;Main (77);main (a.py:1) 6\n");
}

Test(collapsed, hostile_names_stay_one_frame)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_hostile();
	struct format_opts o = {0};
	size_t size, lines = 0, total = 0;
	_cleanup_free_ char *report = report_new("collapsed", s, &o, &size);

	cr_assert(report_harmless(report, size), "%s", report);
	for (const char *p = stacks(report); *p; p = strchr(p, '\n') + 1) {
		size_t frames = 1;

		for (const char *q = p; *q != '\n'; q++)
			frames += *q == ';';
		/* Each function calls the next one; the last two have the same caller. */
		lines++;
		cr_assert_eq(frames, lines == s->nfuncs ? lines : lines + 1);
	}
	cr_assert_eq(lines, s->nfuncs);
	for (uint32_t i = 0; i < s->nnodes; i++)
		total += s->nodes[i].self[SNAPSHOT_CPU];
	for (const char *p = stacks(report), *end; (end = strchr(p, '\n')); p = end + 1) {
		const char *blank = memrchr(p, ' ', (size_t)(end - p));

		total -= strtoull(blank + 1, NULL, 10);
	}
	cr_assert_eq(total, 0);
	free(TAKE_PTR(report));
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}

/* As in flamegraph.pl: lines that match are stacks, others are ignored. Prints sums by leaf. */
static const char *const script = "import collections, re, sys\n"
				  "sums = collections.Counter()\n"
				  "for line in open(sys.argv[1] + '/stacks', newline='\\n'):\n"
				  "    m = re.match(r'^(.*)\\s+?(\\d+(?:\\.\\d*)?)$', line)\n"
				  "    if line.startswith('#'):\n"
				  "        assert not m, line\n"
				  "        continue\n"
				  "    frames = m.group(1).split(';')\n"
				  "    assert len(frames) > 1\n"
				  "    sums[frames[-1]] += int(m.group(2))\n"
				  "print(sum(sums.values()), len(sums))\n";

static void check(const struct snapshot *s, const struct format_opts *o, size_t leaves)
{
	_cleanup_(view_freep) struct view *v = NULL;
	uint64_t total = 0;
	char *out;
	size_t n = 0;

	assert_ok(view_build(s, &o->filter, &v));
	out = report_read("collapsed", s, o, "stacks", script, NULL);
	cr_assert(sscanf(out, "%" SCNu64 " %zu", &total, &n) == 2, "%s", out);
	cr_assert_eq(total, v->total[o->clock], "%s", out);
	cr_assert(!leaves || n == leaves, "%s", out);
	free(out);
}

Test(collapsed, self_times_sum_up)
{
	for (unsigned int seed = 1; seed <= 5; seed++) {
		_cleanup_(snapshot_freep) struct snapshot *s = snapshot_random(seed);
		struct format_opts o = {.clock = seed % 2 ? SNAPSHOT_CPU : SNAPSHOT_WALL,
					.filter.tid = seed == 3 ? 42 : 0};

		check(s, &o, 0);
	}
	check_no_leaks();
}

/* If a recursion is too deep to be written completely, the middle is left out. */
Test(collapsed, deep_stacks_lose_their_middle)
{
	struct snapshot_builder *b = snapshot_builder_new();
	uint32_t deep = snapshot_builder_func(b, "a.py", 9, "deep", NULL);
	uint32_t node = snapshot_builder_thread(b, 42, 42, "main");
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	struct format_opts o = {0};
	const char *p;
	char *report;
	size_t size;

	for (int i = 0; i < 10 * STACKS_MAX_FRAMES; i++)
		node = snapshot_builder_node(b, node, deep, 1, 10, 10, 0);
	s = snapshot_builder_finish(b);
	report = report_new("collapsed", s, &o, &size);
	cr_assert(strstr(report, ";(frames left out);"));
	/* all that are whole, and the first that is not */
	p = stacks(report);
	for (size_t line = 1; line <= STACKS_MAX_FRAMES + 1; line++, p++) {
		size_t frames = 0, left_out = 0;

		for (; *p != '\n'; p++) {
			frames += *p == ';';
			left_out = strncmp(p, ";(frames", 8) == 0 ? frames : left_out;
		}
		cr_assert_eq(frames, line <= STACKS_MAX_FRAMES ? line : STACKS_MAX_FRAMES);
		cr_assert_eq(left_out, line <= STACKS_MAX_FRAMES ? 0 : STACKS_MAX_FRAMES / 2 + 1);
	}
	cr_assert(size < 10 * STACKS_MAX_FRAMES * STACKS_MAX_FRAMES * sizeof(";deep (a.py:9)"));
	check(s, &o, 1);
	free(report);
	snapshot_free(TAKE_PTR(s));
	check_no_leaks();
}
