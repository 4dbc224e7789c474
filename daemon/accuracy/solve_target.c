// SPDX-License-Identifier: BSD-2-Clause
/* The measurements of a snapshot's target, and its corrected times: see solve.c for the method. */
#include "accuracy/solve.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/square.h"

#define UNKNOWN 1e18 /* ns: far longer than any time, but finite */

static uint64_t own_of(const struct snapshot_node *n, uint64_t taken)
{
	return n->self[SNAPSHOT_CPU] > taken ? n->self[SNAPSHOT_CPU] - taken : 0;
}

/* Returns the row of a node: its function's; the last row is the time outside Python. */
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

/* An interval begins with each call and with each return to the function. */
static void count_intervals(const struct snapshot *s, const struct snapshot_node *n,
			    struct reconcile_row *rows)
{
	uint64_t ended = n->calls > n->inflight ? n->calls - n->inflight : 0;

	if (n->parent == SNAPSHOT_NONE)
		return;
	rows[group_of(s, n)].intervals += (double)n->calls;
	rows[group_of(s, &s->nodes[n->parent])].intervals += (double)ended;
}

/*
 * Collections are long and have two hits each, so the trace's time is accurate. Samples during a
 * collection were counted for the function that triggered it; its samples, and those from before,
 * are reduced accordingly.
 */
static void take_collections(const struct snapshot_target *t, const double *collected,
			     struct reconcile_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double samples = collected[i] / (double)t->estimate.period_ns, left;

		if (samples <= 0)
			continue;
		left = fmax(0, rows[i].samples - samples);
		rows[i].before *= rows[i].samples > 0 ? left / rows[i].samples
						      : rows[i].own / (rows[i].own + collected[i]);
		rows[i].samples = left;
	}
}

static void fill_rows(const struct snapshot *s, const struct snapshot_target *t,
		      const uint64_t *taken, struct reconcile_row *rows, double *collected)
{
	for (uint32_t i = 0; i < s->nnodes; i++) {
		const struct snapshot_node *n = &s->nodes[i];
		struct reconcile_row *r = &rows[group_of(s, n)];

		if (s->threads[n->thread].pid != t->pid)
			continue;
		if (is_gc(s, n)) {
			collected[group_of(s, n)] += (double)own_of(n, taken[i]);
			r->intervals += (double)n->calls; /* the function continues after it */
			continue;
		}
		r->own += (double)own_of(n, taken[i]);
		r->taken += (double)taken[i];
		count_intervals(s, n, rows);
	}
	for (uint32_t f = 0; f < t->beside.trace.n; f++)
		rows[f].samples = (double)t->beside.trace.of[f];
	for (uint32_t f = 0; f < t->beside.before.n; f++)
		rows[f].before = (double)t->beside.before.of[f];
	rows[s->nfuncs].samples = (double)t->beside.trace.outside;
	rows[s->nfuncs].before = (double)t->beside.before.outside;
	take_collections(t, collected, rows, (size_t)s->nfuncs + 1);
}

/* A context's part of its function's time; by number of hits if the trace leaves no time. */
static double part_of(const struct snapshot_node *n, const struct reconcile_row *r, uint64_t taken)
{
	if (r->own > 0)
		return (double)own_of(n, taken) / r->own;
	return r->taken > 0 ? (double)taken / r->taken : 0;
}

/* Changes CPU time only; waiting stays the same. */
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
		t->subtracted[c] += old - n->self[c]; /* may be negative until all nodes are done */
	}
}

/* The probes' share of the CPU time. */
static double disturbed(const struct snapshot_target *t)
{
	uint64_t all = t->estimate.samples + t->estimate.of_probes;

	return all ? (double)t->estimate.of_probes / (double)all : 0;
}

static void set_slowdown(struct reconcile *r, double hit)
{
	r->slowdown_ns = cost_cold(hit);
	r->each_ns = cost_each(hit);
}

/* ---- errors of functions ---- */

/* A function's part of its row and, for a C function, of the rows of its callers. */
struct portion {
	double error;		     /* of the rows, in ns */
	double part;		     /* of its own row, excluding its C functions */
	double variance;	     /* of a C function's parts of rows, in ns^2 */
	struct reconcile_row native; /* trace data of itself or of its C functions */
};

/* Errors of sums over contexts are unknown. Existing errors are those of the samples alone. */
static void set_variance(struct snapshot_func *f, double variance, bool counted)
{
	const double of_trace[SNAPSHOT_FIGURES] = {
		[SNAPSHOT_TOT_CPU] = variance,
		[SNAPSHOT_TOT_WALL] = variance,
		[SNAPSHOT_CUM_CPU] = -1,
		[SNAPSHOT_CUM_WALL] = -1,
	};

	if (!counted)
		snapshot_add_variance(f, of_trace);
	else if (f->variance[SNAPSHOT_TOT_CPU] >= 0)
		f->variance[SNAPSHOT_TOT_CPU] = variance;
}

