// SPDX-License-Identifier: BSD-2-Clause
/* The measurements of a snapshot's target, and its corrected times: see solve.c for the method. */
#include "accuracy/solve.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/square.h"

#define UNKNOWN 1e18 /* ns: far longer than any time, but finite */

/* A function's part of its row and, for a C function, of the rows of its callers. */
struct portion {
	double error;		     /* of the rows, in ns */
	double part;		     /* of its own row, excluding its C functions */
	double variance;	     /* of a C function's parts of rows of samples, in ns^2 */
	struct reconcile_row native; /* trace data of itself or of its C functions */
};

struct work {
	struct snapshot *s;
	struct snapshot_target *t;
	const uint64_t *taken;	    /* per node; NULL: calls were counted, times are of samples */
	struct reconcile_row *rows; /* per function; the last one: the time outside Python */
	struct portion *portions;   /* likewise */
	double *collected;	    /* per row: collections, in ns */
	size_t n;		    /* number of rows */
	struct reconcile r;
};

static bool is_of_target(const struct work *w, const struct snapshot_node *n)
{
	return w->s->threads[n->thread].pid == w->t->pid;
}

static uint64_t taken_of(const struct work *w, const struct snapshot_node *n)
{
	return w->taken ? w->taken[n - w->s->nodes] : 0;
}

static uint64_t own_of(const struct work *w, const struct snapshot_node *n)
{
	const uint64_t taken = taken_of(w, n);

	return n->self[SNAPSHOT_CPU] > taken ? n->self[SNAPSHOT_CPU] - taken : 0;
}

static size_t row_of(const struct snapshot *s, const struct snapshot_node *n)
{
	return n->func == SNAPSHOT_NONE ? s->nfuncs : n->func;
}

static bool is_gc(const struct snapshot *s, const struct snapshot_node *n)
{
	return n->func != SNAPSHOT_NONE && snapshot_func_is_gc(&s->funcs[n->func]);
}

/* Like row_of, but maps a C function or a collection to the Python function that calls it. */
static size_t group_of(const struct snapshot *s, const struct snapshot_node *n)
{
	while (n->func != SNAPSHOT_NONE && n->parent != SNAPSHOT_NONE &&
	       (snapshot_func_is_native(&s->funcs[n->func]) || is_gc(s, n)))
		n = &s->nodes[n->parent];
	return row_of(s, n);
}

/* ---- what was measured ---- */

/* An interval begins with each call and, if it is traced, with each return to the function. */
static void count_intervals(const struct work *w, const struct snapshot_node *n)
{
	uint64_t ended = n->calls > n->inflight ? n->calls - n->inflight : 0;

	if (n->parent == SNAPSHOT_NONE)
		return;
	w->rows[group_of(w->s, n)].intervals += (double)n->calls;
	if (w->taken)
		w->rows[group_of(w->s, &w->s->nodes[n->parent])].intervals += (double)ended;
}

/*
 * Collections are long and have two hits each, so the trace's time is accurate. Samples during a
 * collection were counted for the function that triggered it; its samples, and those from before,
 * are reduced accordingly.
 */
static void take_collections(const struct work *w)
{
	for (size_t i = 0; i < w->n; i++) {
		struct reconcile_row *row = &w->rows[i];
		double samples = w->collected[i] / w->r.period_ns, left;

		if (samples <= 0)
			continue;
		left = fmax(0, row->samples - samples);
		row->before *= row->samples > 0 ? left / row->samples
						: row->own / (row->own + w->collected[i]);
		row->samples = left;
	}
}

static double sampled(const struct snapshot_sampled *s, size_t row, size_t outside)
{
	if (row == outside)
		return (double)s->outside;
	return row < s->n ? (double)s->of[row] : 0;
}

