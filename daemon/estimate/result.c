// SPDX-License-Identifier: BSD-2-Clause
/*
 * Results from windows and samples: see estimate.h
 *
 * Samples. Between windows, timers sample the undisturbed program. fit.c derives the cost factor
 * and each function's share from them; this file distributes the shares to CCT nodes. The time that
 * a report will subtract for probes is added, so that subtracting results in these times.
 *
 * These samples contain only Python functions. Therefore a Python function and the C functions that
 * it calls are one row, and each of its nodes is one group with the nodes below; windows decide
 * within the group.
 *
 * Counts. Windows are scaled up to the whole run by the target's own CPU time (r->rest), with which
 * many figures are proportional. But a window's own CPU time is only as certain as the cost of
 * hits: relative error A. Alternatively they are scaled by elapsed time: if the target mostly
 * waits, probes take little of that, and the error B is smaller; but windows then differ in the
 * work they contain, by V. The cost of hits causes both A and B, with the same sign. Scaling by the
 * first factor to the power of t and by the second to the power of 1 - t has the error
 *
 *    (t A + (1 - t) B)^2  +  (1 - t)^2 V^2
 *
 * in addition to differences that are unrelated to CPU time; t minimizes it. Marks, if there are, give
 * a third factor, without A and B (estimate/progress.h); the one with the smallest error is used. Times
 * are always scaled by CPU time, because they must add up to it.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/student.h"
#include "estimate/estimate.h"
#include "estimate/estimate_priv.h"
#include "estimate/progress.h"
#include "estimate/taken.h"

/* Iterations: the cost of hits determines the slowdown, which changes the cost. */
#define TURNS 3

/* Relative error of the post-trap slowdown between programs */
#define SLOWDOWN_ERROR 0.3

/*
 * If fewer windows than that contain nearly all CPU or wall time, they say little about others, however
 * alike they are: the relative error of one, which decreases fast with their number.
 */
#define FEW_WINDOWS 3.0
#define FEW_ERROR   0.5

/* The relative error of a scale by CPU time if the probes seem to have taken all of it */
#define NOTHING_LEFT 10.0

/* Relative differences of hit costs between functions, as in fit.c */
#define APART 0.08

/* A CCT node: own CPU time and probes' time, unscaled; time that a report will subtract */
struct estimate_reconciled {
	double own, taken, slowdown, subtracted, intervals;
	double each;  /* what slow traps may have lengthened its intervals by */
	double group; /* own time, including that of C functions it calls */
	struct taken_ends callees;
};

/* For a C function: its own time; for a Python function: that of the C functions it calls */
struct estimate_native {
	bool native;
	double own, taken;
	double variance; /* variance of own between windows */
};

static double rest_of(const struct estimate *e, double own)
{
	return estimate_sampled(e) && own > 0 && e->own_cpu > 0 ? e->own_cpu / own : 1;
}

static uint64_t rounded(double x)
{
	return x < 1 ? x > 0 : (uint64_t)(x + 0.5);
}

/* Time that no window represents */
static double unseen_ns(const struct estimate *e)
{
	return e->gap_ns + e->progress.lost + e->progress.done.lost + e->progress.marked.lost;
}

static double wait_rest(const struct estimate *e)
{
	return e->all_ns > 0 ? 1 + unseen_ns(e) / e->all_ns : 1;
}

/* Folded figures plus the tree's present ones */
static struct estimate_node sum_of(const struct estimate_result *r, uint32_t node)
{
	struct estimate_node sum = {0};
	const struct node *n = &r->tree->nodes[node];

	if (node < r->e->n)
		sum = r->e->nodes[node];
	sum.calls += (double)n->calls;
	sum.yields += (double)r->tree->yields[node];
	sum.cpu += (double)n->self[SNAPSHOT_CPU];
	sum.wait += taken_waiting(n);
	return sum;
}

static uint32_t func_of(const struct estimate_result *r, uint32_t node)
{
	uint32_t func = r->tree->nodes[node].func;

	return func < r->nfuncs ? func : r->nfuncs;
}

