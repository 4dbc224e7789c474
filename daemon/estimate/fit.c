// SPDX-License-Identifier: BSD-2-Clause
/*
 * Combining windows and samples
 *
 * Windows show exact calls, but times include the probes. In a program that mostly calls, probes
 * take most of the time: an error of 5 % in their cost can equal the own time of a function with
 * many calls. Samples taken between windows are undisturbed, but few. So:
 *
 * First, one factor for the cost. With own(f) and taken(f) from windows, and o and t their sums, a
 * function's share is
 *
 *    (own(f) - x taken(f)) / (o - x t)
 *
 * if hits cost 1 + x times the measured cost. Samples give the share s(f). The difference
 *
 *    own(f) - s(f) o  -  x (taken(f) - s(f) t)
 *
 * is minimized in least squares, each term weighted by its expected error: differences between
 * windows, the samples' error, and cost differences between functions. The prior for x is 0 with an
 * error of a tenth, so few samples do not move it.
 *
 * Second, shares. Each function has two nearly independent shares; their mean, weighted by
 * precision, is closer to the truth than either. The share by windows has one more error, that of
 * the slowdown after hits, for a part of which the factor of the cost makes up. Windows dominate
 * where the probes took little of the time, samples elsewhere.
 */
#include "estimate/fit.h"

#include <math.h>

#include "base/square.h"

#define KNOWN_TO  0.1  /* prior error of the cost */
#define APART	  0.08 /* error of a function's cost relative to the common cost */
#define SCALED_TO 0.1  /* error of the scale of costs: 0.14 with nothing but empty calls */
#define MOST	  0.3  /* limit of the correction; beyond it the cause is not the cost */
#define TURNS	  3    /* iterations, because the errors of shares depend slightly on the factor */

struct sums {
	double own, taken, samples;
};

static struct sums sums_of(const struct fit_row *rows, size_t n)
{
	struct sums s = {0};

	for (size_t i = 0; i < n; i++) {
		s.own += rows[i].own;
		s.taken += rows[i].taken;
		s.samples += rows[i].samples;
	}
	return s;
}

/* A function's share by windows */
static double share_of(const struct fit_row *r, const struct sums *s, double x)
{
	double own = r->own - x * r->taken;

	return own > 0 ? own / (s->own - x * s->taken) : 0;
}

static double sample_variance(const struct fit_row *r, const struct sums *s, double x)
{
	/* Averages both, because a function without samples still has an error. */
	double p = (share_of(r, s, x) + r->samples / s->samples) / 2 + 0.5 / s->samples;

	return p < 1 ? p * (1 - p) / s->samples : 0.25 / s->samples;
}

/*
 * Variance of the share by windows, without that of the factor. Windows that do not have a function at all
 * agree with each other, but all may have missed it.
 */
static double window_variance(const struct fit_row *r, const struct sums *s, double x)
{
	double whole = s->own - x * s->taken;
	double variance = r->variance < 0 ? square(r->own) : r->variance;

	if (r->own <= 0)
		variance = fmax(variance, square(r->samples / s->samples / 2 * whole));
	return (variance + square(APART * r->taken)) / square(whole);
}

/* Derivative of the share by the factor */
static double slope_of(const struct fit_row *r, const struct sums *s, double x)
{
	return (r->taken - r->samples / s->samples * s->taken) / (s->own - x * s->taken);
}

/* Limit x so that at least half of own time remains. */
static double within(double x, const struct sums *s)
{
	double most = s->taken > 0 ? s->own / (2 * s->taken) : 0;

	if (most > MOST)
		most = MOST;
	return x > most ? most : x < -MOST ? -MOST : x;
}

/* One iteration of least squares. *variance: squared error of the result. */
static double solve(const struct fit_row *rows, size_t n, const struct sums *s, double x,
		    double *variance)
{
	double above = 0, below = 1 / square(KNOWN_TO), whole = s->own - x * s->taken;

	for (size_t i = 0; i < n; i++) {
		const struct fit_row *r = &rows[i];
		double off = (r->own - r->samples / s->samples * s->own) / whole;
		double slope = slope_of(r, s, x);
		double v = window_variance(r, s, x) + sample_variance(r, s, x);

		if (v <= 0)
			continue;
		above += slope * off / v;
		below += slope * slope / v;
	}
	x = within(above / below, s);
	*variance = 1 / below + square(above / below - x);
	return x;
}

/*
 * Standard error of all probes' time, relative: that of the factor, by cost differences between
 * functions, and by the reference that costs are scaled by in short windows.
 */
static double total_error(const struct fit_row *rows, size_t n, const struct sums *s, double error)
{
	double variance = 0;

	for (size_t i = 0; i < n; i++)
		variance += square(APART * rows[i].taken);
	return hypot(hypot(error, SCALED_TO), s->taken > 0 ? sqrt(variance) / s->taken : 0);
}

static void weigh(struct fit_row *r, const struct sums *s, double x, double variance)
{
	double of_samples = sample_variance(r, s, x);
	double of_windows = window_variance(r, s, x) + variance * square(slope_of(r, s, x)) +
			    square(r->unknown / (s->own - x * s->taken));
	double both = of_samples + of_windows;

	r->part = both > 0 ? of_windows / both : 0;
	r->spread = both > 0 ? sqrt(of_samples * r->part) : 0;
}

/*
 * Nothing is left in windows, as hits cost less than measured. Where traps are slow, a fiftieth
 * of their time would be left.
 */
static void weigh_samples(struct fit_row *rows, size_t n, const struct sums *s)
{
	for (size_t i = 0; i < n; i++) {
		double p = (rows[i].samples + 0.5) / (s->samples + 1);

		rows[i].part = 1;
		rows[i].spread = sqrt(p * (1 - p) / s->samples);
	}
}

struct fit fit_solve(struct fit_row *rows, size_t n)
{
	const struct sums s = sums_of(rows, n);
	struct fit ret = {.samples = s.samples, .factor = 1, .error = KNOWN_TO};
	double x = 0, variance = 0;

	ret.total_error = total_error(rows, n, &s, ret.error);
	for (size_t i = 0; i < n; i++)
		rows[i].part = rows[i].spread = 0;
	if (s.samples < 1)
		return ret;
	if (s.own <= 0) {
		weigh_samples(rows, n, &s);
		return ret;
	}
	for (int turn = 0; turn < TURNS; turn++)
		x = solve(rows, n, &s, x, &variance);
	for (size_t i = 0; i < n; i++)
		weigh(&rows[i], &s, x, variance);
	ret.factor = 1 + x;
	ret.error = sqrt(variance);
	ret.total_error = total_error(rows, n, &s, ret.error);
	return ret;
}
