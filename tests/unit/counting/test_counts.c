// SPDX-License-Identifier: BSD-2-Clause
/* counting/counts and samples: sums in the tree; a repeated reading replaces the previous one. */
#include "counting/counts.h"

#include "counting/samples.h"
#include "harness/numbered.h"
#include "harness/snapshot_builder.h"
#include "harness/test.h"
#include "profile/profile.h"
#include "stack/codes.h"
#include "stats/view.h"

#define ID(i) (PYP_COUNT_FIRST + (uint32_t)(i))

static struct profile *new_profile(void)
{
	struct profile *p = profile_new(NULL, numbered_resolve, NULL);

	cr_assert(p);
	profile_begin(p, 100);
	for (unsigned int i = 0; i < 3; i++) {
		struct event e = {.type = PYP_REC_CODE_ID, .tid = 1};

		e.u.code.code = NUMBERED_CODE(i);
		e.u.code.id = ID(i);
		profile_event(p, &e);
	}
	return p;
}

static struct snapshot *snapshot_of(const struct profile *p)
{
	struct snapshot *s = snapshot_new();

	s->targets = snapshot_alloc(s, 1, sizeof(*s->targets));
	s->ntargets = 1;
	s->targets[0].pid = 7;
	s->targets[0].mode = MODE_COUNT;
	assert_ok(profile_snapshot(p, 1000, 7, s, &s->targets[0]));
	cr_assert(snapshot_valid(s));
	return s;
}

/*
 * Returns the calls of callee from caller ("": no caller, NULL: any caller); primitive ones in
 * *ret_pcalls.
 */
static uint64_t calls(const struct profile *p, const char *caller, const char *callee,
		      uint64_t *ret_pcalls)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_of(p);
	_cleanup_(view_freep) struct view *v = NULL;
	uint64_t n = 0, pcalls = 0;

	assert_ok(view_build(s, NULL, &v));
	for (size_t i = 0; i < v->nedges; i++) {
		const struct view_edge *e = &v->edges[i];
		const char *from = e->caller == SNAPSHOT_NONE ? "" : s->funcs[e->caller].name;

		if (strcmp(s->funcs[e->callee].name, callee) != 0 ||
		    (caller && strcmp(from, caller) != 0))
			continue;
		cr_assert(e->ncalls, "an edge without calls");
		n += e->ncalls;
		pcalls += e->pcalls;
	}
	if (ret_pcalls)
		*ret_pcalls = pcalls;
	return n;
}

Test(tally, edges_and_rows)
{
	struct profile *p = new_profile();
	const struct call_count said[] = {
		{1, PYP_COUNT_OUTSIDE, ID(0), 2, false},
		{1, ID(0), ID(1), 10, false},
		{1, ID(1), ID(1), 5, false},
		{2, ID(0), ID(1), 3, false},
		{2, ID(1), ID(0), 4, false},
	};
	uint64_t pcalls;

	profile_set_calls(p, said, sizeof(said) / sizeof(*said));
	cr_assert_eq(calls(p, "", "f0", NULL), 2);
	cr_assert_eq(calls(p, "f0", "f1", NULL), 13);
	cr_assert_eq(calls(p, "f1", "f0", NULL), 4);
	/* Counts do not distinguish recursive calls, neither direct nor mutual ones. */
	cr_assert_eq(calls(p, NULL, "f1", &pcalls), 18);
	cr_assert_eq(pcalls, 18);
	cr_assert_eq(calls(p, NULL, "f0", &pcalls), 6);
	cr_assert_eq(pcalls, 6);
	cr_assert_eq(profile_counts(p).events, 24);
	profile_free(p);
	check_no_leaks();
}

Test(tally, what_is_final_stays_and_the_rest_is_replaced)
{
	struct profile *p = new_profile();
	struct call_count said[] = {{1, ID(0), ID(1), 10, false}, {2, ID(0), ID(1), 100, true}};

	profile_set_calls(p, said, 2);
	cr_assert_eq(calls(p, "f0", "f1", NULL), 110);
	said[0].calls = 12;
	profile_set_calls(p, said, 1);
	cr_assert_eq(calls(p, "f0", "f1", NULL), 112);
	profile_set_calls(p, NULL, 0);
	cr_assert_eq(calls(p, "f0", "f1", NULL), 100);
	cr_assert_eq(profile_counts(p).events, 100);
	profile_clear(p, 500);
	cr_assert_eq(calls(p, "f0", "f1", NULL), 0);
	profile_set_calls(p, said, 1);
	cr_assert_eq(calls(p, "f0", "f1", NULL), 12);
	profile_free(p);
	check_no_leaks();
}

