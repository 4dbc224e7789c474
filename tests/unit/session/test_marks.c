// SPDX-License-Identifier: BSD-2-Clause
/* Choosing marks, of opcodes that are executed at known rates. A hit makes the program slower. */
#include "harness/test.h"
#include "session/marks.h"

#define US   1000ull
#define MS   1000000ull
#define STEP (100 * US)

#define HIT_NS	    300.0
#define SLOW_HIT_NS 6000.0 /* some virtual machines */

struct sim {
	struct marks m;
	const double *per_ms; /* executions of each opcode per ms of the program's own time */
	uint32_t n;
	uint64_t now, cpu, counts[PYP_MARKS];
	double rest[PYP_MARKS];
	uint64_t hits; /* in all, before marks were kept */
	unsigned int steps;
};

static bool is_attached(const struct marks *m, uint32_t mark)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (m->v[i] == mark)
			return true;
	return false;
}

static void go(struct sim *s, uint64_t ns)
{
	double each = 0, own;

	for (uint32_t i = 0; i < s->n; i++)
		each += is_attached(&s->m, i) ? s->per_ms[i] / MS * s->m.of.hit_ns : 0;
	own = (double)ns / (1 + each);
	for (uint32_t i = 0; i < s->n; i++) {
		double hits = is_attached(&s->m, i) ? own * s->per_ms[i] / MS + s->rest[i] : 0;

		s->counts[i] += (uint64_t)hits;
		s->rest[i] = hits - (double)(uint64_t)hits;
		s->hits += s->m.state == MARKS_KEPT ? 0 : (uint64_t)hits;
	}
	s->now += ns;
	s->cpu += ns;
}

static void begin(struct sim *s, double hit_ns, const double *per_ms, uint32_t n)
{
	*s = (struct sim){.per_ms = per_ms, .n = n, .now = 1000 * MS};
	marks_begin(&s->m, &(struct marks_opts){n, hit_ns, 0.05});
}

static void go_on(struct sim *s)
{
	while (s->m.state < MARKS_KEPT) {
		cr_assert(++s->steps < 10, "it comes to an end");
		marks_attached(&s->m, s->now, s->cpu, s->counts);
		do {
			go(s, STEP);
		} while (!marks_enough(&s->m, s->now, s->counts));
		marks_next(&s->m, s->cpu, s->counts);
	}
}

static void choose_with(struct sim *s, double hit_ns, const double *per_ms, uint32_t n)
{
	begin(s, hit_ns, per_ms, n);
	go_on(s);
}

static void choose(struct sim *s, const double *per_ms, uint32_t n)
{
	choose_with(s, HIT_NS, per_ms, n);
}

static double kept_per_ms(const struct sim *s)
{
	double sum = 0;

	for (uint32_t i = 0; i < s->m.n; i++)
		sum += s->per_ms[s->m.v[i]];
	return sum;
}

/* A loop of 10 opcodes that are executed every 50 ns, and others of all rates. */
Test(marks, the_most_frequent_affordable_ones)
{
	double per_ms[60];
	struct sim s;

	for (int i = 0; i < 60; i++)
		per_ms[i] = i < 10   ? 20000
			    : i < 20 ? 900
			    : i < 30 ? 90
			    : i < 40 ? 3
			    : i < 50 ? 0.2
				     : 0;
	choose(&s, per_ms, 60);
	cr_assert_eq(s.m.state, MARKS_KEPT);
	for (uint32_t i = 0; i < s.m.n; i++)
		cr_assert(s.m.v[i] >= 30, "opcode %d of %f/ms is kept", s.m.v[i], per_ms[s.m.v[i]]);
	cr_assert(kept_per_ms(&s) > 6, "%f", kept_per_ms(&s));
	cr_assert(kept_per_ms(&s) * 1000 * HIT_NS / 1e9 < 1.2 * 0.005);
	cr_assert(s.hits < 50000, "it took %llu hits", (unsigned long long)s.hits);
}

