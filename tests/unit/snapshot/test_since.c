// SPDX-License-Identifier: BSD-2-Clause
/* Intervals between snapshots: the figures of the first and of the interval add up to the second's. */
#include "snapshot/since.h"

#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"
#include "snapshot/merge.h"
#include "stats/view.h"

static const char *const early = "target 42\n"
				 "thread 42 42 MainThread\n"
				 "main app.py:1 1 100 200\n"
				 "  f app.py:2 3 30 40\n"
				 "thread 42 43 worker\n"
				 "run lib.py:1 0 5 5 1\n";

/* The worker has ended and was folded; a function and a target are new. */
static const char *const late = "target 42\n"
				"thread 42 42 MainThread\n"
				"main app.py:1 1 150 300\n"
				"  f app.py:2 7 70 90\n"
				"  g app.py:3 2 9 9\n"
				"thread 42 0 ended\n"
				"run lib.py:1 4 45 45\n"
				"target 50\n"
				"thread 50 50 MainThread\n"
				"main app.py:1 1 1000 1000\n";

static const struct view_row *row_of(const struct view *v, const char *name)
{
	for (size_t i = 0; i < v->nrows; i++)
		if (strcmp(v->snapshot->funcs[v->rows[i].func].name, name) == 0)
			return &v->rows[i];
	return NULL;
}

static void check_row(const struct view *v, const char *name, uint64_t calls, uint64_t cpu,
		      uint64_t wall)
{
	const struct view_row *r = row_of(v, name);

	cr_assert(r && r->ncalls == calls && r->tot[SNAPSHOT_CPU] == cpu &&
			  r->tot[SNAPSHOT_WALL] == wall,
		  "%s: %lu calls, %lu, %lu ns", name, r ? r->ncalls : 0,
		  r ? r->tot[SNAPSHOT_CPU] : 0, r ? r->tot[SNAPSHOT_WALL] : 0);
}

static struct snapshot *build_late(void)
{
	struct snapshot *s = snapshot_build(late);

	s->threads[1].folded = 5;
	s->threads[1].entry = "run";
	s->targets[0].events = 2000;
	s->targets[0].traced_ns += 5000000000;
	s->targets[0].end_unix_ns += 5000000000;
	s->targets[0].losses[PYP_LOSS_lost_events] = 12;
	return s;
}

/* Of each context, k of what is beside times, all of which is 8 ns long; and of each thread, k ns. */
static void give_more(struct snapshot *s, uint64_t k)
{
	assert_ok(snapshot_reserve_columns(
		s, COLUMN_BIT(COLUMN_vcsw) | COLUMN_BIT(COLUMN_live) | COLUMN_BIT(COLUMN_rbytes),
		s->nnodes));
	if (k == 1)
		s->columns[COLUMN_rbytes] = NULL;
	for (uint32_t i = 0; i < s->nnodes; i++) {
		s->nodes[i].yields = s->columns[COLUMN_vcsw][i] = s->columns[COLUMN_live][i] = k;
		if (s->columns[COLUMN_rbytes])
			s->columns[COLUMN_rbytes][i] = k;
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
			s->nodes[i].min[c] = s->nodes[i].max[c] = 8;
	}
	for (uint32_t i = 0; i < s->nthreads; i++)
		s->threads[i].total[0] = s->threads[i].total[1] = k;
}

/* Context 1, main of process 42, has been there before; 3, g, is new. */
static void check_more(const struct snapshot *s)
{
	cr_assert(s->nodes[1].yields == 9 && s->nodes[3].yields == 10);
	cr_assert(snapshot_figure(s, COLUMN_vcsw, 1) == 9 &&
		  snapshot_figure(s, COLUMN_vcsw, 3) == 10);
	cr_assert_eq(snapshot_figure(s, COLUMN_live, 1), 10, "what is there now");
	cr_assert_eq(snapshot_figure(s, COLUMN_rbytes, 1), 10, "not counted before");
	cr_assert(s->nodes[1].min[1] == UINT64_MAX && s->nodes[1].max[1] == 0);
	cr_assert(s->nodes[3].min[1] == 8 && s->nodes[3].max[1] == 8);
	cr_assert(s->threads[0].total[0] == 9 && s->threads[1].total[1] == 9);
	cr_assert_eq(s->threads[2].total[0], 10, "of another process");
	cr_assert(s->funcs[0].variance[SNAPSHOT_CALLS] == -1 &&
		  s->funcs[s->nodes[3].func].variance[SNAPSHOT_CALLS] == 0);
}

