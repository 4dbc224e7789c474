// SPDX-License-Identifier: BSD-2-Clause
/*
 * Threads that start and end while they are traced: each thread's counts are correct, and they add
 * up.
 */
#include <inttypes.h>

#include "harness/counts.h"
#include "harness/test.h"
#include "harness/traced.h"
#include "stats/view.h"

/* the same as in threads.py */
#define SHORT 200u
#define NAMED 4u
/* number of ended threads that are kept separately, see profile/ended.h */
#define APART 16u

static uint64_t short_steps(void)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < SHORT; i++)
		n += 10 + i % 7;
	return n;
}

static struct view *view_of(const struct snapshot *s, uint32_t tid)
{
	const struct view_filter filter = {.tid = tid};
	struct view *v = NULL;

	assert_ok(view_build(s, &filter, &v));
	return v;
}

/* Checks that a thread's contexts add up to its total. */
static void check_thread_adds_up(const struct snapshot *s, uint32_t thread)
{
	const struct snapshot_thread *th = &s->threads[thread];

	for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
		uint64_t sum = 0;

		for (uint32_t i = 0; i < s->nnodes; i++)
			if (s->nodes[i].thread == thread)
				sum += s->nodes[i].self[c];
		cr_assert(sum == th->total[c],
			  "thread %" PRIu32 ", clock %d: contexts %" PRIu64 ", total %" PRIu64,
			  th->tid, c, sum, th->total[c]);
	}
	cr_assert(th->total[SNAPSHOT_CPU] <= th->total[SNAPSHOT_WALL] + 1000000);
}

static bool tid_seen_before(const struct snapshot *s, uint32_t thread)
{
	for (uint32_t i = 0; i < thread; i++)
		if (s->threads[i].tid == s->threads[thread].tid)
			return true;
	return false;
}

struct sum {
	uint64_t ncalls, tot[SNAPSHOT_CLOCKS];
};

static void add_rows(struct sum *by_func, const struct view *v)
{
	for (size_t i = 0; i < v->nrows; i++) {
		struct sum *sum = &by_func[v->rows[i].func];

		sum->ncalls += v->rows[i].ncalls;
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
			sum->tot[c] += v->rows[i].tot[c];
	}
}

/* For a row of ended threads, which has no tid */
static void add_nodes(struct sum *by_func, const struct snapshot *s, uint32_t thread)
{
	for (uint32_t i = 0; i < s->nnodes; i++) {
		const struct snapshot_node *n = &s->nodes[i];

		if (n->thread != thread || n->func == SNAPSHOT_NONE)
			continue;
		by_func[n->func].ncalls += n->calls;
		for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
			by_func[n->func].tot[c] += n->self[c];
	}
}

/*
 * The last ended threads are kept separately, the others are merged into a row, which has their
 * number.
 */
static void check_ended(const struct snapshot *s, uint32_t ended)
{
	uint64_t folded = 0;
	uint32_t rows = 0;

	for (uint32_t i = 0; i < s->nthreads; i++) {
		folded += s->threads[i].folded;
		rows += s->threads[i].folded > 0;
		if (s->threads[i].folded)
			cr_assert_str_eq(s->threads[i].entry, "short_thread");
	}
	cr_assert(rows == 1, "%" PRIu32 " rows", rows);
	cr_assert(folded == ended - APART, "%" PRIu64 " folded", folded);
	cr_assert(s->nthreads == 1 + SHORT + NAMED - folded + rows, "%" PRIu32 " threads",
		  s->nthreads);
}

/* Checks that the views of all tids add up to the view of all threads. */
static void check_views_add_up(const struct snapshot *s)
{
	_cleanup_(view_freep) struct view *all = view_of(s, 0);
	struct sum *parts = calloc(s->nfuncs, sizeof(*parts));

	cr_assert(parts);
	for (uint32_t i = 0; i < s->nthreads; i++) {
		_cleanup_(view_freep) struct view *v = NULL;

		check_thread_adds_up(s, i);
		if (s->threads[i].folded)
			add_nodes(parts, s, i);
		if (s->threads[i].folded || tid_seen_before(s, i))
			continue;
		v = view_of(s, s->threads[i].tid);
		add_rows(parts, v);
	}
	for (size_t i = 0; i < all->nrows; i++) {
		const struct view_row *row = &all->rows[i];
		const char *name = s->funcs[row->func].name;

		cr_assert(parts[row->func].ncalls == row->ncalls, "%s: calls", name);
		assert_bytes_eq(parts[row->func].tot, row->tot, sizeof(row->tot));
	}
	free(parts);
}

