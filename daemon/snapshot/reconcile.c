// SPDX-License-Identifier: BSD-2-Clause
/*
 * Combining a trace, samples during the trace, and samples from before it
 *
 * In a program that mostly makes calls, probes use most of the CPU time. The time that a trace
 * charges to each function is as accurate as the known cost of a hit: an error of 10 % can exceed
 * the function's own time. Samples during the trace measure the program's own time without that
 * error, but at few points.
 *
 * First, these samples determine the total cost of all hits. Of the CPU time C, the n samples
 * outside the probes' own time stand for n * period. Hits therefore cost k times their estimate,
 * where
 *
 * 	C - k * taken = n * period
 *
 * unless the probes have used so little time that the estimate is more precise.
 *
 * Each function then has two times: that of the trace, with an error proportional to the probe cost
 * in it, because the cost of a hit varies between functions; and that of its samples, with the
 * error of a count. The mean weighted by precision is more accurate than either. Samples dominate
 * for functions that mostly make calls, the trace for functions that compute or have no samples.
 *
 * The result is U, the time that the function needed while it was traced. Code runs more slowly
 * after a hit, because caches and branch predictors were overwritten. An interval between two hits
 * that takes x undisturbed takes
 *
 * 	u(x) = x + D * (1 - exp(-x / D0))
 *
 * where D is approximately D0, a fifth of the cost of a hit. (Measured on 16 programs: intervals of
 * 24 ns became 21 ns longer, of 66 ns 64, of 116 ns 67, of 168 ns 166, of 625 ns 178.) Most of the
 * remaining error is the variation of D between functions.
 *
 * Samples from before the probes give each function's share s of the undisturbed time, but not the
 * total time. Weighted least squares over all functions finds the total T and the slowdown D for
 * which
 *
 * 	T * s plus the slowdown of the function's intervals equals U
 *
 * If functions' times differ from that by more than the errors explain, the program behaves
 * differently than before; the errors of the shares are then increased until they explain the
 * difference. If the program's progress shows the total (session/pace.h), that is one more measurement.
 * Finally, the two times of each function are combined by precision.
 *
 * Contexts of a function keep the proportions of the trace. So do the C functions that it calls,
 * and all of these share one row, because both kinds of samples identify the Python function but
 * not whether a C function ran on its behalf. Assumptions: sampling is independent of the program's
 * behaviour (its period is not a multiple of the program's own periods), and dropping a sample does
 * not depend on the function.
 */
#include "snapshot/reconcile.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define FEW_OF_ONE 5	/* samples of one function */
#define KNOWN_TO   0.15 /* relative error of the estimated cost of all hits */
#define APART	   0.15 /* relative deviation of a function's hit cost from the mean */
#define MOST	   5.0	/* limit of k; beyond it the cause is not the cost of hits */

#define TIMES_ERROR 0.3	 /* relative deviation of D from D0 between programs */
#define DIFFER	    0.4	 /* relative deviation of a function's slowdown from the mean */
#define COLD	    0.25 /* relative additional slowdown by cold caches, per function */
#define COLD_MOST                                                                                  \
	2000.0	     /* the same of a long interval, ns; with system calls 2,000 were measured */
#define OUTLIER 4.0  /* squared errors above about this value count less */
#define MET	5.0  /* minimum number of samples of a function for comparison */
#define DRIFTS	4.0  /* median squared error that chance does not explain */
#define SLOWEST 6.0  /* maximum slowdown factor of a program, apart from its hits */
#define UNKNOWN 1e18 /* ns: far longer than any time, but finite */
#define TOTALS	90   /* number of totals to try, from 1 to 1 / SLOWEST */
#define FEW	30.0 /* minimum number of samples before the probes */

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

/* A time from the trace and from the samples during it. */
struct measured {
	double ns, variance;
};

