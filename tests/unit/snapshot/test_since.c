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

Test(since, interval)
{
	_cleanup_(snapshot_freep) struct snapshot *a = snapshot_build(early), *b = build_late();
	const struct view_filter one = {.pid = 42}, other = {.pid = 50};
	_cleanup_(view_freep) struct view *v = NULL, *w = NULL;

	a->targets[0].losses[PYP_LOSS_lost_events] = 10;
	assert_ok(snapshot_subtract(b, a));
	cr_assert(snapshot_valid(b));
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

/* Nothing is subtracted from targets that were cleared or attached again. */
Test(since, other_recordings_keep_their_figures)
{
	for (int way = 0; way < 2; way++) {
		_cleanup_(snapshot_freep) struct snapshot *a = snapshot_build(early),
							  *b = build_late();
		_cleanup_(view_freep) struct view *v = NULL;

		if (way == 0)
			b->targets[0].start_ns++;
		else
			b->targets[0].events = 3;
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
	static const uint64_t of_a[] = {1, 2, 3}, of_m[] = {10, 20, 40};
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
	x->beside = (struct snapshot_beside){{of_a, 3, 1}, {0}, 1.5, 0, 2.5};
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
