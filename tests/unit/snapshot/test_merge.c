// SPDX-License-Identifier: BSD-2-Clause
/* Merging snapshots: sums by function and by context; threads are kept. */
#include "snapshot/merge.h"

#include <inttypes.h>
#include <string.h>

#include "base/wait.h"
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

/* Estimated calls and samples of the same contexts add up; other contexts have none. */
Test(merge, what_is_not_exact)
{
	struct snapshot *list[3], *s;
	uint64_t calls = 0;

	for (int i = 0; i < 3; i++)
		list[i] = snapshot_build("target 42\nthread 42 42 Main\n"
					 "main a.py:1 1 10\n  f a.py:2 1 10\n");
	for (int i = 1; i < 3; i++) {
		list[i]->rest = snapshot_alloc(list[i], list[i]->nnodes, sizeof(*list[i]->rest));
		list[i]->rest[2] = (struct snapshot_rest){10, 20, 30};
	}
	s = merge((const struct snapshot *const *)list, 3);
	cr_assert(s->rest && s->nnodes == 3);
	for (uint32_t i = 0; i < s->nnodes; i++) {
		calls += s->rest[i].calls;
		if (s->rest[i].calls)
			cr_assert(s->rest[i].yields == 40 && s->rest[i].cpu == 60);
	}
	cr_assert_eq(calls, 20);
	for (int i = 0; i < 3; i++)
		snapshot_free(list[i]);
	snapshot_free(s);
	check_no_leaks();
}

/* One of two periods of a run, in which every number is k times one that no other has. */
static struct snapshot *period(uint64_t k)
{
	struct snapshot *s = snapshot_build("target 42\nthread 42 42 Main\nmain a.py:1 1 10\n");
	struct snapshot_target *t = &s->targets[0];
	uint64_t next = 7;

	t->end_ns = 2000 * k;
	t->end_unix_ns = t->start_unix_ns + k;
	t->alive = t->tracing = k == 1;
	t->folded = (uint32_t)(2 * k);
	t->execs = (uint32_t)(3 * k);
	t->fork_gap_ns = 5 * k;
	t->exec_gap_ns = 7 * k;
	t->children = (struct snapshot_children){11 * k, 13 * k, 17 * k, 19 * k};
	t->traced_ns = 23 * k;
	t->overhead_ns = 79 * k;
	t->own_cpu_ns = 83 * k;
	t->estimate = (struct snapshot_estimate){
		.samples = 29 * k, .of_probes = 31 * k, .before = 37 * k};
	for (const struct snapshot_fact *f = snapshot_facts; f->key; f++)
		*snapshot_fact(t, f) = next++ * k;
	for (int i = 0; i < PYP_LOSS_MAX; i++)
		t->losses[i] = next++ * k;
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
		t->subtracted[c] = next++ * k;
	t->clamped = 41 * k;
	t->corrected = true;
	t->windows = (struct snapshot_windows){.max_overhead = (uint32_t)k,
					       .n = 43 * k,
					       .span_ns = 47 * k,
					       .seen_cpu_ns = 53 * k,
					       .all_cpu_ns = 59 * k,
					       .samples = 61 * k,
					       .samples_factor = 1.5,
					       .failed = 67 * k};
	t->waits.walks = 71 * k;
	t->waits.pairs_dropped = 73 * k;
	s->taken_unix_ns = 1000 - k;
	return s;
}

