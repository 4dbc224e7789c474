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
 * remaining error is the variation of D between functions. If the total is known by the program's
 * progress, u(x) has another term, which is the same for all intervals: where hits took 7 us,
 * intervals of 40 ns became 400 ns longer.
 *
 * Samples from before the probes (or after them, if it idled before) give each function's share s of
 * the undisturbed time, but not the total time. Weighted least squares over all functions finds the
 * total T and the slowdown D for which
 *
 * 	T * s plus the slowdown of the function's intervals equals U
 *
 * If functions' times differ from that by more than the errors explain, the program behaves
 * differently than before; the errors of the shares are then increased until they explain the
 * difference. All functions can be slowed down by the same unknown factor, however many they are. If the
 * program's progress shows the total (session/pace.h), that is a measurement without this error.
 * Finally, the two times of each function are combined by precision.
 *
 * Contexts of a function keep the proportions of the trace. So do the C functions that it calls,
 * and all of these share one row, because both kinds of samples identify the Python function but
 * not whether a C function ran on its behalf. Assumptions: sampling is independent of the program's
 * behaviour (its period is not a multiple of the program's own periods), and dropping a sample does
 * not depend on the function.
 */
#include "accuracy/solve.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/median.h"
#include "base/square.h"

#define MOST 5.0 /* limit of k; beyond it the cause is not the cost of hits */

/*
 * Relative deviation of D from D0 between programs. All functions of a program can be slowed down by the same
 * unknown factor, so this is the relative error of the total that their times leave, too, if all time is the
 * probes'. (Totals of 16 programs on two versions were 0.9 to 2.2 times the undisturbed ones, median 1.25.)
 */
#define PROGRAMS_DIFFER 0.3
#define EACH_ERROR	0.1  /* error of what every interval is longer by, relative to D0 */
#define CHANCE		4.0  /* squared errors above that are outliers; not explained by chance */
#define FEW_OF_ONE	5.0  /* samples of one function */
#define FEW		30.0 /* samples of all before the probes */
#define SLOWEST		6.0  /* maximum slowdown factor of a program, apart from its hits */
#define TOTALS		90   /* number of totals to try, from 1 to 1 / SLOWEST */

struct measured {
	double ns, variance;
};

/* Weighted by precision; b if both are exact. */
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

double reconcile_scale(double cpu, double taken, double samples, double period_ns)
{
	const struct measured of_trace = {fmax(0, cpu - taken), square(COST_APART * taken)},
			      of_samples = {samples * period_ns,
					    (samples + 0.5) * square(period_ns)};
	double k;

	if (taken <= 0 || samples <= 0)
		return 1;
	k = (cpu - mean_of(of_trace, of_samples).ns) / taken;
	return fmin(MOST, fmax(1 / MOST, k));
}

/* ---- while it was traced ----------------------------------------------------------------- */

/* By the trace and by the samples during it */
static struct measured while_traced(const struct reconcile *r, const struct reconcile_row *row,
				    bool sampled)
{
	const struct measured of_trace = {row->own, square(COST_APART * row->taken)};
	const double samples = row->samples * r->period_ns;
	/* The average of both: a function without samples may still have used time. */
	const double variance = ((row->own + samples) / 2 + r->period_ns / 2) * r->period_ns;

	return sampled ? mean_of((struct measured){samples, variance}, of_trace) : of_trace;
}

/* ---- the slowdown ------------------------------------------------------------------------ */

struct slowdown {
	double times; /* D / D0 */
	double each;  /* what every interval is longer by, however short it is, ns */
};

/* The standard error of the slowdown by cold caches of n intervals that take ns undisturbed */
static double cold_error(const struct reconcile *r, double n, double ns)
{
	return r->disturbed * cost_cold_error(r->slowdown_ns, n, ns);
}

static double slowdown_of(const struct reconcile *r, const struct reconcile_row *row,
			  const struct slowdown *s, double ns)
{
	return s->times * cost_cold_slowdown(r->slowdown_ns, row->intervals, ns) +
	       s->each * row->intervals;
}

static struct measured without_slowdown(const struct reconcile *r, const struct reconcile_row *row,
					const struct measured *u, const struct slowdown *s)
{
	double ns = cost_undisturbed(r->slowdown_ns, row->intervals,
				     fmax(0, u->ns - s->each * row->intervals), s->times);
	double slope = 1 + s->times * cost_cold_slope(r->slowdown_ns, row->intervals, ns);
	double unknown = COST_DIFFER * slowdown_of(r, row, s, ns);
	double cold = cold_error(r, row->intervals, ns);

	return (struct measured){ns,
				 (u->variance + square(unknown) + square(cold)) / square(slope)};
}

double reconcile_part_variance(const struct reconcile *r, const struct reconcile_row *part)
{
	const struct slowdown usual = {.times = 1};
	struct measured u = while_traced(r, part, false);

	return without_slowdown(r, part, &u, &usual).variance;
}

/* ---- samples from before ----------------------------------------------------------------- */

struct fit {
	double before;	 /* number of samples */
	double total;	 /* T in ns; 0: too few samples */
	double variance; /* of the total, by what was measured */
	double stated;	 /* its whole variance */
	double common; /* the part of the functions' variance that is common to all; 0: not shown */
	struct slowdown slow;
	double drift; /* factor by which variances of shares exceed those of samples */
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
	return CHANCE * log1p(x / CHANCE);
}

/* The variance of the difference between U and its prediction; of a function's time by its share. */
static double variance_of(const struct reconcile *r, const struct reconcile_row *row,
			  const struct measured *u, const struct fit *f, struct measured share)
{
	double slope = 1 + cost_cold_slope(r->slowdown_ns, row->intervals, share.ns);

	return u->variance + square(slope) * share.variance +
	       square(COST_DIFFER * slowdown_of(r, row, &f->slow, share.ns)) +
	       square(cold_error(r, row->intervals, share.ns));
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
	double aa = 1 / square(PROGRAMS_DIFFER), ab = aa, sum = 0;

	*ret_weight = 0;
	for (int pass = 0; pass < 2; pass++) {
		*ret_times = fmax(0, ab / aa);
		for (size_t i = 0; i < n; i++) {
			struct measured share = by_share(&rows[i], f, total);
			double slow =
				cost_cold_slowdown(r->slowdown_ns, rows[i].intervals, share.ns);
			double slope =
				1 + cost_cold_slope(r->slowdown_ns, rows[i].intervals, share.ns);
			double v = variance_of(r, &rows[i], &u[i], f, share);
			double rest = u[i].ns - share.ns - r->each_ns * rows[i].intervals;

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
	return sum + square((*ret_times - 1) / PROGRAMS_DIFFER);
}

/* Finds the best total, assuming that D varies between functions as it did with f->slow. */
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
	f->slow = (struct slowdown){best_times, r->each_ns};
}

/*
 * The slowdown for which U fits best to the total that the program's progress shows, by least squares.
 * With an unknown total, what every interval is longer by could not be told from the total.
 */
static struct slowdown fit_slowdown(const struct reconcile *r, const struct reconcile_row *rows,
				    const struct measured *u, size_t n, const struct fit *f)
{
	double tt = 1 / square(PROGRAMS_DIFFER), ee = 1 / square(EACH_ERROR * r->slowdown_ns);
	double t = tt, e = ee * r->each_ns, et = 0;
	struct slowdown s;

	for (size_t i = 0; i < n; i++) {
		const struct measured share = by_share(&rows[i], f, f->total);
		const double v = variance_of(r, &rows[i], &u[i], f, share);
		const double slow = cost_cold_slowdown(r->slowdown_ns, rows[i].intervals, share.ns);
		const double rest = u[i].ns - share.ns;

		tt += slow * slow / v;
		et += slow * rows[i].intervals / v;
		ee += square(rows[i].intervals) / v;
		t += slow * rest / v;
		e += rows[i].intervals * rest / v;
	}
	s.each = fmax(0, (e * tt - t * et) / (ee * tt - et * et));
	s.times = fmax(0, (t - et * s.each) / tt);
	return s;
}

/*
 * Adds what is common to all functions to the error of the total. The program's progress, if it is
 * known, is a second measurement of the total without that error.
 */
static void take_progress(const struct reconcile *r, const struct reconcile_row *rows,
			  const struct measured *u, size_t n, struct fit *f)
{
	const double common = square(PROGRAMS_DIFFER * r->disturbed * f->total);
	const struct measured of_rows = {f->total, f->variance + common};
	struct measured total;

	f->stated = of_rows.variance;
	if (r->total_ns <= 0)
		return;
	total = mean_of(of_rows, (struct measured){r->total_ns, square(r->total_error_ns)});
	f->common = common;
	f->total = total.ns;
	f->variance = f->stated = total.variance;
	if (r->slowdown_ns > 0)
		f->slow = fit_slowdown(r, rows, u, n, f);
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
		struct measured own = without_slowdown(r, &rows[i], &u[i], &f->slow);

		if (rows[i].before + rows[i].samples >= FEW_OF_ONE)
			scratch[met++] = f->drift *
					 (square(share.ns - own.ns) / CHANCE - own.variance) /
					 share.variance;
	}
	return met > 2 ? fmax(1, median(scratch, met)) : 1;
}

static struct fit fit_before(const struct reconcile *r, const struct reconcile_row *rows,
			     const struct measured *u, size_t n, double *scratch)
{
	struct fit f = {.slow = {1, r->each_ns}, .drift = 1};

	for (size_t i = 0; i < n; i++)
		f.before += rows[i].before;
	if (f.before < FEW)
		return f;
	for (int i = 0; i < 3; i++) {
		fit_total(r, rows, u, n, &f);
		take_progress(r, rows, u, n, &f);
		f.drift = drift_of(r, rows, u, n, &f, scratch);
	}
	return f;
}

/* ---- together ---------------------------------------------------------------------------- */

/*
 * Distributes the difference from the sum over the times as far as their errors explain it: in
 * proportion to the times what is `common` to all of them, a variance of their sum; the rest in
 * proportion to their variances.
 */
static void keep_sum(struct measured *v, size_t n, const struct measured *sum, double common)
{
	double times = 0, variance = 0, rest, all;

	for (size_t i = 0; i < n; i++) {
		times += v[i].ns;
		variance += v[i].variance;
	}
	rest = sum->ns - times;
	all = variance + common + sum->variance;
	for (size_t i = 0; variance > 0 && times > 0 && i < n; i++)
		v[i].ns =
			fmax(0, v[i].ns + rest / all * (v[i].variance + common * v[i].ns / times));
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
					    (samples + 0.5) * square(r->period_ns)},
			 0);
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
		v[i] = without_slowdown(r, &rows[i], &v[i], &f.slow);
		if (f.total > 0)
			v[i] = mean_of(by_share(&rows[i], &f, f.total), v[i]);
	}
	if (f.total > 0)
		keep_sum(v, n, &(struct measured){f.total, f.variance}, f.common);
	for (size_t i = 0; i < n; i++) {
		rows[i].ns = v[i].ns;
		rows[i].variance = v[i].variance;
		if (f.total > 0)
			rows[i].variance += f.stated * square(v[i].ns / f.total);
	}
	return 0;
}
