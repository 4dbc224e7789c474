// SPDX-License-Identifier: BSD-2-Clause
/*
 * Marks may be chosen again when the program does something else. What the earlier ones showed is kept as
 * the number of calls that they predict, so that it can be added up. Windows in which no marks were counted
 * represent the time around them as usual. However, the cost of hits makes their own time too short, by the
 * same factor as that of windows with marks, where marks show it. While marks are chosen, no window opens;
 * often the program has just begun to do something else then, so this time is taken for like the one that
 * follows.
 */
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
/* The standard error of what is anywhere between two values, as a part of their distance */
#define EVENLY_BETWEEN 0.29
/* Relative error of the number of calls during which no marks were counted, apart from those seen */
#define UNMARKED_ERROR 0.3

/*
 * The number of windows that contribute as much as these do, by their sums of (w - 1) x, of w x, and of
 * w (w - 1) x^2, with weights w.
 */
static double effective(double x, double all, double x2)
{
	return x2 > 0 ? x * all / x2 : 0;
}

/* With fewer, the variance is widened as if there were so many. */
#define N_LEAST 3.0

/* The variance of z - R x over n windows, for a ratio R of their sums. */
static double residual(double n, double z2, double zx, double x2, double ratio)
{
	double var = z2 - 2 * ratio * zx + ratio * ratio * x2;

	n = n > N_LEAST ? n : N_LEAST;
	return var > 0 ? student_widened(var * n / (n - 1), n) : 0;
}

static bool usable(const struct evidence_progress *p)
{
	const struct evidence_marked *m = &p->marked;

	return m->total > 0 && p->shown >= MARKS_MIN && m->all_marks > 0 && m->all_calls > 0;
}

/* Calls per mark */
static double unit(const struct evidence_marked *m)
{
	return m->all_calls / m->all_marks;
}

static void add_marked(struct evidence_marked *to, const struct evidence_marked *m)
{
	const double u = unit(m);

	to->lost += m->lost;
	to->guessed += u * m->guessed;
	to->before += m->before;
	to->between += m->had_window ? u * m->guessed : 0;
	to->had_window |= m->had_window;
	to->total += u * m->total;
	to->all_marks += u * m->all_marks;
	to->all_calls += m->all_calls;
	to->calls += m->calls;
	to->marks += u * m->marks;
	to->c2 += m->c2;
	to->m2 += u * u * m->m2;
	to->cm += u * m->cm;
	to->cpu += m->cpu;
	to->cpu2 += m->cpu2;
	to->c_cpu += m->c_cpu;
}

static void add_func_marked(struct evidence_func_marked *to, const struct evidence_func_marked *f,
			    double u)
{
	to->calls += f->calls;
	to->c2 += f->c2;
	to->cm += u * f->cm;
}

void progress_settle(struct evidence *e)
{
	struct evidence_progress *p = &e->progress;
	const bool kept = usable(p);
	const double u = kept ? unit(&p->marked) : 0;

	for (uint32_t i = 0; i < e->nfuncs; i++) {
		struct evidence_func *f = &e->funcs[i];

		if (kept)
			add_func_marked(&f->done, &f->marked, u);
		f->marked = (struct evidence_func_marked){0};
	}
	if (kept) {
		add_marked(&p->done, &p->marked);
		p->shown_before += p->shown;
	} else {
		p->shown_without += p->shown_with;
		p->lost += p->marked.lost;
	}
	p->marked = (struct evidence_marked){0};
	p->shown = p->shown_with = p->now = 0;
}

void progress_add_window(struct evidence *e)
{
	struct evidence_progress *p = &e->progress;
	struct evidence_last *last = &e->last;

	p->has_rate = true;
	p->rate = last->calls / last->length;
	last->marked = p->on;
	last->marks = p->now;
	p->now = 0;
	if (!p->on) {
		p->shown_without += last->calls;
		return;
	}
	p->shown += last->marks;
	p->shown_with += last->calls;
}