static void assert_sums(const struct snapshot_target *t, uint64_t k)
{
	uint64_t next = 7;

	cr_assert(t->folded == 2 * k && t->execs == 3 * k && t->fork_gap_ns == 5 * k &&
		  t->exec_gap_ns == 7 * k);
	cr_assert(t->children.followed == 11 * k && t->children.over_limit == 13 * k &&
		  t->children.ended_first == 17 * k && t->children.failed == 19 * k);
	cr_assert(t->overhead_ns == 79 * k && t->own_cpu_ns == 83 * k);
	cr_assert(t->traced_ns == 23 * k && t->estimate.samples == 29 * k &&
		  t->estimate.of_probes == 31 * k && t->estimate.before == 37 * k);
	for (const struct snapshot_fact *f = snapshot_facts; f->key; f++)
		cr_assert_eq(snapshot_fact_of(t, f), next++ * k, "%s", f->key);
	for (int i = 0; i < PYP_LOSS_MAX; i++)
		cr_assert_eq(t->losses[i], next++ * k);
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
		cr_assert_eq(t->subtracted[c], next++ * k);
	cr_assert_eq(t->clamped, 41 * k);
	cr_assert(t->windows.n == 43 * k && t->windows.span_ns == 47 * k &&
		  t->windows.seen_cpu_ns == 53 * k && t->windows.all_cpu_ns == 59 * k &&
		  t->windows.samples == 61 * k && t->windows.failed == 67 * k);
	cr_assert(t->waits.walks == 71 * k && t->waits.pairs_dropped == 73 * k);
}

/* The state is that of the later period, in whichever order they come. */
Test(merge, of_two_periods)
{
	for (int later = 0; later < 2; later++) {
		_cleanup_(snapshot_freep) struct snapshot *a = period(1), *b = period(10),
							  *m = NULL;
		const struct snapshot_target *t;

		m = merge((const struct snapshot *[]){later ? a : b, later ? b : a}, 2);
		cr_assert_eq(m->ntargets, 1);
		t = &m->targets[0];
		assert_sums(t, 11);
		cr_assert(t->end_ns == 20000 && t->end_unix_ns == t->start_unix_ns + 10);
		cr_assert(!t->alive && !t->tracing && t->corrected && !t->misses_calls);
		cr_assert(t->windows.max_overhead == 10 && !t->windows.sampled);
		cr_assert_eq(t->windows.samples_factor, 1.5);
		cr_assert_eq(m->taken_unix_ns, 999);
	}
	check_no_leaks();
}

static void assert_copied(const char *copy, const char *of, const char *what)
{
	cr_assert(copy != of && strcmp(copy, of) == 0, "%s", what);
}

#define COPIED(member) assert_copied(m->member, s->member, #member)

/* The sources can be freed. */
Test(merge, borrows_nothing)
{
	_cleanup_(snapshot_freep) struct snapshot *s = period(1), *m = NULL;
	static struct snapshot_call calls[] = {{"read", 5, 1}};
	static struct snapshot_wait waits[] = {{.pid = 42, .syscall = "futex"}};
	static struct snapshot_line lines[] = {{.line = 1}};

	s->builtins_of = "len";
	s->targets[0].mechanism = "a link";
	s->targets[0].self_test = "passed";
	s->targets[0].warnings = "a JIT";
	s->targets[0].windows.unsampled = "no timers";
	s->targets[0].waits.other = calls;
	s->targets[0].waits.nother = 1;
	s->targets[0].beside.trace.of = (const uint64_t[]){1};
	s->threads[0].entry = "work";
	s->funcs[0].qualname = "C.main";
	s->funcs[0].lines = lines;
	s->funcs[0].nlines = 1;
	s->waits = waits;
	s->nwaits = 1;
	m = merge((const struct snapshot *[]){s}, 1);
	COPIED(host);
	COPIED(kernel);
	COPIED(program);
	COPIED(builtins_of);
	COPIED(targets[0].cmdline);
	COPIED(targets[0].exe);
	COPIED(targets[0].python_file);
	COPIED(targets[0].python_version);
	COPIED(targets[0].build_id);
	COPIED(targets[0].mechanism);
	COPIED(targets[0].self_test);
	COPIED(targets[0].warnings);
	COPIED(targets[0].windows.unsampled);
	COPIED(targets[0].waits.other[0].name);
	COPIED(threads[0].name);
	COPIED(threads[0].entry);
	COPIED(funcs[0].filename);
	COPIED(funcs[0].name);
	COPIED(funcs[0].qualname);
	COPIED(waits[0].syscall);
	cr_assert(m->funcs[0].lines != lines && !m->targets[0].beside.trace.of);
}

