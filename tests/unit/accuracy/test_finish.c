// SPDX-License-Identifier: BSD-2-Clause
/*
 * Subtracting the probes' own time from a snapshot: the amount per context, never below 0, and the
 * sum.
 */
#include "accuracy/finish.h"

#include "harness/snapshot_builder.h"
#include "harness/test.h"
#include "snapshot/waits.h"
#include "stats/view.h"

/* Different enough to identify each cost: calls 10+100, returns 1+1000, yields 3+5000 */
static const struct cost costs = {.known = true, .before = {10, 1, 3}, .after = {100, 1000, 5000}};

static struct snapshot *build(const char *text)
{
	struct snapshot *s = snapshot_build(text);

	for (uint32_t i = 0; i < s->nnodes; i++)
		s->nodes[i].min[0] = s->nodes[i].min[1] = UINT64_MAX;
	for (uint32_t t = 0; t < s->nthreads; t++)
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
			s->threads[t].total[c] = 0;
	for (uint32_t i = 0; i < s->nnodes; i++)
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
			s->threads[s->nodes[i].thread].total[c] += s->nodes[i].self[c];
	s->targets[0].cost = costs;
	return s;
}

static struct snapshot_node *node(struct snapshot *s, const char *name)
{
	for (uint32_t i = 0; i < s->nnodes; i++)
		if (s->nodes[i].func != SNAPSHOT_NONE &&
		    strcmp(s->funcs[s->nodes[i].func].name, name) == 0)
			return &s->nodes[i];
	cr_assert_fail("no %s", name);
	return NULL;
}

static void check_sums(const struct snapshot *s)
{
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
		uint64_t self = 0, total = 0;

		for (uint32_t i = 0; i < s->nnodes; i++)
			self += s->nodes[i].self[c];
		for (uint32_t t = 0; t < s->nthreads; t++)
			total += s->threads[t].total[c];
		cr_assert_eq(self, total);
	}
}

Test(correct, self_and_callers)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build("target 42\n"
							     "thread 42 43 worker\n"
							     "main a.py:1 1 100000 200000 1\n"
							     "  f a.py:2 10 50000 60000\n"
							     "    g a.py:3 20 70000\n");

	assert_ok(snapshot_correct(s));
	/*
	 * main: the end of its own ENTER; the beginning of each call of f, and the end of each
	 * return. main is still running.
	 */
	cr_assert_eq(node(s, "main")->self[SNAPSHOT_CPU], 100000 - 100 - 10 * 10 - 10 * 1000);
	cr_assert_eq(node(s, "main")->self[SNAPSHOT_WALL], 200000 - 100 - 10 * 10 - 10 * 1000);
	cr_assert_eq(node(s, "f")->self[SNAPSHOT_CPU], 50000 - 10 * 101 - 20 * 1010);
	cr_assert_eq(node(s, "g")->self[SNAPSHOT_CPU], 70000 - 20 * 101);
	cr_assert(s->targets[0].corrected);
	cr_assert_eq(s->targets[0].clamped, 0);
	check_sums(s);
	cr_assert(snapshot_valid(s));
}

/*
 * A C function that the evaluator executes inline has an entry event and no end: its caller
 * continues at once.
 */
Test(correct, instants_are_their_callers)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build("target 42\n"
							     "thread 42 43 worker\n"
							     "main a.py:1 1 100000 200000 1\n"
							     "  append ~:0 30 0\n");

	for (uint32_t i = 0; i < s->nfuncs; i++)
		s->funcs[i].instant = strcmp(s->funcs[i].name, "append") == 0;
	assert_ok(snapshot_correct(s));
	cr_assert_eq(node(s, "main")->self[SNAPSHOT_CPU], 100000 - 100 - 30 * (10 + 100));
	cr_assert_eq(node(s, "append")->self[SNAPSHOT_CPU], 0);
	check_sums(s);
}

Test(correct, suspensions_have_their_own_cost)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build("target 42\n"
							     "thread 42 43 worker\n"
							     "main a.py:1 1 900000\n"
							     "  gen a.py:2 10 50000\n");

	node(s, "gen")->yields = 9;
	assert_ok(snapshot_correct(s));
	cr_assert_eq(node(s, "gen")->self[0], 50000 - 10 * 100 - 1 - 9 * 3);
	cr_assert_eq(node(s, "main")->self[0], 900000 - 101 - 10 * 10 - 1000 - 9 * 5000);
	check_sums(s);
}

