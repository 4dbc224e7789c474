// SPDX-License-Identifier: BSD-2-Clause
/*
 * From windows to the whole run
 *
 * Samples show how much CPU time each function used in all, windows how much of it they saw and with how many
 * calls. If they saw it as it is, the quotient of both would be the factor for the calls. But of the time in a
 * window, what the probes took and what is slower after a hit is subtracted, and in a function that mostly makes
 * calls, a small error of that exceeds its own time. So the factor is the one for which the functions' times in
 * windows fit best to their samples, in weighted least squares: functions that compute decide, even if they have
 * a small part of the calls. If they differ by more than their errors explain, so does the factor.
 *
 * Marks, if there are, give a second factor without that error (progress.h); the one with the smaller error is
 * used.
 */
#include "accuracy/calls.h"

#include <math.h>

#include "accuracy/evidence_priv.h"
#include "accuracy/progress.h"
#include "base/square.h"
#include "base/student.h"

/*
 * If fewer windows than that contain nearly all CPU time, they say little about others, however
 * alike they are: the relative error of one, which decreases fast with their number.
 */
#define FEW_WINDOWS 3.0
#define FEW_ERROR   0.5

/* Iterations: the errors depend on the factor. */
#define TURNS 4

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
	few = evidence_effective(e->size, e->all_cpu, e->size2);
	few = few < FEW_WINDOWS ? FEW_ERROR / (few * few) * f->sum : 0;
	return (var > 0 ? student_widened(var * n / (n - 1), n) : 0) + few * few;
}

/* The program's own time in windows, undisturbed, and its variance */
static double own_of(const struct calls_row *r, const struct calls_given *g, double *ret_variance)
{
	const double hit = g->times * g->hit_ns, taken = g->times * r->taken, n = r->intervals;
	const double each = cost_each(hit) * n;
	const double left = fmax(0, r->cpu - taken);
	const double own = cost_undisturbed(cost_cold(hit), n, fmax(left - each, 0), 1);

	/* See cost.h: all of that may be wrong. */
	*ret_variance = square(hypot(COST_APART, g->error) * taken) +
			square(COST_DIFFER * (left - own)) +
			square(cost_cold_error(cost_cold(hit), n, own));
	return own;
}

static struct calls_estimate by_samples(const struct evidence *e, const struct calls_given *g)
{
	double factor = e->all_cpu > 0 ? e->own_cpu / e->all_cpu : 1;
	double above, below, misfit, common;
	size_t n;

	for (int turn = 0; turn < TURNS; turn++) {
		above = below = misfit = common = 0;
		n = 0;
		for (size_t i = 0; i < g->n; i++) {
			const struct calls_row *r = &g->rows[i];
			double of_own, own = own_of(r, g, &of_own), v;

			if (own <= 0 && r->samples <= 0)
				continue;
			/* A function without samples has an error, too. */
			v = (fmax(r->samples, factor * own) / 2 + g->period_ns) * g->period_ns +
			    square(factor) * of_own;
			above += own * r->samples / v;
			below += own * own / v;
			misfit += square(r->samples - factor * own) / v;
			common += own * sqrt(of_own) / v;
			n++;
		}
		if (!(above > 0 && below > 0))
			return (struct calls_estimate){0};
		factor = above / below;
	}
	/* What is wrong about the time in windows is so everywhere in the same direction. */
	return (struct calls_estimate){
		.factor = factor,
		.error = hypot(sqrt(fmax(1, n > 1 ? misfit / (double)(n - 1) : 1) / below) / factor,
			       common / below),
	};
}

struct calls_estimate calls_estimate(const struct evidence *e, const struct calls_given *g)
{
	double of_marks, common, factor;
	struct calls_estimate c;

	if (!e->windows)
		return (struct calls_estimate){0};
	c = by_samples(e, g);
	factor = progress_factor(e, &of_marks, &common);
	if (factor > 0 && (c.factor <= 0 || of_marks < c.error))
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