Test(since, interval)
{
	_cleanup_(snapshot_freep) struct snapshot *a = snapshot_build(early), *b = build_late();
	const struct view_filter one = {.pid = 42}, other = {.pid = 50};
	_cleanup_(view_freep) struct view *v = NULL, *w = NULL;

	a->targets[0].losses[PYP_LOSS_lost_events] = 10;
	a->targets[0].overhead_ns = 30;
	a->targets[0].own_cpu_ns = 300;
	b->targets[0].overhead_ns = 50;
	b->targets[0].own_cpu_ns = 900;
	give_more(a, 1);
	give_more(b, 10);
	assert_ok(snapshot_subtract(b, a));
	cr_assert(snapshot_valid(b));
	cr_assert(b->targets[0].overhead_ns == 20 && b->targets[0].own_cpu_ns == 600);
	check_more(b);
	assert_ok(view_build(b, &one, &v));
	check_row(v, "main", 0, 50, 100);
	check_row(v, "f", 4, 40, 50);
	check_row(v, "g", 2, 9, 9);
	check_row(v, "run", 4, 40, 40);
	cr_assert(b->targets[0].since && b->targets[0].events == 2000 - 1234);
	cr_assert_eq(b->targets[0].traced_ns, 5000000000);
	cr_assert_eq(b->targets[0].start_unix_ns, a->targets[0].end_unix_ns);
	cr_assert_eq(b->targets[0].losses[PYP_LOSS_lost_events], 2);
	assert_ok(view_build(b, &other, &w));
	check_row(w, "main", 1, 1000, 1000);
	cr_assert(!b->targets[1].since, "it was attached after the first snapshot");
}

/* Estimates may become smaller, and the earlier snapshot may have none. */
Test(since, what_is_not_exact)
{
	_cleanup_(snapshot_freep) struct snapshot *a = snapshot_build(early), *b = build_late(),
						  *copy = NULL;

	a->rest = snapshot_alloc(a, a->nnodes, sizeof(*a->rest));
	b->rest = snapshot_alloc(b, b->nnodes, sizeof(*b->rest));
	a->rest[1] = (struct snapshot_rest){10, 2, 30};
	b->rest[1] = (struct snapshot_rest){15, 1, 90};
	b->rest[3] = (struct snapshot_rest){1, 1, 1};
	copy = snapshot_copy(b);
	cr_assert_eq(memcmp(copy->rest, b->rest, b->nnodes * sizeof(*b->rest)), 0);
	assert_ok(snapshot_subtract(copy, a));
	cr_assert(copy->rest[1].calls == 5 && copy->rest[1].yields == 0 && copy->rest[1].cpu == 60);
	cr_assert_eq(copy->rest[3].calls, 1);
	a->rest = NULL;
	assert_ok(snapshot_subtract(b, a));
	cr_assert_eq(b->rest[1].calls, 15);
	snapshot_free(TAKE_PTR(a));
	snapshot_free(TAKE_PTR(b));
	snapshot_free(TAKE_PTR(copy));
	check_no_leaks();
}

Test(since, whole_calls)
{
	_cleanup_(snapshot_freep) struct snapshot *a = snapshot_build(early), *b = build_late(),
						  *copy = NULL;

	a->wholes = snapshot_alloc(a, a->nnodes, sizeof(*a->wholes));
	b->wholes = snapshot_alloc(b, b->nnodes, sizeof(*b->wholes));
	a->wholes[1] = (struct snapshot_whole){1, 2, 3, 4, 5};
	b->wholes[1] = (struct snapshot_whole){10, 20, 30, 40, 4.999};
	b->wholes[3] = (struct snapshot_whole){1, 1, 1, 1, 1};
	copy = snapshot_copy(b);
	cr_assert_eq(memcmp(copy->wholes, b->wholes, b->nnodes * sizeof(*b->wholes)), 0);
	assert_ok(snapshot_subtract(copy, a));
	cr_assert(copy->wholes[1].x == 9 && copy->wholes[1].y == 18 && copy->wholes[1].x2 == 27);
	cr_assert(copy->wholes[1].xy == 36 && copy->wholes[1].y2 == 0);
	cr_assert_eq(copy->wholes[3].x, 1);
	a->wholes = NULL;
	assert_ok(snapshot_subtract(b, a));
	cr_assert_eq(b->wholes[1].x, 10);
	snapshot_free(TAKE_PTR(a));
	snapshot_free(TAKE_PTR(b));
	snapshot_free(TAKE_PTR(copy));
	check_no_leaks();
}