/* For a C function, the node of the Python function that calls it; otherwise node itself. */
static uint32_t group_of(const struct estimate_result *r, uint32_t node)
{
	while (r->natives && r->tree->parents[node] != NODE_NONE &&
	       r->natives[func_of(r, node)].native)
		node = r->tree->parents[node];
	return node;
}

static struct fit_row *row_of(const struct estimate_result *r, uint32_t node)
{
	return &r->rows[func_of(r, group_of(r, node))];
}

/*
 * The number of windows that contribute as much as these do. Weights w count as w - 1 in size, and as
 * w (w - 1) in size2.
 */
static double effective_windows(const struct estimate *e, bool wall)
{
	double all = e->size[SNAPSHOT_CPU] > 0 ? e->all_cpu / e->size[SNAPSHOT_CPU] : 1;

	return all * e->size[wall] * e->size[wall] / e->size2[wall];
}

/* The variance of a figure in windows, unscaled; negative: unknown. */
static double windows_variance(const struct estimate *e, uint32_t func, enum snapshot_figure figure)
{
	bool wall = figure == SNAPSHOT_TOT_WALL || figure == SNAPSHOT_CUM_WALL;
	double n = (double)e->windows, ratio, var, few;
	const struct estimate_func *f;

	if (!estimate_sampled(e))
		return 0;
	if (e->windows < 2 || func >= e->nfuncs || e->size[wall] <= 0)
		return -1;
	f = &e->funcs[func];
	ratio = f->sum[figure] / e->size[wall];
	var = f->square[figure] - 2 * ratio * f->product[figure] + ratio * ratio * e->size2[wall];
	few = effective_windows(e, wall);
	few = few < FEW_WINDOWS ? FEW_ERROR / (few * few) * f->sum[figure] : 0;
	return (var > 0 ? student_widened(var * n / (n - 1), n) : 0) + few * few;
}

/* Subtract the post-trap slowdown (base/cost.h) from own time. taken becomes the change of own time
 * per change of the cost factor. */
static void take_slowdown(struct estimate_reconciled *s, double hit_ns)
{
	const double own = s->own, cold_ns = cost_cold(hit_ns);

	if (own <= 0)
		return;
	s->each = cost_each(hit_ns) * s->intervals;
	s->own = cost_undisturbed(cold_ns, s->intervals, own, 1);
	s->slowdown = own - s->own;
	s->taken /= 1 + cost_cold_slope(cold_ns, s->intervals, s->own);
}

/* What may be wrong about the slowdown that was subtracted. It is so everywhere in the same direction. */
static double unknown_of(double slowdown, double each)
{
	return hypot(SLOWDOWN_ERROR * slowdown, each);
}

/* V squared: variance between windows of CPU time scaled by elapsed time. Negative: unknown. */
static double window_variation(const struct estimate *e)
{
	double n = (double)e->windows, ratio, var;

	if (e->windows < 2 || e->length <= 0 || e->size[SNAPSHOT_CPU] <= 0)
		return -1;
	ratio = e->size[SNAPSHOT_CPU] / e->length;
	var = e->size2[SNAPSHOT_CPU] - 2 * ratio * e->length_cpu + ratio * ratio * e->length2;
	return var > 0 ? student_widened(var * n / (n - 1), n) / pow(e->size[SNAPSHOT_CPU], 2) : 0;
}

/* Scale counts by marks if that has the smaller error. */
static void scale_by_marks(struct estimate_result *r)
{
	double by_cpu = progress_cpu_error(r->e), error, common;
	double factor = progress_factor(r->e, &error, &common);

	if (factor <= 0 || (by_cpu >= 0 && error >= hypot(by_cpu, r->counts_error)))
		return;
	r->counts = factor;
	r->counts_error = common;
	r->by_marks = true;
}

/*
 * The relative error of 1 / x, from that of x: to the larger side. What probes took is many times what is
 * left in programs that only make calls.
 */