static void add_native(struct portion *p, const struct snapshot_node *n, uint64_t taken)
{
	p->native.own += (double)own_of(n, taken);
	p->native.taken += (double)taken;
	p->native.intervals += (double)n->calls;
}

/* Adds a node's part of its row; an error of the row applies to all contexts in proportion. */
static void add_portion(const struct snapshot *s, const struct snapshot_node *n,
			const struct reconcile_row *row, double part, uint64_t taken,
			struct portion *portions)
{
	const size_t func = row_of(s, n), group = group_of(s, n);

	portions[func].error += part * sqrt(fmax(0, row->variance));
	if (func == group)
		return;
	add_native(&portions[func], n, taken);
	add_native(&portions[group], n, taken);
}

/*
 * A C function whose calls are single events has no measured time: its time is in its caller. The
 * evaluator's own work is shorter than the variation in the cost of hits.
 */
static double unmeasured(const struct snapshot_func *f, double calls, double hit)
{
	return f->instant ? square(COST_APART * hit * calls) : 0;
}

/* How the time of a Python function is divided between itself and its C functions */
static void add_split(struct snapshot_func *f, double variance)
{
	const double of_split[SNAPSHOT_FIGURES] = {
		[SNAPSHOT_TOT_CPU] = variance,
		[SNAPSHOT_TOT_WALL] = variance,
		[SNAPSHOT_CUM_CPU] = variance,
		[SNAPSHOT_CUM_WALL] = variance,
	};

	snapshot_add_variance(f, of_split);
}

/*
 * hit: the cost of one hit in ns. limited: existing errors are those of all times, as if all were of samples, and
 * so are no smaller than those of the rows.
 */
static void set_variances(struct snapshot *s, const struct reconcile *r, double hit, bool limited,
			  const struct reconcile_row *rows, const struct portion *portions)
{
	for (uint32_t f = 0; f < s->nfuncs; f++) {
		const struct reconcile_row *native = &portions[f].native;
		double split = native->intervals > 0 ? reconcile_part_variance(r, native) : 0;

		split += unmeasured(&s->funcs[f], native->intervals, hit);
		if (limited)
			add_split(&s->funcs[f], split);
		else if (rows[f].ns > 0 || native->intervals > 0)
			set_variance(&s->funcs[f], square(portions[f].error) + split, false);
	}
}

/*
 * The undisturbed time of the rows, by the program's progress. observed: CPU time of the rows, with the
 * probes' time. The pace includes the time of threads that were not observed, which the process's CPU
 * time shows.
 */
static void set_total(const struct snapshot_target *t, double observed, struct reconcile *r)
{
	const struct snapshot_beside *b = &t->beside;
	double part;

	if (b->undisturbed_ns <= 0 || b->process_cpu_ns <= 0)
		return;
	part = fmin(1, observed / b->process_cpu_ns);
	r->total_ns = part * b->undisturbed_ns;
	r->total_error_ns = hypot(b->undisturbed_error, 1 - part) * b->undisturbed_ns;
}

/* Collections have no rows. */
static void set_total_of_trace(const struct snapshot_target *t, const struct reconcile_row *rows,
			       const double *collected, size_t n, struct reconcile *r)
{
	double traced = 0, collections = 0;

	for (size_t i = 0; i < n; i++) {
		traced += rows[i].own + rows[i].taken + collected[i];
		collections += collected[i];
	}
	set_total(t, traced, r);
	if (r->total_ns > 0)
		r->total_ns -= collections;
}

int reconcile_target(struct snapshot *s, struct snapshot_target *t, const uint64_t *taken)
{
	_cleanup_free_ struct reconcile_row *rows = calloc((size_t)s->nfuncs + 1, sizeof(*rows));
	_cleanup_free_ struct portion *portions = calloc((size_t)s->nfuncs + 1, sizeof(*portions));
	_cleanup_free_ double *collected = calloc((size_t)s->nfuncs + 1, sizeof(*collected));
	struct reconcile r = {
		.period_ns = (double)t->estimate.period_ns,
		.disturbed = disturbed(t),
	};

	if (!rows || !portions || !collected)
		return -ENOMEM;
	if (t->estimate.samples)
		set_slowdown(&r, cost_enter(&t->cost));
	fill_rows(s, t, taken, rows, collected);
	set_total_of_trace(t, rows, collected, (size_t)s->nfuncs + 1, &r);
	if (reconcile_solve(&r, rows, (size_t)s->nfuncs + 1) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->nnodes; i++) {
		struct snapshot_node *n = &s->nodes[i];
		const struct reconcile_row *row = &rows[group_of(s, n)];
		double part = part_of(n, row, taken[i]);

		if (s->threads[n->thread].pid != t->pid)
			continue;
		if (is_gc(s, n)) {
			set_cpu(s, t, n, own_of(n, taken[i]));
			continue;
		}
		add_portion(s, n, row, part, taken[i], portions);
		set_cpu(s, t, n, (uint64_t)(row->ns * part));
	}
	for (int c = 0; c < SNAPSHOT_CLOCKS; c++)
		if (t->subtracted[c] > INT64_MAX)
			t->subtracted[c] = 0;
	set_variances(s, &r, cost_enter(&t->cost), t->windows.sampled, rows, portions);
	return 0;
}