/* Nothing is subtracted from targets that were cleared or attached again. */
Test(since, other_recordings_keep_their_figures)
{
	for (int way = 0; way < 3; way++) {
		_cleanup_(snapshot_freep) struct snapshot *a = snapshot_build(early),
							  *b = build_late();
		_cleanup_(view_freep) struct view *v = NULL;

		if (way == 0)
			b->targets[0].start_ns++;
		else if (way == 1)
			b->targets[0].events = 3;
		else
			b->targets[0].traced_ns = a->targets[0].traced_ns - 1;
		assert_ok(snapshot_subtract(b, a));
		assert_ok(view_build(b, NULL, &v));
		check_row(v, "f", 7, 70, 90);
		check_row(v, "run", 4, 45, 45);
		cr_assert(!b->targets[0].since && b->threads[1].root);
	}
	check_no_leaks();
}

Test(since, coroutines_and_gil)
{
	_cleanup_(snapshot_freep) struct snapshot *a = snapshot_build(early), *b = build_late();
	struct snapshot_coro c = {.pid = 42, .func = 1, .kind = SNAPSHOT_COROUTINE};
	struct snapshot_gil_pair pair = {.pid = 42, .holder = 0, .waiter = 1, .ns = 100};
	struct snapshot_coro *d;

	c.started = 5, c.ended = 3, c.steps = 20, c.lifetimes = 3, c.total = 30, c.max = 20;
	a->coros = &c;
	a->gil_pairs = &pair;
	b->coros = snapshot_alloc(b, 1, sizeof(c));
	b->gil_pairs = snapshot_alloc(b, 2, sizeof(pair));
	d = b->coros;
	*d = c;
	d->started = 9, d->ended = 8, d->steps = 50, d->lifetimes = 8, d->total = 90;
	b->gil_pairs[0] = pair;
	b->gil_pairs[1] = (struct snapshot_gil_pair){.pid = 42, .holder = 1, .waiter = 0, .ns = 7};
	a->ncoros = a->ngil_pairs = b->ncoros = 1;
	b->ngil_pairs = 2;
	assert_ok(snapshot_subtract(b, a));
	cr_assert(d->started == 4 && d->ended == 5 && d->steps == 30 && d->lifetimes == 5);
	cr_assert(d->partial == 2, "two were open");
	cr_assert(d->total == 60 && d->max == SNAPSHOT_MIN_UNKNOWN);
	cr_assert(b->ngil_pairs == 1 && b->gil_pairs[0].ns == 7);
}

/* Pairs are sorted within a process, and what is 0 is left out; 50 was not there before. */
Test(since, several_pairs_and_coroutines)
{
	static const uint64_t want[] = {90, 79, 5, 6, 5};
	_cleanup_(snapshot_freep) struct snapshot *a = snapshot_build(early), *b = build_late();
	struct snapshot_gil_pair old[] = {{42, 0, 1, 95},
					  {42, SNAPSHOT_NONE, 0, 1},
					  {50, 0, 1, 5},
					  {42, 2, SNAPSHOT_NONE, 7}};
	struct snapshot_gil_pair pairs[] = {
		{42, 0, 1, 100},	   {42, 1, 0, 90}, {42, SNAPSHOT_NONE, 0, 80},
		{42, 3, SNAPSHOT_NONE, 7}, {50, 0, 1, 5},  {50, 1, 0, 6}};
	struct snapshot_coro begun[] = {{.pid = 42, .func = 1, .kind = SNAPSHOT_GENERATOR},
					{.pid = 50, .func = 1, .kind = SNAPSHOT_COROUTINE}};
	struct snapshot_coro coros[] = {{.pid = 42, .func = 1, .kind = SNAPSHOT_COROUTINE},
					{.pid = 42, .func = 0, .kind = SNAPSHOT_GENERATOR},
					{.pid = 50, .func = 1, .kind = SNAPSHOT_GENERATOR},
					{.pid = 42, .func = 1, .kind = SNAPSHOT_GENERATOR},
					{.pid = 50, .func = 1, .kind = SNAPSHOT_COROUTINE}};

	cr_assert_str_eq(a->funcs[2].name, b->funcs[3].name);
	begun[0].started = 1, begun[0].partial = 2, begun[0].ended = 4, begun[0].suspended = 3;
	begun[0].running[0] = 4, begun[0].running[1] = 5;
	begun[1].started = 1;
	for (int i = 0; i < 5; i++) {
		coros[i].started = coros[i].partial = coros[i].ended = coros[i].suspended = 10;
		coros[i].running[0] = coros[i].running[1] = 10;
	}
	a->coros = begun;
	a->ncoros = 2;
	a->gil_pairs = old;
	a->ngil_pairs = 4;
	b->coros = coros;
	b->ncoros = 5;
	b->gil_pairs = pairs;
	b->ngil_pairs = 6;
	assert_ok(snapshot_subtract(b, a));
	cr_assert_eq(b->ngil_pairs, 5);
	for (uint32_t i = 0; i < 5; i++)
		cr_assert(pairs[i].ns == want[i] && pairs[i].pid == (i < 3 ? 42 : 50), "%u", i);
	for (int i = 0; i < 5; i++)
		cr_assert_eq(coros[i].started, i == 3 ? 9 : 10, "%d", i);
	cr_assert(coros[3].partial == 8 && coros[3].ended == 6, "more have ended than were seen");
	cr_assert(coros[3].suspended == 7 && coros[3].running[0] == 6 && coros[3].running[1] == 5);
}