/*
 * A number without a definition, one that is too large, and those of lost code objects are charged
 * to "(lost)", not dropped.
 */
Test(tally, strange_numbers_are_lost_not_dropped)
{
	struct profile *p = new_profile();
	const struct call_count said[] = {
		{1, ID(0), ID(77), 1, false},	      {1, ID(0), UINT32_MAX, 2, false},
		{1, ID(0), PYP_COUNT_LOST, 4, false}, {1, PYP_COUNT_LOST, ID(1), 8, false},
		{1, 0, PYP_COUNT_LOST, 16, false},    {1, ID(0), PYP_COUNT_IDS, 32, false},
	};
	struct event e = {.type = PYP_REC_CODE_ID, .tid = 1};

	e.u.code.id = PYP_COUNT_IDS;
	e.u.code.code = NUMBERED_CODE(1);
	profile_event(p, &e);
	profile_set_calls(p, said, sizeof(said) / sizeof(*said));
	cr_assert_eq(calls(p, NULL, "(lost)", NULL), 55);
	cr_assert_eq(calls(p, "(lost)", "f1", NULL), 8);
	cr_assert_eq(profile_counts(p).events, 63);
	profile_free(p);
	check_no_leaks();
}

/* More counts, and higher numbers, than there is room for at first */
Test(tally, many_counts)
{
	static const uint32_t ids[] = {1023, 1024, 4096, 4095};
	struct profile *p = new_profile();
	struct call_count said[600];

	for (unsigned int i = 0; i < 4; i++) {
		struct event e = {.type = PYP_REC_CODE_ID, .tid = 1};

		e.u.code.code = NUMBERED_CODE(10 + i);
		e.u.code.id = ids[i];
		profile_event(p, &e);
	}
	for (unsigned int i = 0; i < 600; i++)
		said[i] = (struct call_count){1 + i % 2, ID(0), ids[i % 4], 1, false};
	for (int again = 0; again < 2; again++) {
		profile_set_calls(p, said, 600);
		cr_assert_eq(calls(p, "f0", "f10", NULL), 150);
		cr_assert_eq(calls(p, "f0", "f11", NULL), 150);
		cr_assert_eq(calls(p, "f0", "f12", NULL), 150);
		cr_assert_eq(calls(p, "f0", "f13", NULL), 150);
	}
	profile_set_calls(p, NULL, 0);
	cr_assert_eq(calls(p, "f0", "f13", NULL), 0);
	profile_free(p);
	check_no_leaks();
}

Test(tally, what_does_not_fit_is_truncated)
{
	const struct profile_limits limits = {.nodes = 2};
	struct profile *p = profile_new(&limits, numbered_resolve, NULL);
	struct call_count said[8];

	for (unsigned int i = 0; i < 8; i++) {
		struct event e = {.type = PYP_REC_CODE_ID, .tid = 1};

		e.u.code.code = NUMBERED_CODE(i);
		e.u.code.id = ID(i);
		profile_event(p, &e);
		said[i] = (struct call_count){1, PYP_COUNT_OUTSIDE, ID(i), 1, false};
	}
	profile_set_calls(p, said, 8);
	cr_assert_eq(calls(p, NULL, "(truncated)", NULL), 6);
	profile_set_calls(p, said, 8);
	cr_assert_eq(calls(p, NULL, "(truncated)", NULL), 6);
	cr_assert_eq(profile_counts(p).truncated, 6);
	/* Of final counts, what was truncated stays so. */
	for (unsigned int i = 0; i < 8; i++)
		said[i].final = true;
	profile_set_calls(p, said, 8);
	profile_set_calls(p, NULL, 0);
	cr_assert_eq(calls(p, NULL, "(truncated)", NULL), 6);
	cr_assert_eq(profile_counts(p).truncated, 6);
	/* A caller that does not fit has no callees of its own. */
	said[0] = (struct call_count){1, ID(7), ID(0), 5, false};
	profile_set_calls(p, said, 1);
	cr_assert_eq(calls(p, NULL, "(truncated)", NULL), 11);
	cr_assert_eq(profile_counts(p).truncated, 7);
	profile_clear(p, 500);
	profile_set_calls(p, said, 1);
	cr_assert_eq(profile_counts(p).truncated, 0);
	profile_free(p);
	check_no_leaks();
}