Test(correct, never_below_zero)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build("target 42\n"
							     "thread 42 43 worker\n"
							     "main a.py:1 1 20000\n"
							     "  f a.py:2 10 500 5000\n");

	s->nodes[s->threads[0].root].self[0] += 5000;
	s->nodes[s->threads[0].root].self[1] += 5000;
	s->threads[0].total[0] += 5000;
	s->threads[0].total[1] += 5000;
	assert_ok(snapshot_correct(s));
	cr_assert_eq(node(s, "f")->self[SNAPSHOT_CPU], 0);
	cr_assert_eq(node(s, "f")->self[SNAPSHOT_WALL], 5000 - 1010);
	cr_assert_eq(s->targets[0].clamped, 1);
	/* Not more is subtracted than there was. */
	cr_assert_eq(s->targets[0].subtracted[SNAPSHOT_CPU], 500 + 101 + 10100 + 1010);
	cr_assert_eq(s->targets[0].subtracted[SNAPSHOT_WALL], 1010 + 101 + 10100 + 1010);
	check_sums(s);
}

Test(correct, extremes)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build("target 42\n"
							     "thread 42 43 worker\n"
							     "main a.py:1 2 100000\n"
							     "  f a.py:2 10 50000\n"
							     "late a.py:9 3 90000\n");
	struct snapshot_node *f = node(s, "f"), *m = node(s, "main"), *late = node(s, "late");

	for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
		f->min[c] = 50;
		f->max[c] = 9000;
		m->min[c] = 30000;
		m->max[c] = 80000;
	}
	assert_ok(snapshot_correct(s));
	cr_assert_eq(f->min[0], SNAPSHOT_MIN_UNKNOWN, "not below 0");
	cr_assert_eq(f->max[0], 9000 - 101);
	/* Its own two events, and five calls of f */
	cr_assert_eq(m->min[1], 30000 - 101 - 5 * 1111);
	cr_assert_eq(m->max[1], 80000 - 101 - 5 * 1111);
	cr_assert_eq(late->min[0], UINT64_MAX, "there is none");
}

/*
 * The shortest call may have made fewer calls than the mean: only its own two events are certain.
 */
Test(correct, shorter_than_the_mean_cost)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build("target 42\n"
							     "thread 42 43 worker\n"
							     "main a.py:1 2 100000\n"
							     "  f a.py:2 10 50000\n");
	struct snapshot_node *f = node(s, "f"), *m = node(s, "main");

	f->min[0] = 101;
	f->max[0] = 102;
	f->min[1] = f->max[1] = 103;
	m->min[0] = 900;
	m->max[0] = 5000;
	m->min[1] = 900;
	m->max[1] = 9000;
	assert_ok(snapshot_correct(s));
	/* The mean is 101 + 5 * 1111, the minimum 101. */
	cr_assert_eq(m->min[0], 900 - 101);
	cr_assert_eq(m->max[0], 5000 - 101);
	cr_assert_eq(m->min[1], 900 - 101);
	cr_assert_eq(m->max[1], 9000 - 101 - 5 * 1111);
	cr_assert_eq(f->min[0], SNAPSHOT_MIN_UNKNOWN);
	cr_assert_eq(f->max[0], 1);
	cr_assert_eq(f->min[1], 2);
	cr_assert_eq(f->max[1], 2);
}

/* The longest call is never shorter than the shortest. */
Test(correct, extremes_keep_their_order)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build("target 42\n"
							     "thread 42 43 worker\n"
							     "main a.py:1 2 100000\n"
							     "  f a.py:2 10 50000\n");
	struct snapshot_node *m = node(s, "main");

	m->min[0] = m->min[1] = 5600;
	m->max[0] = m->max[1] = 5700;
	assert_ok(snapshot_correct(s));
	cr_assert_eq(m->min[0], 5600 - 101);
	cr_assert_eq(m->max[0], 5600 - 101);
}