static void fill_rows(const struct work *w)
{
	const struct snapshot *s = w->s;
	const struct snapshot_beside *b = &w->t->beside;

	for (uint32_t i = 0; i < s->nnodes; i++) {
		const struct snapshot_node *n = &s->nodes[i];
		struct reconcile_row *row = &w->rows[group_of(s, n)];

		if (!is_of_target(w, n))
			continue;
		if (w->taken && is_gc(s, n)) {
			w->collected[group_of(s, n)] += (double)own_of(w, n);
			row->intervals += (double)n->calls; /* the function continues after it */
			continue;
		}
		row->own += (double)own_of(w, n);
		row->taken += (double)taken_of(w, n);
		count_intervals(w, n);
	}
	for (size_t i = 0; i < w->n; i++) {
		struct reconcile_row *row = &w->rows[i];

		row->before = sampled(&b->before, i, w->n - 1);
		row->samples = w->taken ? sampled(&b->trace, i, w->n - 1)
					: row->own / w->r.period_ns;
		if (!w->taken)
			row->taken = UNKNOWN;
	}
	take_collections(w);
}

/* ---- parameters of all rows ---- */

/* The mean time that a hit took. Each counted call is one, which slows down the callee. */
static double hit_ns(const struct work *w)
{
	const struct snapshot_estimate *e = &w->t->estimate;
	double calls = 0;

	if (w->taken)
		return e->samples ? cost_enter(&w->t->cost) : 0;
	for (size_t i = 0; i < w->n; i++)
		calls += w->rows[i].intervals;
	return calls > 0 ? (double)e->of_probes * w->r.period_ns / calls : 0;
}

/*
 * The undisturbed time of the rows, by the program's progress. The pace includes the time of threads that were
 * not observed, which the process's CPU time shows. Collections have no rows.
 */
static void set_total(struct work *w)
{
	const struct snapshot_beside *b = &w->t->beside;
	const struct snapshot_estimate *e = &w->t->estimate;
	double traced = 0, collections = 0, part;

	if (b->undisturbed_ns <= 0 || b->process_cpu_ns <= 0)
		return;
	for (size_t i = 0; i < w->n; i++) {
		traced += w->rows[i].own + w->rows[i].taken + w->collected[i];
		collections += w->collected[i];
	}
	if (!w->taken)
		traced = (double)(e->samples + e->of_probes) * w->r.period_ns;
	part = fmin(1, traced / b->process_cpu_ns);
	w->r.total_ns = part * b->undisturbed_ns;
	w->r.total_error_ns = hypot(b->undisturbed_error, 1 - part) * b->undisturbed_ns;
	if (w->r.total_ns > 0)
		w->r.total_ns -= collections;
}

static void set_parameters(struct work *w)
{
	const struct snapshot_estimate *e = &w->t->estimate;
	const uint64_t all = e->samples + e->of_probes;
	const double hit = hit_ns(w);

	w->r.disturbed = all ? (double)e->of_probes / (double)all : 0;
	w->r.slowdown_ns = cost_cold(hit);
	w->r.each_ns = cost_each(hit);
	set_total(w);
}

/* ---- results ---- */

/* A context's part of its function's time; by number of hits if no time is left. */
static double part_of(const struct work *w, const struct snapshot_node *n,
		      const struct reconcile_row *row)
{
	if (row->own > 0)
		return (double)own_of(w, n) / row->own;
	if (!w->taken)
		return row->intervals > 0 ? (double)n->calls / row->intervals : 0;
	return row->taken > 0 ? (double)taken_of(w, n) / row->taken : 0;
}

/* Waiting stays the same. If calls were counted, wall time is without it unless it was sampled, too. */
static void set_cpu(const struct work *w, struct snapshot_node *n, uint64_t cpu)
{
	struct snapshot_thread *th = &w->s->threads[n->thread];
	uint64_t before = n->self[SNAPSHOT_CPU];

	for (int c = 0; c < SNAPSHOT_CLOCKS; c++) {
		uint64_t rest = n->self[c] > before ? n->self[c] - before : 0;
		uint64_t old = n->self[c];

		if (c == SNAPSHOT_WALL && !w->taken && !w->t->waits.walked)
			continue;
		n->self[c] = rest + cpu;
		th->total[c] += n->self[c] - old;
		if (w->taken) /* may be negative until all nodes are done */
			w->t->subtracted[c] += old - n->self[c];
	}
}

/* Binomial: a sample of the row falls into this part with probability `part`. */
static double part_variance(const struct reconcile_row *row, double part)
{
	return square(row->ns) * part * fmax(0, 1 - part) / fmax(1, row->samples);
}