/* Samples ---------------------------------------------------------------------------------- */

/* Part of a stack, innermost first; codes end with 0. */
static void sample(struct profile *p, uint32_t tid, uint32_t first, uint16_t flags,
		   const uint64_t *codes)
{
	struct event e = {.type = PYP_REC_SAMPLE, .ts = 200, .tid = tid};

	e.u.sample =
		(struct event_sample){.period = 10, .first = first, .flags = flags, .codes = codes};
	while (codes[e.u.sample.count])
		e.u.sample.count++;
	profile_event(p, &e);
}

#define SAMPLE(p, tid, first, flags, ...)                                                          \
	sample(p, tid, first, flags, (const uint64_t[]){__VA_ARGS__ __VA_OPT__(, ) 0})

struct times {
	uint64_t tot, cum, total;
};

static struct times times(const struct profile *p, const char *name)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_of(p);
	_cleanup_(view_freep) struct view *v = NULL;
	struct times t = {0};

	s->targets[0].mode = MODE_SAMPLE;
	assert_ok(view_build(s, NULL, &v));
	cr_assert_eq(v->ncalls, 0);
	for (uint32_t i = 0; i < s->nthreads; i++)
		t.total += s->threads[i].total[SNAPSHOT_CPU];
	for (size_t i = 0; i < v->nrows; i++) {
		if (strcmp(s->funcs[v->rows[i].func].name, name) != 0)
			continue;
		cr_assert_eq(v->rows[i].cum[SNAPSHOT_WALL], 0);
		t.tot = v->rows[i].tot[SNAPSHOT_CPU];
		t.cum = v->rows[i].cum[SNAPSHOT_CPU];
	}
	return t;
}

static void assert_times(const struct profile *p, const char *name, uint64_t tot, uint64_t cum)
{
	struct times t = times(p, name);

	cr_assert(t.tot == tot && t.cum == cum, "%s: %llu %llu", name, (unsigned long long)t.tot,
		  (unsigned long long)t.cum);
}

/* Calls are known per caller and callee, times per stack; rows combine both. */
Test(tally, samples_beside_counts)
{
	struct profile *p = new_profile();
	const struct call_count calls[] = {{1, PYP_COUNT_OUTSIDE, ID(0), 5, false},
					   {1, ID(0), ID(1), 7, false},
					   {1, ID(1), ID(1), 2, false}};
	_cleanup_(snapshot_freep) struct snapshot *s = NULL;
	_cleanup_(view_freep) struct view *v = NULL;

	SAMPLE(p, 1, 0, PYP_SAMPLE_LAST, NUMBERED_CODE(1), NUMBERED_CODE(1), NUMBERED_CODE(0));
	SAMPLE(p, 1, 0, PYP_SAMPLE_LAST, NUMBERED_CODE(0));
	profile_set_calls(p, calls, 3);
	profile_set_calls(p, calls, 3);
	cr_assert_eq(profile_counts(p).events, 14);
	cr_assert_eq(profile_samples(p), 2);
	s = snapshot_of(p);
	s->targets[0].mode = MODE_COUNT;
	s->targets[0].estimate = (struct snapshot_estimate){.rate = 99, .period_ns = 10};
	cr_assert(snapshot_estimated(s) && snapshot_exact(s),
		  "times are estimates, counts are not");
	assert_ok(view_build(s, NULL, &v));
	cr_assert_eq(v->ncalls, 14);
	cr_assert_eq(v->total[SNAPSHOT_CPU], 20);
	for (size_t i = 0; i < v->nrows; i++) {
		const struct view_row *r = &v->rows[i];
		bool first = strcmp(s->funcs[r->func].name, "f0") == 0;

		cr_assert_eq(r->ncalls, first ? 5u : 9u);
		cr_assert_eq(r->pcalls, r->ncalls);
		cr_assert_eq(r->tot[SNAPSHOT_CPU], 10);
		cr_assert_eq(r->cum[SNAPSHOT_CPU], first ? 20u : 10u, "recursion counts once");
	}
	profile_free(p);
	check_no_leaks();
}

