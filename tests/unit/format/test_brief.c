// SPDX-License-Identifier: BSD-2-Clause
/* The provenance in a few lines. */
#include "format/brief.h"

#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"

static const char *const example = "target 42\n"
				   "thread 42 42 Main\n"
				   "main app.py:1 1 1000000\n";

struct lines {
	size_t n;
	char text[4096];
};

static void add_line(void *ctx, const char *label, const char *value)
{
	struct lines *l = ctx;
	size_t n = strlen(l->text);

	l->n++;
	snprintf(l->text + n, sizeof(l->text) - n, "%s|%s\n", label, value);
}

static struct lines lines_of(const struct snapshot *s, const struct format_opts *o)
{
	struct lines l = {0};

	assert_ok(brief_lines(s, o, add_line, &l));
	cr_assert(l.n <= BRIEF_LINES, "%zu lines:\n%s", l.n, l.text);
	return l;
}

static void assert_line(const struct lines *l, const char *line)
{
	cr_assert(strstr(l->text, line), "'%s' is missing in:\n%s", line, l->text);
}

Test(brief, one_exact_target)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example);
	struct lines l;

	s->targets[0].cost.known = s->targets[0].corrected = true;
	l = lines_of(s, &(struct format_opts){0});
	cr_assert_str_eq(l.text,
			 "process|42 python app.py (Python 3.13.0, testhost)\n"
			 "recorded|10.000 seconds until 2023-11-14 22:13:30 UTC; CPU time\n"
			 "result|mode trace: exact counts: 1234 calls and returns, none lost; "
			 "the probes' own time is subtracted\n");
}

/* That of all selected targets together; none if it is unknown. */
Test(brief, overhead)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("target 7\nthread 7 7 Main\nmain app.py:1 1 1\n"
			       "target 8\nthread 8 8 Main\nmain app.py:1 1 1\n");
	struct format_opts o = {0};
	struct lines l;

	s->targets[0].overhead_ns = 40000000;
	s->targets[0].own_cpu_ns = 800000000;
	s->targets[1].overhead_ns = 500000000;
	s->targets[1].own_cpu_ns = 199200000000;
	s->targets[0].warnings = "odd";
	l = lines_of(s, &o);
	assert_line(&l,
		    "\noverhead|0.3 % of the processes' own CPU time (0.54 s of 200 s)\nWARNING|");
	o.filter.pid = 7;
	l = lines_of(s, &o);
	assert_line(&l, "\noverhead|5.0 % of the process's own CPU time (0.040 s of 0.80 s)\n");
	s->targets[0].own_cpu_ns = 0;
	l = lines_of(s, &o);
	cr_assert(!strstr(l.text, "overhead"), "%s", l.text);
}

Test(brief, losses_and_warnings)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example);
	struct lines l;

	s->targets[0].losses[PYP_LOSS_lost_events] = 17;
	s->targets[0].warnings = "a tool is active";
	s->targets[0].windows.failed = 2;
	l = lines_of(s, &(struct format_opts){.clock = SNAPSHOT_WALL});
	cr_assert_eq(l.n, 4);
	assert_line(&l, "UTC; wall time, waiting included\n");
	assert_line(&l, "LOST|mode trace: 17 of 1251 events lost, counts are lower bounds; times "
			"include the probes' own\n");
	assert_line(&l,
		    "WARNING|a tool is active; 2 windows failed to open; the probes' cost could "
		    "not be measured\n");
	cr_assert(!strstr(l.text, "exact"));
	s->targets[0].losses[PYP_LOSS_lost_events] = 0;
	s->targets[0].truncated = 1;
	l = lines_of(s, &(struct format_opts){0});
	assert_line(&l, "INCOMPLETE|mode trace: INCOMPLETE");
}