/* What was so in one period was so in the whole run, but it was corrected only if both were. */
Test(merge, what_differs)
{
	for (int i = 0; i < 2; i++) {
		_cleanup_(snapshot_freep) struct snapshot *a = period(1), *b = period(10),
							  *m = NULL;
		struct snapshot *one = i ? a : b;
		const struct snapshot_target *t;

		one->targets[0].corrected = false;
		one->targets[0].misses_calls = one->targets[0].windows.sampled = true;
		one->targets[0].windows.samples_factor = 2;
		one->targets[0].waits.measured = one->targets[0].waits.gil_known = true;
		one->targets[0].waits.walked = one->folded = one->stripped = true;
		one->host = "another";
		one->builtins_of = "len";
		m = merge((const struct snapshot *[]){a, b}, 2);
		t = &m->targets[0];
		cr_assert(!t->corrected && t->misses_calls && t->windows.sampled);
		cr_assert_eq(t->windows.samples_factor, 0, "unknown");
		cr_assert(t->waits.measured && t->waits.gil_known && t->waits.walked);
		cr_assert(m->folded && m->stripped);
		cr_assert_str_eq(m->host, "several");
		cr_assert_str_eq(m->builtins_of, "several");
		cr_assert_str_eq(m->program, a->program);
		/* Another start, process or program is another target. */
		one->targets[0].start_unix_ns++;
		snapshot_free(TAKE_PTR(m));
		m = merge((const struct snapshot *[]){a, b}, 2);
		cr_assert(m->ntargets == 2 && m->nthreads == 2);
		one->targets[0].start_unix_ns--;
		one->targets[0].cmdline = "another";
		snapshot_free(TAKE_PTR(m));
		m = merge((const struct snapshot *[]){a, b}, 2);
		cr_assert(m->ntargets == 2 && m->nthreads == 1);
	}
	check_no_leaks();
}

Test(merge, system_calls_by_name)
{
	static struct snapshot_call first[] = {{"read", 5, 1}, {"write", 7, 2}},
				    second[] = {{"write", 10, 3}, {"close", 4, 1}};
	_cleanup_(snapshot_freep) struct snapshot *a = period(1), *b = period(2), *m = NULL;
	const struct snapshot_call *v;

	a->targets[0].waits.other = first;
	b->targets[0].waits.other = second;
	a->targets[0].waits.nother = b->targets[0].waits.nother = 2;
	m = merge((const struct snapshot *[]){a, b}, 2);
	v = m->targets[0].waits.other;
	cr_assert_eq(m->targets[0].waits.nother, 3);
	cr_assert(strcmp(v[0].name, "read") == 0 && v[0].ns == 5 && v[0].n == 1);
	cr_assert(strcmp(v[1].name, "write") == 0 && v[1].ns == 17 && v[1].n == 5);
	cr_assert(strcmp(v[2].name, "close") == 0 && v[2].ns == 4 && v[2].n == 1);
}

/* Of the same function, kind and process; k: as for period(). */
static struct snapshot_coro coros(uint64_t k, enum snapshot_coro_kind kind)
{
	return (struct snapshot_coro){
		.pid = 42,
		.kind = kind,
		.started = 2 * k,
		.partial = 3 * k,
		.ended = 5 * k,
		.steps = 7 * k,
		.running = {11 * k, 13 * k},
		.suspended = 17 * k,
		.lifetimes = 19 * k,
		.total = 23 * k,
		.min = 29 * k,
		.max = 31 * k,
	};
}