Test(tally, a_sample_is_time_of_a_stack)
{
	struct profile *p = new_profile();

	SAMPLE(p, 1, 0, PYP_SAMPLE_LAST, NUMBERED_CODE(1), NUMBERED_CODE(0));
	SAMPLE(p, 1, 0, PYP_SAMPLE_LAST, NUMBERED_CODE(0));
	SAMPLE(p, 2, 0, PYP_SAMPLE_LAST, NUMBERED_CODE(1), NUMBERED_CODE(1), NUMBERED_CODE(0));
	SAMPLE(p, 2, 0, PYP_SAMPLE_LAST);
	assert_times(p, "f0", 10, 30);
	assert_times(p, "f1", 20, 20);
	cr_assert_eq(times(p, "f0").total, 40, "with what was outside Python");
	cr_assert_eq(profile_counts(p).events, 4);
	profile_clear(p, 300);
	assert_times(p, "f0", 0, 0);
	profile_free(p);
	check_no_leaks();
}

/*
 * The error of a time T is sqrt(T * period), where recursion counts once; for functions without
 * samples it is unknown.
 */
Test(tally, errors_of_samples)
{
	struct profile *p = new_profile();
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_new();

	SAMPLE(p, 1, 0, PYP_SAMPLE_LAST, NUMBERED_CODE(1), NUMBERED_CODE(0));
	SAMPLE(p, 1, 0, PYP_SAMPLE_LAST, NUMBERED_CODE(0));
	SAMPLE(p, 2, 0, PYP_SAMPLE_LAST, NUMBERED_CODE(1), NUMBERED_CODE(1), NUMBERED_CODE(0));
	s->targets = snapshot_alloc(s, 1, sizeof(*s->targets));
	s->ntargets = 1;
	s->targets[0] = (struct snapshot_target){
		.pid = 7, .mode = MODE_SAMPLE, .estimate = {.period_ns = 10}};
	assert_ok(profile_snapshot(p, 1000, 7, s, &s->targets[0]));
	for (uint32_t i = 0; i < s->nfuncs; i++) {
		const double *v = s->funcs[i].variance;
		bool outer = strcmp(s->funcs[i].name, "f0") == 0;

		cr_assert_float_eq(v[SNAPSHOT_TOT_CPU], outer ? 100 : 200, 1e-9);
		cr_assert_float_eq(v[SNAPSHOT_CUM_CPU], outer ? 300 : 200, 1e-9);
		cr_assert(v[SNAPSHOT_CALLS] < 0 && v[SNAPSHOT_TOT_WALL] < 0 &&
			  v[SNAPSHOT_CUM_WALL] < 0);
	}
	cr_assert_eq(s->nfuncs, 2);
	snapshot_free(TAKE_PTR(s));
	profile_free(p);
	check_no_leaks();
}

/* All CPU time is of samples, each of which stands for 10 ns. */
static const struct samples_cpu all_cpu = {.of = NULL, .period_ns = 10};

/* Of the functions in the order f, g, h; each with the figures TOT and CUM of both clocks. */
static void expect_variances(struct snapshot *s, const double (*v)[SNAPSHOT_FIGURES])
{
	for (uint32_t i = 0; i < 3; i++)
		for (int k = SNAPSHOT_TOT_CPU; k < SNAPSHOT_FIGURES; k++) {
			cr_assert_float_eq(s->funcs[i].variance[k], v[i][k], 1e-9, "%u, %d: %g", i,
					   k, s->funcs[i].variance[k]);
			s->funcs[i].variance[k] = 0;
		}
}

/*
 * The waiting of all is 40 ns, with a variance of 40; f calls g, which calls f, and h is in another thread.
 * A share q of it has the variance (1 - q)^2 times its own and q^2 times that of the rest.
 */
Test(tally, errors_of_samples_and_waiting)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("target 1\nthread 1 1 a\n"
								      "f a.py:1 1 10\n"
								      "  g a.py:2 1 20\n"
								      "    f a.py:1 1 30\n"
								      "thread 1 2 b\n"
								      "h a.py:3 1 40\n");
	const double estimated[] = {0, 6, 10, 4, 0, 20}, variance[] = {0, 8, 5, 2, 0, 25};
	const struct samples_waiting waiting = {estimated, variance};
	const double all[3][SNAPSHOT_FIGURES] = {{-1, 400, 400 + 7.5, 600, 600 + 10},
						 {-1, 200, 200 + 5, 500, 500 + 7},
						 {-1, 400, 400 + 10, 400, 400 + 10}};
	const double second[3][SNAPSHOT_FIGURES] = {
		{0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}, {-1, 400, 400 + 10, 400, 400 + 10}};
	const double unknown[3][SNAPSHOT_FIGURES] = {
		{-1, 400, -1, 600, -1}, {-1, 200, -1, 500, -1}, {-1, 400, -1, 400, -1}};

	cr_assert_eq(s->nnodes, 6);
	assert_ok(samples_errors(s, 0, &all_cpu, &waiting));
	expect_variances(s, all);
	assert_ok(samples_errors(s, 1, &all_cpu, &waiting));
	expect_variances(s, second);
	assert_ok(samples_errors(s, 0, &all_cpu, NULL));
	expect_variances(s, unknown);
}