Test(brief, modes)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example);
	struct snapshot_target *t = &s->targets[0];
	struct lines l;

	t->mode = MODE_COUNT;
	l = lines_of(s, &(struct format_opts){0});
	assert_line(&l, "UTC\nresult|mode count: exact counts: 1234 calls, none lost; no times\n");
	t->mode = MODE_SAMPLE;
	t->events = 0;
	t->estimate = (struct snapshot_estimate){.rate = 99, .period_ns = 10101010, .samples = 100};
	l = lines_of(s, &(struct format_opts){0});
	assert_line(&l, "ESTIMATE|mode sample at 99 Hz: no counts, no waiting; CPU times from 100 "
			"samples, error 10.0% of the sum\n");
	t->waits.walked = true;
	t->waits.walks = 12;
	l = lines_of(s, &(struct format_opts){0});
	assert_line(&l,
		    "ESTIMATE|mode sample at 99 Hz: no counts; CPU times from 100 samples, error "
		    "10.0% of the sum; waiting by function from 12 stacks\n");
	t->waits.walked = false;
	t->mode = MODE_TRACE;
	t->corrected = t->cost.known = true;
	t->windows = (struct snapshot_windows){.sampled = true,
					       .max_overhead = 5,
					       .n = 9,
					       .seen_cpu_ns = 1,
					       .all_cpu_ns = 4,
					       .span_ns = 61000000000};
	l = lines_of(s, &(struct format_opts){0});
	assert_line(&l, "recorded|61.000 seconds until ");
	assert_line(&l, "ESTIMATE|mode trace, at most about 5 % overhead: counts estimated from 9 "
			"windows, 25.0% of CPU time; CPU times from 100 samples, error 10.0% of "
			"the sum\n");
	t->windows.n = 1;
	l = lines_of(s, &(struct format_opts){0});
	assert_line(&l, "from 1 window, 25.0%");
	t->windows.n = 0;
	l = lines_of(s, &(struct format_opts){0});
	assert_line(&l, "% overhead: counts unknown, as there was no window; CPU times from 100 ");
	t->windows = (struct snapshot_windows){.max_overhead = 10};
	t->waits.walked = true;
	t->waits.walks = 0;
	t->events = 1234;
	l = lines_of(s, &(struct format_opts){0});
	assert_line(&l, "result|mode trace, at most about 10 % overhead: exact counts: 1234 calls "
			"and returns, none lost; CPU times estimated by 100 samples\n");
}

/* Numbers are the sums over the selected targets, times the longest and the latest. */
Test(brief, sums)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("target 1\ntarget 2\ntarget 3\n");
	struct snapshot_target *t = s->targets;
	struct lines l;

	for (uint32_t i = 0; i < 2; i++) {
		t[i].children = (struct snapshot_children){
			.over_limit = 1, .ended_first = 20, .failed = 300};
		t[i].windows = (struct snapshot_windows){
			.sampled = true, .n = 4, .seen_cpu_ns = 1, .all_cpu_ns = 4, .failed = 2};
		t[i].estimate.samples = 50;
		t[i].losses[PYP_LOSS_lost_events] = 3;
		t[i].losses[PYP_LOSS_fault_frame] = 30;
		t[i].waits.walks = 7;
		t[i].cost.known = t[i].corrected = true;
	}
	t[1].waits.walked = true;
	t[1].traced_ns *= 2;
	t[1].end_unix_ns += 1000000000;
	t[2].cost.known = t[2].corrected = true;
	t[2].since = true;
	l = lines_of(s, &(struct format_opts){0});
	assert_line(&l, "recorded|20.000 seconds until 2023-11-14 22:13:31 UTC; CPU time\n");
	assert_line(&l,
		    "LOST|mode trace: 66 of 3768 events lost, counts are lower bounds; CPU "
		    "times from 100 samples, error 10.0% of the sum; waiting by function from 14 "
		    "stacks\n");
	assert_line(&l, "WARNING|642 children were not traced; 4 windows failed to open\n");
	for (uint32_t i = 0; i < 2; i++)
		t[i].losses[PYP_LOSS_lost_events] = t[i].losses[PYP_LOSS_fault_frame] = 0;
	l = lines_of(s, &(struct format_opts){0});
	assert_line(&l, "ESTIMATE|mode trace: counts estimated from 8 windows, 25.0% of CPU time; "
			"CPU times from 100 samples, error 10.0% of the sum; ");
	t[1].windows.all_cpu_ns = t[0].windows.all_cpu_ns = 0;
	l = lines_of(s, &(struct format_opts){0});
	assert_line(&l, " from 8 windows, 100.0% of CPU time;");
	l = lines_of(s, &(struct format_opts){.filter = {.pid = 3}});
	assert_line(&l, "recorded|10.000 seconds since the last snapshot until 2023-11-14 22:13:30 "
			"UTC; CPU time\n"
			"result|mode trace: exact counts: 1234 calls and returns, none lost; the "
			"probes' own time is subtracted\n");
	cr_assert_eq(l.n, 3);
	t[1].corrected = false;
	l = lines_of(s, &(struct format_opts){0});
	assert_line(&l, "; CPU times from 100 samples, ");
	t[2].corrected = false;
	l = lines_of(s, &(struct format_opts){0});
	assert_line(&l, "; times include the probes' own; waiting");
}

