// SPDX-License-Identifier: BSD-2-Clause
/* Merging many ended processes into one: sums, and processes that exceed a limit. */
#include "snapshot/fold.h"

#include <errno.h>
#include <string.h>

#include "harness/snapshot_builder.h"
#include "harness/test.h"
#include "stats/view.h"

#define TEXT                                                                                       \
	"thread 42 42 Main\nmain a.py:1 1 10\n  f a.py:5 2 20\n"                                   \
	"thread 42 43 worker\nmain a.py:1 1 5\n  g a.py:9 3 30\n"

static struct snapshot *child(unsigned int i)
{
	struct snapshot *s = snapshot_build(TEXT);

	s->targets[0].pid = 1000 + i;
	s->targets[0].parent = 42;
	s->targets[0].fork_gap_ns = 7;
	s->targets[0].start_unix_ns += 1000 - i;
	for (uint32_t t = 0; t < s->nthreads; t++) {
		s->threads[t].pid = 1000 + i;
		s->threads[t].start_ns += i;
	}
	return s;
}

static void add(struct snapshot **sum, unsigned int i, uint32_t max_nodes)
{
	_cleanup_(snapshot_freep) struct snapshot *s = child(i);

	assert_ok(snapshot_fold(sum, s, max_nodes));
	cr_assert(snapshot_valid(*sum));
}

static uint64_t calls_of(const struct snapshot *s, const char *name)
{
	uint64_t calls = 0;

	for (uint32_t i = 0; i < s->nnodes; i++)
		if (s->nodes[i].func != SNAPSHOT_NONE &&
		    strcmp(s->funcs[s->nodes[i].func].name, name) == 0)
			calls += s->nodes[i].calls;
	return calls;
}

static uint64_t self_of(const struct snapshot *s)
{
	uint64_t self = 0;

	for (uint32_t i = 0; i < s->nnodes; i++)
		self += s->nodes[i].self[SNAPSHOT_CPU];
	return self;
}

Test(fold, a_thousand_take_the_room_of_one)
{
	enum { N = 1000 };
	_cleanup_(snapshot_freep) struct snapshot *one = child(0);
	_cleanup_(snapshot_freep) struct snapshot *sum = NULL;
	uint64_t start = one->targets[0].start_unix_ns, self = self_of(one);

	for (unsigned int i = 0; i < N; i++)
		add(&sum, i, FOLD_MAX_NODES);
	cr_assert_eq(sum->ntargets, 1);
	cr_assert_eq(sum->nthreads, 1);
	cr_assert_eq(sum->nnodes, 4, "the contexts of all threads, each once, and a root");
	cr_assert_eq(sum->targets[0].pid, 0);
	cr_assert_eq(sum->targets[0].folded, N);
	cr_assert_eq(sum->targets[0].fork_gap_ns, 7 * N);
	cr_assert_eq(sum->targets[0].start_unix_ns, start - (N - 1), "the earliest");
	cr_assert_eq(calls_of(sum, "main"), 2 * N);
	cr_assert_eq(calls_of(sum, "f"), 2 * N);
	cr_assert_eq(calls_of(sum, "g"), 3 * N);
	cr_assert_eq(self_of(sum), self * N);
	cr_assert(snapshot_exact(sum));
	snapshot_free(TAKE_PTR(sum));
	snapshot_free(TAKE_PTR(one));
	check_no_leaks();
}

/* Contexts beyond the limit are added up in one context, and the result is no longer exact. */
Test(fold, what_does_not_fit_is_summed)
{
	_cleanup_(snapshot_freep) struct snapshot *sum = NULL, *one = child(0);
	uint64_t self = self_of(one);

	add(&sum, 1, 6);
	cr_assert(snapshot_exact(sum), "six contexts fit");
	add(&sum, 2, 9);
	cr_assert_eq(sum->targets[0].folded, 2);
	cr_assert_eq(calls_of(sum, "f"), 2);
	cr_assert_eq(calls_of(sum, "(truncated)"), 7);
	cr_assert_eq(self_of(sum), 2 * self);
	cr_assert_eq(
		sum->threads[0].total[SNAPSHOT_CPU],
		2 * (one->threads[0].total[SNAPSHOT_CPU] + one->threads[1].total[SNAPSHOT_CPU]));
	cr_assert(!snapshot_exact(sum));
	snapshot_free(TAKE_PTR(sum));
	snapshot_free(TAKE_PTR(one));
	check_no_leaks();
}

/* Sums of the same contexts; nothing of what is one context. */
Test(fold, whole_calls)
{
	_cleanup_(snapshot_freep) struct snapshot *sum = NULL;

	for (unsigned int i = 1; i < 4; i++) {
		_cleanup_(snapshot_freep) struct snapshot *s = child(i);

		s->wholes = snapshot_alloc(s, s->nnodes, sizeof(*s->wholes));
		s->wholes[1].y = s->wholes[2].x = 10;
		s->wholes[4].y = 100;
		assert_ok(snapshot_fold(&sum, s, i < 3 ? FOLD_MAX_NODES : 1));
	}
	for (uint32_t i = 0; i < sum->nnodes; i++) {
		uint32_t func = sum->nodes[i].func;
		bool is_main = func != SNAPSHOT_NONE && !strcmp(sum->funcs[func].name, "main");

		cr_assert_eq(sum->wholes[i].y, is_main ? 220 : 0);
	}
	snapshot_free(TAKE_PTR(sum));
	check_no_leaks();
}