/*
 * A part of the CPU time is of samples: f's inner context has 20 ns of these, h has none, but may have used some
 * time. Of calls, others know more.
 */
Test(tally, errors_of_some_samples)
{
	_cleanup_(snapshot_freep) struct snapshot *s = snapshot_build("target 1\nthread 1 1 a\n"
								      "f a.py:1 1 10\n"
								      "  g a.py:2 1 20\n"
								      "    f a.py:1 1 30\n"
								      "thread 1 2 b\n"
								      "h a.py:3 1 40\n");
	const uint64_t of[] = {0, 0, 50, 20, 0, 0};
	const struct samples_cpu some = {of, 10};
	const double sampled[3][SNAPSHOT_FIGURES] = {
		{0, 200, -1, 700, -1}, {0, 500, -1, 700, -1}, {0, 100, -1, 100, -1}};

	for (uint32_t i = 0; i < s->nfuncs; i++)
		s->funcs[i].variance[SNAPSHOT_CALLS] = 7;
	assert_ok(samples_errors(s, 0, &some, NULL));
	expect_variances(s, sampled);
	for (uint32_t i = 0; i < s->nfuncs; i++)
		cr_assert_eq(s->funcs[i].variance[SNAPSHOT_CALLS], 7);
}

/* No waiting at all is certain. */
Test(tally, errors_without_waiting)
{
	_cleanup_(snapshot_freep) struct snapshot *s =
		snapshot_build("target 1\nthread 1 1 a\nf a.py:1 1 10\n");
	const double none[] = {0, 0};
	const struct samples_waiting waiting = {none, none};

	assert_ok(samples_errors(s, 0, &all_cpu, &waiting));
	cr_assert_eq(s->funcs[0].variance[SNAPSHOT_TOT_WALL], 100);
	cr_assert_eq(s->funcs[0].variance[SNAPSHOT_CUM_WALL], 100);
}

static void count_by_func(struct samples_by_func *b, struct codes *codes, struct event_sample s)
{
	const uint64_t stack[] = {NUMBERED_CODE(300), NUMBERED_CODE(1)};

	s.codes = stack;
	samples_by_func_add(b, codes, &s);
}

/* The innermost Python function; a C function on top of it is not one. */
Test(tally, samples_by_function)
{
	struct samples_by_func b = {.of = NULL};
	struct codes *codes = calloc(1, sizeof(*codes));
	uint32_t one, all;

	assert_ok(codes_init(codes, 1000, 1 << 20, numbered_resolve, NULL));
	for (unsigned int i = 1; i < 300; i++)
		codes_func(codes, NUMBERED_CODE(i));
	one = codes_func(codes, NUMBERED_CODE(1));
	all = codes_func(codes, NUMBERED_CODE(300));
	count_by_func(&b, codes, (struct event_sample){.count = 0});
	cr_assert(b.outside == 1 && !b.of);
	count_by_func(&b, codes, (struct event_sample){.count = 2, .flags = PYP_SAMPLE_NATIVE});
	cr_assert(b.of[one] == 1 && b.n > one && b.n <= 256);
	count_by_func(&b, codes, (struct event_sample){.count = 2});
	cr_assert(b.of[all] == 1 && b.of[one] == 1 && b.n > all);
	count_by_func(&b, codes, (struct event_sample){.count = 2, .first = 64});
	count_by_func(&b, codes, (struct event_sample){.count = 1, .flags = PYP_SAMPLE_METHOD});
	cr_assert(b.of[all] == 1 && b.of[one] == 1 && b.outside == 2);
	samples_by_func_clear(&b);
	cr_assert(b.of[all] == 0 && b.of[one] == 0 && b.outside == 0);
	samples_by_func_deinit(&b);
	codes_deinit(codes);
	free(codes);
	check_no_leaks();
}

