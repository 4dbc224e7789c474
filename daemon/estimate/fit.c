// SPDX-License-Identifier: BSD-2-Clause
/*
 * Windows and samples
 *
 * A window shows calls exactly, and times with the probes' own in them. Where a program does nothing
 * but call, these are most of it: probes that are taken to cost 5 % more than they do cost a function
 * that calls a lot all of its own time. Samples that are taken between windows see the program as it
 * is, but few of its moments. So:
 *
 * One factor for the costs. With own(f) and taken(f) as windows have them, o and t their sums, a
 * function's share is
 *
 *	(own(f) - x taken(f)) / (o - x t)
 *
 * if hits cost 1 + x times what is known. Samples say that it is s(f). What remains,
 *
 *	own(f) - s(f) o  -  x (taken(f) - s(f) t)
 *
 * is to be least in squares, each in terms of what is to be expected of it: what windows differ by,
 * what samples do, and that not all functions' hits cost the same. It is known beforehand that x is
 * about 0, by a tenth or so: few samples do not move it.
 *
 * Then shares. Each function has two, which know little of each other: the mean of them, in which
 * each counts by its precision, is closer to the truth than either. Where windows have seen a lot
 * that holds little of the probes' time, they decide; where it is the probes' for the most part,
 * samples do.
 */
#include "estimate/fit.h"

#include <math.h>

#define KNOWN_TO 0.1  /* how well costs are known beforehand */
#define APART	 0.08 /* by what functions' costs differ from what is known of all of them */
#define MOST	 0.3  /* farther off it is something else than a cost */
#define TURNS	 3    /* the shares' errors depend on the factor, a little */

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

static double square(double x)
{
	return x * x;
}

/* What windows say, as a share. */
static double share_of(const struct fit_row *r, const struct sums *s, double x)
{
	double own = r->own - x * r->taken;

	return own > 0 ? own / (s->own - x * s->taken) : 0;
}

static double sample_variance(const struct fit_row *r, const struct sums *s, double x)
{
	/* Neither alone: one that was not met is not known to be nothing. */
	double p = (share_of(r, s, x) + r->samples / s->samples) / 2 + 0.5 / s->samples;

	return p < 1 ? p * (1 - p) / s->samples : 0.25 / s->samples;
}

/* Of what windows say, as a share, but for the factor. */
static double window_variance(const struct fit_row *r, const struct sums *s, double x)
{
	double variance = r->variance < 0 ? square(r->own) : r->variance;

	return (variance + square(APART * r->taken)) / square(s->own - x * s->taken);
}

/* How a share depends on the factor. */
static double slope_of(const struct fit_row *r, const struct sums *s, double x)
{
	return (r->taken - r->samples / s->samples * s->taken) / (s->own - x * s->taken);
}

/* At least half of what is there remains. */
static double within(double x, const struct sums *s)
{
	double most = s->taken > 0 ? s->own / (2 * s->taken) : 0;

	if (most > MOST)
		most = MOST;
	return x > most ? most : x < -MOST ? -MOST : x;
}

/* One turn of least squares; *variance: the error of what it returns, squared. */
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
	*variance = 1 / below;
	return within(above / below, s);
}

static void weigh(struct fit_row *r, const struct sums *s, double x, double variance)
{
	double of_samples = sample_variance(r, s, x);
	double of_windows = window_variance(r, s, x) + variance * square(slope_of(r, s, x));
	double both = of_samples + of_windows;

	r->part = both > 0 ? of_windows / both : 0;
	r->spread = both > 0 ? sqrt(of_samples * r->part) : 0;
}

struct fit fit_solve(struct fit_row *rows, size_t n)
{
	const struct sums s = sums_of(rows, n);
	struct fit ret = {.samples = s.samples, .factor = 1, .error = KNOWN_TO};
	double x = 0, variance = 0;

	for (size_t i = 0; i < n; i++)
		rows[i].part = rows[i].spread = 0;
	if (s.samples < 1 || s.own <= 0)
		return ret;
	for (int turn = 0; turn < TURNS; turn++)
		x = solve(rows, n, &s, x, &variance);
	for (size_t i = 0; i < n; i++)
		weigh(&rows[i], &s, x, variance);
	ret.factor = 1 + x;
	ret.error = sqrt(variance);
	return ret;
}