/* In another process of the program, the second step suffices. */
Test(marks, what_another_process_has_found)
{
	double per_ms[60];
	struct sim first, next;
	uint8_t rare[PYP_MARKS];
	uint32_t n = 0;

	for (int i = 0; i < 60; i++)
		per_ms[i] = i < 10 ? 20000 : i < 20 ? 900 : i < 30 ? 20 : i < 40 ? 3 : 0.2;
	choose(&first, per_ms, 60);
	cr_assert_eq(first.m.state, MARKS_KEPT);
	for (uint8_t i = 10; i < 60; i++)
		rare[n++] = i;
	begin(&next, HIT_NS, per_ms, 60);
	marks_expect(&next.m, rare, n);
	go_on(&next);
	cr_assert_eq(next.m.state, MARKS_KEPT);
	cr_assert(kept_per_ms(&next) > 6, "%f", kept_per_ms(&next));
	cr_assert(next.hits + 1000 < first.hits, "%llu hits, %llu of the first",
		  (unsigned long long)next.hits, (unsigned long long)first.hits);
}

/* The other process did something else. */
Test(marks, what_another_process_has_found_is_of_no_use)
{
	const double per_ms[] = {20000, 20000, 3, 0, 0};
	const uint8_t rare[] = {3, 4};
	struct sim s;

	begin(&s, HIT_NS, per_ms, 5);
	marks_expect(&s.m, rare, 2);
	cr_assert_eq(s.m.n, 2);
	go_on(&s);
	cr_assert_eq(s.m.state, MARKS_KEPT, "it begins again, with all");
	cr_assert(s.m.n == 1 && s.m.v[0] == 2);
}

/* Where traps are slow, fewer hits are affordable. */
Test(marks, slow_traps)
{
	const double per_ms[] = {20000, 20000, 900, 90, 1, 0.3, 0.1};
	struct sim s;

	choose_with(&s, SLOW_HIT_NS, per_ms, 7);
	cr_assert_eq(s.m.state, MARKS_KEPT);
	for (uint32_t i = 0; i < s.m.n; i++)
		cr_assert(s.m.v[i] >= 5, "opcode %d of %f/ms is kept", s.m.v[i], per_ms[s.m.v[i]]);
	cr_assert(kept_per_ms(&s) * 1000 * SLOW_HIT_NS / 1e9 < 1.2 * 0.005);
}

/* A single opcode may cost somewhat more. */
Test(marks, one_that_exceeds_the_budget)
{
	const double per_ms[] = {20000, 20000, 30, 40, 45000};
	struct sim s;

	choose(&s, per_ms, 5);
	cr_assert_eq(s.m.state, MARKS_KEPT);
	cr_assert_eq(s.m.n, 1);
	cr_assert_eq(s.m.v[0], 2);
}

Test(marks, nothing_but_frequent_ones)
{
	const double per_ms[] = {20000, 20000, 10000, 30000};
	struct sim s;

	choose(&s, per_ms, 4);
	cr_assert_eq(s.m.state, MARKS_NONE);
}

/* A program that sleeps: marks are chosen when it uses CPU time. */
Test(marks, no_work)
{
	uint64_t counts[PYP_MARKS] = {0};
	struct marks m;

	marks_begin(&m, &(struct marks_opts){3, HIT_NS, 0.05});
	marks_attached(&m, 1000 * MS, 5 * MS, counts);
	cr_assert(!marks_enough(&m, 1500 * MS, counts));
	cr_assert(marks_enough(&m, 2100 * MS, counts), "it does not wait forever");
	marks_next(&m, 6 * MS, counts);
	cr_assert_eq(m.state, MARKS_NEW);
	cr_assert_gt(m.wait_cpu_ns, 6 * MS);
	cr_assert_eq(m.n, 3);
	cr_assert_float_eq(m.budget, 0.005, 1e-9);
	marks_begin(&m, &(struct marks_opts){0, HIT_NS, 0.05});
	cr_assert_eq(m.state, MARKS_NONE);
}

/* One that computes without these opcodes. */
Test(marks, no_hits)
{
	const double per_ms[] = {0, 0, 0};
	struct sim s;

	choose(&s, per_ms, 3);
	cr_assert_eq(s.m.state, MARKS_NONE);
	cr_assert(s.now < 4000 * MS, "it does not wait forever");
}

/* Counts begin when marks are attached. */
Test(marks, counts_of_before_do_not_matter)
{
	uint64_t counts[PYP_MARKS] = {1000, 2000};
	struct marks m;

	marks_begin(&m, &(struct marks_opts){2, HIT_NS, 0.05});
	marks_attached(&m, MS, 0, counts);
	cr_assert_eq(marks_hits(&m, counts), 0);
	cr_assert(!marks_enough(&m, 2 * MS, counts));
	counts[1] += 7;
	cr_assert_eq(marks_hits(&m, counts), 7);
}