Test(tally, samples_in_parts)
{
	struct profile *p = new_profile();

	SAMPLE(p, 1, 0, 0, NUMBERED_CODE(2));
	SAMPLE(p, 1, 1, 0, NUMBERED_CODE(1));
	cr_assert_eq(profile_counts(p).events, 0, "it has not come to its end");
	SAMPLE(p, 1, 2, PYP_SAMPLE_LAST, NUMBERED_CODE(0));
	assert_times(p, "f0", 0, 10);
	assert_times(p, "f2", 10, 10);
	/* A sample whose middle was lost is not counted; the next one is. */
	SAMPLE(p, 1, 0, 0, NUMBERED_CODE(2));
	SAMPLE(p, 1, 2, PYP_SAMPLE_LAST, NUMBERED_CODE(0));
	cr_assert_eq(profile_counts(p).events, 1);
	SAMPLE(p, 1, 0, PYP_SAMPLE_LAST, NUMBERED_CODE(2));
	cr_assert_eq(profile_counts(p).events, 2);
	assert_times(p, "f2", 20, 20);
	profile_free(p);
	check_no_leaks();
}

Test(tally, stacks_without_their_beginning_hang_below_truncated)
{
	struct profile *p = new_profile();

	SAMPLE(p, 1, 0, PYP_SAMPLE_LAST | PYP_SAMPLE_TRUNCATED, NUMBERED_CODE(1), NUMBERED_CODE(0));
	assert_times(p, "f0", 0, 10);
	assert_times(p, "(truncated)", 0, 10);
	profile_free(p);
	check_no_leaks();
}

/* Of a target whose probes are limited, they are apart from what windows show. */
Test(tally, samples_between_windows)
{
	struct profile *p = new_profile();
	struct snapshot_windows w = {0};

	profile_in_windows(p, 100);
	profile_pause(p, 200);
	SAMPLE(p, 1, 0, PYP_SAMPLE_LAST, NUMBERED_CODE(1), NUMBERED_CODE(0));
	SAMPLE(p, 1, 0, 0, NUMBERED_CODE(1));
	SAMPLE(p, 2, 0, PYP_SAMPLE_LAST);
	profile_windows(p, &w);
	cr_assert_eq(w.samples, 2);
	cr_assert_eq(profile_samples(p), 2);
	cr_assert_eq(profile_counts(p).events, 0);
	assert_times(p, "f1", 0, 0);
	profile_clear(p, 300);
	profile_windows(p, &w);
	cr_assert_eq(w.samples, 0);
	cr_assert_eq(profile_samples(p), 2, "what they took is not undone");
	profile_free(p);
	check_no_leaks();
}

Test(tally, samples_that_do_not_fit)
{
	const struct profile_limits limits = {.nodes = 1};
	struct profile *p = profile_new(&limits, numbered_resolve, NULL);

	SAMPLE(p, 1, 0, PYP_SAMPLE_LAST, NUMBERED_CODE(0));
	SAMPLE(p, 1, 0, PYP_SAMPLE_LAST, NUMBERED_CODE(1));
	assert_times(p, "f0", 10, 10);
	assert_times(p, "(truncated)", 10, 10);
	cr_assert_eq(profile_counts(p).truncated, 1);
	profile_free(p);
	check_no_leaks();
}

/* Collections have rows, but are not calls. */
Test(tally, collections)
{
	struct profile *p = new_profile();
	const struct call_count said[] = {
		{1, PYP_COUNT_OUTSIDE, ID(0), 2, false},
		{1, ID(0), PYP_COUNT_GC, 10, true},
		{1, ID(0), PYP_COUNT_GC + 2, 5, false},
		{1, PYP_COUNT_OUTSIDE, PYP_COUNT_GC + PYP_GC_UNKNOWN, 1, false},
	};

	profile_set_calls(p, said, sizeof(said) / sizeof(*said));
	cr_assert_eq(calls(p, "f0", "<gc generation 0>", NULL), 10);
	cr_assert_eq(calls(p, "f0", "<gc generation 2>", NULL), 5);
	cr_assert_eq(calls(p, "", "<gc>", NULL), 1);
	cr_assert_eq(profile_counts(p).events, 2);
	profile_free(p);
	check_no_leaks();
}
