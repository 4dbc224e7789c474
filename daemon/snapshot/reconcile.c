// SPDX-License-Identifier: BSD-2-Clause
/*
 * A trace, samples beside it, and samples before it
 *
 * Of a program that does nothing but call, most of the CPU time is the probes'. A trace shows which
 * function was charged with how much of it only as far as is known what a hit costs: an error of a
 * tenth is then more than all that the program did itself. Samples beside the trace show the
 * program's own time without that error, but few moments of it.
 *
 * First, these samples tell what all hits together have cost: of the CPU time C, the n samples that
 * are not of the probes' time stand for n * period. So hits cost k times what is known, where
 *
 *	C - k * taken = n * period
 *
 * unless probes have taken so little that what is known of their costs is the better witness.
 *
 * Then each function has two times: what the trace says, with an error in proportion to what probes
 * have taken in it, since hits differ in cost from function to function; and what its samples say,
 * with the error of a count. The mean in which each counts by its precision is closer to the truth
 * than either: samples decide for functions that do nothing but call, the trace for those that
 * compute, or that no sample has met.
 *
 * That is the time U which the program needed while it was traced. Code runs slower after a hit, as
 * caches and branch predictors have lost what they knew. An interval between two hits that takes x
 * undisturbed takes
 *
 *	u(x) = x + D * (1 - exp(-x / D0))
 *
 * where D is about D0, a fifth of what a hit costs. (Seen on 16 programs: intervals of 24 ns became
 * 21 ns longer, of 66 ns 64, of 116 ns 67, of 168 ns 166, of 625 ns 178.) By how much it differs from
 * one function to the next is most of the error that is left.
 *
 * Samples from before the probes know the functions' shares s of the undisturbed time, and nothing
 * of how long the program ran. What is sought is the total T and the slowdown D with which
 *
 *	T * s, made longer by the slowdown of so many intervals, is U
 *
 * for all functions, by weighted least squares. Where functions' times differ from that by more than
 * errors explain, the program does something else than before: the errors of its shares then grow
 * until they explain it. At last the two times of each function are combined by their precision.
 *
 * Inside a function, its contexts keep the proportions of the trace, and so do the C functions that it
 * calls: samples before the probes, and beside a trace, say which Python function ran, and not whether
 * a C function did for it. They make one row together. Assumed: samples are
 * independent of what the program does (their period is no round number of its own periods), and
 * dropping a sample does not depend on the function.
 */
#include "snapshot/reconcile.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define KNOWN_TO 0.15 /* how well the cost of all hits is known, without samples */
#define APART	 0.15 /* by what functions' hits differ in cost from the mean of all */
#define MOST	 5.0  /* more often off it is something else than a cost */

#define TIMES_ERROR 0.3	 /* by what D differs from D0, from program to program */
#define DIFFER	    0.4	 /* by what slowdowns of functions differ from those of the mean */
#define COLD	    0.25 /* by what functions are slowed down besides, caches being cold */
#define OUTLIER	    4.0	 /* squared errors are believed up to about that */
#define MET	    5.0	 /* samples of a function that can be compared */
#define DRIFTS	    4.0	 /* squared errors of half of the functions that are no chance */
#define SLOWEST	    6.0	 /* no program is slowed down more often than that, besides its hits */
#define UNKNOWN	    1e18 /* ns: far more than any time, and not infinite */
#define TOTALS	    90	 /* that are tried between the two */
#define FEW	    30.0 /* fewer samples say nothing */

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

/* ---- while it was traced ----------------------------------------------------------------- */

/* By the trace and the samples beside it. */
struct measured {
	double ns, variance;
};

static struct measured while_traced(const struct reconcile *r, const struct reconcile_row *row,
				    bool sampled)
{
	double samples = row->samples * r->period_ns, of_trace = square(APART * row->taken);
	/* Neither alone: one that was not met is not known to be nothing. */
	double of_samples = ((row->own + samples) / 2 + r->period_ns / 2) * r->period_ns;
	double both = of_samples + of_trace;

	if (!sampled || both <= 0)
		return (struct measured){row->own, of_trace};
	return (struct measured){
		.ns = (of_samples * row->own + of_trace * samples) / both,
		.variance = of_samples * of_trace / both,
	};
}

/* ---- the slowdown ------------------------------------------------------------------------ */