/* What was left out of the figures is said; so is what is unknown. */
Test(brief, the_figures)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example);
	struct snapshot_target *t = &s->targets[0];
	struct lines l;

	s->busy = s->folded = true;
	s->builtins_of = "app";
	t->events = 0;
	t->cost.known = true;
	t->end_unix_ns = 0;
	t->python_version = "";
	s->host = NULL;
	l = lines_of(s, &(struct format_opts){0});
	cr_assert_str_eq(
		l.text, "process|42 python app.py (Python unknown, unknown)\n"
			"recorded|10.000 seconds; CPU time; waits for work are left out; libraries "
			"are folded into their callers; C functions other than 'app' are folded "
			"into their callers\n"
			"result|mode trace: no calls recorded\n");
	t->mode = MODE_COUNT;
	t->events = 5;
	t->waits.walked = true;
	l = lines_of(s, &(struct format_opts){.clock = SNAPSHOT_WALL});
	assert_line(&l, "recorded|10.000 seconds; waits for work");
	assert_line(&l,
		    "result|mode count: exact counts: 5 calls, none lost; no CPU times; waiting "
		    "by function from 0 stacks\n");
	t->estimate.rate = 99;
	t->estimate.samples = 25;
	l = lines_of(s, &(struct format_opts){0});
	assert_line(&l, "recorded|10.000 seconds; CPU time;");
	assert_line(&l, "result|mode count and sample: exact counts: 5 calls, none lost; CPU times "
			"from 25 samples, error 20.0% of the sum; waiting");
	t->mode = MODE_SAMPLE;
	t->losses[PYP_LOSS_lost_events] = 4;
	l = lines_of(s, &(struct format_opts){0});
	assert_line(&l, "LOST|mode sample: 4 samples also lost; CPU times from 25 samples");
}

Test(brief, one_thread)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("target 42\nthread 42 42 Main\nthread 42 43 worker\n");
	struct lines l = lines_of(s, &(struct format_opts){.filter = {.tid = 43}});

	assert_line(&l, "process|42 python app.py, only thread 43 (worker) (Python 3.13.0, ");
	s->threads[0].name = "";
	l = lines_of(s, &(struct format_opts){.filter = {.tid = 42}});
	assert_line(&l, "process|42 python app.py, only thread 42 (unknown) (");
	l = lines_of(s, &(struct format_opts){.filter = {.tid = 44}});
	cr_assert_eq(l.n, 0);
}

static const char *const unrelated = "different commands";

/* A forked process is of its founder's command, if that is selected. */
Test(brief, commands_of_forked_processes)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("target 100\nthread 100 7 a\ntarget 101\nthread 101 7 b\n"
			       "target 102\nthread 102 8 c\ntarget 103\nthread 103 9 d\n");
	const struct format_opts all = {0}, two = {.filter = {.tid = 7}};
	static const char *const names[] = {"a", "b", "c", "d"};
	struct snapshot_target *t = s->targets;
	struct lines l;

	for (uint32_t i = 0; i < 4; i++)
		t[i].cmdline = names[i];
	l = lines_of(s, &all);
	assert_line(&l, "WARNING|processes of 4 different commands are added up (--pid");
	/* d was forked by c, and so on */
	for (uint32_t i = 0; i < 3; i++)
		t[i + 1].parent = t[i].pid;
	l = lines_of(s, &all);
	cr_assert_null(strstr(l.text, unrelated), "%s", l.text);
	/* the other way round */
	t[0].parent = 101, t[1].parent = 102, t[2].parent = 103, t[3].parent = 0;
	l = lines_of(s, &all);
	cr_assert_null(strstr(l.text, unrelated), "%s", l.text);
	/* a's is not there */
	t[0].parent = 999, t[1].parent = 0, t[2].parent = 101, t[3].parent = 101;
	l = lines_of(s, &all);
	assert_line(&l, "WARNING|processes of 2 different commands");
	/* c is not selected */
	t[0].parent = t[2].parent = 0, t[0].cmdline = "b", t[1].parent = 102;
	l = lines_of(s, &two);
	assert_line(&l, "process|2 processes: b: 100; 101, only thread 7 (a) (");
	cr_assert_null(strstr(l.text, unrelated), "%s", l.text);
	/* as no process can */
	t[1].parent = 102, t[2].parent = 101;
	l = lines_of(s, &all);
	assert_line(&l, unrelated);
}