/* All windows with marks, in calls instead of marks */
static struct evidence_marked all_marked(const struct evidence_progress *p)
{
	struct evidence_marked m = p->done;

	if (usable(p))
		add_marked(&m, &p->marked);
	return m;
}

struct calls {
	double sum;
	double guessed; /* those for which there were neither windows nor marks */
	double error;	/* of those */
};

/*
 * Calls while marks were chosen: between those that the window before shows, whose own time is as wrong as that
 * of windows with marks, and those that marks show in the moment after it. Without a window before, the
 * average of the program shows how far off they may be.
 */
static struct calls guess_chosen(const struct evidence *e, const struct evidence_marked *m,
				 double factor)
{
	const double all = e->all_ns + e->gap_ns + e->progress.lost + m->lost;
	const double between = (m->between + factor * m->before) / 2;
	const double apart = m->between - factor * m->before, after = m->guessed - m->between;
	const double average = all > 0 ? m->total * m->lost / all : 0;

	return (struct calls){
		.guessed = between + after,
		.error = m->had_window ? EVENLY_BETWEEN * apart : m->guessed - average,
	};
}

static struct calls count_calls(const struct evidence *e, const struct evidence_marked *m)
{
	const struct evidence_progress *p = &e->progress;
	double seen = p->shown_without + (usable(p) ? 0 : p->shown_with);
	double weighted = fmax(0, e->calls - m->all_calls);
	double factor = m->total / m->all_marks;
	double lost = p->lost + (usable(p) ? 0 : p->marked.lost);
	struct calls c = guess_chosen(e, m, factor);

	seen = fmin(seen, weighted);
	c.guessed += (weighted - seen) * factor;
	c.sum = m->total + seen + c.guessed;
	lost = e->all_ns > 0 ? c.sum * lost / e->all_ns : 0;
	c.guessed += lost;
	c.sum += lost;
	c.error = hypot(c.error, fmax(UNMARKED_ERROR, fabs(log(factor)) / 2) * c.guessed);
	return c;
}

static double common_error(const struct evidence_progress *p, const struct evidence_marked *m,
			   const struct calls *c)
{
	double n = effective(m->marks, m->all_marks, m->m2);
	double shown = p->shown_before + (usable(p) ? p->shown : 0);
	double of_few = hypot(ONE_WINDOW / (n * n), 1 / shown);

	return n > 0 ? hypot(hypot(PROGRESS_ERROR, c->error / c->sum), of_few) : 1;
}

double progress_factor(const struct evidence *e, double *ret_error, double *ret_common)
{
	const struct evidence_marked m = all_marked(&e->progress);
	double n = effective(m.marks, m.all_marks, m.m2), var;
	struct calls c;

	if (m.total <= 0 || n <= 0 || e->calls <= 0 || m.calls <= 0)
		return 0;
	c = count_calls(e, &m);
	var = residual(n, m.c2, m.cm, m.m2, m.calls / m.marks);
	*ret_common = common_error(&e->progress, &m, &c);
	*ret_error = hypot(sqrt(var) / m.calls, *ret_common);
	return c.sum / e->calls;
}

double progress_cpu_error(const struct evidence *e)
{
	const struct evidence_marked m = all_marked(&e->progress);
	double n = effective(m.calls, m.all_calls, m.c2);

	if (n < 2 || m.cpu <= 0)
		return -1;
	return sqrt(residual(n, m.c2, m.c_cpu, m.cpu2, m.calls / m.cpu)) / m.calls;
}

double progress_variance(const struct evidence *e, const struct evidence_func *f)
{
	const struct evidence_marked m = all_marked(&e->progress);
	struct evidence_func_marked z = f->done;

	if (usable(&e->progress))
		add_func_marked(&z, &f->marked, unit(&e->progress.marked));
	return residual(effective(m.marks, m.all_marks, m.m2), z.c2, z.cm, m.m2, z.calls / m.marks);
}