static double of_inverse(double error)
{
	return error / (1 - fmin(error, 0.9));
}

double estimate_inverse_widened(double error)
{
	return error / (1 - fmin(2 * error, 0.95));
}

/*
 * own: CPU time in windows that remains, ns. Errors of what was subtracted for that, by the factor of the cost
 * and in all, ns; kept: what elapsed time still contains of the slowdown, ns
 */
struct scaling {
	double own, by_factor, total, kept;
};

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

static void scale_counts(struct estimate_result *r, const struct scaling *s)
{
	const double own = s->own, all_ns = r->e->all_ns > 0 ? r->e->all_ns : own;
	double a = own > 0 ? s->by_factor / own : NOTHING_LEFT;
	double b = all_ns > 0 ? hypot(s->by_factor, s->kept) / all_ns : 0;
	double variation = window_variation(r->e), t;
	/*
	 * Windows scaled by elapsed time have another CPU time than the target. What the cost of hits does
	 * not explain of that, they miss: an idle process that was busy for a short time, for example.
	 */
	double missed = r->rest > 0 ? fabs(log(r->rest)) - a - log(2) : 0;

	if (variation >= 0 && missed > 0)
		variation = fmax(variation, missed * missed);
	t = best_exponent(of_inverse(a), b, variation);
	r->counts = pow(r->rest, t) * pow(wait_rest(r->e), 1 - t);
	a = own > 0 ? of_inverse(s->total / own) : NOTHING_LEFT;
	b = all_ns > 0 ? estimate_inverse_widened(hypot(s->total, s->kept) / all_ns) : 0;
	r->counts_error = hypot(t * a + (1 - t) * b, (1 - t) * sqrt(fmax(0, variation)));
	if (r->e->calls > 0)
		r->counts_error = hypot(r->counts_error, r->e->missed / r->e->calls);
	scale_by_marks(r);
}

/* ---- C functions ---- */

static int natives_init(struct estimate_result *r, const struct funcs *funcs)
{
	bool any = false;

	if (!funcs)
		return 0;
	r->natives = calloc((size_t)r->nfuncs + 1, sizeof(*r->natives));
	if (!r->natives)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->nfuncs; i++)
		any |= r->natives[i].native = funcs_is_native(funcs, i) || func_is_gc(i);
	if (any)
		return 0;
	free(r->natives);
	r->natives = NULL;
	return 0;
}

static void natives_clear(struct estimate_result *r)
{
	for (uint32_t i = 0; i <= r->nfuncs; i++)
		r->natives[i] = (struct estimate_native){.native = r->natives[i].native};
}

/* Add the windows' figures of C functions to those of the functions that call them. */
static void add_natives(struct estimate_result *r)
{
	natives_clear(r);
	for (uint32_t i = 0; i < r->tree->n; i++) {
		struct estimate_native *f = &r->natives[func_of(r, i)];

		if (f->native && r->nodes[i].own > 0)
			f->own += r->nodes[i].own;
	}
	for (uint32_t i = 0; i < r->tree->n; i++) {
		const uint32_t func = func_of(r, i), caller = func_of(r, group_of(r, i));
		struct estimate_native *f = &r->natives[func], *g = &r->natives[caller];
		double all = windows_variance(r->e, func, SNAPSHOT_TOT_CPU), own = r->nodes[i].own;

		if (func == caller)
			continue;
		f->taken += r->nodes[i].taken;
		g->taken += r->nodes[i].taken;
		f->variance = fmax(0, all);
		if (f->own > 0 && own > 0)
			g->variance += f->variance * own / f->own;
	}
	for (uint32_t i = 0; i <= r->nfuncs; i++)
		if (!r->natives[i].native && r->rows[i].variance >= 0)
			r->rows[i].variance += r->natives[i].variance;
}

/* The variance of figures that only windows provide. */
static double native_variance(const struct estimate_result *r, uint32_t func)
{
	const struct estimate_native *f = &r->natives[func];
	double of_costs = hypot(r->fit.error, APART) * f->taken;

	return r->rest * r->rest * (f->variance + of_costs * of_costs);
}