/* After correction, the mean lifetime is still between the shortest and the longest one. */
Test(correct, lifetimes_have_their_mean_between_them)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build("target 42\n"
							     "thread 42 43 worker\n"
							     "main a.py:1 2 100000\n"
							     "  f a.py:2 10 50000\n");
	struct snapshot_coro *c = snapshot_alloc(s, 1, sizeof(*c));

	*c = (struct snapshot_coro){.pid = 42, .func = node(s, "main")->func, .started = 2};
	c->lifetimes = 2;
	c->min = 2900;
	c->max = 20000;
	c->total = c->min + c->max;
	s->coros = c;
	s->ncoros = 1;
	assert_ok(snapshot_correct(s));
	/* Two instances, whose events cost 101 + 5 * 1111 each */
	cr_assert_eq(c->total, 22900 - 2 * (101 + 5 * 1111));
	cr_assert_eq(c->min, 2900 - 101);
	cr_assert_eq(c->max, 20000 - 101 - 5 * 1111);
	c->total = 3000 + 2900;
	c->min = 2900;
	c->max = 3000;
	s->targets[0].corrected = false;
	assert_ok(snapshot_correct(s));
	cr_assert_eq(c->total, 0);
	cr_assert_eq(c->min, SNAPSHOT_MIN_UNKNOWN);
	cr_assert_geq(c->max, c->min);
}

/* An instance of a function, from its first call to its end. */
static struct snapshot_coro lifetimes(const struct snapshot *s, uint32_t pid,
				      enum snapshot_coro_kind kind, uint64_t shortest,
				      uint64_t longest, uint64_t total)
{
	return (struct snapshot_coro){
		.pid = pid,
		.func = s->nodes[1].func,
		.kind = kind,
		.started = 1,
		.partial = 1,
		.running = {10000, 20000},
		.lifetimes = 2,
		.min = shortest,
		.max = longest,
		.total = total,
	};
}

/*
 * main calls itself in process 42; its cost there is 2424, with 202 of the inner calls. In process 43 it
 * is 404, and in process 44 it is unknown. Greenlets run from the outermost call on.
 */
Test(correct, lifetimes_of_several_processes)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build("thread 42 42 a\n"
							     "main a.py:1 2 100000\n"
							     "  main a.py:1 2 50000\n"
							     "thread 43 43 b\n"
							     "main a.py:1 4 200000\n"
							     "thread 44 44 c\n"
							     "main a.py:1 4 200000\n");
	struct snapshot_coro *c = snapshot_alloc(s, 5, sizeof(*c));

	s->targets[1].cost = costs;
	c[0] = lifetimes(s, 42, SNAPSHOT_GREENLET, 30000, 70000, 100000);
	c[1] = lifetimes(s, 43, SNAPSHOT_GENERATOR, 30000, 70000, 100000);
	c[1].lifetimes = 0;
	c[2] = lifetimes(s, 42, SNAPSHOT_GENERATOR, 20000, 20000, 60001);
	c[3] = lifetimes(s, 42, SNAPSHOT_COROUTINE, 20000, 20000, 10000);
	c[4] = lifetimes(s, 44, SNAPSHOT_GENERATOR, 30000, 70000, 100000);
	s->coros = c;
	s->ncoros = 5;
	assert_ok(snapshot_correct(s));
	cr_assert(c[0].running[0] == 10000 - 2424 && c[0].running[1] == 20000 - 2424);
	cr_assert_eq(c[0].total, 100000 - 2424);
	cr_assert(c[0].min == 30000 - 1212 && c[0].max == 70000 - 1212);
	cr_assert_eq(c[1].running[0], 10000 - 404);
	cr_assert(c[1].total == 100000 && c[1].min == 30000 && c[1].max == 70000);
	cr_assert_eq(c[2].running[0], 10000 - 2424 - 202);
	/* 57375 in two lifetimes: the longest one takes half of them at least. */
	cr_assert(c[2].min == 20000 - 1313 && c[2].max == 28688);
	cr_assert(c[3].min == 3687 && c[3].max == 20000 - 1313, "7374 in two lifetimes");
	cr_assert(c[4].running[1] == 20000 && c[4].total == 100000 && c[4].min == 30000);
	check_sums(s);
}

/* The callers of truncated calls are unknown, so the whole cost is charged to the row itself. */
Test(correct, truncated)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build("target 42\n"
							     "thread 42 43 worker\n"
							     "main a.py:1 1 5000\n"
							     "(truncated) ~:0 10 50000\n");

	s->funcs[node(s, "(truncated)")->func].pseudo = true;
	assert_ok(snapshot_correct(s));
	cr_assert_eq(node(s, "(truncated)")->self[0], 50000 - 10 * 1111);
	cr_assert_eq(node(s, "main")->self[0], 5000 - 101);
	check_sums(s);
}

Test(correct, unknown_costs_change_nothing)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build("target 42\n"
							     "thread 42 43 worker\n"
							     "main a.py:1 1 5000\n");

	s->targets[0].cost.known = false;
	assert_ok(snapshot_correct(s));
	cr_assert_eq(node(s, "main")->self[0], 5000);
	cr_assert(!s->targets[0].corrected);
	cr_assert_eq(s->targets[0].subtracted[0], 0);
}

