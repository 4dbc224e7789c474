// SPDX-License-Identifier: BSD-2-Clause
#include "accuracy/progress.h"

#include <math.h>

#include "accuracy/evidence_priv.h"
#include "base/student.h"

/* Fewer say too little. The last one of several has a relative error of its own: see common_error. */
#define MARKS_MIN 8.0
/* Relative error that comes from code with fewer or more marks per call */
#define PROGRESS_ERROR 0.02
/* Relative error of a ratio that one window shows; it decreases fast with their number */
#define ONE_WINDOW 0.5
/*
 * The time before marks were counted has as many calls per CPU time as that after it, with this relative error; if
 * it is more than a part of all, marks do not say enough.
 */
#define UNMARKED_ERROR 0.3
#define MARKED_LEAST   0.3

/* With fewer, the variance is widened as if there were so many. */
#define N_LEAST 3.0

/* The variance of z - R x over n windows, for a ratio R of their sums. */
static double residual(double n, double z2, double zx, double x2, double ratio)
{
	double var = z2 - 2 * ratio * zx + ratio * ratio * x2;

	n = n > N_LEAST ? n : N_LEAST;
	return var > 0 ? student_widened(var * n / (n - 1), n) : 0;
}

static double effective_marks(const struct evidence_marked *m)
{
	return evidence_effective(m->marks, m->all_marks, m->m2);
}

double progress_windows(const struct evidence *e)
{
	return effective_marks(&e->progress.marked);
}

double progress_factor(const struct evidence *e, double *ret_error, double *ret_common)
{
	const struct evidence_marked *m = &e->progress.marked;
	const double n = effective_marks(m);
	const double marked = e->own_cpu > 0 ? 1 - e->progress.cpu_before / e->own_cpu : 1;
	double var;

	if (marked < MARKED_LEAST || m->total <= 0 || e->progress.shown < MARKS_MIN || n <= 0 ||
	    m->calls <= 0 || e->calls <= 0)
		return 0;
	var = residual(n, m->c2, m->cm, m->m2, m->calls / m->marks);
	*ret_common = hypot(hypot(PROGRESS_ERROR, UNMARKED_ERROR * (1 - marked)),
			    hypot(ONE_WINDOW / (n * n), 1 / e->progress.shown));
	*ret_error = hypot(sqrt(var) / m->calls, *ret_common);
	return m->total / m->all_marks * m->all_calls / marked / e->calls;
}

double progress_variance(const struct evidence *e, const struct evidence_func *f)
{
	const struct evidence_marked *m = &e->progress.marked;

	return residual(effective_marks(m), f->marked.c2, f->marked.cm, m->m2,
			f->marked.calls / m->marks);
}