/* A row of ended threads, by the name of the function that they ran; NULL: not folded. */
static void set_row(struct snapshot_thread *t, const char *entry)
{
	t->total[0] = t->total[1] = 100;
	t->folded = entry != NULL;
	t->entry = entry && *entry ? entry : NULL;
}

/* Returns the row from which an ended thread, which has used 7 ns, is subtracted; -1: none. */
static int row_that_shrinks(const char *first, const char *second, uint32_t pid)
{
	struct snapshot *a = snapshot_build("target 50\ntarget 42\nthread 42 43 worker\n"
					    "boot lib.py:9 1 1 1\n  run lib.py:1 1 5 5\n");
	struct snapshot *b = snapshot_build("target 50\ntarget 42\n"
					    "thread 42 0 a\nrun lib.py:1 4 45 45\n"
					    "thread 42 0 b\nboot lib.py:9 2 20 20\n"
					    "  run lib.py:1 3 30 30\n");
	int ret = -1;

	a->funcs[1].qualname = b->funcs[0].qualname = "C.run";
	a->threads[0].total[0] = a->threads[0].total[1] = 7;
	set_row(&b->threads[0], first);
	set_row(&b->threads[1], second);
	b->threads[1].pid = pid;
	assert_ok(snapshot_subtract(b, a));
	for (int i = 0; i < 2; i++)
		if (b->threads[i].total[1] == 93)
			ret = i;
	cr_assert_eq(b->nodes[b->nnodes - 1].calls, ret == 1 ? 2 : 3);
	snapshot_free(a);
	snapshot_free(b);
	return ret;
}

/* The row of its function's name, or of its qualified name, else the one of all others. */
Test(since, rows_of_ended_threads)
{
	cr_assert_eq(row_that_shrinks("", "C.run", 42), 1);
	cr_assert_eq(row_that_shrinks("", "boot", 42), 1);
	cr_assert_eq(row_that_shrinks("run", "", 42), 0);
	cr_assert_eq(row_that_shrinks("other", "", 42), 1);
	cr_assert_eq(row_that_shrinks("other", "another", 42), -1);
	cr_assert_eq(row_that_shrinks("", "boot", 50), 0);
	cr_assert_eq(row_that_shrinks("", NULL, 42), 0);
	check_no_leaks();
}

#define NINE_DEEP(tid)                                                                             \
	"target 42\nthread 42 " tid " t\nf1 a.py:1 1 1\n  f2 a.py:2 1 1\n    f3 a.py:3 1 1\n"      \
	"      f4 a.py:4 1 1\n        f5 a.py:5 1 1\n          f6 a.py:6 1 1\n"                    \
	"            f7 a.py:7 1 1\n              f8 a.py:8 1 1\n                f9 a.py:9 1 1\n"

/* The function that ended threads ran is among the first eight of their stacks. */
Test(since, deep_entries_of_ended_threads)
{
	for (int depth = 8; depth <= 9; depth++) {
		_cleanup_(snapshot_freep) struct snapshot *a = snapshot_build(NINE_DEEP("43")),
							  *b = snapshot_build(NINE_DEEP("0"));

		set_row(&b->threads[0], depth == 8 ? "f8" : "f9");
		a->threads[0].total[1] = 7;
		assert_ok(snapshot_subtract(b, a));
		cr_assert_eq(b->threads[0].total[1], depth == 8 ? 93 : 100);
	}
}

