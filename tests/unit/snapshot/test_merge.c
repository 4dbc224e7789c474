// SPDX-License-Identifier: BSD-2-Clause
/* Merging snapshots: sums by function and by context; threads are kept. */
#include "snapshot/merge.h"

#include <inttypes.h>
#include <string.h>

#include "harness/reports.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"
#include "stats/view.h"

static struct snapshot *merge(const struct snapshot *const *list, size_t n)
{
	struct snapshot *ret = NULL;

	assert_ok(snapshot_merge(list, n, &ret));
	cr_assert(snapshot_valid(ret));
	return ret;
}

static struct view *view_of(const struct snapshot *s)
{
	struct view *ret = NULL;

	assert_ok(view_build(s, NULL, &ret));
	return ret;
}

static const struct view_row *row_named(const struct view *v, const char *name)
{
	for (size_t i = 0; i < v->nrows; i++)
		if (strcmp(v->snapshot->funcs[v->rows[i].func].name, name) == 0)
			return &v->rows[i];
	return NULL;
}

Test(merge, functions_add_up_and_processes_stay)
{
	_cleanup_(snapshot_freep) struct snapshot *a =
		snapshot_build("thread 42 42 Main\nmain a.py:1 1 10\n  f a.py:5 2 20 30\n");
	_cleanup_(snapshot_freep) struct snapshot *b =
		snapshot_build("thread 77 77 Main\nf a.py:5 3 7\ng a.py:9 1 1\n");
	_cleanup_(snapshot_freep) struct snapshot *m = NULL;
	_cleanup_(view_freep) struct view *v = NULL;
	const struct view_row *f;

	m = merge((const struct snapshot *[]){a, b}, 2);
	cr_assert_eq(m->ntargets, 2);
	cr_assert_eq(m->nthreads, 2);
	cr_assert_eq(m->nfuncs, 3);
	cr_assert_eq(m->nnodes, 6);
	cr_assert_str_eq(m->host, "testhost");
	v = view_of(m);
	f = row_named(v, "f");
	cr_assert_eq(f->ncalls, 5);
	cr_assert_eq(f->tot[SNAPSHOT_CPU], 27);
	cr_assert_eq(f->tot[SNAPSHOT_WALL], 37);
	/* The same line and file but another qualified name is another function. */
	snapshot_free(TAKE_PTR(m));
	view_free(TAKE_PTR(v));
	b->funcs[0].qualname = "C.f";
	m = merge((const struct snapshot *[]){a, b}, 2);
	cr_assert_eq(m->nfuncs, 4);
	snapshot_free(TAKE_PTR(m));
	snapshot_free(TAKE_PTR(a));
	snapshot_free(TAKE_PTR(b));
	check_no_leaks();
}

/* Two periods of one run: the same thread has the same contexts. */
Test(merge, contexts_of_one_thread_add_up)
{
	_cleanup_(snapshot_freep) struct snapshot *a =
		snapshot_build("thread 42 42 Main\nmain a.py:1 1 10\n  f a.py:5 2 20\n");
	_cleanup_(snapshot_freep) struct snapshot *b = snapshot_build(
		"thread 42 42 Main\nmain a.py:1 1 1\n  g a.py:9 1 3\n  f a.py:5 1 2\n");
	_cleanup_(snapshot_freep) struct snapshot *m = NULL;

	b->targets[0].losses[PYP_LOSS_lost_events] = 5;
	b->targets[0].end_unix_ns += 1;
	b->targets[0].alive = false;
	m = merge((const struct snapshot *[]){a, b}, 2);
	cr_assert_eq(m->ntargets, 1);
	cr_assert_eq(m->nthreads, 1);
	cr_assert_eq(m->nnodes, 4);
	cr_assert_eq(m->nodes[1].calls, 2);
	cr_assert_eq(m->nodes[2].self[SNAPSHOT_CPU], 22);
	cr_assert_eq(m->nodes[2].min[SNAPSHOT_CPU], 2);
	cr_assert_eq(m->nodes[2].max[SNAPSHOT_CPU], 20);
	cr_assert_eq(m->targets[0].events, 2468);
	cr_assert(!m->targets[0].alive && !snapshot_exact(m));
	cr_assert_eq(m->threads[0].total[SNAPSHOT_WALL], 20000000000);
}

Test(merge, none_and_one)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_random(3);
	_cleanup_(snapshot_freep) struct snapshot *one = NULL, *none = NULL;
	_cleanup_free_ char *before = NULL, *after = NULL;
	struct format_opts o = {0};

	s->threads[0].start_ns++; /* all are different */
	one = merge((const struct snapshot *[]){s}, 1);
	none = merge(NULL, 0);
	before = report_new("text", s, &o, NULL);
	after = report_new("text", one, &o, NULL);
	cr_assert_str_eq(before, after);
	cr_assert_eq(none->nnodes, 0);
}

Test(merge, failed_windows_add_up)
{
	_cleanup_(snapshot_freep) struct snapshot *a = snapshot_random(3), *b = snapshot_random(3);
	_cleanup_(snapshot_freep) struct snapshot *m = NULL;

	a->targets[0].windows = (struct snapshot_windows){.max_overhead = 5, .failed = 3};
	b->targets[0].windows = (struct snapshot_windows){.max_overhead = 5, .failed = 4};
	m = merge((const struct snapshot *[]){a, b}, 2);
	cr_assert_eq(m->ntargets, 1);
	cr_assert_eq(m->targets[0].windows.failed, 7);
}

Test(merge, two_hundred)
{
	enum { N = 200 };
	const struct snapshot *list[N];
	_cleanup_(snapshot_freep) struct snapshot *m = NULL;
	_cleanup_(view_freep) struct view *v = NULL;
	uint64_t calls = 0, total[SNAPSHOT_CLOCKS] = {0};

	for (unsigned int i = 0; i < N; i++) {
		struct snapshot *s = snapshot_random(i % 50 + 1);
		_cleanup_(view_freep) struct view *one = view_of(s);

		s->targets[0].pid = 1000 + i;
		for (uint32_t t = 0; t < s->nthreads; t++)
			s->threads[t].pid = 1000 + i;
		calls += one->ncalls;
		total[SNAPSHOT_CPU] += one->total[SNAPSHOT_CPU];
		total[SNAPSHOT_WALL] += one->total[SNAPSHOT_WALL];
		list[i] = s;
	}
	m = merge(list, N);
	for (unsigned int i = 0; i < N; i++)
		snapshot_free((struct snapshot *)list[i]);
	v = view_of(m);
	cr_assert_eq(m->ntargets, N);
	cr_assert_eq(v->ncalls, calls);
	cr_assert_eq(v->total[SNAPSHOT_CPU], total[SNAPSHOT_CPU]);
	cr_assert_eq(v->total[SNAPSHOT_WALL], total[SNAPSHOT_WALL]);
	view_free(TAKE_PTR(v));
	snapshot_free(TAKE_PTR(m));
	check_no_leaks();
}