/*
 * Reasons for waiting are scaled to what is left of it: in f 301 of 600 ns, where files and sockets are two thirds
 * of the largest one; in g nothing. The largest ones take what rounding leaves.
 */
Test(correct, reasons_fit_what_is_left)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build("target 42\n"
							     "thread 42 43 worker\n"
							     "main a.py:1 1 100 400\n"
							     "  f a.py:2 1 100 401\n"
							     "  g a.py:3 1 100 50\n");
	static const int columns[] = {COLUMN_lock, COLUMN_sleep, COLUMN_io, COLUMN_io_disk,
				      COLUMN_io_socket};
	static const uint64_t before[][5] = {{100, 200, 0, 0, 0}, {100, 200, 300, 100, 200}},
			      after[][5] = {{100, 200, 0, 0, 0}, {50, 100, 151, 50, 101}, {0}};

	for (int k = 0; k < 5; k++) {
		assert_ok(snapshot_reserve_columns(s, COLUMN_BIT(columns[k]), s->nnodes));
		for (uint32_t i = 0; i < 3; i++)
			s->columns[columns[k]][1 + i] = before[i ? 1 : 0][k];
	}
	snapshot_fit_waits(s);
	cr_assert_eq(snapshot_figure(s, COLUMN_sleep, 2), 200, "not measured");
	s->measured = COLUMN_WAITS;
	snapshot_fit_waits(s);
	for (uint32_t i = 0; i < 3; i++)
		for (int k = 0; k < 5; k++)
			cr_assert_eq(snapshot_figure(s, columns[k], 1 + i), after[i][k], "%u, %d",
				     i, k);
	cr_assert_eq(snapshot_columns(s) & COLUMN_BIT(COLUMN_gil), 0);
}

/* What is not exact ------------------------------------------------------------------------ */

static const char *const two_targets = "target 42\n"
				       "thread 42 43 worker\n"
				       "main a.py:1 1 100000 200000 1\n"
				       "  f a.py:2 10 50000 60000\n"
				       "target 52\n"
				       "thread 52 53 worker\n"
				       "main a.py:1 1 100000 200000 1\n"
				       "  f a.py:2 10 50000 60000\n";

/* Of the first target's contexts */
static void give_rest(struct snapshot *s)
{
	s->rest = snapshot_alloc(s, s->nnodes, sizeof(*s->rest));
	for (uint32_t i = 0; i < s->nnodes; i++)
		if (s->threads[s->nodes[i].thread].pid == 42)
			s->rest[i] = (struct snapshot_rest){7 * i, i, 1000 * (i + 1)};
}

/* Index of the context of f in the thread of a process */
static uint32_t f_of(const struct snapshot *s, uint32_t pid)
{
	for (uint32_t i = 0; i < s->nnodes; i++)
		if (s->threads[s->nodes[i].thread].pid == pid && s->nodes[i].calls >= 10)
			return i;
	cr_assert_fail("no f in %u", pid);
	return 0;
}

/* Estimated calls and samples are added to exact figures, once, and no probes' time is subtracted for them. */
Test(finish, what_is_not_exact)
{
	for (int raw = 0; raw <= 1; raw++) {
		_cleanup_(snapshot_freep) struct snapshot *s = build(two_targets),
							  *plain = build(two_targets);
		const uint32_t of_42 = f_of(s, 42), of_52 = f_of(s, 52);
		const struct snapshot_node *f = &plain->nodes[of_42], *after;
		uint64_t all[SNAPSHOT_CLOCKS] = {0}, added = 0;

		give_rest(s);
		for (uint32_t i = 0; i < s->nnodes; i++)
			added += s->rest[i].cpu;
		assert_ok(snapshot_finish(plain, raw));
		assert_ok(snapshot_finish(s, raw));
		cr_assert(snapshot_valid(s) && !s->rest);
		check_sums(s);
		after = &s->nodes[of_42];
		cr_assert_eq(f->self[SNAPSHOT_CPU], raw ? 50000 : 50000 - 10 * 101);
		cr_assert_eq(after->calls, 10 + 7 * of_42);
		cr_assert_eq(after->yields, of_42);
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
			cr_assert_eq(after->self[c], f->self[c] + 1000 * (of_42 + 1));
		for (uint32_t t = 0; t < s->nthreads; t++)
			for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
				all[c] += s->threads[t].total[c] - plain->threads[t].total[c];
		cr_assert(all[SNAPSHOT_CPU] == added && all[SNAPSHOT_WALL] == added);
		cr_assert_eq(s->targets[0].subtracted[SNAPSHOT_CPU],
			     plain->targets[0].subtracted[SNAPSHOT_CPU]);
		cr_assert_eq(s->nodes[of_52].calls, 10, "the other target's are exact");
		cr_assert_arr_eq(s->nodes[of_52].self, plain->nodes[of_52].self, sizeof(f->self));
		/* Once only */
		assert_ok(snapshot_finish(s, true));
		cr_assert_eq(s->nodes[of_42].calls, 10 + 7 * of_42);
	}
	check_no_leaks();
}

