// SPDX-License-Identifier: BSD-2-Clause
/* The provenance in four lines. */
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
	t->windows = (struct snapshot_windows){
		.sampled = true, .max_overhead = 5, .n = 9, .seen_cpu_ns = 1, .all_cpu_ns = 4};
	l = lines_of(s, &(struct format_opts){0});
	assert_line(&l, "ESTIMATE|mode trace: figures are estimates from 9 windows, 25.0% of CPU "
			"time; CPU times estimated by 100 samples\n");
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