Test(merge, coroutines)
{
	for (int i = 0; i < 2; i++) {
		_cleanup_(snapshot_freep) struct snapshot *a = period(1), *b = period(10),
							  *m = NULL;
		struct snapshot_coro first[] = {coros(i ? 1 : 10, SNAPSHOT_GENERATOR)},
				     second[] = {coros(1, SNAPSHOT_COROUTINE),
						 coros(i ? 10 : 1, SNAPSHOT_GENERATOR),
						 coros(1, SNAPSHOT_GENERATOR)};
		const struct snapshot_coro *c;

		first[0].ends_hidden = i;
		second[2].pid = 43;
		a->coros = first;
		a->ncoros = 1;
		b->coros = second;
		b->ncoros = 3;
		m = merge((const struct snapshot *[]){a, b}, 2);
		cr_assert_eq(m->ncoros, 3);
		c = &m->coros[0];
		cr_assert(c->kind == SNAPSHOT_GENERATOR && c->pid == 42 && c->ends_hidden == i);
		cr_assert(c->started == 22 && c->partial == 33 && c->ended == 55 && c->steps == 77);
		cr_assert(c->running[0] == 121 && c->running[1] == 143 && c->suspended == 187);
		cr_assert(c->lifetimes == 209 && c->total == 253 && c->min == 29 && c->max == 310);
		cr_assert(m->coros[1].kind == SNAPSHOT_COROUTINE && m->coros[1].started == 2);
		cr_assert(m->coros[2].pid == 43 && m->coros[2].started == 2);
		/* Without complete lifetimes there is no shortest one. */
		snapshot_free(TAKE_PTR(m));
		first[0].lifetimes = first[0].min = first[0].max = 0;
		m = merge((const struct snapshot *[]){a, b}, 2);
		cr_assert_eq(m->coros[0].min, second[1].min);
		first[0] = coros(10, SNAPSHOT_GENERATOR);
		second[1].lifetimes = second[1].min = second[1].max = 0;
		snapshot_free(TAKE_PTR(m));
		m = merge((const struct snapshot *[]){a, b}, 2);
		cr_assert_eq(m->coros[0].min, 290);
	}
	check_no_leaks();
}

/* A pair's time adds up; some of the longest waits of each reason are kept. */
Test(merge, pairs_and_waits)
{
	static struct snapshot_gil_pair first[] = {{42, 0, SNAPSHOT_NONE, 5}},
					second[] = {{42, SNAPSHOT_NONE, 0, 7},
						    {42, 0, SNAPSHOT_NONE, 11},
						    {43, 0, SNAPSHOT_NONE, 13}};
	_cleanup_(snapshot_freep) struct snapshot *a = period(1), *b = period(2), *m = NULL;
	struct snapshot_wait v[WAIT_LONGEST + 1] = {{0}}, more[3] = {{0}};
	uint64_t least = UINT64_MAX, n = 0;

	a->gil_pairs = first;
	a->ngil_pairs = 1;
	b->gil_pairs = second;
	b->ngil_pairs = 3;
	for (uint32_t i = 0; i < WAIT_LONGEST; i++)
		v[i] = (struct snapshot_wait){
			.pid = 42, .why = WAIT_lock, .ns = 100 + i, .func = 0};
	v[WAIT_LONGEST] = (struct snapshot_wait){.pid = 42, .why = WAIT_sleep, .ns = 1};
	more[0] =
		(struct snapshot_wait){.pid = 42, .why = WAIT_lock, .ns = 500, .syscall = "futex"};
	more[1] = (struct snapshot_wait){.pid = 42, .why = WAIT_lock, .ns = 101, .fd = 9};
	more[2] = (struct snapshot_wait){.pid = 42, .why = WAIT_sleep, .ns = 2};
	a->waits = v;
	a->nwaits = WAIT_LONGEST + 1;
	b->waits = more;
	b->nwaits = 3;
	m = merge((const struct snapshot *[]){a, b}, 2);
	cr_assert_eq(m->ngil_pairs, 3);
	cr_assert(m->gil_pairs[0].ns == 16 && m->gil_pairs[0].holder == 0);
	cr_assert(m->gil_pairs[1].ns == 7 && m->gil_pairs[1].holder == SNAPSHOT_NONE);
	cr_assert(m->gil_pairs[2].ns == 13 && m->gil_pairs[2].pid == 43);
	cr_assert_eq(m->nwaits, WAIT_LONGEST + 2);
	for (uint32_t i = 0; i < m->nwaits; i++) {
		if (m->waits[i].why != WAIT_lock)
			continue;
		n++;
		least = m->waits[i].ns < least ? m->waits[i].ns : least;
		cr_assert_neq(m->waits[i].fd, 9, "not longer than the shortest one");
	}
	cr_assert(n == WAIT_LONGEST && least == 101, "%" PRIu64, least);
	cr_assert(m->waits[0].ns == 500 && strcmp(m->waits[0].syscall, "futex") == 0);
}