/* Waits and samples beside the trace are copied, too. */
Test(since, copies_have_what_is_not_merged)
{
	static const uint64_t of[] = {3, 4, 5};
	struct snapshot_wait waits[] = {{.pid = 42, .tid = 43, .ns = 9},
					{.pid = 42, .tid = 43, .ns = 8}};
	struct snapshot *s = snapshot_build("target 43\ntarget 42\nthread 42 43 worker\n"
					    "f a.py:1 2 100\ng a.py:2 2 100\nh a.py:3 2 100\n");
	struct snapshot *copy;

	waits[0].syscall = snapshot_str(s, "read");
	s->waits = waits;
	s->nwaits = 2;
	s->targets[1].beside.trace = (struct snapshot_sampled){of, 3, 7};
	copy = snapshot_copy(s);
	snapshot_free(s);
	cr_assert(copy->nwaits == 2 && copy->waits != waits && copy->waits[1].ns == 8);
	cr_assert(copy->waits[0].syscall != waits[0].syscall && !copy->waits[1].syscall);
	cr_assert_str_eq(copy->waits[0].syscall, "read");
	cr_assert(!copy->targets[0].beside.trace.of && copy->targets[1].beside.trace.of != of);
	cr_assert_arr_eq(copy->targets[1].beside.trace.of, of, sizeof(of));
	cr_assert(copy->targets[1].beside.trace.n == 3 &&
		  copy->targets[1].beside.trace.outside == 7);
	snapshot_free(copy);
	check_no_leaks();
}

Test(since, durations)
{
	_cleanup_(snapshot_freep) struct snapshot *a = snapshot_build(early), *b = build_late();
	static struct histogram_sum some, more;

	some.n[80] = 3;
	some.n[160] = 1; /* the longest call came first */
	some.count = 4;
	more = some;
	more.n[80] += 2;
	more.n[90] = 1;
	more.count += 3;
	assert_ok(snapshot_add_durations(a, &a->funcs[1], SNAPSHOT_WALL, &some, UINT64_C(1) << 20));
	assert_ok(snapshot_add_durations(b, &b->funcs[1], SNAPSHOT_WALL, &more, UINT64_C(1) << 20));
	assert_ok(snapshot_subtract(b, a));
	memset(&some, 0, sizeof(some));
	histogram_add(&some, &b->funcs[1].durations[SNAPSHOT_WALL].histogram);
	cr_assert(some.n[80] == 2 && some.n[90] == 1 && some.n[160] == 0 && some.count == 3);
	cr_assert_eq(b->funcs[1].durations[SNAPSHOT_WALL].max, histogram_upper(90));
}

/* A copy is independent, and a snapshot less its copy is empty. */
Test(since, nothing_happened)
{
	unsigned int distinct = 0;

	for (unsigned int seed = 1; seed <= 60; seed++) {
		struct snapshot *s = snapshot_random(seed), *copy = snapshot_copy(s);
		_cleanup_(view_freep) struct view *v = NULL;

		bool same;

		cr_assert(copy && snapshot_valid(copy));
		same = copy->nnodes == s->nnodes && copy->nfuncs == s->nfuncs;
		assert_ok(snapshot_subtract(s, copy));
		snapshot_free(copy);
		cr_assert(snapshot_valid(s));
		assert_ok(view_build(s, NULL, &v));
		/* some of them have the same context twice, which a profile never has */
		distinct += same;
		cr_assert(!same || (v->ncalls == 0 && v->total[0] == 0 && v->total[1] == 0),
			  "seed %u", seed);
		view_free(TAKE_PTR(v));
		snapshot_free(s);
	}
	cr_assert(distinct > 0);
	check_no_leaks();
}