/* ---- counted calls ----------------------------------------------------------------------- */

/* Each call is one hit, which slows down the callee. Returns the number of calls. */
static double fill_counted(const struct snapshot *s, const struct snapshot_target *t,
			   struct reconcile_row *rows)
{
	double calls = 0;

	for (uint32_t i = 0; i < s->nnodes; i++) {
		const struct snapshot_node *n = &s->nodes[i];
		struct reconcile_row *r = &rows[group_of(s, n)];

		if (s->threads[n->thread].pid != t->pid)
			continue;
		r->own += (double)n->self[SNAPSHOT_CPU];
		r->intervals += (double)n->calls;
		r->taken = UNKNOWN;
		calls += (double)n->calls;
	}
	for (uint32_t f = 0; f < s->nfuncs; f++) {
		rows[f].samples = rows[f].own / (double)t->estimate.period_ns;
		rows[f].before = f < t->beside.before.n ? (double)t->beside.before.of[f] : 0;
	}
	rows[s->nfuncs].samples = rows[s->nfuncs].own / (double)t->estimate.period_ns;
	rows[s->nfuncs].before = (double)t->beside.before.outside;
	return calls;
}

/* A context's part of its function's time; by number of calls if it has no samples. */
static double counted_part(const struct snapshot_node *n, const struct reconcile_row *row)
{
	if (row->own > 0)
		return (double)n->self[SNAPSHOT_CPU] / row->own;
	return row->intervals > 0 ? (double)n->calls / row->intervals : 0;
}

/* Binomial: a sample of the row falls into this part with probability `part`. */
static double part_variance(const struct reconcile_row *row, double part)
{
	return square(row->ns) * part * fmax(0, 1 - part) / fmax(1, row->samples);
}

static void add_counted_portion(const struct snapshot *s, const struct snapshot_node *n,
				const struct reconcile_row *row, double part,
				struct portion *portions)
{
	struct portion *p = &portions[row_of(s, n)];

	p->error += part * sqrt(fmax(0, row->variance));
	if (row_of(s, n) == group_of(s, n))
		p->part += part;
	else
		p->variance += part_variance(row, part);
}

/* walked: wall time is CPU time plus waiting. */
static void set_counted(struct snapshot *s, struct snapshot_node *n, uint64_t cpu, bool walked)
{
	struct snapshot_thread *th = &s->threads[n->thread];

	th->total[SNAPSHOT_CPU] += cpu - n->self[SNAPSHOT_CPU];
	if (walked) {
		th->total[SNAPSHOT_WALL] += cpu - n->self[SNAPSHOT_CPU];
		n->self[SNAPSHOT_WALL] += cpu - n->self[SNAPSHOT_CPU];
	}
	n->self[SNAPSHOT_CPU] = cpu;
}

int reconcile_counted(struct snapshot *s, struct snapshot_target *t)
{
	_cleanup_free_ struct reconcile_row *rows = calloc((size_t)s->nfuncs + 1, sizeof(*rows));
	_cleanup_free_ struct portion *portions = calloc((size_t)s->nfuncs + 1, sizeof(*portions));
	struct reconcile r = {.period_ns = (double)t->estimate.period_ns,
			      .disturbed = disturbed(t)};
	double calls;

	if (!rows || !portions)
		return -ENOMEM;
	calls = fill_counted(s, t, rows);
	if (calls > 0)
		set_slowdown(&r, (double)t->estimate.of_probes * r.period_ns / calls);
	set_total(t, (double)(t->estimate.samples + t->estimate.of_probes) * r.period_ns, &r);
	if (reconcile_solve(&r, rows, (size_t)s->nfuncs + 1) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->nnodes; i++) {
		struct snapshot_node *n = &s->nodes[i];
		const struct reconcile_row *row = &rows[group_of(s, n)];
		double part = counted_part(n, row);

		if (s->threads[n->thread].pid != t->pid)
			continue;
		add_counted_portion(s, n, row, part, portions);
		set_counted(s, n, (uint64_t)(row->ns * part), t->waits.walked);
	}
	for (uint32_t f = 0; f < s->nfuncs; f++) {
		const struct portion *p = &portions[f];

		if (p->error > 0)
			set_variance(&s->funcs[f],
				     square(p->error) + p->variance +
					     part_variance(&rows[f], p->part),
				     true);
	}
	return 0;
}