/* Rows of ended threads are the same if these ran the same function. */
Test(merge, rows_of_ended_threads)
{
	_cleanup_(snapshot_freep) struct snapshot *a = period(1), *b = period(10), *m = NULL;

	a->threads[0].tid = b->threads[0].tid = 0;
	a->threads[0].folded = 3;
	b->threads[0].folded = 4;
	a->threads[0].entry = b->threads[0].entry = "work";
	a->threads[0].start_ns = 70;
	b->threads[0].start_ns = 60;
	a->threads[0].end_ns = 800;
	b->threads[0].end_ns = 900;
	a->threads[0].alive = true;
	b->threads[0].alive = false;
	m = merge((const struct snapshot *[]){a, b}, 2);
	cr_assert_eq(m->nthreads, 1);
	cr_assert_str_eq(m->threads[0].name, "ended threads (7) of work");
	cr_assert(m->threads[0].start_ns == 60 && m->threads[0].end_ns == 900 &&
		  !m->threads[0].alive);
	cr_assert_eq(m->threads[0].folded, 7);
	snapshot_free(TAKE_PTR(m));
	m = merge((const struct snapshot *[]){b, a}, 2);
	cr_assert(m->threads[0].start_ns == 60 && m->threads[0].end_ns == 900 &&
		  !m->threads[0].alive);
	b->threads[0].entry = "other";
	snapshot_free(TAKE_PTR(m));
	m = merge((const struct snapshot *[]){a, b}, 2);
	cr_assert_eq(m->nthreads, 2);
	/* A single thread is another one if it started at another time. */
	a->threads[0].folded = b->threads[0].folded = 0;
	a->threads[0].entry = b->threads[0].entry = NULL;
	snapshot_free(TAKE_PTR(m));
	m = merge((const struct snapshot *[]){a, b}, 2);
	cr_assert_eq(m->nthreads, 2);
	a->threads[0].folded = 1;
	b->threads[0].start_ns = 0;
	snapshot_free(TAKE_PTR(m));
	m = merge((const struct snapshot *[]){a, b}, 2);
	cr_assert_eq(m->nthreads, 2);
}

/* Figures of one process are summed twice if both periods contain the same time of a thread. */
Test(merge, overlaps)
{
	const uint64_t adjusted = UINT64_C(1000000);
	_cleanup_(snapshot_freep) struct snapshot *a = period(1), *b = period(1);
	struct snapshot_target *t = &b->targets[0];
	uint64_t start = t->start_unix_ns;
	uint32_t pid = 0;

	cr_assert(snapshot_overlap(a, b, &pid) && pid == 42, "they began at the same time");
	a->targets[0].end_unix_ns = start + 10 * adjusted;
	t->start_unix_ns = start + 9 * adjusted;
	t->end_unix_ns = start + 20 * adjusted;
	cr_assert(!snapshot_overlap(a, b, &pid) && !snapshot_overlap(b, a, &pid));
	t->start_unix_ns--;
	cr_assert(snapshot_overlap(a, b, &pid) && snapshot_overlap(b, a, &pid));
	/* Apart by more than the clock may be wrong by */
	t->start_unix_ns = start + 12 * adjusted;
	cr_assert(!snapshot_overlap(a, b, &pid) && !snapshot_overlap(b, a, &pid));
	t->start_unix_ns = start + adjusted;
	b->threads[0].start_ns++;
	cr_assert(!snapshot_overlap(a, b, &pid), "another thread");
	b->threads[0].start_ns--;
	b->threads[0].tid++;
	cr_assert(!snapshot_overlap(a, b, &pid));
	b->threads[0].tid--;
	b->threads[0].pid++;
	cr_assert(!snapshot_overlap(a, b, &pid) && !snapshot_overlap(b, a, &pid));
	b->threads[0].pid--;
	cr_assert(snapshot_overlap(a, b, &pid));
	t->pid++;
	cr_assert(!snapshot_overlap(a, b, &pid));
	t->pid--;
	b->host = "another";
	cr_assert(!snapshot_overlap(a, b, &pid));
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