/* Processes that have ended are folded into one without a pid; it is no one's parent. */
Test(brief, ended_processes)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("target 100\ntarget 101\ntarget 7\n");
	struct snapshot_target *t = s->targets;
	struct lines l;

	t[0].cmdline = "a";
	t[1].cmdline = "b";
	t[2].pid = 0;
	t[2].folded = 12;
	l = lines_of(s, &(struct format_opts){0});
	assert_line(&l, "process|3 processes: 100 a; 101 b; 12 ended python app.py (");
	assert_line(&l, "WARNING|processes of 2 different commands are added up (--pid");
	t[0].cmdline = t[1].cmdline = NULL;
	t[2].cmdline = "";
	t[2].folded = 0;
	l = lines_of(s, &(struct format_opts){0});
	assert_line(&l, "process|3 processes: unknown: 100; 101;  (");
	cr_assert_null(strstr(l.text, unrelated), "%s", l.text);
}

Test(brief, many_commands)
{
	struct snapshot_target targets[33];
	struct snapshot s = {.targets = targets, .ntargets = 33};
	char names[33][16];
	struct lines l;

	for (uint32_t i = 0; i < 33; i++) {
		snprintf(names[i], sizeof(names[i]), "%u", i);
		targets[i] = (struct snapshot_target){.pid = i + 1, .cmdline = names[i]};
	}
	s.ntargets = 31;
	l = lines_of(&s, &(struct format_opts){0});
	assert_line(&l, "WARNING|processes of 31 different commands are");
	s.ntargets = 33;
	l = lines_of(&s, &(struct format_opts){0});
	assert_line(&l, "WARNING|processes of 32 or more different commands are");
}

/* However many targets there are, there are four lines. */
Test(brief, many_targets)
{
	struct snapshot_builder *b = snapshot_builder_new();
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	struct lines l;

	for (uint32_t pid = 100; pid < 108; pid++)
		snapshot_builder_target(b, pid);
	s = snapshot_builder_finish(b);
	s->ntargets = 6;
	l = lines_of(s, &(struct format_opts){0});
	assert_line(&l, "process|6 processes: python app.py: 100; 101; 102; 103; 104; 105 (");
	s->ntargets = 8;
	for (uint32_t i = 0; i < s->ntargets; i++) {
		char text[32];

		snprintf(text, sizeof(text), "warning %u", i < 2 ? 0 : i);
		s->targets[i].warnings = snapshot_str(s, text);
	}
	l = lines_of(s, &(struct format_opts){0});
	assert_line(&l, "process|8 processes: python app.py: 100; 101; 102; 103; 104; 105; ... "
			"(Python 3.13.0, testhost)\n");
	assert_line(&l, "WARNING|warning 0; warning 2; warning 3; ");
	assert_line(&l, "; 4 more (--verbose)\n");
	s->targets[3].cmdline = "other";
	l = lines_of(s, &(struct format_opts){0});
	assert_line(&l, "8 processes: 100 python app.py; 101 python app.py; 102 python app.py; "
			"103 other; ");
	assert_line(&l, "WARNING|processes of 2 different commands are added up (--pid selects "
			"one); warning 0; ");
	s->targets[3].parent = 100;
	l = lines_of(s, &(struct format_opts){0});
	cr_assert(!strstr(l.text, "different commands"), "%s", l.text);
	l = lines_of(s, &(struct format_opts){.filter = {.pid = 103}});
	assert_line(&l, "process|103 other (");
	check_no_leaks();
}

/* Commands are cut to its width, a file's are not. */
Test(brief, width)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build(example);
	struct format_opts o = {.width = 100};
	_cleanup_free_ char *cut = NULL, *whole = NULL;
	char command[300];

	memset(command, 'x', sizeof(command) - 1);
	command[sizeof(command) - 1] = '\0';
	s->targets[0].cmdline = command;
	cut = report_new("text", s, &o, NULL);
	o.width = 0;
	whole = report_new("text", s, &o, NULL);
	cr_assert(!strstr(cut, command) && strstr(whole, command));
	cr_assert_eq(strchr(strstr(cut, "   process"), '\n') - strstr(cut, "   process"), 100);
	cr_assert(strstr(cut, "times include the probes' own\n"), "exactness is not cut: %s", cut);
}
