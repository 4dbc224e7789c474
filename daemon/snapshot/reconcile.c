// SPDX-License-Identifier: BSD-2-Clause
/*
 * A trace and samples beside it
 *
 * Of a program that does nothing but call, most of the CPU time is the probes'. A trace shows which
 * function was charged with how much of it only as far as is known what a hit costs: an error of a
 * tenth is then more than all that the program did itself. Samples show the program's own time
 * without that error, but few moments of it.
 *
 * First, samples tell what all hits together have cost: of the CPU time C, the n samples that are not
 * of the probes' time stand for n * period. So hits cost k times what is known, where
 *
 *	C - k * taken = n * period
 *
 * unless probes have taken so little that what is known of their costs is the better witness.
 *
 * Then each function has two times: what the trace says, with an error in proportion to what probes
 * have taken in it, since hits differ in cost from function to function; and what its samples say,
 * with the error of a count. The mean in which each counts by its precision is closer to the truth
 * than either: samples decide for functions that do nothing but call, the trace for those that
 * compute, or that no sample has met. What is missing in the sum, or too much, is spread over them by
 * their remaining variance. Inside a function, its contexts keep the proportions of the trace.
 *
 * Assumed: samples are independent of what the program does (their period is no round number of its
 * own periods), and dropping a sample does not depend on the function. Not taken out: code runs
 * slower for some 100 ns after each hit, which is in the samples as well.
 */
#include "snapshot/reconcile.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define KNOWN_TO 0.15 /* how well the cost of all hits is known, without samples */
#define APART	 0.15 /* by what functions' hits differ in cost from the mean of all */
#define MOST	 5.0  /* more often off it is something else than a cost */

static double square(double x)
{
	return x * x;
}

double reconcile_scale(double cpu, double taken, double samples, double period_ns)
{
	double of_trace = square(KNOWN_TO * taken),
	       of_samples = (samples + 0.5) * square(period_ns);
	double both = of_trace + of_samples, own, k;

	if (taken <= 0 || samples <= 0)
		return 1;
	own = (of_trace * samples * period_ns + of_samples * fmax(0, cpu - taken)) / both;
	k = (cpu - own) / taken;
	return k < 1 / MOST ? 1 / MOST : k > MOST ? MOST : k;
}

/* Without any sample: the trace alone. */
static void believe_trace(struct reconcile_row *r)
{
	r->ns = r->own;
	r->variance = square(APART * r->taken);
}

static void weigh(struct reconcile_row *r, double period_ns)
{
	double sampled = r->samples * period_ns;
	/* Neither alone: one that was not met is not known to be nothing. */
	double of_samples = ((r->own + sampled) / 2 + period_ns / 2) * period_ns;
	double of_trace = square(APART * r->taken);

	r->ns = (of_samples * r->own + of_trace * sampled) / (of_samples + of_trace);
	r->variance = of_samples * of_trace / (of_samples + of_trace);
}

void reconcile_solve(struct reconcile_row *rows, size_t n, double period_ns)
{
	double samples = 0, sum = 0, variance = 0, rest;

	for (size_t i = 0; i < n; i++)
		samples += rows[i].samples;
	for (size_t i = 0; i < n; i++) {
		if (samples > 0)
			weigh(&rows[i], period_ns);
		else
			believe_trace(&rows[i]);
		sum += rows[i].ns;
		variance += rows[i].variance;
	}
	if (samples <= 0 || variance <= 0)
		return;
	/* As much of what is missing as the rows' own errors explain beside that of all samples. */
	rest = (samples * period_ns - sum) * variance /
	       (variance + (samples + 0.5) * square(period_ns));
	for (size_t i = 0; i < n; i++)
		rows[i].ns = fmax(0, rows[i].ns + rest * rows[i].variance / variance);
}

static uint64_t own_of(const struct snapshot_node *n, uint64_t taken)
{
	return n->self[SNAPSHOT_CPU] > taken ? n->self[SNAPSHOT_CPU] - taken : 0;
}

/* The row of a node: its function's; the last one is what is outside Python. */
static size_t row_of(const struct snapshot *s, const struct snapshot_node *n)
{
	return n->func == SNAPSHOT_NONE ? s->nfuncs : n->func;
}

static void fill_rows(const struct snapshot *s, const struct snapshot_target *t,
		      const uint64_t *taken, struct reconcile_row *rows)
{
	for (uint32_t i = 0; i < s->nnodes; i++) {
		const struct snapshot_node *n = &s->nodes[i];
		struct reconcile_row *r = &rows[row_of(s, n)];

		if (s->threads[n->thread].pid != t->pid)
			continue;
		r->own += (double)own_of(n, taken[i]);
		r->taken += (double)taken[i];
	}
	for (uint32_t f = 0; f < t->beside.n; f++)
		rows[f].samples = (double)t->beside.of[f];
	rows[s->nfuncs].samples = (double)t->beside.outside;
}

/* A context's part of its function's time; where the trace has nothing left, by its hits. */
static double part_of(const struct snapshot_node *n, const struct reconcile_row *r, uint64_t taken)
{
	if (r->own > 0)
		return (double)own_of(n, taken) / r->own;
	return r->taken > 0 ? (double)taken / r->taken : 0;
}

/* Waiting stays as it is. */
static void set_cpu(struct snapshot *s, struct snapshot_target *t, struct snapshot_node *n,
		    uint64_t cpu)
{
	struct snapshot_thread *th = &s->threads[n->thread];
	uint64_t before = n->self[SNAPSHOT_CPU];

	for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
		uint64_t rest = n->self[c] > before ? n->self[c] - before : 0;
		uint64_t old = n->self[c];

		n->self[c] = rest + cpu;
		th->total[c] += n->self[c] - old;
		t->subtracted[c] += old - n->self[c]; /* may be less than 0 until all is done */
	}
}

int reconcile_target(struct snapshot *s, struct snapshot_target *t, const uint64_t *taken)
{
	_cleanup_free_ struct reconcile_row *rows = calloc((size_t)s->nfuncs + 1, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	fill_rows(s, t, taken, rows);
	reconcile_solve(rows, (size_t)s->nfuncs + 1, (double)t->estimate.period_ns);
	for (uint32_t i = 0; i < s->nnodes; i++) {
		struct snapshot_node *n = &s->nodes[i];
		const struct reconcile_row *r = &rows[row_of(s, n)];

		if (s->threads[n->thread].pid == t->pid)
			set_cpu(s, t, n, (uint64_t)(r->ns * part_of(n, r, taken[i])));
	}
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
		if (t->subtracted[c] > INT64_MAX)
			t->subtracted[c] = 0;
	for (uint32_t f = 0; f < s->nfuncs; f++) {
		const double variance[SNAPSHOT_FIGURES] = {
			[SNAPSHOT_TOT_CPU] = rows[f].variance,
			[SNAPSHOT_TOT_WALL] = rows[f].variance,
			[SNAPSHOT_CUM_CPU] = -1,
			[SNAPSHOT_CUM_WALL] = -1,
		};

		if (rows[f].ns > 0)
			snapshot_add_variance(&s->funcs[f], variance);
	}
	return 0;
}