static struct measured while_traced(const struct reconcile *r, const struct reconcile_row *row,
				    bool sampled)
{
	double samples = row->samples * r->period_ns, of_trace = square(APART * row->taken);
	/* The average of both: a function without samples may still have used time. */
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

/*
 * Returns the standard error of the slowdown by cold caches of n intervals that take ns undisturbed. It
 * depends on how much memory and code an interval uses: 1 us with two system calls took 3 us, 200 ns of
 * arithmetic took 400 ns.
 */
static double cold_error(const struct reconcile *r, double n, double ns)
{
	double x = n > 0 ? ns / n : 0, longer = fmax(0, x - r->slowdown_ns);

	return r->disturbed * hypot(COLD * ns, n * COLD_MOST * (1 - exp(-longer / COLD_MOST)));
}

static struct measured without_slowdown(const struct reconcile *r, const struct reconcile_row *row,
					const struct measured *u, double times)
{
	double ns = cost_undisturbed(r->slowdown_ns, row->intervals, u->ns, times);
	double slope = 1 + times * cost_cold_slope(r->slowdown_ns, row->intervals, ns);
	double unknown = DIFFER * times * cost_cold_slowdown(r->slowdown_ns, row->intervals, ns);
	double cold = cold_error(r, row->intervals, ns);

	return (struct measured){ns,
				 (u->variance + square(unknown) + square(cold)) / square(slope)};
}

/* ---- samples from before ----------------------------------------------------------------- */

struct fit {
	double before;	 /* number of samples */
	double total;	 /* T in ns; 0: too few samples */
	double variance; /* of the total */
	double times;	 /* D / D0 */
	double drift;	 /* factor by which variances of shares exceed those of samples */
};

/* A function's time by its share. A function without samples may still have used time. */
static struct measured by_share(const struct reconcile_row *row, const struct fit *f, double total)
{
	double each = total / f->before;

	return (struct measured){each * row->before, f->drift * square(each) * (row->before + 0.5)};
}

/*
 * A function's most likely time: by its share, or its own if it has few samples from before; not 0,
 * as its time is unknown then.
 */
static double likely_ns(const struct reconcile *r, const struct reconcile_row *row,
			struct measured share, double own_ns)
{
	return row->before >= FEW_OF_ONE ? share.ns : fmax(own_ns, r->period_ns / 2);
}

/* Reduces the weight of outliers; x: a squared error. */
static double robust(double x)
{
	return OUTLIER * log1p(x / OUTLIER);
}

/*
 * Returns -2 log of the likelihood of a total, but for a constant; outliers weigh less. *ret_times
 * receives the best D for it, *ret_weight the total's 1/variance.
 *
 * What was observed of a function is U and a number of samples, not a share of the total in ns.
 * So the variance v of the difference counts relative to the total. Otherwise a small total, which
 * makes the variances of all shares small, fits best if many functions have hardly any samples.
 */
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
				   square(cold_error(r, rows[i].intervals, share.ns));
			double rest = u[i].ns - share.ns;

			if (pass == 0) {
				aa += slow * slow / v;
				ab += slow * rest / v;
				continue;
			}
			*ret_weight += square(slope * share.ns / total) / v;
			sum += robust(square(rest - *ret_times * slow) / v) +
			       log(v *
				   square(likely_ns(r, &rows[i], share, rest + share.ns) / total));
		}
	}
	if (r->total_ns > 0) {
		*ret_weight += 1 / square(r->total_error_ns);
		sum += square((total - r->total_ns) / r->total_error_ns);
	}
	return sum + square((*ret_times - 1) / TIMES_ERROR);
}

/* Finds the best total, assuming that D varies between functions as it did with f->times. */
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

/*
 * Returns how much, as a variance, the two times of functions differ beyond their errors. Uses the
 * median, so that a few functions with another slowdown do not matter.
 */
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

/*
 * Distributes the difference from the sum over the times in proportion to their variances, as far
 * as their errors explain it.
 */
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

/* Computes the times during the trace. */
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

static double hit_ns(const struct cost *c)
{
	return (double)c->before[COST_ENTER] + c->after[COST_ENTER];
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
	return f->instant ? square(APART * hit * calls) : 0;
}

/* hit: the cost of one hit in ns. */
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

/*
 * The undisturbed time of the rows, by the program's progress. The pace includes the time of threads
 * that are not in the trace, which the process's CPU time shows, and that of collections, which have
 * no rows.
 */
static void set_total(const struct snapshot_target *t, const struct reconcile_row *rows,
		      const double *collected, size_t n, struct reconcile *r)
{
	const struct snapshot_beside *b = &t->beside;
	double traced = 0, collections = 0, part;

	if (b->undisturbed_ns <= 0 || b->process_cpu_ns <= 0)
		return;
	for (size_t i = 0; i < n; i++) {
		traced += rows[i].own + rows[i].taken + collected[i];
		collections += collected[i];
	}
	part = fmin(1, traced / b->process_cpu_ns);
	r->total_ns = part * b->undisturbed_ns - collections;
	r->total_error_ns = hypot(b->undisturbed_error, 1 - part) * b->undisturbed_ns;
}

int reconcile_target(struct snapshot *s, struct snapshot_target *t, const uint64_t *taken)
{
	_cleanup_free_ struct reconcile_row *rows = calloc((size_t)s->nfuncs + 1, sizeof(*rows));
	_cleanup_free_ struct portion *portions = calloc((size_t)s->nfuncs + 1, sizeof(*portions));
	_cleanup_free_ double *collected = calloc((size_t)s->nfuncs + 1, sizeof(*collected));
	struct reconcile r = {
		.period_ns = (double)t->estimate.period_ns,
		.slowdown_ns = t->estimate.samples ? cost_cold(hit_ns(&t->cost)) : 0,
		.disturbed = disturbed(t),
	};

	if (!rows || !portions || !collected)
		return -ENOMEM;
	fill_rows(s, t, taken, rows, collected);
	set_total(t, rows, collected, (size_t)s->nfuncs + 1, &r);
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