/* Figures of a target: a sum of two snapshots less the first is the second. */
Test(since, figures_of_a_target)
{
	/* The last one is of no function. */
	static const uint64_t of_a[] = {1, 2, 3, 100}, of_m[] = {10, 20, 40};
	static struct snapshot_call calls_a[] = {{"poll", 9, 2}, {"futex", 5, 1}},
				    calls_b[] = {{"poll", 100, 20}, {"read", 7, 3}};
	static const struct snapshot_windows windows = {.n = 12,
							.span_ns = 13,
							.seen_cpu_ns = 14,
							.all_cpu_ns = 15,
							.samples = 16,
							.failed = 17};
	struct snapshot *a = snapshot_build(early), *b = snapshot_build(early), *m = NULL;
	struct snapshot_target *x = a->targets, *y = b->targets, *t;

	x->fork_gap_ns = x->exec_gap_ns = x->execs = 1;
	x->estimate = (struct snapshot_estimate){.samples = 1, .of_probes = 1};
	x->children = (struct snapshot_children){1, 1, 1, 1};
	x->windows = (struct snapshot_windows){.n = 1, .span_ns = 1, .seen_cpu_ns = 1};
	x->windows.all_cpu_ns = x->windows.samples = x->windows.failed = 1;
	x->waits = (struct snapshot_waits){.walks = 1, .other = calls_a, .nother = 2};
	x->waits.pairs_dropped = 1;
	y->fork_gap_ns = 2, y->exec_gap_ns = 3, y->execs = 5;
	y->estimate = (struct snapshot_estimate){.samples = 6, .of_probes = 7};
	y->children = (struct snapshot_children){8, 9, 10, 11};
	y->windows = windows;
	y->waits = (struct snapshot_waits){.walks = 18, .other = calls_b, .nother = 2};
	y->waits.pairs_dropped = 19;
	assert_ok(snapshot_merge((const struct snapshot *[]){a, b}, 2, &m));
	t = m->targets;
	x->beside = (struct snapshot_beside){{of_a, 4, 1}, {0}, 1.5, 0, 2.5};
	t->beside = (struct snapshot_beside){{of_m, 3, 21}, {0}, 10.5, 0, 20.5};
	assert_ok(snapshot_subtract(m, a));
	cr_assert(m->ntargets == 1 && t->since);
	cr_assert(t->fork_gap_ns == 2 && t->exec_gap_ns == 3 && t->execs == 5);
	cr_assert(t->estimate.samples == 6 && t->estimate.of_probes == 7);
	cr_assert(t->children.followed == 8 && t->children.over_limit == 9);
	cr_assert(t->children.ended_first == 10 && t->children.failed == 11);
	assert_bytes_eq(&t->windows, &windows, sizeof(windows));
	cr_assert(t->waits.walks == 18 && t->waits.pairs_dropped == 19 && t->waits.nother == 3);
	cr_assert(t->waits.other[0].ns == 100 && t->waits.other[0].n == 20);
	cr_assert(t->waits.other[1].ns == 0 && t->waits.other[1].n == 0);
	cr_assert(t->waits.other[2].ns == 7 && t->waits.other[2].n == 3);
	cr_assert(t->beside.trace.of[0] == 9 && t->beside.trace.of[1] == 18);
	cr_assert(t->beside.trace.of[2] == 37 && t->beside.trace.outside == 20);
	cr_assert(t->beside.undisturbed_ns == 9 && t->beside.process_cpu_ns == 18);
	/* Nothing becomes less than nothing. */
	x->traced_ns = x->events = 0;
	x->start_ns = t->start_ns;
	x->execs = 6;
	x->fork_gap_ns = 3;
	x->beside = (struct snapshot_beside){{0}, {0}, 10, 0, 20};
	t->beside.trace.of = NULL;
	assert_ok(snapshot_subtract(m, a));
	cr_assert(t->execs == 0 && t->fork_gap_ns == 0 && t->beside.trace.outside == 20);
	cr_assert(t->beside.undisturbed_ns == 0 && t->beside.process_cpu_ns == 0);
	snapshot_free(a);
	snapshot_free(b);
	snapshot_free(m);
	check_no_leaks();
}

/* Of the longest waits, the later ones. */
Test(since, longest_waits)
{
	static const char text[] = "target 42\nthread 42 43 worker\nmain a.py:1 2 100\n";
	static struct snapshot_wait before[] = {{.pid = 42, .tid = 43, .ns = 9, .end_ns = 100}};
	static struct snapshot_wait after[] = {{.pid = 42, .tid = 43, .ns = 9, .end_ns = 100},
					       {.pid = 42, .tid = 43, .ns = 9, .end_ns = 200}};
	struct snapshot *a = snapshot_build(text), *b = snapshot_build(text);

	a->waits = before;
	a->nwaits = 1;
	b->waits = after;
	b->nwaits = 2;
	assert_ok(snapshot_subtract(b, a));
	cr_assert(b->nwaits == 1 && b->waits[0].end_ns == 200);
	snapshot_free(a);
	snapshot_free(b);
	check_no_leaks();
}
