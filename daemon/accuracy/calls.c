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
 * Marks, if there are, give a second factor without that error (calls.h); the one with the smaller error is
 * used.
 */
#include "accuracy/calls.h"

#include <math.h>

#include "base/square.h"
#include "base/student.h"

/*
 * Few windows say little about others, however alike they are: the relative error of what one shows, which
 * decreases fast with their number.
 */
#define ONE_WINDOW 0.5
/* With fewer, the variance of differences per mark is widened as if there were so many. */
#define N_LEAST 3.0

/* Fewer marks say too little. The last one of several has a relative error of its own. */
#define MARKS_MIN 8.0
/* Relative error that comes from code with fewer or more marks per call */
#define PROGRESS_ERROR 0.02
/*
 * The time before marks were counted has as many calls per CPU time as that after it, with this relative error; if
 * it is more than a part of all, marks do not say enough.
 */
#define UNMARKED_ERROR 0.3
#define MARKED_LEAST   0.3

/* Iterations: the errors depend on the factor. */
#define TURNS 4

/*
 * The number of windows that contribute as much as these do, by their sums of (w - 1) x, of w x, and of
 * w (w - 1) x^2, with weights w.
 */
static double effective(double x, double all, double x2)
{
	return x2 > 0 ? x * all / x2 : 0;
}

static double of_few_windows(double n)
{
	return n > 0 ? ONE_WINDOW / (n * n) : ONE_WINDOW;
}

/* The variance of z - R x over n windows, for a ratio R of their sums. */
static double residual(const struct evidence_ratio *z, double x, double x2, double n)
{
	const double var = square_residual(z->square, z->product, x2, z->sum / x);

	return var > 0 ? student_widened(var * n / (n - 1), n) : 0;
}

/* The variance of calls in windows, unscaled; negative: unknown. */
static double windows_variance(const struct evidence *e, uint32_t func)
{
	const struct evidence_ratio *f;

	if (e->windows < 2 || func >= e->nfuncs || e->size <= 0)
		return -1;
	f = &e->funcs[func].by_cpu;
	return residual(f, e->size, e->size2, (double)e->windows) +
	       square(of_few_windows(effective(e->size, e->all_cpu, e->size2)) * f->sum);
}

/* ---- by marks ---- */

double calls_windows_marked(const struct evidence *e)
{
	const struct evidence_marked *m = &e->progress.marked;

	return effective(m->marks, m->all_marks, m->marks2);
}

static double residual_by_marks(const struct evidence *e, const struct evidence_ratio *calls)
{
	const struct evidence_marked *m = &e->progress.marked;

	return residual(calls, m->marks, m->marks2, fmax(N_LEAST, calls_windows_marked(e)));
}

double calls_factor_by_marks(const struct evidence *e, double *ret_error, double *ret_common)
{
	const struct evidence_marked *m = &e->progress.marked;
	const double n = calls_windows_marked(e);
	const double marked = e->own_cpu > 0 ? 1 - e->progress.cpu_before / e->own_cpu : 1;

	if (marked < MARKED_LEAST || m->total <= 0 || e->progress.shown < MARKS_MIN || n <= 0 ||
	    m->calls.sum <= 0 || e->calls <= 0)
		return 0;
	*ret_common = hypot(hypot(PROGRESS_ERROR, UNMARKED_ERROR * (1 - marked)),
			    hypot(of_few_windows(n), 1 / e->progress.shown));
	*ret_error = hypot(sqrt(residual_by_marks(e, &m->calls)) / m->calls.sum, *ret_common);
	return m->total / m->all_marks * m->all_calls / marked / e->calls;
}

/* ---- by samples ---- */

struct calls_own calls_own(const struct calls_row *r, const struct calls_given *g)
{
	const double hit = g->times * g->hit_ns, taken = g->times * r->taken, n = r->intervals;
	const double left = r->cpu - taken, rest = left - cost_each(hit) * n;
	const double own = rest > 0 ? cost_undisturbed(cost_cold(hit), n, rest, 1) : rest;
	const double slowdown = fmax(0, left) - fmax(0, own);

	/*
	 * See cost.h: all of that may be wrong. Of short intervals, `own` is less wrong than what is left; but as the
	 * cost of hits is wrong everywhere in the same direction, they are not to decide.
	 */
	return (struct calls_own){
		own, hypot(hypot(hypot(COST_APART, g->error) * taken, COST_DIFFER * slowdown),
			   cost_cold_error(cost_cold(hit), n, fmax(0, own)))};
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
			const struct calls_own o = calls_own(r, g);
			const double own = fmax(0, o.ns);
			double v;

			if (own <= 0 && r->samples <= 0)
				continue;
			/* A function without samples has an error, too. */
			v = (fmax(r->samples, factor * own) / 2 + g->period_ns) * g->period_ns +
			    square(factor * o.error);
			above += own * r->samples / v;
			below += own * own / v;
			misfit += square(r->samples - factor * own) / v;
			common += own * o.error / v;
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
	factor = calls_factor_by_marks(e, &of_marks, &common);
	if (factor > 0 && (c.factor <= 0 || of_marks < c.error))
		c = (struct calls_estimate){factor, common, true};
	return c;
}

double calls_variance(const struct evidence *e, const struct calls_estimate *c, uint32_t func,
		      double factor, double left)
{
	double var = windows_variance(e, func);

	if (var < 0 || c->factor <= 0)
		return -1;
	if (c->by_marks)
		var = residual_by_marks(e, &e->funcs[func].by_marks);
	return square(factor) * (left * var + square(c->error * e->funcs[func].by_cpu.sum));
}