/* Samples in stretches are those of their times: their number, not that of all samples, shows what hits cost. */
Test(finish, samples_in_stretches)
{
	for (int known = 0; known <= 1; known++) {
		_cleanup_(snapshot_freep) struct snapshot *s =
			build("target 42\nthread 42 43 worker\nmain a.py:1 1 4000000\n"
			      "  f a.py:2 1000 2000000\n");
		struct snapshot_target *t = &s->targets[0];
		uint64_t *of = snapshot_alloc(s, s->nfuncs, sizeof(*of));

		/* Half of 6 ms, if samples say so */
		for (uint32_t i = 0; i < s->nfuncs && known; i++)
			of[i] = 150;
		t->cost = (struct cost){.known = true, .before = {500, 500}, .after = {500, 500}};
		t->cost_scale = 1;
		t->beside.trace = (struct snapshot_sampled){of, s->nfuncs, 0};
		t->estimate = (struct snapshot_estimate){
			.rate = 999, .period_ns = 10000, .samples = 100000};
		assert_ok(snapshot_correct(s));
		check_sums(s);
		cr_assert(known ? t->cost_scale > 1.05 && t->cost_scale < 1.5 : t->cost_scale == 1,
			  "%f", t->cost_scale);
	}
	check_no_leaks();
}

/* The mean cost that extremes lose is that of all calls. */
Test(finish, extremes_of_calls_that_are_not_exact)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build("target 42\nthread 42 43 worker\n"
							     "f a.py:2 10 50000\n"
							     "  g a.py:3 10 50000\n");
	const uint32_t f = (uint32_t)(node(s, "f") - s->nodes),
		       g = (uint32_t)(node(s, "g") - s->nodes);

	s->rest = snapshot_alloc(s, s->nnodes, sizeof(*s->rest));
	s->rest[f].calls = 90;
	s->rest[f].cpu = 9000000;
	s->rest[g].calls = 490;
	s->nodes[f].min[SNAPSHOT_CPU] = s->nodes[f].max[SNAPSHOT_CPU] = 90000;
	assert_ok(snapshot_correct(s));
	cr_assert_eq(s->nodes[f].min[SNAPSHOT_CPU], 90000 - 101 - 5 * (1010 + 101));
	check_no_leaks();
}

/* If the few calls in windows still contain probes' time, samples show less of the mean. */
Test(finish, no_minimum_exceeds_the_mean)
{
	_cleanup_(snapshot_freep) struct snapshot *s = build("target 42\nthread 42 43 worker\n"
							     "f a.py:2 0 0\n"
							     "  g a.py:3 0 0\n");
	struct snapshot_node *f = node(s, "f"), *g = node(s, "g");

	s->rest = snapshot_alloc(s, s->nnodes, sizeof(*s->rest));
	s->rest[f - s->nodes] = (struct snapshot_rest){.calls = 100, .cpu = 20000};
	s->rest[g - s->nodes] = (struct snapshot_rest){.calls = 500, .cpu = 10000};
	f->min[SNAPSHOT_CPU] = f->max[SNAPSHOT_CPU] = 5000;
	g->min[SNAPSHOT_CPU] = 101 + 15;
	assert_ok(snapshot_correct(s));
	cr_assert_eq(f->min[SNAPSHOT_CPU], (20000 + 10000) / 100);
	cr_assert_eq(f->max[SNAPSHOT_CPU], 5000 - 101, "not all of its calls were seen");
	cr_assert_eq(g->min[SNAPSHOT_CPU], 15);
	cr_assert_eq(f->min[SNAPSHOT_WALL], UINT64_MAX, "there is none");
	check_no_leaks();
}