static void check_calls(const struct snapshot *s)
{
	_cleanup_(view_freep) struct view *v = view_of(s, 0);
	uint64_t worker_steps = 1000 * NAMED * (NAMED + 1) / 2;

	cr_assert(counts_named(v, "short").ncalls == SHORT);
	cr_assert(counts_named(v, "short_thread").ncalls == SHORT);
	cr_assert(counts_named(v, "named").ncalls == NAMED);
	cr_assert(counts_named(v, "step").ncalls == short_steps() + worker_steps,
		  "%" PRIu64 " steps", counts_named(v, "step").ncalls);
}

/*
 * Checks that named threads have the names that they set, and the counts that follow from their
 * numbers.
 */
static void check_named(const struct snapshot *s, bool alive)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < s->nthreads; i++) {
		const struct snapshot_thread *th = &s->threads[i];
		_cleanup_(view_freep) struct view *v = NULL;
		unsigned int number;

		if (sscanf(th->name, "worker-%u", &number) != 1)
			continue;
		found++;
		cr_assert(th->alive == alive, "%s: alive %d", th->name, th->alive);
		v = view_of(s, th->tid);
		cr_assert(counts_named(v, "named").ncalls == 1);
		cr_assert(counts_named(v, "step").ncalls >= 1000ull * (number + 1));
	}
	cr_assert(found == NAMED, "%" PRIu32 " threads named worker-N", found);
}

static uint32_t alive(const struct snapshot *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->nthreads; i++)
		n += s->threads[i].alive;
	return n;
}

static bool only_main_alive(struct traced *t, void *ctx)
{
	_cleanup_(snapshot_freep) struct snapshot *s = traced_snapshot(t);

	(void)ctx;
	return alive(s) == 1;
}

static bool only_others_alive(struct traced *t, void *ctx)
{
	_cleanup_(snapshot_freep) struct snapshot *s = traced_snapshot(t);

	(void)ctx;
	return alive(s) == 1 + NAMED;
}

/* Checks that the threads' CPU time does not exceed that of the process. */
static void check_cpu(const struct snapshot *s, double used)
{
	double sum = 0;

	for (uint32_t i = 0; i < s->nthreads; i++)
		sum += (double)s->threads[i].total[SNAPSHOT_CPU] / 1e9;
	fprintf(stderr, "  %" PRIu32 " threads, %.3f s of CPU of the process's %.3f\n", s->nthreads,
		sum, used);
	cr_assert(sum <= used + 5e-3, "threads have %.3f s of CPU, the process %.3f", sum, used);
}

static void threads(const char *exe)
{
	_cleanup_(snapshot_freep) struct snapshot *during = NULL, *after = NULL;
	struct traced t;
	double used;

	fprintf(stderr, "with %s\n", exe);
	traced_start(&t, exe, "threads.py", NULL);
	traced_expect(&t, "ready");
	used = traced_cpu_seconds(&t);
	traced_attach(&t);
	traced_go(&t);
	traced_expect(&t, "done");
	traced_until(&t, only_others_alive, NULL, "the short threads' end");
	during = traced_snapshot(&t);
	check_cpu(during, traced_cpu_seconds(&t) - used);
	check_ended(during, SHORT);
	check_named(during, true);
	check_calls(during);
	check_views_add_up(during);

	traced_go(&t);
	traced_expect(&t, "ended");
	traced_until(&t, only_main_alive, NULL, "the threads' end");
	after = traced_snapshot(&t);
	check_ended(after, SHORT + NAMED);
	check_named(after, false);
	check_calls(after);
	check_views_add_up(after);
	cr_assert(traced_is_exact(after, exe));
	traced_finish(&t);
}

Test(threads, come_and_go)
{
	struct interpreter v[INTERPRETERS_MAX];
	size_t n = traced_few(v);

	for (size_t i = 0; i < n; i++)
		threads(v[i].exe);
	check_no_leaks();
}