/* What marks take is a small part of what windows may take. */
Test(marks, the_bound_decides)
{
	struct marks m;

	marks_begin(&m, &(struct marks_opts){5, HIT_NS, 0.01});
	cr_assert_float_eq(m.budget, 0.001, 1e-9);
	marks_begin(&m, &(struct marks_opts){5, HIT_NS, 0.5});
	cr_assert_float_eq(m.budget, MARKS_MOST, 1e-9);
}

/* C code between few opcodes: each is a large part of the hits, and rare nevertheless. */
Test(marks, a_program_of_few_opcodes)
{
	double per_ms[20];
	struct sim s;

	for (int i = 0; i < 20; i++)
		per_ms[i] = 5;
	choose(&s, per_ms, 20);
	cr_assert_eq(s.m.state, MARKS_KEPT);
	cr_assert(s.m.n >= 2 && s.m.n <= 4, "%u", s.m.n);
}

static void attached_to_stay(struct marks *m, const uint64_t counts[PYP_MARKS])
{
	m->state = MARKS_KEPT;
	marks_attached(m, 0, 0, counts);
}

/* The program does something else, in which marks would take a tenth of its time. */
Test(marks, a_moment_with_too_many)
{
	uint64_t counts[PYP_MARKS] = {0};
	struct marks m;

	marks_begin(&m, &(struct marks_opts){1, HIT_NS, 0.05});
	attached_to_stay(&m, counts);
	/* 10 per ms, for a second */
	for (uint64_t at = 20 * MS; at <= 1000 * MS; at += 20 * MS) {
		counts[0] = 10 * at / MS;
		cr_assert_not(marks_unfit(&m, at, at, counts));
	}
	cr_assert(m.last_ns > 940 * MS && m.last_hits == 10 * m.last_ns / MS);
	counts[0] += 2 * 333;
	cr_assert_not(marks_unfit(&m, 1002 * MS, 1002 * MS, counts), "too soon to know");
	counts[0] += 58 * 333;
	cr_assert(marks_unfit(&m, 1060 * MS, 1060 * MS, counts));
	cr_assert(m.last_ns <= 1000 * MS && m.last_hits <= 10000, "until then they were fit");
}

/* Marks that count a trace are passed the more rarely the more it costs; they stay. */
Test(marks, rare_ones_in_a_trace)
{
	uint64_t counts[PYP_MARKS] = {0};
	struct marks m, of_windows;

	marks_begin(&m, &(struct marks_opts){1, HIT_NS, 0});
	marks_begin(&of_windows, &(struct marks_opts){1, HIT_NS, 1});
	attached_to_stay(&m, counts);
	attached_to_stay(&of_windows, counts);
	for (uint64_t at = 20 * MS; at <= 3000 * MS; at += 20 * MS) {
		counts[0] = at / MS / 10;
		cr_assert_not(marks_unfit(&m, at, at, counts));
	}
	cr_assert(marks_unfit(&of_windows, 3020 * MS, 3020 * MS, counts), "of no use for windows");
	counts[0] += 80 * 400;
	cr_assert(marks_unfit(&m, 3080 * MS, 3080 * MS, counts));
}

/* Beside a trace, which costs more, they may be frequent for a moment, but not all the time. */
Test(marks, frequent_ones_in_moments_of_a_trace)
{
	uint64_t counts[PYP_MARKS] = {0};
	struct marks m;

	marks_begin(&m, &(struct marks_opts){1, HIT_NS, 0});
	attached_to_stay(&m, counts);
	for (uint64_t at = 60 * MS; at <= 3000 * MS; at += 60 * MS) {
		counts[0] += at % (600 * MS) ? 60 : 60 * 300; /* 9 % */
		cr_assert_not(marks_unfit(&m, at, at, counts), "%d", (int)(at / MS));
	}
	for (uint64_t at = 3060 * MS; at <= 9000 * MS; at += 60 * MS)
		counts[0] += 60 * 300;
	cr_assert(marks_unfit(&m, 9000 * MS, 9000 * MS, counts), "on average");

	marks_begin(&m, &(struct marks_opts){1, HIT_NS, 0});
	attached_to_stay(&m, counts);
	counts[0] += 60 * 400;
	cr_assert(marks_unfit(&m, 60 * MS, 60 * MS, counts), "in a moment");
}