static struct measured without_slowdown(const struct reconcile *r, const struct reconcile_row *row,
					const struct measured *u, double times)
{
	double ns = cost_undisturbed(r->slowdown_ns, row->intervals, u->ns, times);
	double slope = 1 + times * cost_cold_slope(r->slowdown_ns, row->intervals, ns);
	double unknown = DIFFER * times * cost_cold_slowdown(r->slowdown_ns, row->intervals, ns);
	double cold = COLD * r->disturbed * ns;

	return (struct measured){ns,
				 (u->variance + square(unknown) + square(cold)) / square(slope)};
}

/* ---- samples from before ----------------------------------------------------------------- */

struct fit {
	double before;	 /* samples */
	double total;	 /* T, ns; 0: there are too few */
	double variance; /* of that */
	double times;	 /* D by D0 */
	double drift;	 /* shares vary by so much more than samples do: a factor of variances */
};

/* A function's time by them. One that was not met is not known to be nothing. */
static struct measured by_share(const struct reconcile_row *row, const struct fit *f, double total)
{
	double each = total / f->before;

	return (struct measured){each * row->before, f->drift * square(each) * (row->before + 0.5)};
}

/* Of a square: outliers weigh less. */
static double robust(double x)
{
	return OUTLIER * log1p(x / OUTLIER);
}

/* How badly a total fits: the weighted sum of squares. The best D for it is *ret_times, 1/variance of
 * the total is *ret_weight. */
static double misfit(const struct reconcile *r, const struct reconcile_row *rows,
		     const struct measured *u, size_t n, const struct fit *f, double total,
		     double *ret_times, double *ret_weight)
{
	double aa = 1 / square(TIMES_ERROR), ab = aa, sum = 0;

	*ret_weight = 0;
	for (int pass = 0; pass < 2; pass++) {
		*ret_times = fmax(0, ab / aa);
		for (size_t i = 0; i < n; i++) {
			struct measured share = by_share(&rows[i], f, total);
			double slow =
				cost_cold_slowdown(r->slowdown_ns, rows[i].intervals, share.ns);
			double slope =
				1 + cost_cold_slope(r->slowdown_ns, rows[i].intervals, share.ns);
			double v = u[i].variance + square(slope) * share.variance +
				   square(DIFFER * f->times * slow) +
				   square(COLD * r->disturbed * share.ns);
			double rest = u[i].ns - share.ns;

			if (pass == 0) {
				aa += slow * slow / v;
				ab += slow * rest / v;
				continue;
			}
			*ret_weight += square(slope * share.ns / total) / v;
			sum += robust(square(rest - *ret_times * slow) / v) + log(v);
		}
	}
	return sum + square((*ret_times - 1) / TIMES_ERROR);
}