/* Set each function's figures from windows and samples. */
static void fill_rows(struct estimate_result *r, const struct cost *cost)
{
	const struct calltree *tree = r->tree;
	const double hit = r->cost_factor * r->fit.factor * cost_enter(cost);

	memset(r->nodes, 0, tree->n * sizeof(*r->nodes));
	memset(r->rows, 0, ((size_t)r->nfuncs + 1) * sizeof(*r->rows));

	for (uint32_t i = 0; i < r->nfuncs; i++)
		r->rows[i].variance = windows_variance(r->e, i, SNAPSHOT_TOT_CPU);
	r->rows[r->nfuncs].variance = -1;
	for (uint32_t i = tree->n; i-- > 0;) {
		const struct node *n = &tree->nodes[i];
		const struct taken_ends now = {n->calls, tree->yields[i]};
		struct estimate_reconciled *s = &r->nodes[i];
		struct estimate_node sum = sum_of(r, i);
		struct fit_row *row = row_of(r, i);

		s->taken = sum.taken +
			   r->cost_factor * taken_of(cost, now, s->callees, taken_is_pseudo(n));
		s->own = sum.cpu - s->taken;
		s->intervals += sum.calls;
		take_slowdown(s, hit);
		row->own += s->own;
		row->taken += s->taken;
		row->unknown += unknown_of(s->slowdown, s->each);
		row->samples += sum.samples;
		if (tree->parents[i] == NODE_NONE || taken_is_pseudo(n))
			continue;
		taken_ends_add(&r->nodes[tree->parents[i]].callees, now);
		r->nodes[tree->parents[i]].intervals += sum.calls;
	}
	if (r->natives)
		add_natives(r);
}

/* A node's own time from windows and samples. own: the program's total. */
static double with_samples(const struct estimate_result *r, uint32_t node, double own)
{
	const uint32_t at = group_of(r, node);
	const struct fit_row *row = row_of(r, node);
	double samples = at < r->e->n ? r->e->nodes[at].samples : 0;
	double group = r->nodes[at].group, both;

	if (row->part <= 0)
		return r->nodes[node].own;
	both = (1 - row->part) * group + row->part * own * samples / r->fit.samples;
	if (group > 0)
		return both * r->nodes[node].own / group;
	return node == at ? both : 0;
}

/* Distribute each function's share to its nodes. */
static void distribute_shares(struct estimate_result *r)
{
	double own = 0, shared = 0, taken = 0, slowdown = 0, each = 0, whole;
	double unknown, by_factor;

	for (uint32_t i = 0; i < r->tree->n; i++) {
		struct estimate_reconciled *s = &r->nodes[i];

		s->own -= (r->fit.factor - 1) * s->taken;
		if (s->own < 0)
			s->own = 0;
		own += s->own;
		taken += s->taken;
		slowdown += s->slowdown;
		each += s->each;
	}
	unknown = unknown_of(slowdown, each);
	by_factor = hypot(r->fit.error * taken, unknown);
	if (own > 0)
		r->systematic = by_factor / own;
	for (uint32_t i = 0; i < r->tree->n; i++)
		r->nodes[group_of(r, i)].group += r->nodes[i].own;
	/* If nothing is left in windows, samples distribute the program's time. */
	whole = own > 0 ? own : r->e->own_cpu;
	for (uint32_t i = 0; i < r->tree->n; i++) {
		r->nodes[i].own = with_samples(r, i, whole);
		shared += r->nodes[i].own;
	}
	for (uint32_t i = 0; i < r->tree->n && shared > 0; i++)
		r->nodes[i].own *= whole / shared;
	r->rest = rest_of(r->e, whole);
	scale_counts(r, &(struct scaling){
				.own = own,
				.by_factor = by_factor,
				.total = hypot(r->fit.total_error * taken, unknown),
				.kept = slowdown + each,
			});
}