/* What is not exact stays with its context, or is in the one for all. */
Test(fold, what_is_not_exact)
{
	_cleanup_(snapshot_freep) struct snapshot *sum = NULL;
	struct snapshot_rest all = {0};

	for (unsigned int i = 1; i < 4; i++) {
		_cleanup_(snapshot_freep) struct snapshot *s = child(i);

		if (i > 1)
			s->rest = snapshot_alloc(s, s->nnodes, sizeof(*s->rest));
		for (uint32_t k = 0; k < s->nnodes && i > 1; k++)
			s->rest[k] = (struct snapshot_rest){k, 10 * k, 100 * k + 1};
		assert_ok(snapshot_fold(&sum, s, i < 3 ? FOLD_MAX_NODES : 1));
	}
	for (uint32_t i = 0; i < sum->nnodes; i++) {
		uint32_t func = sum->nodes[i].func;

		snapshot_add_rest(&all, &sum->rest[i]);
		if (func == SNAPSHOT_NONE)
			cr_assert_eq(sum->rest[i].calls, 2 * 3, "roots of two children");
		else if (sum->funcs[func].pseudo)
			cr_assert_eq(sum->rest[i].calls, 15 - 3, "all of one child");
	}
	cr_assert(all.calls == 2 * 15 && all.yields == 20 * 15 && all.cpu == 2 * (1500 + 6));
	snapshot_free(TAKE_PTR(sum));
	check_no_leaks();
}

Test(fold, one_target_only)
{
	_cleanup_(snapshot_freep) struct snapshot *sum = NULL, *none = snapshot_new();

	assert_err(snapshot_fold(&sum, none, FOLD_MAX_NODES), -EINVAL);
	cr_assert_null(sum);
}

/* Of two processes with as many, 10 fit. */
Test(fold, as_many_as_fit)
{
	_cleanup_(snapshot_freep) struct snapshot *sum = NULL;

	add(&sum, 1, 6);
	add(&sum, 2, 10);
	cr_assert(snapshot_exact(sum));
	cr_assert_eq(calls_of(sum, "g"), 6);
	for (uint32_t i = 0; i < sum->nthreads; i++)
		cr_assert(!sum->threads[i].alive && !sum->threads[i].tid &&
			  strcmp(sum->threads[i].name, "(ended)") == 0);
	cr_assert(!sum->targets[0].parent &&
		  strcmp(sum->targets[0].cmdline, "(children that have ended)") == 0);
}

/* Pairs of waiter and holder, the longest waits, and all else of functions that have been merged. */
Test(fold, waits_beyond_the_limit)
{
	static struct snapshot_gil_pair pairs[2][2] = {{{42, 0, 1, 5}, {42, 1, 0, 7}},
						       {{43, 0, 1, 5}, {43, 1, 0, 7}}};
	static struct snapshot_wait waits[2][2] = {
		{{.pid = 42, .func = 1, .ns = 9, .why = 1}, {.pid = 42, .func = SNAPSHOT_NONE}},
		{{.pid = 43, .func = 1, .ns = 8, .why = 1}, {.pid = 43, .func = SNAPSHOT_NONE}}};
	static struct snapshot_coro coros[2] = {{.pid = 42, .func = 1, .started = 2, .partial = 3},
						{.pid = 43, .func = 1, .started = 4, .partial = 1}};
	uint32_t outside = 0, merged = 0, last;
	struct snapshot *sum = NULL;

	for (int i = 0; i < 2; i++) {
		struct snapshot *s = snapshot_build(
			"target 42\nthread 42 43 worker\nmain a.py:1 2 100\n f b.py:7 1 50\n");

		s->gil_pairs = pairs[i];
		s->ngil_pairs = 2;
		s->waits = waits[i];
		s->nwaits = 2;
		s->coros = &coros[i];
		s->ncoros = 1;
		assert_ok(snapshot_reserve_columns(s, COLUMN_BIT(COLUMN_vcsw), s->nnodes));
		for (uint32_t k = 0; k < s->nnodes; k++) {
			s->columns[COLUMN_vcsw][k] = 1 + k;
			s->nodes[k].yields = 10 * k;
		}
		assert_ok(snapshot_fold(&sum, s, i ? 1 : 1000));
		cr_assert(snapshot_valid(sum));
		snapshot_free(s);
	}
	cr_assert_eq(sum->ngil_pairs, 2);
	cr_assert_eq(sum->gil_pairs[0].ns + sum->gil_pairs[1].ns, 12);
	cr_assert_eq(sum->targets[0].waits.pairs_dropped, 12);
	cr_assert(sum->nwaits == 4 && sum->gil_pairs[0].pid == 0);
	for (uint32_t i = 0; i < sum->nwaits; i++) {
		outside += sum->waits[i].func == SNAPSHOT_NONE;
		merged += sum->waits[i].func != SNAPSHOT_NONE &&
			  sum->funcs[sum->waits[i].func].pseudo;
	}
	cr_assert(outside == 2 && merged == 1);
	cr_assert(sum->ncoros == 1 && sum->coros[0].pid == 0 && sum->coros[0].started == 2);
	cr_assert_eq(sum->targets[0].forgotten, 5);
	cr_assert_eq(sum->targets[0].truncated, 3);
	last = sum->nnodes - 1;
	cr_assert_eq(calls_of(sum, "(truncated)"), 3);
	cr_assert(sum->nodes[last].yields == 10 + 20 || sum->nodes[1].yields == 10 + 20);
	cr_assert_eq(snapshot_figure(sum, COLUMN_vcsw, 0), 1 + 1);
	snapshot_free(sum);
	check_no_leaks();
}
