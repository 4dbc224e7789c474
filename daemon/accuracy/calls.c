// SPDX-License-Identifier: BSD-2-Clause
/*
 * From windows to the whole run
 *
 * Many figures are proportional to the target's own CPU time, so windows are scaled by it, to what the CPU
 * clock shows. But a window's own CPU time is only as certain as the cost of
 * hits: relative error A. Alternatively they are scaled by elapsed time: if the target mostly
 * waits, probes take little of that, and the error B is smaller; but windows then differ in the
 * work they contain, by V. The cost of hits causes both A and B, with the same sign. Scaling by the
 * first factor to the power of t and by the second to the power of 1 - t has the error
 *
 *    (t A + (1 - t) B)^2  +  (1 - t)^2 V^2
 *
 * in addition to differences that are unrelated to CPU time; t minimizes it. Marks, if there are, give
 * a third factor, without A and B (progress.h); the one with the smallest error is used.
 */
#include "accuracy/calls.h"

#include <math.h>

#include "accuracy/evidence_priv.h"
#include "accuracy/progress.h"
#include "base/square.h"

/* Relative error of the post-trap slowdown between programs */
#define SLOWDOWN_ERROR 0.3

/*
 * If fewer windows than that contain nearly all CPU time, they say little about others, however
 * alike they are: the relative error of one, which decreases fast with their number.
 */
#define FEW_WINDOWS 3.0
#define FEW_ERROR   0.5

/* The relative error of a scale by CPU time if the probes seem to have taken all of it */
#define NOTHING_LEFT 10.0

/*
 * The number of windows that contribute as much as these do. Weights w count as w - 1 in size, and as
 * w (w - 1) in size2.
 */
static double effective_windows(const struct evidence *e)
{
	double all = e->size > 0 ? e->all_cpu / e->size : 1;

	return all * e->size * e->size / e->size2;
}

/* The variance of calls in windows, unscaled; negative: unknown. */
static double windows_variance(const struct evidence *e, uint32_t func)
{
	double n = (double)e->windows, ratio, var, few;
	const struct evidence_func *f;

	if (e->windows < 2 || func >= e->nfuncs || e->size <= 0)
		return -1;
	f = &e->funcs[func];
	ratio = f->sum / e->size;
	var = f->square - 2 * ratio * f->product + ratio * ratio * e->size2;
	few = effective_windows(e);
	few = few < FEW_WINDOWS ? FEW_ERROR / (few * few) * f->sum : 0;
	return (var > 0 ? evidence_widened(var * n / (n - 1), n) : 0) + few * few;
}

/* V squared: variance between windows of CPU time scaled by elapsed time. Negative: unknown. */
static double window_variation(const struct evidence *e)
{
	double n = (double)e->windows, ratio, var;

	if (e->windows < 2 || e->length <= 0 || e->size <= 0)
		return -1;
	ratio = e->size / e->length;
	var = e->size2 - 2 * ratio * e->length_cpu + ratio * ratio * e->length2;
	return var > 0 ? evidence_widened(var * n / (n - 1), n) / square(e->size) : 0;
}

/*
 * The relative error of 1 / x, from that of x: to the larger side. What probes took is many times what is
 * left in programs that only make calls.
 */
static double of_inverse(double error)
{
	return error / (1 - fmin(error, 0.9));
}

/* The same, such that two errors reach as far as two errors of x do. */
static double of_inverse_widened(double error)
{
	return error / (1 - fmin(2 * error, 0.95));
}

/*
 * Returns the exponent of the scale by CPU time, whose error is a; that by elapsed time has the error
 * b, and windows vary by `variation`, a variance.
 */
static double best_exponent(double a, double b, double variation)
{
	if (variation < 0 || a <= b)
		return 1;
	return fmax(0, (variation - b * (a - b)) / (variation + (a - b) * (a - b)));
}

/* By CPU time and elapsed time */
static struct calls_estimate by_time(const struct evidence *e, double hit_ns, double times,
				     double error)
{
	const double hits = 2 * e->calls, each = cost_each(times * hit_ns) * hits;
	const double taken = times * e->all_taken, left = fmax(0, e->all_raw - taken);
	const double own = cost_undisturbed(cost_cold(times * hit_ns), hits, left, 1);
	const double unknown = hypot(SLOWDOWN_ERROR * (left - own), each);
	const double uncertain = hypot(error * taken, unknown), kept = left - own + each;
	const double unseen = e->gap_ns + e->progress.lost + e->progress.done.lost +
			      e->progress.marked.lost;
	const double rest = own > 0 && e->own_cpu > 0 ? e->own_cpu / own : 1;
	double a = own > 0 ? uncertain / own : NOTHING_LEFT;
	double b = e->all_ns > 0 ? hypot(uncertain, kept) / e->all_ns : 0;
	double variation = window_variation(e), t;
	/*
	 * Windows scaled by elapsed time have another CPU time than the target. What the cost of hits does
	 * not explain of that, they miss: an idle process that was busy for a short time, for example.
	 */
	double missed = fabs(log(rest)) - a - log(2);
	struct calls_estimate c;

	if (variation >= 0 && missed > 0)
		variation = fmax(variation, missed * missed);
	t = best_exponent(of_inverse(a), b, variation);
	c.factor = pow(rest, t) * pow(e->all_ns > 0 ? 1 + unseen / e->all_ns : 1, 1 - t);
	a = own > 0 ? of_inverse(a) : NOTHING_LEFT;
	b = of_inverse_widened(b);
	c.error = hypot(t * a + (1 - t) * b, (1 - t) * sqrt(fmax(0, variation)));
	if (e->calls > 0)
		c.error = hypot(c.error, e->missed / e->calls);
	c.by_marks = false;
	return c;
}

struct calls_estimate calls_estimate(const struct evidence *e, double hit_ns, double times,
				     double error)
{
	double by_cpu = progress_cpu_error(e), of_marks, common, factor;
	struct calls_estimate c;

	if (!e->windows)
		return (struct calls_estimate){0};
	c = by_time(e, hit_ns, times, error);
	factor = progress_factor(e, &of_marks, &common);
	if (factor > 0 && (by_cpu < 0 || of_marks < hypot(by_cpu, c.error)))
		c = (struct calls_estimate){factor, common, true};
	return c;
}

double calls_variance(const struct evidence *e, const struct calls_estimate *c, uint32_t func)
{
	double var = windows_variance(e, func);

	if (var < 0 || c->factor <= 0)
		return -1;
	if (c->by_marks)
		var = progress_variance(e, &e->funcs[func]);
	return square(c->factor) * (var + square(c->error * e->funcs[func].sum));
}