/* Compute the time that a report will subtract from each node, with its rounded counts. */
static void compute_subtracted(struct estimate_result *r, const struct cost *cost)
{
	const struct calltree *tree = r->tree;
	const struct cost c = cost_scaled(cost, r->cost_factor);

	for (uint32_t i = 0; i < tree->n; i++)
		r->nodes[i].callees = (struct taken_ends){0};
	for (uint32_t i = tree->n; i-- > 0;) {
		const struct node *n = &tree->nodes[i];
		struct estimate_node sum = sum_of(r, i);
		struct taken_ends own = {rounded(r->counts * sum.calls),
					 rounded(r->counts * sum.yields)};

		r->nodes[i].subtracted = taken_of(&c, own, r->nodes[i].callees, taken_is_pseudo(n));
		if (tree->parents[i] != NODE_NONE && !taken_is_pseudo(n))
			taken_ends_add(&r->nodes[tree->parents[i]].callees, own);
	}
}

void estimate_result_deinit(struct estimate_result *r)
{
	free(r->nodes);
	free(r->rows);
	free(r->natives);
	*r = (struct estimate_result){0};
}

int estimate_reconcile(const struct estimate *e, const struct calltree *tree, uint32_t nfuncs,
		       const struct funcs *funcs, const struct cost *cost,
		       struct estimate_result *ret)
{
	struct estimate_result r = {
		.e = e,
		.tree = tree,
		.rest = rest_of(e, e->all_cpu),
		.cost_factor = e->expected > 0 ? e->taken / e->expected : 1,
		.fit = {.factor = 1},
		.nfuncs = nfuncs,
	};

	r.counts = r.rest;

	/* With unknown costs nothing is subtracted. */
	if (e->windows > 0 && cost->known) {
		r.nodes = calloc(tree->n, sizeof(*r.nodes));
		r.rows = calloc((size_t)nfuncs + 1, sizeof(*r.rows));
		if (!r.nodes || !r.rows || natives_init(&r, funcs) < 0) {
			estimate_result_deinit(&r);
			return -ENOMEM;
		}
		for (int pass = 0; pass < TURNS; pass++) {
			fill_rows(&r, cost);
			r.fit = fit_solve(r.rows, (size_t)nfuncs + 1);
		}
		r.cost_factor *= r.fit.factor;
		distribute_shares(&r);
		compute_subtracted(&r, cost);
	}
	*ret = r;
	return 0;
}

struct estimate_figures estimate_figures(const struct estimate_result *r, uint32_t node)
{
	struct estimate_node sum = sum_of(r, node);
	double cpu = r->rest * (r->nodes ? r->nodes[node].own : sum.cpu);

	if (r->nodes)
		cpu += r->nodes[node].subtracted;
	return (struct estimate_figures){
		.calls = rounded(r->counts * sum.calls),
		.yields = rounded(r->counts * sum.yields),
		.self = {[SNAPSHOT_CPU] = rounded(cpu),
			 [SNAPSHOT_WALL] = rounded(cpu + wait_rest(r->e) * sum.wait)},
	};
}

double estimate_variance(const struct estimate_result *r, uint32_t func,
			 enum snapshot_figure figure)
{
	double var = windows_variance(r->e, func, figure), spread, systematic;

	if (r->fit.samples > 0 && figure == SNAPSHOT_TOT_CPU && func < r->nfuncs) {
		spread = r->rows[func].spread * r->e->own_cpu;
		return spread * spread + (r->natives ? native_variance(r, func) : 0);
	}
	if (var < 0 || func >= r->e->nfuncs)
		return var;
	/* Times are scaled by windows' CPU time without probes, so they share its error. */
	if (figure != SNAPSHOT_CALLS) {
		systematic = r->systematic * r->rest * r->e->funcs[func].sum[figure];
		return r->rest * r->rest * var + systematic * systematic;
	}
	if (r->by_marks)
		var = progress_variance(r->e, &r->e->funcs[func]);
	systematic = r->counts_error * r->counts * r->e->funcs[func].sum[figure];
	return r->counts * r->counts * var + systematic * systematic;
}