/* Adds a node's part of its row; an error of the row applies to all contexts in proportion. */
static void add_portion(const struct work *w, const struct snapshot_node *n,
			const struct reconcile_row *row, double part)
{
	const size_t func = row_of(w->s, n), group = group_of(w->s, n);
	struct portion *p = &w->portions[func];

	p->error += part * sqrt(fmax(0, row->variance));
	if (func == group) {
		p->part += part;
		return;
	}
	p->variance += part_variance(row, part);
	for (int i = 0; i < 2; i++) {
		struct reconcile_row *native = &w->portions[i ? group : func].native;

		native->own += (double)own_of(w, n);
		native->taken += (double)taken_of(w, n);
		native->intervals += (double)n->calls;
	}
}

/*
 * How the time of a Python function is divided between itself and its C functions. A C function whose calls are
 * single events has no measured time: its time is in its caller. The evaluator's own work is shorter than the
 * variation in the cost of hits.
 */
static double split_variance(const struct work *w, size_t f)
{
	const struct portion *p = &w->portions[f];
	const double calls = p->native.intervals;

	if (!w->taken)
		return p->variance + part_variance(&w->rows[f], p->part);
	return (calls > 0 ? reconcile_part_variance(&w->r, &p->native) : 0) +
	       (w->s->funcs[f].instant ? square(COST_APART * cost_enter(&w->t->cost) * calls) : 0);
}

/*
 * Errors of sums over contexts are unknown. Existing errors are those of the samples alone; of a limited target,
 * they are those of all times, as if all were of samples, and so are no smaller than those of the rows.
 */
static void set_variance(const struct work *w, size_t f)
{
	const bool limited = w->t->windows.sampled;
	const double split = split_variance(w, f), all = square(w->portions[f].error) + split;
	const double tot = limited ? split : all, cum = limited ? split : -1;
	const double of_trace[SNAPSHOT_FIGURES] = {
		[SNAPSHOT_TOT_CPU] = tot,
		[SNAPSHOT_TOT_WALL] = tot,
		[SNAPSHOT_CUM_CPU] = cum,
		[SNAPSHOT_CUM_WALL] = cum,
	};
	struct snapshot_func *func = &w->s->funcs[f];

	if (w->taken && (limited || w->rows[f].ns > 0 || w->portions[f].native.intervals > 0))
		snapshot_add_variance(func, of_trace);
	else if (!w->taken && w->portions[f].error > 0 && func->variance[SNAPSHOT_TOT_CPU] >= 0)
		func->variance[SNAPSHOT_TOT_CPU] = all;
}

static void take_results(const struct work *w)
{
	for (uint32_t i = 0; i < w->s->nnodes; i++) {
		struct snapshot_node *n = &w->s->nodes[i];
		const struct reconcile_row *row = &w->rows[group_of(w->s, n)];
		double part = part_of(w, n, row);

		if (!is_of_target(w, n))
			continue;
		if (w->taken && is_gc(w->s, n)) {
			set_cpu(w, n, own_of(w, n));
			continue;
		}
		add_portion(w, n, row, part);
		set_cpu(w, n, (uint64_t)(row->ns * part));
	}
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
		if (w->taken && w->t->subtracted[c] > INT64_MAX)
			w->t->subtracted[c] = 0;
	for (uint32_t f = 0; f < w->s->nfuncs; f++)
		set_variance(w, f);
}

int reconcile_target(struct snapshot *s, struct snapshot_target *t, const uint64_t *taken)
{
	const size_t n = (size_t)s->nfuncs + 1;
	_cleanup_free_ struct reconcile_row *rows = calloc(n, sizeof(*rows));
	_cleanup_free_ struct portion *portions = calloc(n, sizeof(*portions));
	_cleanup_free_ double *collected = calloc(n, sizeof(*collected));
	struct work w = {
		.s = s,
		.t = t,
		.taken = taken,
		.rows = rows,
		.portions = portions,
		.collected = collected,
		.n = n,
		.r.period_ns = (double)t->estimate.period_ns,
	};

	if (!rows || !portions || !collected)
		return -ENOMEM;
	fill_rows(&w);
	set_parameters(&w);
	if (reconcile_solve(&w.r, rows, n) < 0)
		return -ENOMEM;
	take_results(&w);
	return 0;
}