/* The total that fits best, if D varies from function to function as it did with f->times. */
static void fit_total(const struct reconcile *r, const struct reconcile_row *rows,
		      const struct measured *u, size_t n, struct fit *f)
{
	double sum = 0, best = INFINITY, best_times = 1;

	for (size_t i = 0; i < n; i++)
		sum += u[i].ns;
	for (int i = 0; i < TOTALS; i++) {
		double total = sum * pow(SLOWEST, -(double)i / TOTALS), times, weight;
		double bad = misfit(r, rows, u, n, f, total, &times, &weight);

		if (bad >= best)
			continue;
		best = bad;
		best_times = times;
		f->total = total;
		f->variance = weight > 0 ? 1 / weight : square(total);
	}
	f->times = best_times;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Do the two times of functions differ by more than their errors explain? By how much, of variances:
 * the median, so that a few functions which are slowed down otherwise do not matter. */
static double drift_of(const struct reconcile *r, const struct reconcile_row *rows,
		       const struct measured *u, size_t n, const struct fit *f, double *scratch)
{
	size_t met = 0;

	for (size_t i = 0; i < n; i++) {
		struct measured share = by_share(&rows[i], f, f->total);
		struct measured own = without_slowdown(r, &rows[i], &u[i], f->times);

		if (rows[i].before + rows[i].samples >= MET)
			scratch[met++] = f->drift *
					 (square(share.ns - own.ns) / DRIFTS - own.variance) /
					 share.variance;
	}
	qsort(scratch, met, sizeof(*scratch), compare);
	return met > 2 ? fmax(1, scratch[met / 2]) : 1;
}

static struct fit fit_before(const struct reconcile *r, const struct reconcile_row *rows,
			     const struct measured *u, size_t n, double *scratch)
{
	struct fit f = {.times = 1, .drift = 1};

	for (size_t i = 0; i < n; i++)
		f.before += rows[i].before;
	if (f.before < FEW)
		return f;
	for (int i = 0; i < 3; i++) {
		fit_total(r, rows, u, n, &f);
		f.drift = drift_of(r, rows, u, n, &f, scratch);
	}
	return f;
}

/* ---- together ---------------------------------------------------------------------------- */

static struct measured mean_of(struct measured a, struct measured b)
{
	double both = a.variance + b.variance;

	if (both <= 0)
		return b;
	return (struct measured){
		.ns = (a.ns * b.variance + b.ns * a.variance) / both,
		.variance = a.variance * b.variance / both,
	};
}

/* What is missing in the sum falls on what is known least, as far as errors explain it. */
static void keep_sum(struct measured *v, size_t n, const struct measured *sum)
{
	double rest = sum->ns, variance = 0, all;

	for (size_t i = 0; i < n; i++) {
		rest -= v[i].ns;
		variance += v[i].variance;
	}
	all = variance + sum->variance;
	for (size_t i = 0; variance > 0 && i < n; i++)
		v[i].ns = fmax(0, v[i].ns + rest * v[i].variance / all);
}

/* The times while it was traced. */
static void measure_rows(const struct reconcile *r, const struct reconcile_row *rows,
			 struct measured *u, size_t n)
{
	double samples = 0;

	for (size_t i = 0; i < n; i++)
		samples += rows[i].samples;
	for (size_t i = 0; i < n; i++)
		u[i] = while_traced(r, &rows[i], samples > 0);
	if (samples > 0)
		keep_sum(u, n,
			 &(struct measured){samples * r->period_ns,
					    (samples + 0.5) * square(r->period_ns)});
}

int reconcile_solve(const struct reconcile *r, struct reconcile_row *rows, size_t n)
{
	_cleanup_free_ struct measured *v = calloc(n + 1, sizeof(*v));
	_cleanup_free_ double *scratch = calloc(n + 1, sizeof(*scratch));
	struct fit f;

	if (!v || !scratch)
		return -ENOMEM;
	measure_rows(r, rows, v, n);
	f = fit_before(r, rows, v, n, scratch);
	for (size_t i = 0; i < n; i++) {
		v[i] = without_slowdown(r, &rows[i], &v[i], f.times);
		if (f.total > 0)
			v[i] = mean_of(by_share(&rows[i], &f, f.total), v[i]);
	}
	if (f.total > 0)
		keep_sum(v, n, &(struct measured){f.total, f.variance});
	for (size_t i = 0; i < n; i++) {
		rows[i].ns = v[i].ns;
		rows[i].variance = v[i].variance;
	}
	return 0;
}

/* ---- a snapshot -------------------------------------------------------------------------- */

static uint64_t own_of(const struct snapshot_node *n, uint64_t taken)
{
	return n->self[SNAPSHOT_CPU] > taken ? n->self[SNAPSHOT_CPU] - taken : 0;
}

/* The row of a node: its function's; the last one is what is outside Python. */
static size_t row_of(const struct snapshot *s, const struct snapshot_node *n)
{
	return n->func == SNAPSHOT_NONE ? s->nfuncs : n->func;
}

static bool is_gc(const struct snapshot *s, const struct snapshot_node *n)
{
	return n->func != SNAPSHOT_NONE && snapshot_func_is_gc(&s->funcs[n->func]);
}

/* The same of a C function, or a collection, is that of the Python function which calls it. */
static size_t group_of(const struct snapshot *s, const struct snapshot_node *n)
{
	while (n->func != SNAPSHOT_NONE && n->parent != SNAPSHOT_NONE &&
	       (snapshot_func_is_native(&s->funcs[n->func]) || is_gc(s, n)))
		n = &s->nodes[n->parent];
	return row_of(s, n);
}

/* An interval begins with a call and with each return to the function. */
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
 * Collections are long, and two hits each: what the trace says of them is true. Samples met the
 * function that set them off, so those of collections are not its own; nor is their part of its
 * samples from before.
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
			r->intervals += (double)n->calls; /* the function goes on after it */
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

/* A context's part of its function's time; where nothing is left of it, by its hits. */
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

/* The probes' share of the CPU time. */
static double disturbed(const struct snapshot_target *t)
{
	uint64_t all = t->estimate.samples + t->estimate.of_probes;

	return all ? (double)t->estimate.of_probes / (double)all : 0;
}

static double hit_ns(const struct cost *c)
{
	return (double)c->before[COST_ENTER] + c->after[COST_ENTER];
}

/* ---- errors of functions ---- */

/* What is known of a function's part in its row, and in those of others if it is one in C. */
struct portion {
	double error;		     /* of the rows, ns */
	double part;		     /* of its own row, without what C functions have of it */
	double variance;	     /* of a C function's parts of rows, ns^2 */
	struct reconcile_row native; /* of C functions, by the trace: it, or those that it calls */
};

/* Errors of sums over contexts are not known. Those that were there are the samples' alone. */
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

/* A node's part of its row: what is wrong with the row is wrong with it in all contexts alike. */
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
 * A C function whose calls are one event each has no measured time: what it takes is in its caller's.
 * The evaluator does its work in less time than by what hits differ in cost.
 */
static double unmeasured(const struct snapshot_func *f, double calls, double hit)
{
	return f->instant ? square(APART * hit * calls) : 0;
}

/* hit: the cost of one, ns. */
static void set_variances(struct snapshot *s, const struct reconcile *r, double hit,
			  const struct reconcile_row *rows, const struct portion *portions)
{
	for (uint32_t f = 0; f < s->nfuncs; f++) {
		const struct reconcile_row *native = &portions[f].native;
		struct measured u = while_traced(r, native, false);
		double split = native->intervals > 0 ? without_slowdown(r, native, &u, 1).variance
						     : 0;

		split += unmeasured(&s->funcs[f], native->intervals, hit);
		if (rows[f].ns > 0 || native->intervals > 0)
			set_variance(&s->funcs[f], square(portions[f].error) + split, false);
	}
}

int reconcile_target(struct snapshot *s, struct snapshot_target *t, const uint64_t *taken)
{
	_cleanup_free_ struct reconcile_row *rows = calloc((size_t)s->nfuncs + 1, sizeof(*rows));
	_cleanup_free_ struct portion *portions = calloc((size_t)s->nfuncs + 1, sizeof(*portions));
	_cleanup_free_ double *collected = calloc((size_t)s->nfuncs + 1, sizeof(*collected));
	const struct reconcile r = {
		.period_ns = (double)t->estimate.period_ns,
		.slowdown_ns = t->estimate.samples ? cost_cold(hit_ns(&t->cost)) : 0,
		.disturbed = disturbed(t),
	};

	if (!rows || !portions || !collected)
		return -ENOMEM;
	fill_rows(s, t, taken, rows, collected);
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
	set_variances(s, &r, hit_ns(&t->cost), rows, portions);
	return 0;
}

/* ---- counted calls ----------------------------------------------------------------------- */

/* Each call is one hit, which slows down what is called. Returns the number of calls. */
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

/* A context's part of its function's time; where no sample has met that, by its calls. */
static double counted_part(const struct snapshot_node *n, const struct reconcile_row *row)
{
	if (row->own > 0)
		return (double)n->self[SNAPSHOT_CPU] / row->own;
	return row->intervals > 0 ? (double)n->calls / row->intervals : 0;
}

/* Of a row's samples some meet this part of it. */
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
		r.slowdown_ns = cost_cold((double)t->estimate.of_probes * r.period_ns / calls);
	if (reconcile_solve(&r, rows, (size_t)s->nfuncs + 1) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->nnodes; i++) {
		struct snapshot_node *n = &s->nodes[i];
		const struct reconcile_row *row = &rows[group_of(s, n)];
		double part = counted_part(n, row);

		if (s->threads[n->thread].pid != t->pid)
			continue;
		add_counted_portion(s, n, row, part, portions);
		s->threads[n->thread].total[SNAPSHOT_CPU] -= n->self[SNAPSHOT_CPU];
		n->self[SNAPSHOT_CPU] = (uint64_t)(row->ns * part);
		s->threads[n->thread].total[SNAPSHOT_CPU] += n->self[SNAPSHOT_CPU];
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
